"""Measures a hand-over through Redis: from a put in one store to its start in another one."""

import asyncio
import json
import sys
import time
from contextlib import suppress
from statistics import quantiles

from bench.ours import open_store
from mimawari.kernel.clock import RealClock
from mimawari.kernel.context import Context
from mimawari.kernel.job import Job, NewJob
from mimawari.kernel.watch import Watch, Watches, task
from mimawari.kernel.worker import Worker
from mimawari.store.redis import RedisStore
from tests.stores import open_again

HAND_OVERS = 300


async def hand_over(url: str) -> dict[str, float]:
    """Return milliseconds of a hand-over, and how many jobs only a search has found."""
    begun: asyncio.Queue[str] = asyncio.Queue()

    @task("bench.handed", concurrency=4)
    async def handed(job: Job, _ctx: Context) -> None:
        begun.put_nowait(job.id)

    async with open_store(url) as puts:
        works = open_again(puts, RealClock())
        assert isinstance(puts, RedisStore)
        assert isinstance(works, RedisStore)
        watches = Watches([Watch(name="bench", tasks=(handed,))])
        working = asyncio.create_task(Worker(works, RealClock(), watches, name="bench").run())
        spans = []
        for _ in range(HAND_OVERS):
            start = time.perf_counter()
            [job_id] = await puts.queue.put([NewJob(kind="bench.handed")])
            while await begun.get() != job_id:
                pass
            spans.append((time.perf_counter() - start) * 1000)
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working
        found = (puts.relay.late + works.relay.late).total()
        await works.close()
    # The first one also makes the connections.
    cuts = quantiles(spans[1:], n=100)
    return {
        "handover_ms median": cuts[49],
        "handover_ms p99": cuts[98],
        "handover_ms longest": max(spans[1:]),
        "handovers found by a search": found,
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(hand_over(sys.argv[-1]))))
