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
LONG = (1.9, 2.1, 2.5)
"""Some of these are longer than anybody waits for an answer."""
SECONDS = 6.0
"""How soon after it goes on: who was not answered for 2 s asks again a second later."""


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


async def stand_still(server: Server, after: float, seconds: float) -> None:
    """Let Redis stand still a moment from now, for a moment or for longer than anybody waits."""
    await asyncio.sleep(after)
    await asyncio.to_thread(server.freeze)
    await asyncio.sleep(seconds)
    await asyncio.to_thread(server.thaw)


async def test_each_job_is_handed_out_soon_though_redis_stands_still_meanwhile(
    server: Server, databases: Databases
) -> None:
    url = f"{databases.fresh('postgresql')}{BESIDE}{server.fresh_database()}"
    chance = Random(19)
    async with two_processes(url) as (puts, works), working(works) as begun:
        await puts.queue.put([NewJob(kind="hand.over")])
        await asyncio.wait_for(begun.get(), SECONDS)
        for number in range(HAND_OVERS):
            seconds = chance.choice(LONG) if number % 8 == 0 else chance.uniform(0.01, 0.3)
            after = chance.choice([0.0, 0.0, 0.002, 0.005, 0.01, 0.02])
            holding = asyncio.create_task(stand_still(server, after, seconds))
            [job_id] = await puts.queue.put([NewJob(kind="hand.over")])
            await holding
            async with asyncio.timeout(SECONDS):
                while await begun.get() != job_id:
                    pass
        assert (puts.relay.late + works.relay.late).total() == 0
