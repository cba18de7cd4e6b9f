"""What fails in a row is counted, and forgotten once it goes well again."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from mimawari.errors import Blocked, Gone, Invalid, Transient, Wait
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.context import Context
from mimawari.kernel.job import Job, NewJob, Want
from mimawari.kernel.rescue import rescue
from mimawari.kernel.watch import Watch, Watches, task
from mimawari.kernel.worker import Worker
from mimawari.store.sql import SqlStore
from tests.kernel.rounds import Rounds, running

HOUR = timedelta(hours=1)


class Doing:
    """A task that does what it is told next: raises, commits, or just returns."""

    def __init__(self) -> None:
        self.errors: list[Callable[[], Exception]] = []
        self.commits = True

        @task("t", backoff="1m", attempts=3)
        async def run(job: Job, ctx: Context) -> None:
            if self.errors:
                error = self.errors.pop(0)()
                raise error
            if self.commits:
                async with ctx.commit(job):
                    pass

        self.watch = Watch(name="w", tasks=(run,))


async def streaks(store: SqlStore) -> dict[str, tuple[int, int]]:
    return {one.subject: (one.failures, one.dead) for one in await store.streaks.list()}


@pytest.mark.parametrize("commits", [True, False])
async def test_attempts_that_fail_are_counted_until_one_goes_well(
    store: SqlStore, clock: VirtualClock, *, commits: bool
) -> None:
    doing = Doing()
    doing.commits = commits
    doing.errors = [lambda: Transient("503")] * 2
    rounds = Rounds(store, clock, doing.watch)
    await store.queue.put([NewJob(kind="t", target="hot:1")])
    await rounds.work()
    await rounds.worker.turn()
    assert await streaks(store) == {"hot:1": (1, 0)}
    await clock.advance(HOUR)
    await rounds.work()
    await rounds.worker.turn()
    assert await streaks(store) == {"hot:1": (2, 0)}
    await clock.advance(HOUR)
    await rounds.work()
    await rounds.worker.turn()
    assert await streaks(store) == {}


async def test_a_job_without_a_target_counts_against_its_kind_and_dead_letters_are_told_apart(
    store: SqlStore, clock: VirtualClock
) -> None:
    doing = Doing()
    doing.errors = [lambda: Invalid("no price")] * 2
    rounds = Rounds(store, clock, doing.watch)
    await store.queue.put([NewJob(kind="t"), NewJob(kind="t")])
    await rounds.work()
    await rounds.worker.turn()
    assert await streaks(store) == {"t": (2, 2)}


@pytest.mark.parametrize(
    "error",
    [
        lambda: Wait(VirtualClock().now() + HOUR, "the limiter", "limit t"),
        lambda: Blocked("site", "403"),
        lambda: Gone("404"),
    ],
)
async def test_waiting_a_block_and_what_is_gone_are_no_failures_of_the_target(
    store: SqlStore, clock: VirtualClock, error: Callable[[], Exception]
) -> None:
    doing = Doing()
    doing.errors = [error]
    rounds = Rounds(store, clock, doing.watch)
    await store.queue.put([NewJob(kind="t", target="hot:1")])
    await rounds.work()
    await rounds.worker.turn()
    assert await streaks(store) == {}


async def test_the_death_of_a_process_counts(store: SqlStore, clock: VirtualClock) -> None:
    await store.queue.put([NewJob(kind="t", target="hot:1")])
    await store.queue.turn((), [Want(kind="t", most=1, lease_for=HOUR)], "dead")
    await clock.advance(2 * HOUR)
    await rescue(store, clock, Watches([Doing().watch]))
    assert await streaks(store) == {"hot:1": (1, 0)}


async def test_a_worker_hears_of_streaks_that_others_began(
    store: SqlStore, clock: VirtualClock
) -> None:
    doing = Doing()
    doing.errors = [lambda: Transient("503")]
    other = Rounds(store, clock, doing.watch)
    await store.queue.put([NewJob(kind="t", target="hot:1")])
    await other.work()
    await other.worker.turn()
    await clock.advance(HOUR)
    worker = Worker(store, clock, Watches([doing.watch]), name="new")
    async with running(worker):
        while await streaks(store):
            await clock.advance(timedelta(seconds=1))
