"""Measure taskiq on Redis streams."""

import asyncio
import logging
import time

from redis.asyncio import Redis
from taskiq.api import run_receiver_task
from taskiq_redis import RedisStreamBroker

from bench.program import check, main, wait_for_async

AT_ONCE = 20
SETTINGS = (
    f"RedisStreamBroker, which acknowledges; jobs kicked by {AT_ONCE} at once, then run by one"
    f" receiver with max_async_tasks={AT_ONCE}; no results kept"
)


async def measure(jobs: int, url: str) -> float:
    """Kick all jobs, let one receiver run them, and give the seconds it took."""
    broker = RedisStreamBroker(url)
    handled: list[int] = []

    @broker.task(task_name="noop")
    async def noop() -> None:
        handled.append(1)

    broker.is_worker_process = True
    await broker.startup()
    numbers = iter(range(jobs))

    async def feed() -> None:
        for _ in numbers:
            await noop.kiq()

    client = Redis.from_url(url)

    async def acknowledged() -> int:
        pending = await client.xpending(broker.queue_name, broker.consumer_group_name)
        return len(handled) - int(pending["pending"])

    start = time.perf_counter()
    await asyncio.gather(*(feed() for _ in range(AT_ONCE)))
    running = asyncio.create_task(run_receiver_task(broker, max_async_tasks=AT_ONCE))
    await wait_for_async(jobs, handled, acknowledged)
    seconds = time.perf_counter() - start
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    check(jobs, len(handled), await acknowledged())
    await client.aclose()
    await broker.shutdown()
    return seconds


def run(jobs: int, url: str) -> float:
    """Measure in an event loop of its own."""
    logging.disable(logging.CRITICAL)
    return asyncio.run(measure(jobs, url))


if __name__ == "__main__":
    main(run, SETTINGS)
