"""Members of a schedule as the tests make them up, and the jobs that come of them."""

import asyncio
from datetime import datetime, timedelta

from mimawari.kernel.context import Context
from mimawari.kernel.job import Job, JobView, State
from mimawari.kernel.values import Entry
from mimawari.kernel.watch import Task, task
from mimawari.store.sql import SqlStore

HOUR = timedelta(hours=1)


def doing(kind: str) -> Task:
    """Return a task that does nothing."""

    @task(kind, concurrency=10)
    async def run(job: Job, ctx: Context) -> None:
        del job, ctx

    return run


def entry(member: str, at: datetime, kind: str = "quick") -> Entry:
    """Make up a member that is due at some time, and each hour then."""
    return Entry(member=member, kind=kind, next_at=at, every=HOUR, args={"of": member})


async def live(store: SqlStore) -> list[JobView]:
    """List the jobs that have not ended, oldest first."""
    return (await store.queue.list(1000, state=State.PENDING))[::-1]


async def members(store: SqlStore) -> list[str]:
    """List the members whose jobs have not ended."""
    return sorted(job.target or "" for job in await live(store))


async def until_in(store: SqlStore, *names: str) -> None:
    """Wait until these members have jobs, while no time passes on a virtual clock."""
    async with asyncio.timeout(10):
        found: list[str] = []
        while found != list(names):
            found = await members(store)
