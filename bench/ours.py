"""Measures ours: the whole kernel, with fence, inbox and full durability."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import structlog

from bench.program import check, main
from mimawari.kernel.clock import RealClock
from mimawari.kernel.context import Context
from mimawari.kernel.job import Job, NewJob, State
from mimawari.kernel.watch import Watch, Watches, task
from mimawari.kernel.worker import Worker
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade
from tests.stores import open_store as store_at

BATCH = 500
CONCURRENCY = 500
SETTINGS = (
    f"put by {BATCH}, one worker process with concurrency {CONCURRENCY} that runs meanwhile;"
    " fence and inbox on; SQLite synchronous=FULL, servers' own durable defaults"
)


@asynccontextmanager
async def open_store(url: str) -> AsyncIterator[SqlStore]:
    """Open a fresh store with its tables, quietly."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    store = store_at(url, RealClock())
    await upgrade(store.database)
    try:
        yield store
    finally:
        await store.close()


async def _queue(jobs: int, url: str) -> float:
    handled = 0
    all_handled = asyncio.Event()

    @task("bench.nothing", concurrency=CONCURRENCY)
    async def nothing(_job: Job, _ctx: Context) -> None:
        nonlocal handled
        handled += 1
        if handled == jobs:
            all_handled.set()

    async with open_store(url) as store:
        watches = Watches([Watch(name="bench", tasks=(nothing,))])
        worker = Worker(store, RealClock(), watches, name="bench")
        start = time.perf_counter()
        working = asyncio.create_task(worker.run())
        for _ in range(0, jobs, BATCH):
            await store.queue.put([NewJob(kind="bench.nothing") for _ in range(BATCH)])
        await all_handled.wait()
        working.cancel()
        # A worker that stops has said all its ends.
        with suppress(asyncio.CancelledError):
            await working
        seconds = time.perf_counter() - start
        check(jobs, handled, (await store.queue.counts())[State.DONE])
    return seconds


def queue(jobs: int, url: str) -> float:
    """Give the seconds that jobs took from the first put to the last acknowledgement."""
    return asyncio.run(_queue(jobs, url))


if __name__ == "__main__":
    main({"queue": queue}[sys.argv[1]], SETTINGS)
