"""Measure DBOS on SQLite."""

import sqlite3
import time

import sqlalchemy
from dbos import DBOS, DBOSClient

from bench.program import check, main, sqlite_path, wait_for

QUEUE = "bench"
THREADS = 4
POLLING_SECONDS = 0.1
# DBOS looks for new queues once a second.
LISTENER_SECONDS = 1.5
SETTINGS = (
    "workflows enqueued with enqueue_in_transaction in one transaction, run by"
    f" {THREADS} executor threads, queue polled each {POLLING_SECONDS} s; its default rollback"
    " journal with synchronous=FULL, so each step is synced to disk"
)


def launch(url: str, handled: list[int]) -> str:
    """Start DBOS with one no-op workflow and its queue, and give the workflow's name."""
    DBOS(
        config={
            "name": "bench",
            "system_database_url": url,
            "log_level": "ERROR",
            "max_executor_threads": THREADS,
        }
    )

    @DBOS.workflow(name="noop")
    def noop(number: int) -> None:
        handled.append(number)

    DBOS.launch()
    DBOS.register_queue(QUEUE, polling_interval_sec=POLLING_SECONDS)
    time.sleep(LISTENER_SECONDS)
    return "noop"


def enqueue(jobs: int, client: DBOSClient, engine: sqlalchemy.Engine, workflow: str) -> None:
    """Enqueue all jobs in one transaction."""
    with engine.begin() as connection:
        for number in range(jobs):
            client.enqueue_in_transaction(
                connection, {"queue_name": QUEUE, "workflow_name": workflow}, number
            )


def run(jobs: int, url: str) -> float:
    """Enqueue all workflows, let the queue run them, and give the seconds it took."""
    full_url = f"sqlite:///{sqlite_path(url)}"
    handled: list[int] = []
    workflow = launch(full_url, handled)
    client, engine = DBOSClient(system_database_url=full_url), sqlalchemy.create_engine(full_url)
    status = sqlite3.connect(sqlite_path(url), timeout=30)

    def acknowledged() -> int:
        sql = "SELECT count(*) FROM workflow_status WHERE status = 'SUCCESS'"
        return int(status.execute(sql).fetchone()[0])

    start = time.perf_counter()
    enqueue(jobs, client, engine, workflow)
    wait_for(jobs, handled, acknowledged)
    seconds = time.perf_counter() - start
    check(jobs, len(handled), acknowledged())
    client.destroy()
    DBOS.destroy()
    return seconds


if __name__ == "__main__":
    main(run, SETTINGS)
