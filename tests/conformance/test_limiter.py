"""The limiter's promises, on every engine."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from random import Random

import pytest
from sqlalchemy import func, insert, select

from mimawari.errors import Wait
from mimawari.kernel.clock import Mark, VirtualClock
from mimawari.kernel.limits import START_FOR, VALID_FOR
from mimawari.kernel.values import Grant, Limit
from mimawari.store.sql import SqlStore
from mimawari.store.sql.tables import grants, limits
from tests.stores import open_again

SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
MICROSECOND = timedelta(microseconds=1)
HOURLY = Limit("site", 5, HOUR)
DAILY = Limit("site", 30, DAY)
ONE = Limit("site", 1, HOUR)


def again(store: SqlStore, clock: VirtualClock) -> SqlStore:
    """Open the same database as another process would."""
    return open_again(store, clock)


@pytest.fixture
async def twin(store: SqlStore, clock: VirtualClock) -> AsyncIterator[SqlStore]:
    twin = again(store, clock)
    yield twin
    await twin.close()


async def granted(store: SqlStore, limit: Limit = HOURLY) -> Grant:
    verdict = await store.limiter.acquire(limit, "test")
    assert isinstance(verdict, Grant)
    return verdict


async def refused(store: SqlStore, limit: Limit = HOURLY) -> Wait:
    verdict = await store.limiter.acquire(limit, "test")
    assert isinstance(verdict, Wait)
    return verdict


async def granted_by_another_boot(store: SqlStore, at: datetime) -> None:
    mark = {"boot": "another", "granted_ticks": 9e9, "settled_ticks": 9e9}
    row = {"limit_name": "site", "number": 1, "id": "1", "caller": "test", **mark}
    async with store.database.write() as session:
        await session.execute(insert(limits).values(name="site", given=1))
        values = row | {"granted_at": at, "settled_at": at + VALID_FOR}
        await session.execute(insert(grants).values(values))


async def test_the_first_request_is_granted_at_once(store: SqlStore, clock: VirtualClock) -> None:
    grant = await granted(store)
    assert (grant.limit, grant.mark, grant.valid_for) == ("site", clock.mark(), START_FOR)


async def test_five_an_hour_is_one_each_720_seconds(store: SqlStore, clock: VirtualClock) -> None:
    await granted(store)
    await clock.advance(timedelta(seconds=720) - MICROSECOND)
    await refused(store)
    await clock.advance(MICROSECOND)
    await granted(store)


async def test_a_wait_says_exactly_until_when_and_for_what(
    store: SqlStore, clock: VirtualClock
) -> None:
    free_at = clock.now() + timedelta(seconds=720)
    await granted(store)
    await clock.advance(timedelta(seconds=100, microseconds=1))
    wait = await refused(store)
    assert (wait.until, wait.blocked_by) == (free_at, "limit site")


async def test_asking_in_vain_does_not_put_the_next_grant_off(
    store: SqlStore, clock: VirtualClock
) -> None:
    await granted(store)
    first = await refused(store)
    await clock.advance(timedelta(seconds=719))
    assert (await refused(store)).until == first.until


@pytest.mark.parametrize(
    ("seconds", "word"),
    [(60, "minute_limit"), (3600, "hourly_limit"), (86400, "daily_limit"), (7, "limit")],
)
async def test_the_reason_names_the_window(store: SqlStore, seconds: int, word: str) -> None:
    limit = Limit("site", 3, timedelta(seconds=seconds))
    await granted(store, limit)
    assert (await refused(store, limit)).reason == word


@pytest.mark.parametrize(
    ("settle_after", "free_after"), [(0, 3600), (30, 3630), (60, 3660), (90, 3660), (None, 3660)]
)
async def test_a_place_is_free_a_window_after_its_request_was_surely_seen(
    store: SqlStore, clock: VirtualClock, settle_after: int | None, free_after: int
) -> None:
    start = clock.now()
    grant = await granted(store, ONE)
    if settle_after is not None:
        await clock.advance(timedelta(seconds=settle_after))
        await store.limiter.settle(grant)
    assert (await refused(store, ONE)).until == start + timedelta(seconds=free_after)


async def test_settling_once_more_does_not_put_the_next_grant_off(
    store: SqlStore, clock: VirtualClock
) -> None:
    grant = await granted(store, ONE)
    await store.limiter.settle(grant)
    before = await refused(store, ONE)
    await clock.advance(timedelta(seconds=30))
    await store.limiter.settle(grant)
    assert (await refused(store, ONE)).until == before.until


async def test_a_grant_is_valid_for_a_while_whatever_the_wall_clock_says(
    store: SqlStore, clock: VirtualClock
) -> None:
    grant = await granted(store)
    clock.step(HOUR)
    await clock.advance(START_FOR - MICROSECOND)
    assert grant.is_valid(clock.mark())
    clock.step(-HOUR)
    await clock.advance(MICROSECOND)
    assert not grant.is_valid(clock.mark())


Seen = tuple[timedelta, timedelta]


def fullest_window(seen: Sequence[Seen], per: timedelta) -> int:
    """Count the requests that the site may have seen within one window, at the most."""
    starts = {edge for span in seen for edge in span}
    return max(sum(first < at + per and last >= at for first, last in seen) for at in starts)


class Visitor:
    """Asks at random moments and settles some grants late and some never."""

    def __init__(self, store: SqlStore, clock: VirtualClock, limit: Limit, dice: Random) -> None:
        self.store, self.clock, self.limit, self.dice = store, clock, limit, dice
        self.start: Mark = clock.mark()
        self.open: dict[str, Grant] = {}
        self.seen: dict[str, Seen] = {}

    @property
    def passed(self) -> timedelta:
        return self.clock.mark().elapsed_since(self.start)

    async def ask(self) -> None:
        verdict = await self.store.limiter.acquire(self.limit, "visitor")
        if isinstance(verdict, Grant):
            self.open[verdict.id] = verdict
            self.seen[verdict.id] = (self.passed, self.passed + VALID_FOR)
            return
        patient = self.dice.random() < 0.7
        span = verdict.until - self.clock.now() if patient else self.dice.randrange(600) * SECOND
        await self.clock.advance(span)

    async def settle(self) -> None:
        await self.clock.advance(self.dice.randrange(90) * SECOND)
        grant = self.open.pop(self.dice.choice(list(self.open)))
        await self.store.limiter.settle(grant)
        first, last = self.seen[grant.id]
        self.seen[grant.id] = (first, min(last, self.passed))

    async def give_back(self) -> None:
        await self.clock.advance(self.dice.randrange(30) * SECOND)
        grant = self.open.pop(self.dice.choice(list(self.open)))
        await self.store.limiter.release(grant)
        del self.seen[grant.id]


@pytest.mark.parametrize(
    ("limit", "settles", "windows"),
    [(HOURLY, 0.0, 10), (HOURLY, 0.6, 10), (DAILY, 0.0, 2), (DAILY, 1.0, 2)],
    ids=["hourly-never", "hourly-some", "daily-never", "daily-all"],
)
async def test_no_window_holds_more_than_the_limit(
    store: SqlStore, clock: VirtualClock, limit: Limit, settles: float, windows: int
) -> None:
    visitor = Visitor(store, clock, limit, Random(settles))
    while visitor.passed < windows * limit.per:
        await visitor.ask()
        if visitor.open and visitor.dice.random() < settles:
            await visitor.settle()
    assert fullest_window(list(visitor.seen.values()), limit.per) == limit.count
    assert len(visitor.seen) > 0.8 * limit.count * windows


async def test_no_window_holds_more_and_none_is_lost_where_some_are_given_back(
    store: SqlStore, clock: VirtualClock
) -> None:
    limit = Limit("site", 5, HOUR, apart=MICROSECOND)
    visitor = Visitor(store, clock, limit, Random(3))
    while visitor.passed < 10 * HOUR:
        await visitor.ask()
        if visitor.open and visitor.dice.random() < 0.5:
            await visitor.give_back()
        elif visitor.open and visitor.dice.random() < 0.5:
            await visitor.settle()
    assert fullest_window(list(visitor.seen.values()), HOUR) == 5
    assert len(visitor.seen) > 0.6 * 5 * 10


async def test_no_window_holds_more_over_restarts_and_turned_clocks(
    store: SqlStore, clock: VirtualClock
) -> None:
    visitor = Visitor(store, clock, HOURLY, Random(7))
    while visitor.passed < 10 * HOUR:
        clock.step(visitor.dice.choice((-HOUR, 0 * HOUR, HOUR)))
        if visitor.dice.random() < 0.3:
            await visitor.store.close()
            visitor.store = again(store, clock)
        await visitor.ask()
    await visitor.store.close()
    assert fullest_window(list(visitor.seen.values()), HOUR) == 5
    assert len(visitor.seen) > 0.8 * 5 * 10


async def test_a_hold_keeps_everybody_away_until_its_time(
    store: SqlStore, clock: VirtualClock
) -> None:
    until = clock.now() + timedelta(hours=2)
    await store.limiter.hold("site", until, "retry_after 7200")
    wait = await refused(store)
    assert (wait.until, wait.reason) == (until, "retry_after 7200")
    await clock.advance(timedelta(hours=2))
    await granted(store)


async def test_the_longer_of_hold_and_limit_is_waited_for(
    store: SqlStore, clock: VirtualClock
) -> None:
    await granted(store)
    await store.limiter.hold("site", clock.now() + timedelta(minutes=1), "retry_after 60")
    assert (await refused(store)).reason == "hourly_limit"


async def test_a_hold_is_not_cut_short_by_a_shorter_one(
    store: SqlStore, clock: VirtualClock
) -> None:
    until = clock.now() + timedelta(hours=2)
    await store.limiter.hold("site", until, "retry_after 7200")
    await store.limiter.hold("site", clock.now() + HOUR, "retry_after 3600")
    assert (await refused(store)).until == until


async def test_a_hold_until_the_past_holds_nobody(store: SqlStore, clock: VirtualClock) -> None:
    await store.limiter.hold("site", clock.now() - HOUR, "retry_after -3600")
    await granted(store)


async def test_a_hold_survives_a_restart(
    store: SqlStore, twin: SqlStore, clock: VirtualClock
) -> None:
    until = clock.now() + HOUR
    await store.limiter.hold("site", until, "retry_after 3600")
    await store.close()
    assert (await refused(twin)).until == until


@pytest.mark.parametrize(
    "reason",
    ["no\x00thing", "a\nb", "日本 '; -- 🦊", "\ud800", "x" * 70_000],
    ids=["nul", "lines", "quotes", "surrogate", "long"],
)
async def test_a_hold_is_kept_whatever_its_reason_reads(
    store: SqlStore, clock: VirtualClock, reason: str
) -> None:
    until = clock.now() + HOUR
    await store.limiter.hold("site", until, reason)
    assert (await refused(store)).until == until


@pytest.mark.parametrize("step", [HOUR, -HOUR])
async def test_turning_the_wall_clock_frees_nothing_and_holds_nothing(
    store: SqlStore, clock: VirtualClock, step: timedelta
) -> None:
    await granted(store)
    await store.limiter.hold("other", clock.now() + HOUR, "retry_after 3600")
    clock.step(step)
    assert (await refused(store)).until == clock.now() + timedelta(seconds=720)
    assert (await refused(store, Limit("other", 5, HOUR))).until == clock.now() + HOUR
    await clock.advance(timedelta(seconds=720))
    await granted(store)


async def test_of_many_who_ask_at_once_over_two_processes_one_is_granted(
    store: SqlStore, twin: SqlStore
) -> None:
    asks = [each.limiter.acquire(HOURLY, "test") for each in (store, twin) * 8]
    verdicts = await asyncio.gather(*asks)
    assert sum(isinstance(verdict, Grant) for verdict in verdicts) == 1


async def test_a_restart_frees_nothing(
    store: SqlStore, twin: SqlStore, clock: VirtualClock
) -> None:
    await granted(store)
    await store.close()
    assert (await refused(twin)).until == clock.now() + timedelta(seconds=720)


async def test_a_peek_takes_nothing(store: SqlStore) -> None:
    assert await store.limiter.peek(HOURLY) is None
    assert await store.limiter.peek(HOURLY) is None
    await granted(store)


@pytest.mark.parametrize("held", [timedelta(0), HOUR])
async def test_a_peek_agrees_with_the_verdict(
    store: SqlStore, clock: VirtualClock, held: timedelta
) -> None:
    await granted(store)
    await store.limiter.hold("site", clock.now() + held, "retry_after")
    await clock.advance(timedelta(seconds=77))
    seen, wait = await store.limiter.peek(HOURLY), await refused(store)
    assert seen is not None
    assert (seen.until, seen.reason, seen.blocked_by) == (wait.until, wait.reason, wait.blocked_by)


async def test_what_is_used_is_what_the_site_may_still_count(
    store: SqlStore, clock: VirtualClock
) -> None:
    assert await store.limiter.used(HOURLY) == 0
    await store.limiter.settle(await granted(store))
    await clock.advance(timedelta(seconds=720))
    await granted(store)
    assert await store.limiter.used(HOURLY) == 2
    await clock.advance(timedelta(seconds=2880) - MICROSECOND)
    assert await store.limiter.used(HOURLY) == 2
    await clock.advance(MICROSECOND)
    # The first was settled at once; the other may have reached the site until a minute after.
    assert await store.limiter.used(HOURLY) == 1
    await clock.advance(timedelta(seconds=720) + VALID_FOR - MICROSECOND)
    assert await store.limiter.used(HOURLY) == 1
    await clock.advance(MICROSECOND)
    assert await store.limiter.used(HOURLY) == 0


async def test_no_more_is_said_to_be_used_than_a_lowered_limit_gives(
    store: SqlStore, clock: VirtualClock
) -> None:
    for _ in range(3):
        await granted(store)
        await clock.advance(timedelta(seconds=720))
    assert await store.limiter.used(HOURLY) == 3
    assert await store.limiter.used(ONE) == 1
    assert await store.limiter.used(Limit("other", 5, HOUR)) == 0


async def test_each_name_has_a_limit_of_its_own(store: SqlStore, clock: VirtualClock) -> None:
    await granted(store)
    await store.limiter.hold("site", clock.now() + HOUR, "retry_after 3600")
    for name in ("other", "Site", "sit"):
        await granted(store, Limit(name, 5, HOUR))


async def test_names_that_differ_in_a_last_space_only_are_two(store: SqlStore) -> None:
    await granted(store)
    await granted(store, Limit("site ", 5, HOUR))


async def test_no_more_grants_are_remembered_than_a_window_needs(
    store: SqlStore, clock: VirtualClock
) -> None:
    for _ in range(20):
        await granted(store)
        await clock.advance(timedelta(hours=2))
    async with store.read() as connection:
        kept = (await connection.execute(select(func.count()).select_from(grants))).scalar_one()
    assert kept == 5


async def test_a_grant_of_another_boot_is_judged_by_the_wall_clock(
    store: SqlStore, clock: VirtualClock
) -> None:
    await granted_by_another_boot(store, clock.now() - timedelta(minutes=10))
    assert (await refused(store)).until == clock.now() + timedelta(minutes=2)


@pytest.mark.parametrize(("limit", "longest"), [(HOURLY, 720), (ONE, 3660)], ids=["five", "one"])
async def test_a_grant_that_another_boot_dates_in_the_future_counts_as_of_now(
    store: SqlStore, clock: VirtualClock, limit: Limit, longest: int
) -> None:
    await granted_by_another_boot(store, clock.now() + timedelta(days=30))
    wait = await refused(store, limit)
    assert limit.spacing <= wait.until - clock.now() <= timedelta(seconds=longest)
