"""Measure dramatiq on Redis."""

import logging
import time
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from bench.program import check, main

THREADS = 8
SETTINGS = (
    f"jobs sent one by one, as it has no bulk send, then run by one worker of {THREADS} threads,"
    " its default middleware"
)


def run(jobs: int, url: str) -> float:
    """Send all jobs, let one worker run them, and give the seconds it took."""
    logging.disable(logging.CRITICAL)
    broker: Any = RedisBroker(url=url)  # type: ignore[no-untyped-call]
    dramatiq.set_broker(broker)
    handled: list[int] = []

    @dramatiq.actor(max_retries=0)
    def noop() -> None:
        handled.append(1)

    worker = dramatiq.Worker(broker, worker_threads=THREADS)
    start = time.perf_counter()
    for _ in range(jobs):
        noop.send()
    worker.start()
    # Waits until nothing is queued and nothing is unacknowledged.
    broker.join(noop.queue_name)
    worker.join()
    seconds = time.perf_counter() - start
    left = int(broker.do_qsize(noop.queue_name))
    worker.stop()
    check(jobs, len(handled), jobs - left)
    return seconds


if __name__ == "__main__":
    main(run, SETTINGS)
