"""Measure procrastinate."""

import asyncio
import logging
import time

from procrastinate import App, PsycopgConnector
from procrastinate.types import JSONDict
from psycopg_pool import AsyncConnectionPool

from bench.program import check, main

BATCH = 1000
WORKERS = 8
CONCURRENCY = 10
CONNECTIONS = 20
SETTINGS = (
    f"jobs deferred {BATCH} at a time with batch_defer_async, run by {WORKERS} workers in one"
    f" process with concurrency={CONCURRENCY} each, finished jobs deleted, a psycopg pool of"
    f" {CONNECTIONS} in autocommit mode; logged tables with synchronous_commit=on"
)


async def work(app: App) -> None:
    """Run one worker until no job is left."""
    await app.run_worker_async(
        wait=False,
        concurrency=CONCURRENCY,
        delete_jobs="successful",
        listen_notify=False,
        install_signal_handlers=False,
    )


async def measure(jobs: int, pool: AsyncConnectionPool) -> float:
    """Defer all jobs, let the workers run them, and give the seconds it took."""
    app = App(connector=PsycopgConnector())
    handled: list[int] = []

    @app.task(name="noop")
    async def noop(number: int) -> None:
        handled.append(number)

    async with app.open_async(pool):
        await app.schema_manager.apply_schema_async()
        start = time.perf_counter()
        for first in range(0, jobs, BATCH):
            numbers = range(first, min(first + BATCH, jobs))
            arguments: list[JSONDict] = [{"number": number} for number in numbers]
            await noop.batch_defer_async(*arguments)
        await asyncio.gather(*(work(app) for _ in range(WORKERS)))
        seconds = time.perf_counter() - start
        left = len(list(await app.job_manager.list_jobs_async()))
    check(jobs, len(handled), jobs - left)
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
