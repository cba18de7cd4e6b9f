"""Measure Celery on Redis."""

import logging
import time

from celery import Celery
from celery.contrib.testing.worker import start_worker
from redis import Redis

from bench.program import check, main, wait_for

THREADS = 8
SETTINGS = (
    f"jobs sent one by one, as it has no bulk send, then run by one worker of {THREADS} threads"
    " with acks_late and its default prefetch; no results kept"
)


def run(jobs: int, url: str) -> float:
    """Send all jobs, let one worker run them, and give the seconds it took."""
    logging.disable(logging.CRITICAL)
    app = Celery("bench", broker=url)
    app.conf.update(task_acks_late=True, task_ignore_result=True)
    handled: list[int] = []

    def noop() -> None:
        handled.append(1)

    sent = app.task(noop, name="noop")

    client = Redis.from_url(url)

    def acknowledged() -> int:
        return jobs - int(client.llen("celery")) - int(client.hlen("unacked"))

    start = time.perf_counter()
    for _ in range(jobs):
        sent.delay()
    options = {"pool": "threads", "concurrency": THREADS, "perform_ping_check": False}
    with start_worker(app, **options):
        wait_for(jobs, handled, acknowledged)
        seconds = time.perf_counter() - start
    check(jobs, len(handled), acknowledged())
    return seconds


if __name__ == "__main__":
    main(run, SETTINGS)
