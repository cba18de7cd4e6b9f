"""The day's calls are never overdrawn, whoever makes them, and each is counted."""

import asyncio
from datetime import timedelta
from zoneinfo import ZoneInfo

from mimawari.settings import DEFAULTS
from mimawari.store.sql import SqlStore
from mimawari.watches.books import quota
from tests.books.scene import NOON

SETTINGS = DEFAULTS.model_copy(update={"books_calls": 7})


async def used(store: SqlStore, hours: float = 0) -> tuple[str, int, int, int]:
    """Tell the day, the calls that are over and on their way, and those that are left."""
    async with store.read() as reader:
        found = await quota.find_usage(reader, SETTINGS, NOON + timedelta(hours=hours))
    return found.day, found.calls, found.reserved, found.left


async def test_of_many_who_ask_at_once_only_as_many_get_a_call_as_there_are(
    store: SqlStore,
) -> None:
    found = await asyncio.gather(*(quota.reserve(store, SETTINGS, NOON) for _ in range(20)))
    assert sum(call is not None for call in found) == 7
    assert await used(store) == ("2026-06-01", 0, 7, 0)


async def test_a_call_is_counted_when_it_is_over_and_given_back_when_it_was_never_made(
    store: SqlStore,
) -> None:
    first, second = [await quota.reserve(store, SETTINGS, NOON) for _ in range(2)]
    assert first is not None
    assert second is not None
    async with store.edit() as tx:
        await quota.settle(tx, first)
        await quota.release(tx, second)
    assert await used(store) == ("2026-06-01", 1, 0, 6)


async def test_a_call_that_was_lost_with_its_process_counts_as_made(store: SqlStore) -> None:
    for _ in range(7):
        await quota.reserve(store, SETTINGS, NOON)
    assert await quota.reserve(store, SETTINGS, NOON) is None


async def test_a_day_is_one_of_the_configured_zone(store: SqlStore) -> None:
    for _ in range(7):
        await quota.reserve(store, SETTINGS, NOON)
    assert await used(store, 11.99) == ("2026-06-01", 0, 7, 0)
    assert await used(store, 12) == ("2026-06-02", 0, 0, 7)
    assert quota.next_day(NOON, SETTINGS) == NOON + timedelta(hours=12)
    london = SETTINGS.model_copy(update={"zone": ZoneInfo("Europe/London")})
    assert quota.next_day(NOON, london) == NOON + timedelta(hours=20)
