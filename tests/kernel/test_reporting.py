"""What is reported: bugs and dead letters, each once, and nothing that was to be expected."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import update

from mimawari.errors import BadInput, Blocked, Gone, Invalid, StoreDown, Transient, Wait
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.context import Context
from mimawari.kernel.deliverer import Deliverer
from mimawari.kernel.janitor import Janitor
from mimawari.kernel.job import Job, NewJob, State, Want
from mimawari.kernel.rescue import rescue
from mimawari.kernel.rounds import Rounds
from mimawari.kernel.values import Event, Trouble
from mimawari.kernel.watch import Task, Watch, Watches, task
from mimawari.kernel.worker import Worker
from mimawari.store.sql import SqlStore
from mimawari.store.sql.tables import jobs

HOUR = timedelta(hours=1)


@pytest.fixture
def engine() -> str:
    """One engine will do: what is reported does not hang on where it is stored."""
    return "sqlite"


class Told:
    """A reporter that remembers."""

    def __init__(self) -> None:
        self.troubles: list[Trouble] = []

    def report(self, trouble: Trouble) -> None:
        """Remember it."""
        self.troubles.append(trouble)

    def names(self) -> list[tuple[str, str, str]]:
        """List level, message and what it happened to."""
        return [(trouble.level, trouble.message, trouble.what) for trouble in self.troubles]


class Reported(Rounds):
    """The kernel's rounds with a worker that reports."""

    def __init__(self, store: SqlStore, clock: VirtualClock, one: Task) -> None:
        watches = Watches([Watch(name="w", tasks=(one,))])
        super().__init__(store, clock, watches, {})
        self.told = Told()
        self.worker = Worker(store, clock, watches, name="w", reporter=self.told)


def raising(error: Callable[[], Exception], attempts: int) -> Task:
    """Make a task that raises."""

    @task("t", backoff="5m", attempts=attempts)
    async def run(job: Job, ctx: Context) -> None:
        raise error()

    return run


async def put_one(store: SqlStore, kind: str = "t") -> str:
    """Put one job."""
    [job_id] = await store.queue.put([NewJob(kind=kind, target="w:one")])
    return job_id


LATER = VirtualClock().now() + HOUR


@pytest.mark.parametrize(
    "error",
    [
        lambda: Wait(LATER, "not yet", "limit"),
        lambda: Transient("later"),
        lambda: Blocked("site", "403"),
        lambda: Blocked("site", "shut", asked=False),
        lambda: StoreDown("gone"),
        lambda: Gone("404"),
    ],
)
async def test_what_was_to_be_expected_is_reported_to_nobody(
    error: Callable[[], Exception], store: SqlStore, clock: VirtualClock
) -> None:
    rounds = Reported(store, clock, raising(error, attempts=3))
    await put_one(store)
    await rounds.work()
    assert rounds.told.troubles == []


@pytest.mark.parametrize(
    "error",
    [
        lambda: Transient("later"),
        lambda: Blocked("site", "403"),
        lambda: Invalid("no price", page=b"<p>"),
        lambda: BadInput("no such page"),
    ],
)
async def test_a_dead_letter_is_reported_once(
    error: Callable[[], Exception], store: SqlStore, clock: VirtualClock
) -> None:
    rounds = Reported(store, clock, raising(error, attempts=1))
    job_id = await put_one(store)
    await rounds.work()
    [trouble] = rounds.told.troubles
    assert rounds.told.names() == [("warning", "job ended", "t")]
    assert trouble.about == {"id": job_id, "target": "w:one", "attempt": 1}
    assert type(trouble.error) is type(error())


async def test_a_bug_is_reported_at_each_attempt_and_its_dead_letter_not_once_more(
    store: SqlStore, clock: VirtualClock
) -> None:
    rounds = Reported(store, clock, raising(lambda: ZeroDivisionError("oh"), attempts=2))
    await put_one(store)
    await rounds.pass_time(HOUR)
    assert rounds.told.names() == [("error", "job raised a bug", "t")] * 2
    assert [trouble.about["attempt"] for trouble in rounds.told.troubles] == [1, 2]
    assert [trouble.line["result"] for trouble in rounds.told.troubles] == ["retry", State.FAILED]


async def test_a_job_that_cannot_be_read_is_reported(store: SqlStore, clock: VirtualClock) -> None:
    rounds = Reported(store, clock, raising(AssertionError, attempts=3))
    await put_one(store)
    async with store.database.write() as session:
        await session.execute(update(jobs).values(args="{broken"))
    await rounds.work()
    assert rounds.told.names() == [("warning", "job ended", "t")]
    assert "undecodable" in rounds.told.troubles[0].line["reason"]


@pytest.mark.parametrize(("attempts", "reports"), [(1, 1), (2, 0)])
async def test_a_job_past_its_timeout_is_reported_when_it_was_the_last_time(
    attempts: int, reports: int, store: SqlStore, clock: VirtualClock
) -> None:
    @task("t", timeout="1m", lease="5m", backoff="1h", attempts=attempts)
    async def run(job: Job, ctx: Context) -> None:
        await ctx.clock.sleep(HOUR)

    rounds = Reported(store, clock, run)
    await put_one(store)
    await rounds.work()
    await clock.advance(timedelta(minutes=1))
    await rounds.work()
    assert rounds.told.names() == [("warning", "job ended", "t")] * reports


async def test_a_job_whose_process_kept_dying_is_reported_once_at_last(
    store: SqlStore, clock: VirtualClock
) -> None:
    watches = Watches([Watch(name="w", tasks=(raising(AssertionError, attempts=3),))])
    told = Told()
    job_id = await put_one(store)
    for _ in range(5):
        want = Want(kind="t", most=1, lease_for=timedelta(minutes=1))
        await store.queue.turn((), [want], "doomed")
        await clock.advance(timedelta(minutes=2))
        await rescue(store, clock, watches, told)
    assert told.names() == [("warning", "lease expired", "t")]
    assert told.troubles[0].about["id"] == job_id
    assert told.troubles[0].line["what"] == "job"


async def test_a_job_of_a_kind_that_nobody_knows_is_reported(
    store: SqlStore, clock: VirtualClock
) -> None:
    told = Told()
    await put_one(store, "stranger.job")
    await Janitor(store, clock, Watches([]), reporter=told).tick()
    assert told.names() == [("warning", "buried", "stranger.job")]


class Faulty:
    """A destination with a bug."""

    async def deliver(self, event: Event) -> None:
        """Raise what nobody expects."""
        raise ZeroDivisionError(event.id)


async def test_a_bug_of_a_destination_is_reported_without_the_event(
    store: SqlStore, clock: VirtualClock
) -> None:
    told = Told()
    async with store.edit() as tx:
        tx.emit("key", "w.changed", {"word": "hush"}, destination="faulty:")
    await Deliverer(store, clock, {"faulty": Faulty()}, reporter=told).tick()
    assert told.names() == [("error", "delivery failed", "w.changed")]
    assert sorted(told.troubles[0].about) == ["attempt", "id"]
