"""Measure pgqueuer."""

import asyncio
import time

import asyncpg
import uvloop
from pgqueuer import PgQueuer, Queries
from pgqueuer.db import AsyncpgPoolDriver
from pgqueuer.models import Job

from bench.program import check, main, wait_for_async

BATCH = 1000
ENTRYPOINT = "noop"
SETTINGS = (
    f"jobs enqueued {BATCH} at a time, run by one worker with batch_size={BATCH} (which also"
    " acknowledges in batches), an asyncpg pool of 10 and uvloop as its own command line does;"
    " its default durable (logged) tables with synchronous_commit=on"
)


async def enqueue(jobs: int, queries: Queries) -> None:
    """Enqueue all jobs in batches."""
    for first in range(0, jobs, BATCH):
        size = min(BATCH, jobs - first)
        await queries.enqueue([ENTRYPOINT] * size, [None] * size, [0] * size)


async def measure(jobs: int, pool: asyncpg.Pool) -> float:
    """Enqueue all jobs, let one worker run them, and give the seconds it took."""
    driver = AsyncpgPoolDriver(pool)
    queries, worker = Queries(driver), PgQueuer(driver)
    await queries.install()
    handled: list[int] = []

    @worker.entrypoint(ENTRYPOINT)
    async def noop(job: Job) -> None:
        handled.append(job.id)

    async def acknowledged() -> int:
        return jobs - int(await pool.fetchval("SELECT count(*) FROM pgqueuer"))

    start = time.perf_counter()
    await enqueue(jobs, queries)
    running = asyncio.create_task(worker.run(batch_size=BATCH))
    await wait_for_async(jobs, handled, acknowledged)
    seconds = time.perf_counter() - start
    worker.shutdown.set()
    await running
    sql = "SELECT count(*) FROM pgqueuer_log WHERE status = 'successful'"
    check(jobs, len(handled), await pool.fetchval(sql))
    return seconds


async def connect_and_measure(jobs: int, url: str) -> float:
    """Measure with an open pool of connections."""
    async with asyncpg.create_pool(url, min_size=10, max_size=10) as pool:
        return await measure(jobs, pool)


def run(jobs: int, url: str) -> float:
    """Measure in an event loop of its own."""
    return uvloop.run(connect_and_measure(jobs, url))


if __name__ == "__main__":
    main(run, SETTINGS)
