"""Why does it wait? The answer for targets and jobs in every state."""

from datetime import timedelta

import pytest

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.context import Context
from mimawari.kernel.job import End, Job, NewJob, State, Want
from mimawari.kernel.values import BreakerPolicy, Entry, Grant, Limit
from mimawari.kernel.watch import Watch, Watches, task
from mimawari.kernel.why import Why, why
from mimawari.store.sql import SqlStore
from tests.kernel.rounds import Rounds

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
LIMIT = Limit("t", 1, HOUR)


@task("t", site="site")
async def limited(job: Job, ctx: Context) -> None:
    """Ask a site once."""
    del job
    await ctx.limit("t", caller="worker")


@task("free")
async def unlimited(job: Job, ctx: Context) -> None:
    """Do nothing."""
    del job, ctx


WATCH = Watch(name="w", tasks=(limited, unlimited), limits=(LIMIT,))
WATCHES = Watches([WATCH])


async def explain(store: SqlStore, clock: VirtualClock, name: str) -> Why:
    """Ask why of something that is there."""
    answer = await why(store, clock, WATCHES, name)
    assert answer is not None
    return answer


async def put(store: SqlStore, kind: str = "free", wait: timedelta = timedelta(0)) -> str:
    at = store.database.clock.now() + wait
    [job_id] = await store.queue.put([NewJob(kind=kind, run_at=at)])
    return job_id


async def claim(store: SqlStore, kind: str = "free") -> Job:
    want = Want(kind=kind, most=1, lease_for=MINUTE)
    [job] = (await store.queue.turn((), [want], "worker-1")).jobs
    return job


async def use_up(store: SqlStore, clock: VirtualClock) -> None:
    """Take and settle the one grant of the hour, and let a minute pass."""
    grant = await store.limiter.acquire(LIMIT, "other")
    assert isinstance(grant, Grant)
    await store.limiter.settle(grant)
    await clock.advance(MINUTE)


async def block(store: SqlStore, cool_for: timedelta) -> None:
    """Open the site's breaker."""
    await store.breaker.failed("site", BreakerPolicy(failures=1, cool_for=cool_for), "403")


async def schedule(store: SqlStore, wait: timedelta, reason: str | None = None) -> None:
    at = store.database.clock.now() + wait
    await store.schedule.put([Entry(member="m", kind="t", next_at=at, every=HOUR, reason=reason)])


async def test_what_nobody_knows_has_no_answer(store: SqlStore, clock: VirtualClock) -> None:
    await put(store)
    assert await why(store, clock, WATCHES, "nobody") is None


@pytest.mark.parametrize(("given", "told"), [(None, "interval"), ("overdue", "overdue")])
async def test_a_scheduled_target_waits_for_its_time(
    given: str | None, told: str, store: SqlStore, clock: VirtualClock
) -> None:
    await schedule(store, 2 * HOUR, given)
    assert await explain(store, clock, "m") == Why(
        subject="m", kind="t", state="scheduled", next_at=clock.now() + 2 * HOUR, reason=told
    )


async def test_a_due_job_waits_for_a_free_worker(store: SqlStore, clock: VirtualClock) -> None:
    job_id, due_at = await put(store), clock.now()
    await clock.advance(MINUTE)
    assert await explain(store, clock, job_id) == Why(
        subject=job_id,
        kind="free",
        state="pending",
        next_at=due_at,
        reason="waits for a free worker",
        job_id=job_id,
    )


async def test_a_job_put_for_later_waits_for_its_time(store: SqlStore, clock: VirtualClock) -> None:
    job_id = await put(store, wait=HOUR)
    answer = await explain(store, clock, job_id)
    assert (answer.next_at, answer.reason) == (clock.now() + HOUR, "its time has not come")
    assert answer.blocked_by is None


async def test_a_job_waits_for_its_limit_until_the_exact_time(
    store: SqlStore, clock: VirtualClock
) -> None:
    free_at = clock.now() + HOUR
    await use_up(store, clock)
    job_id = await put(store, "t")
    answer = await explain(store, clock, job_id)
    assert (answer.state, answer.next_at) == ("pending", free_at)
    assert (answer.reason, answer.blocked_by) == ("hourly_limit", "limit t")
    await clock.advance(free_at - clock.now() - timedelta(microseconds=1))
    assert (await explain(store, clock, job_id)).blocked_by == "limit t"
    await clock.advance(timedelta(microseconds=1))
    answer = await explain(store, clock, job_id)
    assert (answer.reason, answer.blocked_by) == ("waits for a free worker", None)


async def test_a_job_that_was_sent_back_by_its_limit_says_so(
    store: SqlStore, clock: VirtualClock
) -> None:
    free_at = clock.now() + HOUR
    await use_up(store, clock)
    job_id = await put(store, "t")
    await Rounds(store, clock, WATCH).work()
    answer = await explain(store, clock, job_id)
    assert (answer.next_at, answer.reason, answer.blocked_by) == (
        free_at,
        "hourly_limit",
        "limit t",
    )


async def test_a_limit_that_gives_leave_again_blocks_nothing_any_more(
    store: SqlStore, clock: VirtualClock
) -> None:
    await use_up(store, clock)
    job_id = await put(store, "t")
    await Rounds(store, clock, WATCH).work()
    await clock.advance(2 * HOUR)
    answer = await explain(store, clock, job_id)
    assert (answer.reason, answer.blocked_by) == ("waits for a free worker", None)


async def test_a_held_limit_is_named_by_what_the_site_said(
    store: SqlStore, clock: VirtualClock
) -> None:
    until = clock.now() + timedelta(hours=5)
    await store.limiter.hold("t", until, "Retry-After: 18000")
    answer = await explain(store, clock, await put(store, "t"))
    assert (answer.next_at, answer.reason) == (until, "Retry-After: 18000")


async def test_a_job_waits_for_the_breaker_of_its_site(
    store: SqlStore, clock: VirtualClock
) -> None:
    await block(store, 3 * HOUR)
    job_id = await put(store, "t")
    answer = await explain(store, clock, job_id)
    assert (answer.next_at, answer.reason) == (clock.now() + 3 * HOUR, "403")
    assert (answer.blocked_by, answer.job_id) == ("breaker site", job_id)
    await clock.advance(3 * HOUR)
    assert (await explain(store, clock, job_id)).blocked_by is None


async def test_a_breaker_that_only_counts_blocks_nothing(
    store: SqlStore, clock: VirtualClock
) -> None:
    await store.breaker.failed("site", BreakerPolicy(failures=2), "403")
    assert (await explain(store, clock, await put(store, "t"))).blocked_by is None


@pytest.mark.parametrize(
    ("cool_for", "blocker"),
    [(30 * MINUTE, "limit t"), (90 * MINUTE, "breaker site")],
)
@pytest.mark.parametrize("subject", ["target", "job"])
async def test_the_latest_blocker_wins(
    subject: str, cool_for: timedelta, blocker: str, store: SqlStore, clock: VirtualClock
) -> None:
    free_at = clock.now() + HOUR
    await use_up(store, clock)
    await block(store, cool_for)
    back_at = clock.now() + cool_for
    name = "m"
    if subject == "target":
        await schedule(store, MINUTE)
    else:
        name = await put(store, "t", MINUTE)
    answer = await explain(store, clock, name)
    assert (answer.next_at, answer.blocked_by) == (max(free_at, back_at), blocker)


@pytest.mark.parametrize("subject", ["target", "job"])
async def test_a_time_after_every_blocker_is_what_is_waited_for(
    subject: str, store: SqlStore, clock: VirtualClock
) -> None:
    await use_up(store, clock)
    await block(store, HOUR)
    name = "m"
    if subject == "target":
        await schedule(store, 9 * HOUR)
    else:
        name = await put(store, "t", 9 * HOUR)
    answer = await explain(store, clock, name)
    assert (answer.next_at, answer.blocked_by) == (clock.now() + 9 * HOUR, None)


async def test_blockers_of_other_kinds_do_not_count(store: SqlStore, clock: VirtualClock) -> None:
    await use_up(store, clock)
    await block(store, HOUR)
    answer = await explain(store, clock, await put(store))
    assert (answer.reason, answer.blocked_by) == ("waits for a free worker", None)


async def test_a_job_at_work_names_its_worker_and_waits_for_nothing(
    store: SqlStore, clock: VirtualClock
) -> None:
    job_id = await put(store)
    await claim(store)
    await use_up(store, clock)
    answer = await explain(store, clock, job_id)
    assert (answer.state, answer.next_at) == ("processing", None)
    assert answer.reason == "worker-1 is at work on it"
    assert answer.blocked_by is None


@pytest.mark.parametrize(
    ("state", "given", "told"),
    [
        (State.DONE, None, "ended: done"),
        (State.FAILED, "page not understood: no price", "page not understood: no price"),
        (State.PERMANENT_FAIL, "404", "404"),
    ],
)
async def test_a_job_that_ended_says_how_and_waits_for_nothing(
    state: State, given: str | None, told: str, store: SqlStore, clock: VirtualClock
) -> None:
    job_id = await put(store)
    job = await claim(store)
    await store.queue.turn([End(id=job.id, token=job.token, state=state, reason=given)], (), "w")
    assert await explain(store, clock, job_id) == Why(
        subject=job_id, kind="free", state=state, next_at=None, reason=told, job_id=job_id
    )


async def test_a_job_of_an_unknown_kind_is_blocked_by_its_kind(
    store: SqlStore, clock: VirtualClock
) -> None:
    answer = await explain(store, clock, await put(store, "stranger"))
    assert (answer.reason, answer.blocked_by) == ("no watch here runs 'stranger'", "kind")


async def test_a_job_is_found_by_its_key_and_by_its_id(
    store: SqlStore, clock: VirtualClock
) -> None:
    [job_id] = await store.queue.put([NewJob(kind="free", dedupe_key="key")])
    for name in ("key", job_id):
        answer = await explain(store, clock, name)
        assert (answer.subject, answer.job_id) == (name, job_id)


async def test_a_target_with_a_live_job_is_explained_by_it_and_else_by_the_schedule(
    store: SqlStore, clock: VirtualClock
) -> None:
    await schedule(store, timedelta(0))
    rounds = Rounds(store, clock, WATCH)
    await rounds.scheduler.tick()
    live = await explain(store, clock, "m")
    assert (live.state, live.reason) == ("pending", "waits for a free worker")
    await rounds.work()
    over = await explain(store, clock, "m")
    assert (over.state, over.job_id) == ("scheduled", None)
    assert over.next_at is not None
    assert over.next_at >= clock.now() + HOUR
