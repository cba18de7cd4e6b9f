"""Jobs that are claimed, what a commit of one may say, and what became of it."""

from datetime import timedelta

from sqlalchemy import insert, select

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.job import Job, NewJob, Want
from mimawari.kernel.ports import Tx
from mimawari.kernel.values import Entry
from mimawari.store.sql import SqlStore
from mimawari.store.sql.tables import meta

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def want(most: int = 50, kind: str = "a") -> Want:
    """Ask for jobs of a kind."""
    return Want(kind=kind, most=most, lease_for=MINUTE)


async def claimed(store: SqlStore, count: int) -> tuple[Job, ...]:
    """Put some jobs and claim them."""
    await store.queue.put([NewJob(kind="a", target="t") for _ in range(count)])
    jobs = (await store.queue.turn((), [want()], "w")).jobs
    assert len(jobs) == count
    return jobs


async def claimed_one(store: SqlStore) -> Job:
    """Put one job and claim it."""
    (job,) = await claimed(store, 1)
    return job


async def schedule_target(store: SqlStore, clock: VirtualClock) -> None:
    """Put the target of those jobs on the schedule."""
    entry = Entry(member="t", kind="a", next_at=clock.now() + HOUR, every=HOUR)
    await store.schedule.put([entry])


async def do_all(tx: Tx, clock: VirtualClock, body: object = 1) -> None:
    """Say one thing of each sort to a commit."""
    await tx.execute(insert(meta).values(name="effect", value="kept"))
    tx.put(NewJob(kind="b"))
    tx.emit("key", "found", {"n": body}, destination="log:")
    tx.move("cursor", "page 2")
    tx.place(Entry(member="new", kind="a", next_at=clock.now(), every=HOUR))
    tx.next_run(clock.now() + 5 * HOUR, "nothing new")


async def seen(store: SqlStore) -> tuple[object, ...]:
    """Look at all that `do_all` may have changed."""
    async with store.read() as reader:
        effects = (await reader.execute(select(meta.c.value))).scalars().all()
    target = await store.schedule.find("t")
    return (
        list(effects),
        await store.queue.depths(["b"], 9),
        await store.outbox.counts(),
        await store.cursor.find("cursor"),
        target and (target.next_at, target.reason),
        await store.queue.counts(),
        await store.schedule.count(),
    )
