"""The three tables of §9.1 are as described, on every engine, by the engines' own catalogues."""

from typing import Any

import pytest
from sqlalchemy import JSON, Integer, String, inspect
from sqlalchemy.types import TypeEngine

from mimawari.store.sql import SqlStore
from mimawari.store.sql.engine import Session

TEXT, WHOLE, LONG = "text", "whole", "long"
KINDS: dict[str | None, tuple[type[TypeEngine[Any]], ...]] = {
    TEXT: (String,),
    WHOLE: (Integer,),
    LONG: (String, JSON),
    None: (TypeEngine,),
}
# Column, sort, length, whether it must be there.
MONITORS = [
    ("id", TEXT, 37, True),
    ("stream_url", TEXT, 512, True),
    ("callback_url", TEXT, 512, True),
    ("config", LONG, None, True),
    ("metadata", LONG, None, False),
    ("status", TEXT, 20, True),
    ("pod_name", TEXT, 63, False),
    ("created_at", None, None, True),
    ("updated_at", None, None, True),
]
STATS = [
    ("monitor_id", TEXT, 37, True),
    ("total_segments", WHOLE, None, True),
    ("blackout_events", WHOLE, None, True),
    ("silence_events", WHOLE, None, True),
    ("last_check_at", None, None, False),
]
EVENTS = [
    ("id", None, None, True),
    ("monitor_id", TEXT, 37, True),
    ("event_type", TEXT, 50, True),
    ("payload", LONG, None, True),
    ("webhook_status", TEXT, 20, True),
    ("webhook_attempts", WHOLE, None, True),
    ("webhook_last_error", LONG, None, False),
    ("created_at", None, None, True),
    ("sent_at", None, None, False),
]
TABLES = {"monitors": MONITORS, "monitor_stats": STATS, "monitor_events": EVENTS}
COUNTS = {"total_segments", "blackout_events", "silence_events", "webhook_attempts"}


async def columns_of(store: SqlStore, table: str) -> dict[str, Any]:
    """Find the columns of a table as its engine knows them, in their order."""
    found = await store.database.look(lambda s: inspect(s.connection).get_columns(table))
    return {column["name"]: column for column in found}


def is_of(sort: str | None, kind: TypeEngine[Any]) -> bool:
    """Say whether a type is of a sort; moments and ids are kept as each engine does best."""
    return isinstance(kind, KINDS[sort])


@pytest.mark.parametrize("table", TABLES)
async def test_9_1_a_table_has_the_columns_of_the_description(store: SqlStore, table: str) -> None:
    found = await columns_of(store, table)
    described = TABLES[table]
    # One more makes the unique index of active monitors possible on every engine.
    more = ["active_url"] if table == "monitors" else []
    assert list(found) == [name for name, *_ in described] + more
    for name, sort, length, is_needed in described:
        column = found[name]
        assert is_of(sort, column["type"]), (name, column["type"])
        assert column["nullable"] == (not is_needed), name
        if length is not None:
            assert column["type"].length == length


@pytest.mark.parametrize("table", ["monitor_stats", "monitor_events"])
async def test_9_1_what_is_counted_begins_with_0(store: SqlStore, table: str) -> None:
    found = await columns_of(store, table)
    defaults = {name: str(found[name]["default"]).strip("'()") for name in COUNTS & found.keys()}
    assert set(defaults.values()) == {"0"}


@pytest.mark.parametrize(
    ("table", "key"),
    [("monitors", "id"), ("monitor_stats", "monitor_id"), ("monitor_events", "id")],
)
async def test_9_1_a_table_has_the_keys_of_the_description(
    store: SqlStore, table: str, key: str
) -> None:
    def look(session: Session) -> tuple[Any, Any]:
        catalogue = inspect(session.connection)
        return catalogue.get_pk_constraint(table), catalogue.get_foreign_keys(table)

    primary, foreign = await store.database.look(look)
    assert primary["constrained_columns"] == [key]
    owners = [
        (one["constrained_columns"], one["referred_table"], one["referred_columns"])
        for one in foreign
    ]
    assert owners == ([] if table == "monitors" else [(["monitor_id"], "monitors", ["id"])])


async def test_9_1_the_indexes_are_those_of_the_description(store: SqlStore) -> None:
    def look(session: Session) -> dict[str | None, Any]:
        catalogue = inspect(session.connection)
        tables = ("monitors", "monitor_events")
        return {one["name"]: one for table in tables for one in catalogue.get_indexes(table)}

    found = await store.database.look(look)
    named = {name: (one["column_names"], bool(one["unique"])) for name, one in found.items()}
    assert named["idx_monitors_stream_url_active"] == (["active_url"], True)
    assert named["idx_monitor_events_monitor_id"] == (["monitor_id"], False)
    assert named["idx_monitor_events_created_at"] == (["created_at"], False)
    assert named["idx_monitor_events_webhook_status"] == (["webhook_status"], False)
