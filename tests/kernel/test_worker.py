"""The worker: leases, timeouts, limits, roles, suspects, stopping."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from sqlalchemy import update

from mimawari.kernel.clock import RealClock, VirtualClock
from mimawari.kernel.context import Context
from mimawari.kernel.job import End, Job, State, Want
from mimawari.kernel.rescue import rescue
from mimawari.kernel.rounds import Rounds as Kernel
from mimawari.kernel.values import Limit
from mimawari.kernel.waiting import wait_for_end
from mimawari.kernel.watch import Task, Watch, Watches, task
from mimawari.kernel.worker import ALIVE, Worker
from mimawari.settings import Settings
from mimawari.store.sql import SqlStore
from mimawari.store.sql.tables import jobs
from mimawari.watches.hot import watch as hot
from tests.kernel.one_job import found, put_one, raising
from tests.kernel.rounds import Rounds
from tests.kernel.test_waiting import never

HOUR = timedelta(hours=1)


async def test_a_worker_says_that_it_is_alive_until_it_stops(
    store: SqlStore, clock: VirtualClock
) -> None:
    watches = Watches([Watch(name="w", tasks=(raising(None)[0],))])
    worker = Worker(store, clock, watches, name="me")
    running = asyncio.create_task(worker.run())
    job_id = await put_one(store)
    assert await wait_for_end(store, RealClock(), job_id, RealClock().now() + HOUR, never)
    assert await store.cache.get(ALIVE) == b"me"
    running.cancel()
    await asyncio.wait({running})
    assert await store.cache.get(ALIVE) is None


async def test_a_long_limit_gives_the_place_to_others_and_uses_no_attempt(
    store: SqlStore, clock: VirtualClock
) -> None:
    times = []

    @task("t", attempts=1, concurrency=4)
    async def run(job: Job, ctx: Context) -> None:
        await ctx.limit("t", caller="worker")
        times.append(clock.now())

    watch = Watch(name="w", tasks=(run,), limits=(Limit("t", 5, HOUR),))
    rounds = Rounds(store, clock, watch)
    for _ in range(6):
        await put_one(store)
    start = clock.now()
    await rounds.pass_time(timedelta(hours=2))
    gaps = [after - before for before, after in pairwise(times)]
    assert times[0] == start
    assert len(times) == 6
    assert min(gaps) >= timedelta(seconds=720)
    assert (await store.queue.counts())[State.DONE] == 6


async def test_a_job_past_its_timeout_is_cancelled_and_tried_again(
    store: SqlStore, clock: VirtualClock
) -> None:
    @task("t", timeout="1m", lease="5m", backoff="1h")
    async def run(job: Job, ctx: Context) -> None:
        await ctx.clock.sleep(HOUR)

    rounds = Rounds(store, clock, Watch(name="w", tasks=(run,)))
    job_id = await put_one(store)
    await rounds.work()
    await clock.advance(timedelta(minutes=1))
    await rounds.work()
    view = await found(store, job_id)
    assert (view.state, view.attempts) == (State.PENDING, 1)
    assert view.reason == "timed out after 0:01:00"


async def test_a_job_runs_as_long_as_the_settings_say_where_its_task_leaves_it_to_them(
    store: SqlStore, clock: VirtualClock
) -> None:
    @task("t", timeout_of=lambda settings: settings.janitor_timeout, backoff="1h")
    async def run(job: Job, ctx: Context) -> None:
        await ctx.clock.sleep(HOUR)

    settings = Settings(janitor_timeout=timedelta(minutes=3))
    rounds = Kernel(store, clock, Watches([Watch(name="w", tasks=(run,))], settings), {})
    job_id = await put_one(store)
    await rounds.work()
    await clock.advance(timedelta(minutes=3))
    await rounds.work()
    assert (await found(store, job_id)).reason == "timed out after 0:03:00"


def test_crawls_and_their_results_go_by_the_timeout_of_the_janitor() -> None:
    tasks = Watches([hot], Settings(janitor_timeout=timedelta(minutes=3))).tasks
    for kind in ("hot.crawl", "hot.apply"):
        assert tasks[kind].timeout_for == timedelta(minutes=3)


async def test_heartbeats_keep_a_long_job_ours(store: SqlStore, clock: VirtualClock) -> None:
    @task("t", timeout="1d", lease="1m")
    async def run(job: Job, ctx: Context) -> None:
        await ctx.clock.sleep(timedelta(minutes=10))

    rounds = Rounds(store, clock, Watch(name="w", tasks=(run,)))
    job_id = await put_one(store)
    await rounds.work()
    for _ in range(31):
        await clock.advance(timedelta(seconds=20))
        await rounds.work()
        assert (await rescue(store, clock, rounds.watches)).requeued == 0
    assert (await found(store, job_id)).state == State.DONE


async def test_a_lost_lease_cancels_the_work(store: SqlStore, clock: VirtualClock) -> None:
    ended: list[str] = []

    @task("t", timeout="1d", lease="1m")
    async def run(job: Job, ctx: Context) -> None:
        try:
            await ctx.clock.sleep(HOUR)
        finally:
            ended.append(job.id)

    rounds = Rounds(store, clock, Watch(name="w", tasks=(run,)))
    job_id = await put_one(store)
    await rounds.work()
    await clock.advance(timedelta(minutes=2))
    assert (await rescue(store, clock, rounds.watches)).requeued == 1
    [stolen] = (await store.queue.turn((), [Want(kind="t", most=1, lease_for=HOUR)], "other")).jobs
    await rounds.work()
    assert ended == [job_id]
    assert (await found(store, job_id)).worker == "other"
    assert stolen.token == 2


async def test_a_job_claimed_again_while_its_stale_run_is_still_ending_here_runs_to_its_end(
    store: SqlStore, clock: VirtualClock
) -> None:
    tokens: list[int] = []

    @task("t", timeout="1d", lease="1m", concurrency=2)
    async def run(job: Job, ctx: Context) -> None:
        tokens.append(job.token)
        try:
            await ctx.clock.sleep(timedelta(minutes=5))
        finally:
            await ctx.store.ping()

    rounds = Rounds(store, clock, Watch(name="w", tasks=(run,)))
    job_id = await put_one(store)
    await rounds.work()
    await clock.advance(timedelta(minutes=2))
    assert (await rescue(store, clock, rounds.watches)).requeued == 1
    await rounds.work()
    assert (tokens, rounds.worker.running) == ([1, 2], 1)
    for _ in range(15):
        await clock.advance(timedelta(seconds=20))
        await rounds.work()
    assert (await found(store, job_id)).state == State.DONE
    assert (tokens, rounds.worker.running) == ([1, 2], 0)


async def test_an_undecodable_job_is_buried_with_the_reason(
    store: SqlStore, clock: VirtualClock
) -> None:
    run, seen = raising(None)
    job_id = await put_one(store)
    async with store.database.write() as session:
        await session.execute(update(jobs).values(args="{broken"))
    await Rounds(store, clock, Watch(name="w", tasks=(run,))).work()
    view = await found(store, job_id)
    assert (view.state, seen) == (State.FAILED, [])
    assert view.reason is not None
    assert view.reason.startswith("undecodable arguments")


async def test_never_more_than_its_concurrency_runs_at_once(
    store: SqlStore, clock: VirtualClock
) -> None:
    most = 0
    now = 0

    @task("t", concurrency=3, timeout="1d", lease="1d")
    async def run(job: Job, ctx: Context) -> None:
        nonlocal most, now
        now += 1
        most = max(most, now)
        await ctx.clock.sleep(timedelta(seconds=1))
        now -= 1

    rounds = Rounds(store, clock, Watch(name="w", tasks=(run,)))
    for _ in range(10):
        await put_one(store)
    for _ in range(5):
        await rounds.work()
        await clock.advance(timedelta(seconds=1))
    await rounds.work()
    assert most == 3
    assert (await store.queue.counts())[State.DONE] == 10


async def test_stopping_gives_running_jobs_back_unharmed(
    store: SqlStore, clock: VirtualClock
) -> None:
    @task("t", timeout="1d", lease="1h")
    async def run(job: Job, ctx: Context) -> None:
        await ctx.clock.sleep(timedelta(days=1))

    rounds = Rounds(store, clock, Watch(name="w", tasks=(run,)))
    job_id = await put_one(store)
    await rounds.work()
    stopping = asyncio.create_task(rounds.worker.stop())
    while not stopping.done():
        await clock.advance(timedelta(seconds=1))
        await asyncio.sleep(0.001)
    await stopping
    view = await found(store, job_id)
    assert (view.state, view.attempts) == (State.PENDING, 0)
    assert view.reason == "its worker stopped"


@pytest.mark.parametrize("attempts", [1, 2, 5])
async def test_a_job_whose_process_keeps_dying_is_buried_and_spares_the_others(
    attempts: int, store: SqlStore, clock: VirtualClock
) -> None:
    """Play a worker that dies whenever it runs the poison, whatever else it was running."""
    run, _ = raising(None)
    policy = Task(
        kind="t",
        run=run.run,
        lease_for=timedelta(minutes=1),
        timeout_for=HOUR,
        attempts=attempts,
        backoff=(timedelta(seconds=1),),
        concurrency=10,
    )
    rounds = Rounds(store, clock, Watch(name="w", tasks=(policy,)))
    others = [await put_one(store) for _ in range(5)]
    poison = await put_one(store)
    for _ in range(20):
        want = Want(kind="t", most=10, lease_for=timedelta(minutes=1))
        claimed = (await store.queue.turn((), [want], "doomed")).jobs
        if poison not in {job.id for job in claimed}:
            ends = [End(id=job.id, token=job.token, state=State.DONE) for job in claimed]
            await store.queue.turn(ends, (), "doomed")
        await clock.advance(timedelta(minutes=2))
        await rescue(store, clock, rounds.watches)
    view = await found(store, poison)
    assert view.state == State.FAILED
    assert view.reason is not None
    assert view.reason.startswith("its process died")
    assert {(await found(store, other)).state for other in others} == {State.DONE}


async def test_suspects_run_one_after_the_other_without_a_pause(
    store: SqlStore, clock: VirtualClock
) -> None:
    at_once: list[int] = []
    running = 0

    @task("t", attempts=20, concurrency=8)
    async def run(job: Job, ctx: Context) -> None:
        nonlocal running
        running += 1
        at_once.append(running)
        await ctx.store.ping()
        running -= 1

    ids = [await put_one(store) for _ in range(12)]
    await store.database.run(lambda session: session.execute(update(jobs).values(crashes=2)))
    began = clock.now()
    await Rounds(store, clock, Watch(name="w", tasks=(run,))).work()
    assert clock.now() == began
    assert [(await found(store, job_id)).state for job_id in ids] == [State.DONE] * 12
    assert at_once == [1] * 12


async def test_a_worker_of_a_role_takes_its_own_jobs_only_and_buries_no_others(
    store: SqlStore, clock: VirtualClock
) -> None:
    ours, _ = raising(None, role="monitor")
    others = replace(ours, kind="o", role="worker")
    watches = Watches([Watch(name="w", tasks=(ours, others))])
    mine, other = await put_one(store), await put_one(store, "o")
    [claimed] = (await store.queue.turn((), [Want(kind="o", most=1, lease_for=HOUR)], "w")).jobs
    assert claimed.id == other
    await clock.advance(2 * HOUR)
    worker = Worker(store, clock, watches, name="m", role="monitor")
    rounds = Rounds(store, clock)
    rounds.watches, rounds.worker = watches, worker
    await rounds.work()
    await rescue(store, clock, watches)
    assert (await found(store, mine)).state == State.DONE
    assert (await found(store, other)).state == State.PENDING


async def test_a_job_that_a_process_stood_still_over_runs_with_no_other_beside_it(
    store: SqlStore, clock: VirtualClock
) -> None:
    running: set[str] = set()
    beside: dict[str, set[str]] = {}

    async def work(job: Job, ctx: Context) -> None:
        running.add(job.id)
        for other in running:
            beside.setdefault(other, set()).update(running - {other})
        await ctx.store.ping()
        running.remove(job.id)

    first = task("t", attempts=20, concurrency=8)(work)
    second = task("o", attempts=20, concurrency=8)(work)
    ids = [await put_one(store, kind) for kind in ("t", "t", "o", "o", "t", "o")]
    stopped = jobs.c.id.in_(ids[1:3])
    await store.database.run(
        lambda session: session.execute(update(jobs).where(stopped).values(crashes=2, stops=1))
    )
    await Rounds(store, clock, Watch(name="w", tasks=(first, second))).work()
    assert [(await found(store, job_id)).state for job_id in ids] == [State.DONE] * 6
    assert [beside[one] for one in ids[1:3]] == [set(), set()]
