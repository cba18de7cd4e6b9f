"""The worker by the table of errors: what a job that fails waits for, and where it ends."""

from datetime import timedelta

from mimawari.errors import Blocked, Gone, Invalid, Transient
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.job import State
from mimawari.kernel.values import BreakerPolicy
from mimawari.kernel.watch import Watch
from mimawari.store.sql import SqlStore
from tests.kernel.one_job import found, put_one, raising
from tests.kernel.rounds import Rounds

HOUR = timedelta(hours=1)


async def test_a_job_that_returns_is_done(store: SqlStore, clock: VirtualClock) -> None:
    run, _ = raising(None)
    job_id = await put_one(store)
    await Rounds(store, clock, Watch(name="w", tasks=(run,))).work()
    assert (await found(store, job_id)).state == State.DONE


async def test_gone_is_never_tried_again(store: SqlStore, clock: VirtualClock) -> None:
    run, seen = raising(lambda: Gone("404"))
    job_id = await put_one(store)
    rounds = Rounds(store, clock, Watch(name="w", tasks=(run,)))
    await rounds.work()
    await rounds.pass_time(timedelta(days=1))
    view = await found(store, job_id)
    assert (view.state, view.reason, len(seen)) == (State.PERMANENT_FAIL, "404", 1)


async def test_transient_waits_as_the_backoff_table_says_and_then_dies(
    store: SqlStore, clock: VirtualClock
) -> None:
    run, seen = raising(lambda: Transient("later"))
    job_id = await put_one(store)
    rounds = Rounds(store, clock, Watch(name="w", tasks=(run,)))
    for wait in ("5m", "15m"):
        await rounds.work()
        view = await found(store, job_id)
        minutes = timedelta(minutes=int(wait[:-1]))
        assert (view.state, view.next_at) == (State.PENDING, clock.now() + minutes)
        await clock.advance(minutes)
    await rounds.work()
    view = await found(store, job_id)
    assert (view.state, view.reason, len(seen)) == (
        State.FAILED,
        "later (attempt 3 of 3)",
        3,
    )


async def test_a_site_that_says_when_is_not_asked_before(
    store: SqlStore, clock: VirtualClock
) -> None:
    until = clock.now() + timedelta(hours=3)
    run, _ = raising(lambda: Transient("busy", until=until))
    job_id = await put_one(store)
    await Rounds(store, clock, Watch(name="w", tasks=(run,))).work()
    assert (await found(store, job_id)).next_at == until


async def test_invalid_dies_at_once_with_its_page(store: SqlStore, clock: VirtualClock) -> None:
    run, _ = raising(lambda: Invalid("no price", page=b"<html>"))
    job_id = await put_one(store)
    await Rounds(store, clock, Watch(name="w", tasks=(run,))).work()
    view = await found(store, job_id)
    assert (view.state, view.reason) == (State.FAILED, "page not understood: no price")
    assert await store.queue.page(job_id) == b"<html>"


async def test_a_bug_is_backed_off_and_named(store: SqlStore, clock: VirtualClock) -> None:
    run, _ = raising(lambda: ZeroDivisionError("oh"))
    job_id = await put_one(store)
    await Rounds(store, clock, Watch(name="w", tasks=(run,))).work()
    view = await found(store, job_id)
    assert (view.state, view.reason) == (State.PENDING, "bug: ZeroDivisionError: oh")


async def test_blocks_open_the_breaker_and_count_as_attempts(
    store: SqlStore, clock: VirtualClock
) -> None:
    run, seen = raising(lambda: Blocked("site", "403"), site="site", concurrency=1)
    watch = Watch(name="w", tasks=(run,), breakers={"site": BreakerPolicy(failures=1)})
    rounds = Rounds(store, clock, watch)
    first, second = await put_one(store), await put_one(store)
    await rounds.work()
    assert len(seen) == 1
    assert (await found(store, first)).next_at == clock.now() + HOUR
    waiting = await found(store, second)
    assert (waiting.attempts, waiting.blocked_by) == (0, "breaker site")
    await rounds.pass_time(timedelta(days=1))
    assert {(await found(store, job_id)).state for job_id in (first, second)} == {State.FAILED}


async def test_a_block_before_the_own_page_was_asked_uses_no_attempt(
    store: SqlStore, clock: VirtualClock
) -> None:
    run, seen = raising(lambda: Blocked("site", "the site is shut", asked=False), site="site")
    watch = Watch(name="w", tasks=(run,), breakers={"site": BreakerPolicy(failures=2)})
    job_id = await put_one(store)
    await Rounds(store, clock, watch).pass_time(timedelta(days=1))
    view = await found(store, job_id)
    assert (view.state, view.attempts, view.reason) == (State.PENDING, 0, "the site is shut")
    # After 5 minutes the second block opens the breaker, and then each hour brings one trial.
    assert 22 <= len(seen) <= 25


async def test_success_closes_the_breaker(store: SqlStore, clock: VirtualClock) -> None:
    run, _ = raising(None, site="site")
    await store.breaker.failed("site", BreakerPolicy(failures=2), "403")
    await put_one(store)
    await Rounds(store, clock, Watch(name="w", tasks=(run,))).work()
    view = await store.breaker.find("site")
    assert view is not None
    assert view.failures == 0
