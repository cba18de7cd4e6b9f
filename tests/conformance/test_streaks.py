"""The streaks' promises, on every engine."""

import asyncio
from datetime import timedelta

import pytest

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.incidents import Incident, list_incidents
from mimawari.kernel.values import BreakerPolicy, Entry, Failed, Streak
from mimawari.store.sql import SqlStore

MINUTE = timedelta(minutes=1)


def failed(subject: str = "hot:1", *, is_dead: bool = False, reason: str = "503") -> Failed:
    return Failed(subject=subject, kind="hot.list", job_id="j", reason=reason, is_dead=is_dead)


async def test_failures_in_a_row_are_counted_with_the_last_reason(
    store: SqlStore, clock: VirtualClock
) -> None:
    began_at = clock.now()
    await store.streaks.count([failed()])
    await clock.advance(MINUTE)
    await store.streaks.count([failed(is_dead=True, reason="見つからない\n")])
    assert await store.streaks.list() == [
        Streak(
            subject="hot:1", kind="hot.list", job_id="j", reason="見つからない", failures=2, dead=1,
            began_at=began_at, last_at=clock.now(),
        )
    ]  # fmt: skip


async def test_what_went_well_ends_a_streak_and_no_other(store: SqlStore) -> None:
    await store.streaks.count([failed(), failed("hot:2"), failed()])
    await store.streaks.end(["hot:1", "hot:3"])
    [left] = await store.streaks.list()
    assert (left.subject, left.failures) == ("hot:2", 1)
    await store.streaks.end([])
    assert len(await store.streaks.list()) == 1


async def test_two_processes_count_each_failure_once(store: SqlStore) -> None:
    both = [failed(), failed("hot:2")]
    await asyncio.gather(*(store.streaks.count(both[::way]) for way in (1, -1, 1, -1)))
    assert [one.failures for one in await store.streaks.list()] == [4, 4]


async def test_old_streaks_are_forgotten(store: SqlStore, clock: VirtualClock) -> None:
    await store.streaks.count([failed()])
    assert await store.streaks.purge(clock.now()) == 0
    assert await store.streaks.purge(clock.now() + MINUTE) == 1


@pytest.mark.parametrize("by_commit", [True, False])
async def test_a_target_that_is_removed_fails_no_more(
    store: SqlStore, clock: VirtualClock, *, by_commit: bool
) -> None:
    entry = Entry(member="hot:1", kind="hot.list", next_at=clock.now(), every=MINUTE)
    await store.schedule.put([entry])
    await store.streaks.count([failed()])
    if by_commit:
        async with store.edit() as tx:
            tx.remove("hot:1")
    else:
        await store.schedule.remove("hot:1")
    assert await store.streaks.list() == []


async def test_incidents_are_dead_letters_what_failed_often_and_sites_that_turn_us_away(
    store: SqlStore, clock: VirtualClock
) -> None:
    await store.streaks.count([failed("once"), failed("dead", is_dead=True)])
    for _ in range(3):
        await clock.advance(MINUTE)
        await store.streaks.count([failed("often")])
    await store.breaker.failed("open", BreakerPolicy(failures=1), "403")
    await store.breaker.failed("closed", BreakerPolicy(failures=2), "403")
    found = await list_incidents(store, after=3)
    assert [(one.subject, one.state, one.failures) for one in found] == [
        ("site:open", "open", 1),
        ("often", "retry", 3),
        ("dead", "failed", 1),
    ]
    assert found[0] == Incident(
        subject="site:open", kind="site", state="open", failures=1, reason="403",
        until=clock.now() + timedelta(hours=1),
    )  # fmt: skip
