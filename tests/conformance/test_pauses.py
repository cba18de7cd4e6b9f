"""The pauses' promises, on every engine: they are kept with what begins and ends them."""

from datetime import datetime, timedelta

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.values import BreakerPolicy, Pause
from mimawari.store.sql import SqlStore

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
ONCE = BreakerPolicy(failures=1, cool_for=HOUR, trial_for=10 * MINUTE)
TWICE = BreakerPolicy(failures=2, cool_for=HOUR, trial_for=10 * MINUTE)


async def spans(store: SqlStore, start: datetime) -> list[tuple[str, str, int, int, str]]:
    """List all pauses: what, of whom, from and to which minute, and why."""

    def minute(at: datetime) -> int:
        return (at - start) // MINUTE

    found = await store.pauses.list(start - HOUR)
    return [(one.what, one.name, minute(one.since), minute(one.until), one.reason) for one in found]


async def test_a_breaker_that_opens_leaves_a_pause_and_one_that_counts_does_not(
    store: SqlStore, clock: VirtualClock
) -> None:
    start = clock.now()
    await store.breaker.failed("site", TWICE, "403")
    assert await spans(store, start) == []
    await store.breaker.failed("site", TWICE, "403")
    assert await store.pauses.list(start) == [
        Pause(what="breaker", name="site", since=start, until=start + HOUR, reason="403")
    ]


async def test_more_of_the_same_makes_a_pause_longer_and_another_reason_begins_another(
    store: SqlStore, clock: VirtualClock
) -> None:
    start = clock.now()
    await store.breaker.failed("site", ONCE, "403")
    await clock.advance(10 * MINUTE)
    await store.breaker.failed("site", ONCE, "403")
    await clock.advance(10 * MINUTE)
    await store.breaker.failed("site", ONCE, "429")
    assert await spans(store, start) == [
        ("breaker", "site", 0, 20, "403"),
        ("breaker", "site", 20, 80, "429"),
    ]


async def test_what_works_again_ends_the_pause_and_a_failed_trial_begins_the_next(
    store: SqlStore, clock: VirtualClock
) -> None:
    start = clock.now()
    await store.breaker.failed("site", ONCE, "403")
    await clock.advance(HOUR)
    assert await store.breaker.check("site") is None
    await store.breaker.failed("site", ONCE, "403")
    await clock.advance(5 * MINUTE)
    await store.breaker.worked("site")
    await store.breaker.worked("other")
    assert await spans(store, start) == [
        ("breaker", "site", 0, 60, "403"),
        ("breaker", "site", 60, 65, "403"),
    ]


async def test_a_hold_leaves_a_pause_unless_a_longer_one_is_there(
    store: SqlStore, clock: VirtualClock
) -> None:
    start = clock.now()
    await store.limiter.hold("limit", start + HOUR, "Retry-After")
    await store.limiter.hold("limit", start + MINUTE, "shorter")
    await store.limiter.hold("other", start - MINUTE, "over before it began")
    assert await spans(store, start) == [("hold", "limit", 0, 60, "Retry-After")]


async def test_pauses_are_found_by_name_and_by_when_they_were_over(
    store: SqlStore, clock: VirtualClock
) -> None:
    start = clock.now()
    await store.limiter.hold("limit", start + MINUTE, "a")
    await store.breaker.failed("site", ONCE, "b")
    assert [one.reason for one in await store.pauses.list(start, ["site", "none"])] == ["b"]
    assert [one.reason for one in await store.pauses.list(start + MINUTE)] == ["b"]
    assert [one.reason for one in await store.pauses.list(start)] == ["a", "b"]


async def test_what_was_over_long_ago_is_forgotten(store: SqlStore, clock: VirtualClock) -> None:
    start = clock.now()
    await store.limiter.hold("limit", start + MINUTE, "a")
    await store.breaker.failed("site", ONCE, "b")
    assert await store.pauses.purge(start + 2 * MINUTE) == 1
    assert [one.reason for one in await store.pauses.list(start)] == ["b"]
