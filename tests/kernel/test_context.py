"""What a task is given: limits that are waited for or not, and one commit."""

import asyncio
from datetime import timedelta

import pytest

from mimawari.errors import BadInput, LeaseLost, Transient, Wait
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.context import PATIENCE, Context
from mimawari.kernel.job import Job, NewJob, State, Want
from mimawari.kernel.limits import VALID_FOR
from mimawari.kernel.values import BreakerPolicy, Grant, Limit
from mimawari.kernel.watch import Watch, Watches
from mimawari.settings import Settings
from mimawari.store.sql import SqlStore

HOUR = timedelta(hours=1)
MICROSECOND = timedelta(microseconds=1)


def context(store: SqlStore, clock: VirtualClock, *limits: Limit) -> Context:
    return Context(store, clock, Watches([Watch(name="w", tasks=(), limits=limits)]))


async def claimed(store: SqlStore) -> Job:
    """Put a job and claim it."""
    await store.queue.put([NewJob(kind="t")])
    want = Want(kind="t", most=1, lease_for=HOUR)
    [job] = (await store.queue.turn((), [want], "w")).jobs
    return job


async def state_of(store: SqlStore, job: Job) -> State:
    view = await store.queue.find(job.id)
    assert view is not None
    return view.state


async def test_a_free_limit_gives_leave_at_once(store: SqlStore, clock: VirtualClock) -> None:
    ctx = context(store, clock, Limit("x", 5, HOUR))
    grant = await ctx.limit("x", caller="worker")
    assert (grant.limit, ctx.grants) == ("x", [grant])
    assert grant.is_valid(clock.mark())


async def test_a_short_wait_is_slept_through_to_the_exact_time(
    store: SqlStore, clock: VirtualClock
) -> None:
    ctx, start = context(store, clock, Limit("x", 180, HOUR)), clock.now()
    await ctx.limit("x", caller="worker")
    waiting = asyncio.create_task(ctx.limit("x", caller="worker"))
    async with asyncio.timeout(10):
        while not clock.sleeping:
            await clock.advance(timedelta(0))
        await clock.advance(PATIENCE - MICROSECOND)
        assert not waiting.done()
        await clock.advance(MICROSECOND)
        second = await waiting
    assert second.mark.wall == start + PATIENCE
    assert len(ctx.grants) == 2


async def test_a_wait_beyond_patience_is_raised_and_takes_nothing(
    store: SqlStore, clock: VirtualClock
) -> None:
    limit = Limit("x", 1, PATIENCE + MICROSECOND)
    ctx, start = context(store, clock, limit), clock.now()
    await ctx.limit("x", caller="worker")
    await ctx.settle()
    with pytest.raises(Wait) as raised:
        await ctx.limit("x", caller="worker")
    assert raised.value.until == start + PATIENCE + MICROSECOND
    assert (raised.value.reason, raised.value.blocked_by) == ("limit", "limit x")
    assert (ctx.grants, clock.sleeping) == ([], 0)
    await clock.advance(PATIENCE + MICROSECOND)
    await ctx.limit("x", caller="worker")


async def test_a_short_wait_that_grows_is_raised_after_all(
    store: SqlStore, clock: VirtualClock
) -> None:
    limit = Limit("x", 180, HOUR)
    ctx, start = context(store, clock, limit), clock.now()
    await ctx.limit("x", caller="worker")
    waiting = asyncio.create_task(ctx.limit("x", caller="worker"))
    async with asyncio.timeout(10):
        while not clock.sleeping:
            await clock.advance(timedelta(0))
        await store.limiter.hold("x", start + HOUR, "Retry-After")
        await clock.advance(PATIENCE)
        with pytest.raises(Wait) as raised:
            await waiting
    assert (raised.value.until, raised.value.reason) == (start + HOUR, "Retry-After")


async def test_an_unknown_limit_is_refused_by_name(store: SqlStore, clock: VirtualClock) -> None:
    with pytest.raises(BadInput, match="no watch declares a limit 'y'"):
        await context(store, clock, Limit("x", 1, HOUR)).limit("y", caller="worker")


async def test_settling_frees_every_grant_of_the_job_once(
    store: SqlStore, clock: VirtualClock
) -> None:
    one, two = Limit("one", 1, HOUR), Limit("two", 1, HOUR)
    ctx, start = context(store, clock, one, two), clock.now()
    for limit in (one, two):
        await ctx.limit(limit.name, caller="worker")
    await clock.advance(timedelta(seconds=7))
    await ctx.settle()
    assert ctx.grants == []
    for limit in (one, two):
        wait = await store.limiter.peek(limit)
        assert wait is not None
        assert wait.until == start + timedelta(seconds=7) + HOUR
    await clock.advance(timedelta(seconds=7))
    await ctx.settle()
    unchanged = await store.limiter.peek(one)
    assert unchanged is not None
    assert unchanged.until == start + timedelta(seconds=7) + HOUR


async def test_a_grant_that_nobody_settles_counts_until_its_leave_has_run_out(
    store: SqlStore, clock: VirtualClock
) -> None:
    limit, start = Limit("x", 1, HOUR), clock.now()
    assert isinstance(await store.limiter.acquire(limit, "dead"), Grant)
    wait = await store.limiter.peek(limit)
    assert wait is not None
    assert wait.until == start + VALID_FOR + HOUR


async def test_a_commit_ends_the_job_and_is_remembered(
    store: SqlStore, clock: VirtualClock
) -> None:
    ctx, job = context(store, clock), await claimed(store)
    async with ctx.commit(job) as tx:
        tx.move("cursor", "1")
        assert not ctx.committed
    assert ctx.committed
    assert await state_of(store, job) == State.DONE
    assert await store.cursor.find("cursor") == "1"


async def test_a_commit_that_fails_changes_nothing_and_is_not_remembered(
    store: SqlStore, clock: VirtualClock
) -> None:
    ctx, job = context(store, clock), await claimed(store)

    async def fail() -> None:
        async with ctx.commit(job) as tx:
            tx.move("cursor", "1")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert not ctx.committed
    assert await state_of(store, job) == State.PROCESSING
    assert await store.cursor.find("cursor") is None


async def test_a_commit_of_a_lost_job_is_refused(store: SqlStore, clock: VirtualClock) -> None:
    ctx, job = context(store, clock), await claimed(store)
    async with context(store, clock).commit(job):
        pass
    entered = False
    with pytest.raises(LeaseLost):
        async with ctx.commit(job):
            entered = True
    assert (entered, ctx.committed) == (False, False)


async def test_leave_at_hand_is_used_first_and_then_more_is_asked_for(
    store: SqlStore, clock: VirtualClock
) -> None:
    ctx = context(store, clock, Limit("x", 5, HOUR))
    first = await ctx.limit("x", caller="worker")
    assert await ctx.use() is first
    with pytest.raises(Wait):
        await ctx.use()
    await clock.advance(HOUR / 5)
    second = await ctx.use()
    assert second.id != first.id
    assert ctx.grants == [first, second]


async def test_leave_that_has_run_out_is_passed_over(store: SqlStore, clock: VirtualClock) -> None:
    ctx = context(store, clock, Limit("x", 50, HOUR))
    first = await ctx.limit("x", caller="worker")
    await clock.advance(max(VALID_FOR, HOUR / 50))
    second = await ctx.use()
    assert second.id != first.id


async def test_nobody_asks_without_a_limit(store: SqlStore, clock: VirtualClock) -> None:
    ctx = context(store, clock, Limit("x", 5, HOUR))
    with pytest.raises(LookupError, match=r"call ctx\.limit before"):
        await ctx.use()
    assert ctx.caller == "nobody"


async def test_a_request_that_is_over_is_settled_once(store: SqlStore, clock: VirtualClock) -> None:
    ctx = context(store, clock, Limit("x", 1, HOUR))
    await ctx.limit("x", caller="worker")
    grant = await ctx.use()
    await ctx.used(grant)
    assert ctx.grants == []
    await clock.advance(HOUR)
    assert isinstance(await ctx.limit("x", caller="worker"), Grant)


async def test_a_breaker_is_passed_once_and_looked_at_again(
    store: SqlStore, clock: VirtualClock
) -> None:
    early, late = context(store, clock), context(store, clock)
    await early.enter("site")
    await early.enter("site")
    assert early.sites == {"site"}
    until = clock.now() + HOUR
    await store.breaker.failed("site", BreakerPolicy(failures=1, cool_for=HOUR), "no", None)
    for ctx in (early, late):
        with pytest.raises(Wait) as wait:
            await ctx.enter("site")
        assert (wait.value.until, wait.value.blocked_by) == (until, "breaker site")
    assert late.sites == frozenset()


async def test_the_one_on_trial_is_let_through_again_and_again(
    store: SqlStore, clock: VirtualClock
) -> None:
    await store.breaker.failed("site", BreakerPolicy(failures=1, cool_for=HOUR), "no", None)
    await clock.advance(HOUR)
    trial, other = context(store, clock), context(store, clock)
    for _ in range(3):
        await trial.enter("site")
    with pytest.raises(Wait):
        await other.enter("site")


async def test_a_failure_that_a_job_goes_on_from_counts_against_the_site(
    store: SqlStore, clock: VirtualClock
) -> None:
    ctx = context(store, clock)
    until = clock.now() + 2 * HOUR
    for _ in range(2):
        await ctx.enter("site")
        assert await ctx.barred("site") is None
        await ctx.failed("site", Transient("down", until=until))
    # Nobody takes it for one that has worked.
    assert ctx.sites == frozenset()
    wait = await ctx.barred("site")
    assert wait is not None
    assert (wait.until, wait.blocked_by, wait.reason) == (until, "breaker site", "down")


async def test_who_asks_whether_to_stay_away_is_not_the_one_who_tries(
    store: SqlStore, clock: VirtualClock
) -> None:
    await store.breaker.failed("site", BreakerPolicy(failures=1, cool_for=HOUR), "no", None)
    ctx = context(store, clock)
    assert await ctx.barred("site") is not None
    await clock.advance(HOUR)
    assert await ctx.barred("site") is None
    await ctx.enter("site")
    assert await context(store, clock).barred("site") is not None


async def test_a_hold_keeps_the_limit_of_the_job(store: SqlStore, clock: VirtualClock) -> None:
    ctx = context(store, clock, Limit("x", 3600, HOUR))
    await ctx.limit("x", caller="worker")
    until = clock.now() + HOUR
    await ctx.hold(until, "asked to")
    with pytest.raises(Wait, match="asked to") as wait:
        await context(store, clock, Limit("x", 3600, HOUR)).limit("x", caller="worker")
    assert wait.value.until == until


async def test_a_peek_takes_nothing_and_tells_of_long_waits_only(
    store: SqlStore, clock: VirtualClock
) -> None:
    ctx = context(store, clock, Limit("x", 5, HOUR), Limit("y", 3600, HOUR))
    for name in ("x", "x", "y"):
        await ctx.peek(name)
    await ctx.limit("y", caller="worker")
    await ctx.peek("y")
    await ctx.limit("x", caller="worker")
    with pytest.raises(Wait):
        await ctx.peek("x")


async def test_a_hold_may_name_other_limits_than_the_one_asked_last(
    store: SqlStore, clock: VirtualClock
) -> None:
    first, second = Limit("x", 5, HOUR), Limit("y", 5, HOUR)
    ctx = context(store, clock, first, second)
    await ctx.hold(clock.now() + HOUR, "shut", "x", "y")
    for limit in (first, second):
        wait = await store.limiter.peek(limit)
        assert wait is not None
        assert (wait.until, wait.reason) == (clock.now() + HOUR, "shut")


async def test_a_limit_may_be_as_the_settings_say(store: SqlStore, clock: VirtualClock) -> None:
    def limits(settings: Settings) -> tuple[Limit, ...]:
        return (Limit("x", settings.rentals_details_per_hour, HOUR),)

    watches = Watches([Watch(name="w", tasks=(), limits=limits)], Settings())
    assert watches.limit("x").count == 5
    del store, clock


async def test_leave_may_be_tried_for_without_waiting(store: SqlStore, clock: VirtualClock) -> None:
    ctx = context(store, clock, Limit("x", 2, HOUR, apart=timedelta(0)))
    for count in (1, 2):
        assert await ctx.try_limit("x", caller="worker") is None
        assert len(ctx.grants) == count
    wait = await ctx.try_limit("x", caller="worker")
    assert wait is not None
    assert (wait.reason, wait.blocked_by) == ("hourly_limit", "limit x")
    assert (await ctx.use()).limit == "x"


async def test_the_next_request_is_made_under_the_limit_that_was_asked_last(
    store: SqlStore, clock: VirtualClock
) -> None:
    looks, asks = Limit("looks", 5, HOUR), Limit("asks", 5, HOUR)
    ctx = context(store, clock, looks, asks)
    await ctx.limit("looks", caller="worker")
    assert await ctx.try_limit("asks", caller="worker") is None
    grant = await ctx.use()
    assert grant.limit == "asks"
    await ctx.unused(grant)
    await ctx.settle()
    assert (await store.limiter.used(asks), await store.limiter.used(looks)) == (0, 1)


async def test_leave_that_is_given_back_is_not_counted_as_sent(
    store: SqlStore, clock: VirtualClock
) -> None:
    limit = Limit("one", 5, HOUR)
    ctx = context(store, clock, limit)
    await ctx.limit("one", caller="worker")
    await ctx.give_back()
    await ctx.give_back()
    assert (ctx.grants, ctx.sent, await store.limiter.used(limit)) == ([], 0, 0)
