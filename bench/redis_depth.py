"""Measures ours on Redis with a backlog: what a claim costs, and filling an emptied Redis."""

import asyncio
import json
import sys
import time
from datetime import timedelta
from statistics import median

from sqlalchemy import text

from bench.calm import IDLE_SECONDS, WARM_SECONDS, everything
from bench.ours import open_store
from mimawari.kernel.job import Want
from mimawari.store.redis import RedisStore

CLAIMS = 50
ROOM = 10
FILL = text(
    "INSERT INTO jobs (id, kind, args, priority, state, due_at, token, attempts, crashes,"
    " enqueued_at) SELECT lpad(n::text, 36, '0'), 'bench.due', '{}', 100, 'pending', 0, 0, 0, 0, 0"
    " FROM generate_series(1, :depth) n"
)


async def depth(url: str, jobs: int) -> dict[str, float]:
    """Give milliseconds a claim of ten, seconds of filling, and bytes a job in Redis."""
    async with open_store(url) as store:
        assert isinstance(store, RedisStore)
        await store.relay.look()
        before = await _used(store)
        await store.database.run(lambda session: session.execute(FILL, {"depth": jobs}).rowcount)
        await store.link.client.flushdb()
        start = time.perf_counter()
        await store.relay.look()
        filled = time.perf_counter() - start
        size = (await _used(store) - before) / jobs
        want = Want(kind="bench.due", most=ROOM, lease_for=timedelta(hours=1))
        spans = []
        for _ in range(CLAIMS):
            start = time.perf_counter()
            turn = await store.queue.turn((), [want], "bench")
            spans.append(time.perf_counter() - start)
            assert len(turn.jobs) == ROOM
    return {"claim_ms": median(spans) * 1000, "fill_seconds": filled, "bytes_a_job": size}


async def _used(store: RedisStore) -> int:
    told = await store.link.asked(store.link.client.info("memory"))
    return int(told["used_memory"])


async def idle(url: str) -> dict[str, float]:
    """Give the Redis commands a second that a system with nothing to do sends."""
    async with open_store(url) as store, everything(store):
        assert isinstance(store, RedisStore)
        await asyncio.sleep(WARM_SECONDS)
        before = await _commands(store)
        await asyncio.sleep(IDLE_SECONDS)
        # The question itself is one.
        return {"commands": (await _commands(store) - before - 1) / IDLE_SECONDS}


async def _commands(store: RedisStore) -> int:
    told = await store.link.asked(store.link.client.info("stats"))
    return int(told["total_commands_processed"])


if __name__ == "__main__":
    number, place = int(sys.argv[-2]), sys.argv[-1]
    print(json.dumps(asyncio.run(depth(place, number) if number else idle(place))))
