"""A connection is the same whatever the defaults of its server, and so is what is stored by it."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert, select, text

from mimawari.columns import contains_word
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.job import NewJob, Want
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade
from mimawari.store.sql.rows import Saving, save_rows
from mimawari.store.sql.tables import meta
from tests.conftest import Databases
from tests.servers import Server, mariadb_server, postgres_server

WORDS = ["鬼滅の刃", '🐈 it\'s \\n "quoted" 100%', "\uff3aenkaku", "Ünïcode", "", "  spaces  "]
ORDERED = ["A", "B b", "B-a", "B_c", "a", "a ", "b", "É", "é", "あ", "ア", "鬼", "\uff21", "🐈"]
"""By code points, in which no two languages agree with it."""

OF_THE_SERVER = {
    "mariadb": {
        # What a table is made with unless it says so, as all of ours do.
        "character_set_database", "character_set_server", "collation_database", "collation_server",
        # Where the server has its files, and what every session has of its own.
        "aria_log_dir_path", "datadir", "pid_file", "port", "pseudo_thread_id", "rand_seed1",
        "rand_seed2", "report_port", "server_uid", "slave_load_tmpdir", "socket", "timestamp",
        "tmpdir", "wsrep_data_home_dir",
    },
    "postgresql": {
        "config_file", "data_directory", "hba_file", "ident_file", "port",
        "unix_socket_directories",
    },
}  # fmt: skip
"""What no session can set."""


@pytest.fixture(params=["postgresql", "mariadb"])
def kind(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server with the defaults of its makers."""
    start = {"postgresql": postgres_server, "mariadb": mariadb_server}[request.param]
    running: AbstractContextManager[Server] = start(durable=False, hostile=False)
    with running as server:
        yield server


async def settings_of(store: SqlStore) -> dict[str, Any]:
    mariadb = (
        "SELECT lower(variable_name), variable_value FROM information_schema.session_variables"
    )
    postgres = "SELECT name, setting FROM pg_settings"
    query = text(mariadb if store.database.dialect.driver.startswith("mariadb") else postgres)
    async with store.read() as reader:
        return dict(map(tuple, await reader.execute(query)))


async def test_sessions_on_a_hostile_and_on_a_kind_server_do_not_differ(
    kind: Server, databases: Databases, clock: VirtualClock
) -> None:
    found = []
    for url in (kind.fresh_database(), databases.fresh(kind.engine)):
        store = SqlStore(url, clock)
        found.append(await settings_of(store))
        await store.close()
    friendly, hostile = found
    differing = {name for name in friendly if friendly[name] != hostile.get(name)}
    assert differing <= OF_THE_SERVER[kind.engine], differing - OF_THE_SERVER[kind.engine]


async def test_a_server_with_the_defaults_of_its_makers_keeps_text_too(
    kind: Server, clock: VirtualClock
) -> None:
    store = SqlStore(kind.fresh_database(), clock)
    await upgrade(store.database)
    await check_text(store)
    await store.close()


async def check_text(store: SqlStore) -> None:
    """Store text by every way there is, and expect it as it was given."""
    rows = [{"name": f"{at}", "value": word} for at, word in enumerate(WORDS)]

    def work(session: Any) -> None:
        session.execute(insert(meta), rows)
        many = [{"name": f"many {row['name']}", "value": row["value"]} for row in rows]
        save_rows(session, store.database.dialect, Saving(table=meta), many)

    await store.database.run(work)
    async with store.read() as reader:
        kept = dict(map(tuple, await reader.execute(select(meta))))
    assert [kept[f"{at}"] for at in range(len(WORDS))] == WORDS
    assert [kept[f"many {at}"] for at in range(len(WORDS))] == WORDS
    await store.queue.put([NewJob(kind="t", args={"words": WORDS}, dedupe_key="鬼滅の刃 🐈")])
    wanted = Want(kind="t", most=1, lease_for=timedelta(minutes=1))
    [job] = (await store.queue.turn((), [wanted], "w")).jobs
    assert list(job.args["words"]) == WORDS


async def test_text_of_any_language_is_kept_as_it_was_given(store: SqlStore) -> None:
    await check_text(store)


async def test_text_is_ordered_and_compared_by_code_points(store: SqlStore) -> None:
    rows = [{"name": word, "value": ""} for word in reversed(ORDERED)]
    await store.database.run(lambda session: session.execute(insert(meta), rows).rowcount)
    query = select(meta.c.name).order_by(meta.c.name)
    async with store.read() as reader:
        assert (await reader.execute(query)).scalars().all() == sorted(ORDERED)
        after = await reader.execute(query.where(meta.c.name > "b"))
        assert after.scalars().all() == [word for word in sorted(ORDERED) if word > "b"]


async def test_a_word_is_found_whether_in_capitals_or_not(store: SqlStore) -> None:
    rows = [{"name": "1", "value": "NINTENDO 鬼滅 É"}, {"name": "2", "value": "other"}]
    await store.database.run(lambda session: session.execute(insert(meta), rows).rowcount)
    for word in ("nintendo", "鬼滅", "É"):
        query = select(meta.c.name).where(contains_word(meta.c.value, word))
        async with store.read() as reader:
            assert (await reader.execute(query)).scalars().all() == ["1"]
