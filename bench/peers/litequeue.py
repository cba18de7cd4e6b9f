"""Measure litequeue."""

import time

from litequeue import LiteQueue, MessageStatus

from bench.program import check, main, sqlite_path

BATCH = 100
SETTINGS = (
    f"one process puts {BATCH} jobs in one transaction, pops them one by one and marks them done in"
    " one transaction, in turns since its pop sorts the whole backlog; its own WAL and"
    " synchronous=NORMAL, so a commit outlives a crash of the process but not of the machine"
)


def handle_batch(queue: LiteQueue) -> int:
    """Pop up to a batch of jobs, mark them done, and say how many they were."""
    messages = [message for _ in range(BATCH) if (message := queue.pop()) is not None]
    with queue.transaction():
        for message in messages:
            queue.done(message.message_id)
    return len(messages)


def run(jobs: int, url: str) -> float:
    """Put, pop and finish all jobs, and give the seconds it took."""
    queue = LiteQueue(sqlite_path(url))
    handled = 0
    start = time.perf_counter()
    for first in range(0, jobs, BATCH):
        with queue.transaction():
            for number in range(first, min(first + BATCH, jobs)):
                queue.put(str(number))
        handled += handle_batch(queue)
    seconds = time.perf_counter() - start
    sql = "SELECT count(*) FROM Queue WHERE status = ?"
    done = queue.conn.execute(sql, (MessageStatus.DONE.value,)).fetchone()[0]
    check(jobs, handled, done)
    return seconds


if __name__ == "__main__":
    main(run, SETTINGS)
