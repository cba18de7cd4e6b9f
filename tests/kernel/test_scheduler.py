"""The scheduler: each due member once, in batches, within bounds, and awake in time."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

import pytest

from mimawari.kernel.clock import RealClock, VirtualClock
from mimawari.kernel.context import Context
from mimawari.kernel.job import End, Job, JobView, NewJob, State, Want
from mimawari.kernel.ports import Reader
from mimawari.kernel.scheduler import AHEAD, Scheduler, spread
from mimawari.kernel.values import Entry
from mimawari.kernel.watch import Target, Task, Watch, Watches, task
from mimawari.settings import Settings
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade
from tests.kernel.rounds import Rounds, asleep, running

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
LONGEST = timedelta(minutes=5)
AGAIN = timedelta(seconds=1)
MICROSECOND = timedelta(microseconds=1)


def doing(kind: str) -> Task:
    """Return a task that does nothing."""

    @task(kind, concurrency=10)
    async def run(job: Job, ctx: Context) -> None:
        del job, ctx

    return run


WATCHES = Watches([Watch(name="w", tasks=(doing("quick"), doing("slow")))])


def entry(member: str, at: datetime, kind: str = "quick") -> Entry:
    return Entry(member=member, kind=kind, next_at=at, every=HOUR, args={"of": member})


async def live(store: SqlStore) -> list[JobView]:
    """List the jobs that have not ended, oldest first."""
    return (await store.queue.list(1000, state=State.PENDING))[::-1]


async def members(store: SqlStore) -> list[str]:
    return sorted(job.target or "" for job in await live(store))


async def drain(store: SqlStore, kind: str) -> None:
    """End every due job of a kind."""
    want = Want(kind=kind, most=1000, lease_for=HOUR)
    jobs = (await store.queue.turn((), [want], "w")).jobs
    ends = [End(id=job.id, token=job.token, state=State.DONE) for job in jobs]
    await store.queue.turn(ends, (), "w")


async def until_in(store: SqlStore, *names: str) -> None:
    """Wait until these members have jobs, while no time passes on a virtual clock."""
    async with asyncio.timeout(10):
        found: list[str] = []
        while found != list(names):
            found = await members(store)


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


def watching(targets: Sequence[Target]) -> tuple[Watches, list[Reader]]:
    """Return a watch with these targets, and the readers they were asked with."""
    asked: list[Reader] = []

    async def list_targets(reader: Reader, _settings: Settings) -> Sequence[Target]:
        asked.append(reader)
        return targets

    return Watches([Watch(name="w", tasks=(doing("quick"),), targets=list_targets)]), asked


async def test_an_empty_schedule_is_rebuilt_from_the_watches_targets(
    store: SqlStore, clock: VirtualClock
) -> None:
    now = clock.now()
    ran = now - timedelta(minutes=20)
    watches, asked = watching(
        [
            Target(member="new", kind="quick", every=HOUR, args={"x": 1}),
            Target(member="known", kind="quick", every=HOUR, last_run_at=ran),
            Target(member="overdue", kind="quick", every=HOUR, last_run_at=now - 9 * HOUR),
        ]
    )
    await Scheduler(store, clock, watches).tick()
    assert len(asked) == 1
    assert await store.schedule.list(10) == [
        Entry(member="known", kind="quick", next_at=ran + HOUR, every=HOUR, reason="interval"),
        Entry(
            member="new", kind="quick", next_at=now, every=HOUR, args={"x": 1},
            reason="first run, spread out",
        ),
        Entry(
            member="overdue", kind="quick", next_at=now + HOUR / 2, every=HOUR, reason="overdue"
        ),
    ]  # fmt: skip


async def test_a_schedule_that_is_not_empty_is_left_alone(
    store: SqlStore, clock: VirtualClock
) -> None:
    await store.schedule.put([entry("only", clock.now() + 9 * HOUR)])
    watches, asked = watching([Target(member="other", kind="quick", every=HOUR)])
    scheduler = Scheduler(store, clock, watches)
    for _ in range(3):
        await scheduler.tick()
        await clock.advance(HOUR)
    assert asked == []
    assert await store.schedule.count() == 1


async def test_run_goes_on_with_a_rebuilt_schedule_without_waiting(
    store: SqlStore, clock: VirtualClock
) -> None:
    watches, _ = watching([Target(member=f"m{n}", kind="quick", every=HOUR) for n in range(4)])
    start = clock.now()
    async with running(Scheduler(store, clock, watches)):
        await until_in(store, "m0")
    assert clock.now() == start


NOW = datetime(2026, 1, 1, tzinfo=UTC)
HALF = timedelta(minutes=30)


@pytest.mark.parametrize(
    ("ages", "expected"),
    [
        ([], []),
        ([None], [timedelta(0)]),
        ([2 * HOUR], [timedelta(0)]),
        ([HOUR], [timedelta(0)]),
        ([HALF], [HALF]),
        ([timedelta(0)], [HOUR]),
        ([None] * 4, [HOUR * n / 4 for n in range(4)]),
        ([None, HALF, 5 * HOUR, timedelta(0)], [timedelta(0), HALF, HALF, HOUR]),
    ],
)
def test_new_and_overdue_targets_are_spread_and_others_keep_their_time(
    ages: list[timedelta | None], expected: list[timedelta]
) -> None:
    targets = [
        Target(member=f"m{n}", kind="t", every=HOUR, last_run_at=None if age is None else NOW - age)
        for n, age in enumerate(ages)
    ]
    placed = spread(targets, NOW)
    assert [each.member for each in placed] == [target.member for target in targets]
    assert [each.next_at - NOW for each in placed] == expected


def test_each_target_is_spread_over_its_own_interval() -> None:
    spans = [HOUR, 6 * HOUR, HOUR, 6 * HOUR]
    targets = [Target(member=f"m{n}", kind="t", every=span) for n, span in enumerate(spans)]
    placed = [each.next_at - NOW for each in spread(targets, NOW)]
    assert placed == [timedelta(0), 6 * HOUR / 4, HOUR / 2, 6 * HOUR * 3 / 4]


class Counted(str):
    """A name that counts how often it is compared."""

    __slots__ = ()
    compared: ClassVar[list[int]] = []

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        """Compare and count."""
        self.compared.append(1)
        return super().__eq__(other)


def test_spreading_costs_each_target_the_same_however_many_there_are() -> None:
    targets = [Target(member=Counted(n), kind="t", every=HOUR) for n in range(300)]
    assert len(spread(targets, NOW)) == 300
    assert len(Counted.compared) < 10 * len(targets)
