"""Measure RQ on Redis."""

import logging
import time

from redis import Redis
from rq import Queue, SimpleWorker

from bench.peers import redis_rq_job
from bench.program import check, main

BATCH = 500
SETTINGS = (
    f"jobs enqueued by {BATCH} with enqueue_many, then run by one SimpleWorker in burst mode, which"
    " forks no process a job"
)


def run(jobs: int, url: str) -> float:
    """Enqueue all jobs, let one worker run them, and give the seconds it took."""
    logging.disable(logging.CRITICAL)
    connection = Redis.from_url(url)
    queue = Queue(connection=connection)
    worker = SimpleWorker([queue], connection=connection)
    start = time.perf_counter()
    for _ in range(0, jobs, BATCH):
        queue.enqueue_many([Queue.prepare_data(redis_rq_job.noop) for _ in range(BATCH)])
    worker.work(burst=True)
    seconds = time.perf_counter() - start
    check(jobs, len(redis_rq_job.handled), queue.finished_job_registry.get_job_count(cleanup=False))
    return seconds


if __name__ == "__main__":
    main(run, SETTINGS)
