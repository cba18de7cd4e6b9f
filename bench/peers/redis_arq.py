"""Measure arq on Redis."""

import asyncio
import logging
import time
from typing import Any

from arq import create_pool
from arq.connections import RedisSettings
from arq.constants import default_queue_name
from arq.worker import Worker, func

from bench.program import check, main

AT_ONCE = 20
SETTINGS = (
    f"jobs enqueued by {AT_ONCE} at once, as it has no bulk enqueue, then run by one worker in"
    f" burst mode with max_jobs={AT_ONCE} and a poll delay of 10 ms; no results kept"
)


async def measure(jobs: int, url: str) -> float:
    """Enqueue all jobs, let one worker run them, and give the seconds it took."""
    pool = await create_pool(RedisSettings.from_dsn(url))
    handled = 0

    async def noop(_context: dict[str, Any]) -> None:
        nonlocal handled
        handled += 1

    numbers = iter(range(jobs))

    async def feed() -> None:
        for _ in numbers:
            await pool.enqueue_job("noop")

    options = {"burst": True, "max_jobs": AT_ONCE, "poll_delay": 0.01, "keep_result": 0}
    works = [func(noop, name="noop")]
    worker = Worker(works, redis_pool=pool, handle_signals=False, **options)
    start = time.perf_counter()
    await asyncio.gather(*(feed() for _ in range(AT_ONCE)))
    await worker.async_run()
    seconds = time.perf_counter() - start
    check(jobs, handled, jobs - int(await pool.zcard(default_queue_name)))
    return seconds


def run(jobs: int, url: str) -> float:
    """Measure in an event loop of its own."""
    logging.disable(logging.CRITICAL)
    return asyncio.run(measure(jobs, url))


if __name__ == "__main__":
    main(run, SETTINGS)
