"""Measures ours at rest and on time: idle statements a second, and how late a due target starts."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from statistics import quantiles
from typing import Any

from sqlalchemy import event

from bench.ours import open_store
from mimawari.kernel.clock import RealClock
from mimawari.kernel.context import Context
from mimawari.kernel.deliverer import Deliverer, LogDestination
from mimawari.kernel.janitor import Janitor
from mimawari.kernel.job import Job
from mimawari.kernel.scheduler import Scheduler
from mimawari.kernel.values import Entry
from mimawari.kernel.watch import Watch, Watches, task
from mimawari.kernel.worker import Worker
from mimawari.store.sql import SqlStore

WARM_SECONDS = 2.0
IDLE_SECONDS = 8.0
TARGETS = 300
GAP = timedelta(milliseconds=30)

late: list[float] = []
all_started = asyncio.Event()


@task("bench.due", concurrency=20)
async def due(job: Job, ctx: Context) -> None:
    """Note how long after its time a target starts."""
    waited = ctx.clock.now() - datetime.fromisoformat(job.args["due_at"])
    late.append(waited.total_seconds() * 1000)
    if len(late) == TARGETS:
        all_started.set()


@asynccontextmanager
async def everything(store: SqlStore) -> AsyncIterator[None]:
    """Run all the parts of a system that a process plays by default, but for the API."""
    clock = RealClock()
    watches = Watches([Watch(name="bench", tasks=(due,))])
    parts = [
        Scheduler(store, clock, watches).run(),
        Worker(store, clock, watches, name="bench").run(),
        Janitor(store, clock, watches).run(),
        Deliverer(store, clock, {"log": LogDestination()}).run(),
    ]
    running = [asyncio.create_task(part) for part in parts]
    try:
        yield
    finally:
        for part in running:
            part.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def idle(url: str) -> float:
    """Give the statements a second that a system with nothing to do sends."""
    statements = 0

    def count(*_: Any) -> None:
        nonlocal statements
        statements += 1

    async with open_store(url) as store, everything(store):
        await asyncio.sleep(WARM_SECONDS)
        event.listen(store.database.link.engine, "before_cursor_execute", count)
        await asyncio.sleep(IDLE_SECONDS)
    return statements / IDLE_SECONDS


async def lateness(url: str) -> float:
    """Give the 99th percentile of how many milliseconds late a due target starts."""
    async with open_store(url) as store:
        first = RealClock().now() + timedelta(seconds=2)
        times = [first + GAP * number for number in range(TARGETS)]
        await store.schedule.put(
            [
                Entry(
                    member=f"target:{number}",
                    kind="bench.due",
                    next_at=at,
                    every=timedelta(days=1),
                    args={"due_at": at.isoformat()},
                )
                for number, at in enumerate(times)
            ]
        )
        async with everything(store), asyncio.timeout(60):
            await all_started.wait()
    return quantiles(late, n=100)[98]


MEASURES: dict[str, Callable[[str], Coroutine[Any, Any, float]]] = {
    "idle": idle,
    "lateness": lateness,
}

if __name__ == "__main__":
    print(json.dumps({"value": round(asyncio.run(MEASURES[sys.argv[1]](sys.argv[2])), 3)}))
