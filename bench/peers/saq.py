"""Measure SAQ on PostgreSQL."""

import asyncio
import logging
import time

from psycopg_pool import AsyncConnectionPool
from saq import Worker
from saq.queue.postgres import PostgresQueue
from saq.types import Context

from bench.program import check, main, wait_for_async

CONNECTIONS = 20
CONCURRENCY = 20
SETTINGS = (
    f"jobs enqueued one by one over {CONNECTIONS} connections at once, as it has no bulk enqueue,"
    f" then run by one worker with concurrency={CONCURRENCY}, which takes jobs in batches;"
    " logged tables with synchronous_commit=on"
)


async def enqueue(jobs: int, queue: PostgresQueue) -> None:
    """Enqueue all jobs over all connections at once."""
    numbers = iter(range(jobs))

    async def feed() -> None:
        for _ in numbers:
            await queue.enqueue("noop")

    await asyncio.gather(*(feed() for _ in range(CONNECTIONS)))


async def measure(jobs: int, pool: AsyncConnectionPool) -> float:
    """Enqueue all jobs, let one worker run them, and give the seconds it took."""
    queue = PostgresQueue(pool=pool)
    await queue.connect()
    handled: list[str] = []

    async def noop(context: Context) -> None:
        handled.append(context["job"].key)

    async def acknowledged() -> int:
        async with pool.connection() as connection:
            sql = "SELECT count(*) FROM saq_jobs WHERE status = 'complete'"
            row = await (await connection.execute(sql)).fetchone()
        return int(row[0]) if row else 0

    worker = Worker(queue, [("noop", noop)], concurrency=CONCURRENCY)
    start = time.perf_counter()
    await enqueue(jobs, queue)
    running = asyncio.create_task(worker.start())
    await wait_for_async(jobs, handled, acknowledged)
    seconds = time.perf_counter() - start
    await worker.stop()
    await running
    check(jobs, len(handled), await acknowledged())
    await queue.disconnect()
    return seconds


async def connect_and_measure(jobs: int, url: str) -> float:
    """Measure with an open pool of connections."""
    async with AsyncConnectionPool(
        url, min_size=CONNECTIONS, max_size=CONNECTIONS, kwargs={"autocommit": True}
    ) as pool:
        await pool.wait()
        return await measure(jobs, pool)


def run(jobs: int, url: str) -> float:
    """Measure in an event loop of its own."""
    logging.disable(logging.CRITICAL)
    return asyncio.run(connect_and_measure(jobs, url))


if __name__ == "__main__":
    main(run, SETTINGS)
