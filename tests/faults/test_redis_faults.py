"""Redis fails in every way; we go on by ourselves, and nothing is lost or doubled."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError

from mimawari.errors import StoreDown
from mimawari.kernel.clock import RealClock
from mimawari.kernel.job import NewJob, State
from mimawari.kernel.values import Entry
from mimawari.store.redis import RedisStore, names
from tests.conftest import Databases
from tests.faults.world import FULL, World, deliver_all, kill, open_world, spawn, work
from tests.servers import Server, redis_server
from tests.stores import BESIDE

JOBS = 400 if FULL else 24
pytestmark = pytest.mark.skipif(not FULL, reason="Redis fails in `make faults` only")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with redis_server(durable=True) as running:
        yield running


@pytest.fixture
def place(server: Server, databases: Databases) -> str:
    """A fresh database beside a fresh Redis of its own server."""
    return f"{databases.fresh('postgresql')}{BESIDE}{server.fresh_database()}"


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that happens to a Redis, how it ends, and whether orders are refused meanwhile."""

    name: str
    begin: Callable[[Server], Awaitable[Any]]
    end: Callable[[Server], Awaitable[Any]]
    refuses: bool = True


async def say(server: Server, *words: str) -> None:
    client: Any = Redis.from_url(server.url)
    async with client:
        await client.execute_command(*words)


def order(*words: str) -> Callable[[Server], Awaitable[Any]]:
    async def give(server: Server) -> None:
        await say(server, *words)

    return give


async def nothing(_server: Server) -> None: ...


async def cut_all(server: Server) -> None:
    for kind in ("normal", "pubsub"):
        await say(server, "CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")


FAULTS = (
    Fault(
        "frozen",
        lambda server: asyncio.to_thread(server.freeze),
        lambda server: asyncio.to_thread(server.thaw),
    ),
    Fault(
        "killed",
        lambda server: asyncio.to_thread(server.kill),
        lambda server: asyncio.to_thread(server.start),
    ),
    Fault(
        "out of memory",
        order("CONFIG", "SET", "maxmemory", "1"),
        order("CONFIG", "SET", "maxmemory", "0"),
    ),
    Fault(
        "read only",
        order("REPLICAOF", "127.0.0.1", "1"),
        order("REPLICAOF", "NO", "ONE"),
    ),
    Fault("emptied", order("FLUSHALL"), nothing, refuses=False),
    Fault("cut off", cut_all, nothing, refuses=False),
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
async def test_whatever_happens_to_redis_work_goes_on_by_itself(
    fault: Fault, server: Server, place: str
) -> None:
    async with open_world(place) as world:
        read = await world.put("fault.read", JOBS)
        worker = spawn(work, world.url, None)
        try:
            await _until_some_are_done(world, JOBS // 10)
            await fault.begin(server)
            if fault.refuses:
                with pytest.raises(StoreDown):
                    await world.store.ping()
            # What SQL has taken is accepted, whether Redis hears of it now or later.
            more = [NewJob(kind="fault.read", args=world.page(f"more-{n}")) for n in range(JOBS)]
            read += await world.store.queue.put(more)
            assert len(read) == 2 * JOBS
            await fault.end(server)
            await world.drained()
            assert worker.is_alive()
        finally:
            kill(worker)
        await world.judge(read)
        assert len(await deliver_all(world)) == len(read)


async def test_an_emptied_redis_has_schedule_and_queue_again_within_seconds(place: str) -> None:
    async with open_world(place) as world:
        store = _redis_store(world)
        later = RealClock().now() + timedelta(hours=1)
        entry = Entry(member="hot:7", kind="hot.crawl", next_at=later, every=timedelta(hours=2))
        await store.schedule.put([entry])
        await world.put("fault.read", 3)
        client = store.link.client
        kept = ("animetop:schedule:pending", "animetop:queue:fault.read")
        assert await client.exists(*kept) == len(kept)
        await client.flushall()
        async with asyncio.timeout(10):
            while await client.exists(*kept) < len(kept):
                await asyncio.sleep(0.05)
        seconds = await client.zscore("animetop:schedule:pending", "7")
        assert seconds == pytest.approx(later.timestamp(), abs=1e-6)
        assert await client.llen("animetop:queue:fault.read") == 3


async def test_a_redis_that_forgot_some_jobs_in_a_crash_is_told_of_them(
    server: Server, place: str
) -> None:
    async with open_world(place) as world:
        store = _redis_store(world)
        await world.put("fault.read", 3)
        # As after a crash of a server that writes its log only now and then.
        await store.link.client.delete(
            *("animetop:queue:fault.read", "animetop:queue:fault.read:jobs")
        )
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        async with asyncio.timeout(10):
            while await _length(store, "animetop:queue:fault.read") < 3:
                await asyncio.sleep(0.05)


async def test_a_job_that_only_redis_holds_claimed_comes_back_when_its_lease_is_over(
    place: str,
) -> None:
    async with open_world(place) as world:
        store = _redis_store(world)
        [job_id] = await world.put("fault.read", 1)
        past = RealClock().now() - timedelta(hours=1)
        micros = round(past.timestamp() * 1e6)
        # As when a worker dies after Redis has handed it a job and before SQL confirms it.
        queue = ("animetop:queue:fault.read", 100, 1, micros, 0)
        now = round(RealClock().now().timestamp() * 1e6)
        assert await store.link.run("claim", now, "dead", now, "", *queue, keys=names.CALLS)
        worker = spawn(work, world.url, None)
        try:
            await world.drained()
        finally:
            kill(worker)
        await world.judge([job_id])


def _redis_store(world: World) -> RedisStore:
    assert isinstance(world.store, RedisStore)
    return world.store


async def _length(store: RedisStore, key: str) -> int:
    try:
        return int(await store.link.client.llen(key))
    except RedisError:
        return 0


async def _until_some_are_done(world: World, some: int) -> None:
    async with asyncio.timeout(60):
        while (await world.store.queue.counts())[State.DONE] < some:
            await asyncio.sleep(0.02)
