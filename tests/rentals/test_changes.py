"""What is told of a property: which looks make a change, a snapshot, an end or nothing."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select

from mimawari.kernel.clock import VirtualClock
from mimawari.store.sql import SqlStore
from mimawari.watches.rentals.tables import changes, properties, snapshots
from tests.rentals.seeing import keep, keep_gone, on_list, on_page

NOON = datetime(2026, 6, 1, 3, tzinfo=UTC)
"""Noon in Tokyo."""
HOUR = timedelta(hours=1)
ACTIVE, ENDED = ("status", "ended", "active"), ("status", "active", "ended")


async def story(store: SqlStore, property_id: str = "a") -> list[tuple[str, Any, Any]]:
    """List what changed after the property was new."""
    query = select(changes).where(changes.c.property_id == property_id).order_by(changes.c.id)
    async with store.read() as reader:
        rows = (await reader.execute(query)).all()
    assert (rows[0].kind, rows[0].old_value, rows[0].new_value) == ("new", None, "active")
    return [(row.kind, row.old_value, row.new_value) for row in rows[1:]]


async def find(store: SqlStore, property_id: str = "a") -> Any:
    """Find a property."""
    async with store.read() as reader:
        query = select(properties).where(properties.c.property_id == property_id)
        return (await reader.execute(query)).one()


async def shots(store: SqlStore) -> list[tuple[datetime, int]]:
    """List the snapshots: when, and at which rent."""
    async with store.read() as reader:
        rows = await reader.execute(select(snapshots).order_by(snapshots.c.at))
        return [(row.at, row.rent_yen) for row in rows]


async def test_the_first_look_is_new_and_nothing_else(store: SqlStore) -> None:
    kept = await keep(store, NOON, on_list("a"), on_list("b"))
    assert (kept.new, kept.known) == (("a", "b"), ())
    assert await story(store) == []


async def test_the_same_again_is_known_and_no_change(store: SqlStore) -> None:
    await keep(store, NOON, on_list("a"))
    kept = await keep(store, NOON + HOUR, on_list("a"), on_list("b"))
    assert (kept.new, kept.known) == (("b",), ("a",))
    assert await story(store) == []
    found = await find(store)
    assert (found.first_seen_at, found.last_seen_at) == (NOON, NOON + HOUR)


@pytest.mark.parametrize("make", [on_list, on_page])
@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("rent_yen", 70_000, ("rent", "72000", "70000")),
        ("fee_yen", 0, ("fee", "3000", "0")),
        ("deposit_yen", 0, ("deposit", "72000", "0")),
        ("key_money_yen", 72_000, ("key_money", "0", "72000")),
        ("layout", "1DK", ("layout", "1K", "1DK")),
        ("area_m2", 25.75, ("area", "25.50", "25.75")),
    ],
)
async def test_a_change_is_told_once_whichever_page_shows_it(
    store: SqlStore, make: Any, field: str, value: Any, told: tuple[str, str, str]
) -> None:
    await keep(store, NOON, on_list("a"))
    await keep(store, NOON + HOUR, make("a", **{field: value}))
    await keep(store, NOON + 2 * HOUR, on_list("a", **{field: value}))
    assert await story(store) == [told]
    assert getattr(await find(store), field) == value


@pytest.mark.parametrize(
    ("field", "value", "kind"),
    [
        ("floor", 3, "floor"),
        ("building_name", "メゾン汐見 Ⅱ", "name"),
        ("address", "東京都港区", "address"),
        ("stations", '[{"station":"新宿"}]', "access"),
        ("built_on", "2001-04", "built"),
        ("images", '["b.jpg"]', "image"),
    ],
)
async def test_what_only_the_own_page_tells_changes_from_the_second_such_page_on(
    store: SqlStore, field: str, value: Any, kind: str
) -> None:
    given = {"stations": '[{"station":"渋谷"}]', "built_on": "2000-01"}
    await keep(store, NOON, on_list("a", floor=9, building_name="汐見", address="東京都"))
    await keep(store, NOON + HOUR, on_page("a", **given))
    assert await story(store) == []
    await keep(store, NOON + 2 * HOUR, on_page("a", **{**given, field: value}))
    assert [told[0] for told in await story(store)] == [kind]


async def test_a_list_never_takes_the_place_of_the_own_page(store: SqlStore) -> None:
    await keep(store, NOON, on_page("a", address="東京都新宿区1-2-3"))
    await keep(store, NOON + HOUR, on_list("a", address="東京都新宿区"))
    assert (await find(store)).address == "東京都新宿区1-2-3"
    assert await story(store) == []


@pytest.mark.parametrize("field", ["rent_yen", "fee_yen", "layout", "area_m2"])
async def test_what_a_page_does_not_say_is_no_change(store: SqlStore, field: str) -> None:
    await keep(store, NOON, on_list("a"))
    await keep(store, NOON + HOUR, on_list("a", **{field: None}), on_page("b"))
    await keep(store, NOON + 2 * HOUR, on_page("a", **{field: None}))
    assert await story(store) == []
    assert getattr(await find(store), field) is not None


async def test_a_rent_that_one_must_ask_for_is_a_change_and_so_is_its_return(
    store: SqlStore,
) -> None:
    await keep(store, NOON, on_list("a"))
    await keep(store, NOON + HOUR, on_page("a", rent_yen=None, rent_note="要相談"))
    assert (await find(store)).rent_yen is None
    await keep(store, NOON + 2 * HOUR, on_list("a", rent_yen=80_000))
    assert await story(store) == [("rent", "72000", None), ("rent", None, "80000")]
    assert (await find(store)).rent_note is None


async def test_there_is_one_snapshot_a_day_of_tokyo_and_one_for_each_change(
    store: SqlStore,
) -> None:
    for hours in (0, 1, 11, 12, 13):
        await keep(store, NOON + hours * HOUR, on_list("a"))
    await keep(store, NOON + 14 * HOUR, on_list("a", rent_yen=70_000))
    times = [(at - NOON) // HOUR for at, _ in await shots(store)]
    assert times == [0, 12, 14]
    assert [rent for _, rent in await shots(store)] == [72_000, 72_000, 70_000]


async def test_one_that_is_gone_has_ended_for_good(store: SqlStore) -> None:
    await keep(store, NOON, on_list("a"))
    await keep_gone(store, NOON + HOUR, ["a"])
    kept = await keep(store, NOON + 2 * HOUR, on_list("a", rent_yen=1))
    found = await find(store)
    assert (found.status, found.ended_at, found.gone_at) == ("ended", NOON + HOUR, NOON + HOUR)
    assert (kept.new, kept.known, found.rent_yen) == ((), ("a",), 72_000)
    await keep_gone(store, NOON + 3 * HOUR, ["a"])
    assert await story(store) == [ENDED]


async def test_one_that_was_gone_before_it_was_seen_is_remembered_without_a_story(
    store: SqlStore,
) -> None:
    await keep_gone(store, NOON, ["a"])
    kept = await keep(store, NOON + HOUR, on_list("a"))
    assert (kept.new, kept.known) == ((), ("a",))
    async with store.read() as reader:
        assert (await reader.execute(select(changes))).all() == []


async def test_a_thousand_rooms_take_a_handful_of_statements(
    store: SqlStore, clock: VirtualClock
) -> None:
    del clock
    rooms = [on_list(f"{number:04}") for number in range(1000)]
    await keep(store, NOON, *rooms)
    kept = await keep(store, NOON + HOUR, *(on_list(f"{n:04}", rent_yen=n) for n in range(1000)))
    assert (len(kept.new), len(kept.known)) == (0, 1000)
    assert await story(store, "0007") == [("rent", "72000", "7")]
