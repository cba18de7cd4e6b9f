"""However often Redis stands still, each job is handed out at once, and by no search for it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from random import Random

import pytest

from mimawari.kernel.clock import RealClock
from mimawari.kernel.context import Context
from mimawari.kernel.job import Job, NewJob
from mimawari.kernel.watch import Watch, Watches, task
from mimawari.kernel.worker import Worker
from mimawari.store.redis import RedisStore
from mimawari.store.sql.migrate import upgrade
from tests.conftest import Databases
from tests.faults.world import FULL
from tests.servers import Server, redis_server
from tests.stores import BESIDE, open_again, open_store

HAND_OVERS = 300 if FULL else 8
SECONDS = 8.0
"""Redis stands still for 2.5 s at most; an order is given up after 2 s, and made again after 1."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with redis_server(durable=True) as running:
        yield running


@asynccontextmanager
async def two_processes(url: str) -> AsyncIterator[tuple[RedisStore, RedisStore]]:
    """Open one place twice: who puts, and who works."""
    clock = RealClock()
    first = open_store(url, clock)
    await upgrade(first.database)
    second = open_again(first, clock)
    assert isinstance(first, RedisStore)
    assert isinstance(second, RedisStore)
    try:
        yield first, second
    finally:
        await first.close()
        await second.close()


@asynccontextmanager
async def working(store: RedisStore) -> AsyncIterator["asyncio.Queue[str]"]:
    """Run a worker that says which jobs it has begun."""
    begun: asyncio.Queue[str] = asyncio.Queue()

    @task("hand.over", lease="2m", concurrency=4)
    async def note(job: Job, ctx: Context) -> None:
        del ctx
        begun.put_nowait(job.id)

    watches = Watches([Watch(name="hand", tasks=(note,))])
    worker = asyncio.create_task(Worker(store, RealClock(), watches, name="w").run())
    try:
        yield begun
    finally:
        worker.cancel()
        with suppress(asyncio.CancelledError):
            await worker


@asynccontextmanager
async def standing_still(server: Server) -> AsyncIterator[None]:
    """Let Redis stand still again and again, for a moment or for longer than anybody waits."""
    chance = Random(19)

    async def hold() -> None:
        while True:
            await asyncio.sleep(chance.uniform(0.05, 0.6))
            await asyncio.to_thread(server.freeze)
            await asyncio.sleep(chance.choice([0.02, 0.1, 0.3, 2.1, 2.5]))
            await asyncio.to_thread(server.thaw)

    holding = asyncio.create_task(hold())
    try:
        yield
    finally:
        holding.cancel()
        with suppress(asyncio.CancelledError):
            await holding
        await asyncio.to_thread(server.thaw)


async def test_each_job_is_handed_out_soon_however_often_redis_stands_still(
    server: Server, databases: Databases
) -> None:
    url = f"{databases.fresh('postgresql')}{BESIDE}{server.fresh_database()}"
    async with two_processes(url) as (puts, works), working(works) as begun:
        await puts.queue.put([NewJob(kind="hand.over")])
        await asyncio.wait_for(begun.get(), SECONDS)
        async with standing_still(server):
            for _ in range(HAND_OVERS):
                [job_id] = await puts.queue.put([NewJob(kind="hand.over")])
                async with asyncio.timeout(SECONDS):
                    while await begun.get() != job_id:
                        pass
        assert puts.relay.late + works.relay.late == 0
