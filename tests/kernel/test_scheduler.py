"""The scheduler: each due member once, in batches, within bounds, and awake in time."""

import asyncio
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from mimawari.kernel.clock import RealClock, VirtualClock
from mimawari.kernel.context import Context
from mimawari.kernel.job import End, Job, NewJob, State, Want
from mimawari.kernel.scheduler import AHEAD, Scheduler
from mimawari.kernel.watch import Watch, Watches, task
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade
from tests.kernel.rounds import Rounds, asleep, running
from tests.kernel.scheduling import HOUR, doing, entry, live, members, until_in

MINUTE = timedelta(minutes=1)
LONGEST = timedelta(minutes=5)
AGAIN = timedelta(seconds=1)
MICROSECOND = timedelta(microseconds=1)
WATCHES = Watches([Watch(name="w", tasks=(doing("quick"), doing("slow")))])


async def drain(store: SqlStore, kind: str) -> None:
    """End every due job of a kind."""
    want = Want(kind=kind, most=1000, lease_for=HOUR)
    jobs = (await store.queue.turn((), [want], "w")).jobs
    ends = [End(id=job.id, token=job.token, state=State.DONE) for job in jobs]
    await store.queue.turn(ends, (), "w")


async def test_what_is_due_is_enqueued_once(store: SqlStore, clock: VirtualClock) -> None:
    now = clock.now()
    later = entry("c", now + AHEAD + MICROSECOND)
    await store.schedule.put([entry("a", now), entry("b", now - MINUTE), later])
    scheduler = Scheduler(store, clock, WATCHES)
    for _ in range(2):
        await scheduler.tick()
        jobs = await live(store)
        assert sorted((job.target, job.dedupe_key) for job in jobs) == [("a", "a"), ("b", "b")]
        assert all((job.kind, job.args) == ("quick", {"of": job.target}) for job in jobs)
    moved = [(each.member, each.next_at) for each in await store.schedule.list(10)]
    assert moved == [("a", now + HOUR), ("b", now - MINUTE + HOUR), ("c", later.next_at)]


async def test_schedulers_that_tick_together_enqueue_each_member_once(
    store: SqlStore, clock: VirtualClock
) -> None:
    twin = SqlStore(store.database.url.render_as_string(hide_password=False), clock)
    names = sorted(f"m{n}" for n in range(40))
    await store.schedule.put([entry(name, clock.now()) for name in names])
    schedulers = [Scheduler(each, clock, WATCHES, deepest=100) for each in (store, twin)]
    await asyncio.gather(*(scheduler.tick() for scheduler in schedulers))
    assert await members(store) == names
    await twin.close()


async def test_a_tick_takes_a_batch_and_comes_again_at_once(
    store: SqlStore, clock: VirtualClock
) -> None:
    now = clock.now()
    await store.schedule.put([entry(f"m{n}", now + n * MINUTE) for n in range(5)])
    await clock.advance(timedelta(minutes=10))
    scheduler = Scheduler(store, clock, WATCHES, batch=2)
    found = []
    for _ in range(3):
        until_at = await scheduler.tick()
        found.append((len(await live(store)), until_at))
    assert found == [
        (2, now + 2 * MINUTE - AHEAD / 2),
        (4, now + 4 * MINUTE - AHEAD / 2),
        (5, clock.now() + LONGEST),
    ]


async def test_a_kind_that_is_too_deep_is_held_while_others_go_on(
    store: SqlStore, clock: VirtualClock
) -> None:
    await store.queue.put([NewJob(kind="slow", target=f"old{n}") for n in range(3)])
    now = clock.now()
    await store.schedule.put([entry("s", now, "slow"), entry("q", now)])
    scheduler = Scheduler(store, clock, WATCHES, deepest=2)
    assert await scheduler.tick() == now + AGAIN
    assert await members(store) == ["old0", "old1", "old2", "q"]
    held = await store.schedule.find("s")
    assert held is not None
    assert held.next_at == now
    await drain(store, "slow")
    await scheduler.tick()
    assert await members(store) == ["q", "s"]


async def test_a_kind_as_deep_as_allowed_goes_on(store: SqlStore, clock: VirtualClock) -> None:
    await store.queue.put([NewJob(kind="slow") for _ in range(2)])
    await store.queue.put([NewJob(kind="slow", run_at=clock.now() + HOUR) for _ in range(9)])
    await store.schedule.put([entry("s", clock.now(), "slow")])
    assert await Scheduler(store, clock, WATCHES, deepest=2).tick() == clock.now() + LONGEST
    assert "s" in await members(store)


async def test_an_earlier_member_of_another_kind_is_not_waited_past(
    store: SqlStore, clock: VirtualClock
) -> None:
    await store.queue.put([NewJob(kind="slow") for _ in range(3)])
    soon = clock.now() + timedelta(milliseconds=800)
    await store.schedule.put([entry("s", clock.now(), "slow"), entry("q", soon)])
    assert await Scheduler(store, clock, WATCHES, deepest=2).tick() == soon - AHEAD / 2


@pytest.mark.parametrize(
    ("ahead", "wakes"),
    [
        (AHEAD, LONGEST),
        (AHEAD + MICROSECOND, AHEAD / 2 + MICROSECOND),
        (timedelta(seconds=90), timedelta(seconds=90) - AHEAD / 2),
        (LONGEST + AHEAD / 2, LONGEST),
        (LONGEST + AHEAD / 2 + MICROSECOND, LONGEST),
        (timedelta(days=3), LONGEST),
        (None, LONGEST),
    ],
)
async def test_the_next_waking_is_exact_and_at_most_five_minutes_away(
    ahead: timedelta | None, wakes: timedelta, store: SqlStore, clock: VirtualClock
) -> None:
    if ahead is not None:
        await store.schedule.put([entry("m", clock.now() + ahead)])
    assert await Scheduler(store, clock, WATCHES).tick() == clock.now() + wakes


async def test_a_member_whose_job_still_lives_is_moved_on_without_a_second_job(
    store: SqlStore, clock: VirtualClock
) -> None:
    start = clock.now()
    await store.schedule.put([entry("m", start)])
    scheduler = Scheduler(store, clock, WATCHES)
    for turn in range(1, 4):
        await scheduler.tick()
        moved = await store.schedule.find("m")
        assert moved is not None
        assert moved.next_at == start + turn * HOUR
        assert await members(store) == ["m"]
        await clock.advance(HOUR)


@pytest.mark.parametrize("missed", [1, 1.25, 2, 10.5, 1000])
async def test_missed_intervals_make_one_run_and_not_many(
    missed: float, store: SqlStore, clock: VirtualClock
) -> None:
    ran: list[datetime] = []

    @task("quick")
    async def go(job: Job, ctx: Context) -> None:
        del job
        ran.append(ctx.clock.now())

    await store.schedule.put([entry("m", clock.now())])
    await clock.advance(missed * HOUR)
    back = clock.now()
    rounds = Rounds(store, clock, Watch(name="w", tasks=(go,)))
    await rounds.pass_time(MINUTE, step=timedelta(seconds=10))
    assert ran == [back]
    moved = await store.schedule.find("m")
    assert moved is not None
    assert back < moved.next_at <= back + HOUR


async def test_run_enqueues_just_before_each_time(store: SqlStore, clock: VirtualClock) -> None:
    at = clock.now() + 3 * MINUTE
    await store.schedule.put([entry("m", at)])
    async with running(Scheduler(store, clock, WATCHES)):
        await asleep(clock)
        await clock.advance(3 * MINUTE - AHEAD / 2 - MICROSECOND)
        assert await members(store) == []
        await clock.advance(MICROSECOND)
        await until_in(store, "m")
    assert await store.queue.next_at(["quick"]) == at


async def test_what_is_enqueued_ahead_starts_at_its_time_and_never_before(
    store: SqlStore, clock: VirtualClock
) -> None:
    ran: list[datetime] = []

    @task("quick")
    async def go(job: Job, ctx: Context) -> None:
        del job
        ran.append(ctx.clock.now())

    at = clock.now() + AHEAD * 0.8
    await store.schedule.put([entry("m", at)])
    rounds = Rounds(store, clock, Watch(name="w", tasks=(go,)))
    await rounds.pass_time(2 * AHEAD, step=AHEAD / 50)
    assert ran == [at]


async def test_a_target_that_is_due_again_at_once_runs_again_and_holds_up_no_other(
    store: SqlStore, clock: VirtualClock
) -> None:
    ran: list[tuple[object, datetime]] = []

    @task("quick", concurrency=2)
    async def go(job: Job, ctx: Context) -> None:
        now = ctx.clock.now()
        ran.append((job.args["of"], now))
        async with ctx.commit(job) as tx:
            tx.next_run(now if len(ran) <= 2 else now + HOUR, "more is there")

    start = clock.now()
    await store.schedule.put([entry("m", start), entry("other", start + MINUTE)])
    rounds = Rounds(store, clock, Watch(name="w", tasks=(go,)))
    await rounds.pass_time(10 * MINUTE)
    assert ran == [*[("m", start)] * 3, ("other", start + MINUTE)]


async def test_run_is_woken_by_an_earlier_put(store: SqlStore, clock: VirtualClock) -> None:
    start = clock.now()
    await store.schedule.put([entry("late", start + HOUR)])
    async with running(Scheduler(store, clock, WATCHES)):
        await asleep(clock)
        await store.schedule.put([entry("early", start)])
        await until_in(store, "early")
    assert clock.now() == start


async def test_run_is_woken_by_an_earlier_put_in_another_process(store: SqlStore) -> None:
    real = RealClock()
    twin = SqlStore(store.database.url.render_as_string(hide_password=False), real)
    await store.schedule.put([entry("first", real.now())])
    async with running(Scheduler(twin, real, WATCHES)):
        await until_in(store, "first")
        await store.schedule.put([entry("second", real.now())])
        await until_in(store, "first", "second")
    await twin.close()


async def test_a_store_that_is_down_is_asked_again_a_second_later(
    tmp_path: Path, clock: VirtualClock
) -> None:
    """Play a disk that is mounted too late."""
    folder = tmp_path / "disk"
    store = SqlStore(f"sqlite:///{folder}/mimawari.db", clock)
    async with running(Scheduler(store, clock, WATCHES)) as run:
        await asleep(clock)
        await clock.advance(AGAIN)
        await asleep(clock)
        assert not run.done()
        folder.mkdir()
        await upgrade(store.database)
        await store.schedule.put([entry("m", clock.now())])
        await clock.advance(AGAIN)
        await until_in(store, "m")
    await store.close()
