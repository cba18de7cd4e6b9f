"""Measure SAQ on Redis."""

import asyncio
import logging
import time

from saq import Worker
from saq.queue.redis import RedisQueue
from saq.types import Context

from bench.program import check, main, wait_for_async

AT_ONCE = 20
SETTINGS = (
    f"jobs enqueued by {AT_ONCE} at once, as it has no bulk enqueue, then run by one worker with"
    f" concurrency={AT_ONCE}"
)


async def measure(jobs: int, url: str) -> float:
    """Enqueue all jobs, let one worker run them, and give the seconds it took."""
    queue = RedisQueue.from_url(url)
    await queue.connect()
    handled: list[str] = []

    async def noop(context: Context) -> None:
        handled.append(context["job"].key)

    numbers = iter(range(jobs))

    async def feed() -> None:
        for _ in numbers:
            await queue.enqueue("noop")

    async def acknowledged() -> int:
        return jobs - int(await queue.count("incomplete"))

    worker = Worker(queue, [("noop", noop)], concurrency=AT_ONCE)
    start = time.perf_counter()
    await asyncio.gather(*(feed() for _ in range(AT_ONCE)))
    running = asyncio.create_task(worker.start())
    await wait_for_async(jobs, handled, acknowledged)
    seconds = time.perf_counter() - start
    await worker.stop()
    await running
    check(jobs, len(handled), await acknowledged())
    await queue.disconnect()
    return seconds


def run(jobs: int, url: str) -> float:
    """Measure in an event loop of its own."""
    logging.disable(logging.CRITICAL)
    return asyncio.run(measure(jobs, url))


if __name__ == "__main__":
    main(run, SETTINGS)
