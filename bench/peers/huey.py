"""Measure huey on SQLite."""

import logging
import time

from huey import SqliteHuey

from bench.program import check, main, sqlite_path, wait_for

SETTINGS = (
    "jobs sent with task.map, run by the consumer with one worker thread (two or four were no"
    " faster), no results stored; its default WAL with synchronous=FULL, so each enqueue and each"
    " take is synced to disk; a job is acknowledged by being taken, before it runs"
)


def run(jobs: int, url: str) -> float:
    """Send all jobs, let the consumer run them, and give the seconds it took."""
    logging.disable(logging.CRITICAL)
    queue = SqliteHuey(filename=sqlite_path(url), results=False)
    handled: list[int] = []
    task = queue.task()(handled.append)
    consumer = queue.create_consumer(
        workers=1, periodic=False, initial_delay=0.001, max_delay=0.005
    )
    start = time.perf_counter()
    task.map(range(jobs))
    consumer.start()
    wait_for(jobs, handled, lambda: jobs - queue.pending_count())
    seconds = time.perf_counter() - start
    consumer.stop(graceful=True)
    check(jobs, len(handled), jobs - queue.pending_count())
    return seconds


if __name__ == "__main__":
    main(run, SETTINGS)
