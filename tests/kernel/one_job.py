"""One job: what it runs, how it is put, and what became of it."""

from collections.abc import Callable

from mimawari.kernel.context import Context
from mimawari.kernel.job import Job, JobView, NewJob
from mimawari.kernel.watch import Task, task
from mimawari.store.sql import SqlStore

Raise = Callable[[], Exception]


def raising(error: Raise | None, **policy: object) -> tuple[Task, list[str]]:
    """Return a task that raises, and the ids of the jobs it saw."""
    seen: list[str] = []

    @task("t", backoff="5m 15m 1h", attempts=3, **policy)  # type: ignore[arg-type]
    async def run(job: Job, ctx: Context) -> None:
        seen.append(job.id)
        if error is not None:
            raise error()

    return run, seen


async def put_one(store: SqlStore, kind: str = "t", **args: object) -> str:
    """Put one job."""
    [job_id] = await store.queue.put([NewJob(kind=kind, args=args)])
    return job_id


async def found(store: SqlStore, job_id: str) -> JobView:
    """Find a job that is there."""
    view = await store.queue.find(job_id)
    assert view is not None
    return view
