"""The database fails in every way; we go on by ourselves, and nothing is lost or doubled."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
from sqlalchemy import make_url

from mimawari.errors import StoreDown
from mimawari.kernel.clock import RealClock
from mimawari.kernel.job import NewJob, State
from mimawari.store.sql import SqlStore
from tests.faults.proxy import Proxy, lossy
from tests.faults.world import FULL, deliver_all, kill, open_world, spawn, work
from tests.servers import Server, mariadb_server, postgres_server, redis_server
from tests.stores import BESIDE, open_store

JOBS = 400 if FULL else 24
RESTARTS = 5 if FULL else 1


@dataclass(frozen=True, slots=True)
class Ground:
    """A database server, and what stands after its address where a Redis is beside it."""

    server: Server
    beside: str = ""

    @property
    def url(self) -> str:
        """The address of the store."""
        return self.server.url + self.beside

    def through(self, proxy: Proxy) -> str:
        """The address of the same store by way of a proxy."""
        host, port = proxy.address
        url = make_url(self.server.url).set(host=host, port=port)
        return url.render_as_string(hide_password=False) + self.beside


@pytest.fixture(params=("postgresql", "mariadb", "redis") if FULL else ("postgresql", "mariadb"))
def ground(request: pytest.FixtureRequest) -> Iterator[Ground]:
    start = mariadb_server if request.param == "mariadb" else postgres_server
    with ExitStack() as stack:
        running = stack.enter_context(start(durable=True))
        if request.param != "redis":
            yield Ground(running)
            return
        redis = stack.enter_context(redis_server(durable=False))
        yield Ground(running, BESIDE + redis.url)


@pytest.fixture
def server(ground: Ground) -> Server:
    return ground.server


async def test_a_commit_whose_reply_is_lost_happens_once(server: Server, ground: Ground) -> None:
    async with lossy(server.host, server.port) as proxy, open_world(ground.url) as world:
        read = await world.put("fault.read", JOBS)
        plain = await world.put("fault.plain", JOBS)
        # Now and then, so that it strikes claims, grants, the jobs' own commits and their ends.
        proxy.arm(JOBS // 4, every=7)
        worker = spawn(work, ground.through(proxy), None)
        try:
            await world.drained()
        finally:
            kill(worker)
        assert proxy.lost == JOBS // 4
        await world.judge(read, plain)
        assert len(await deliver_all(world)) == len(read)


async def test_a_put_whose_reply_is_lost_may_be_said_again(server: Server, ground: Ground) -> None:
    async with lossy(server.host, server.port) as proxy, open_world(ground.url) as world:
        store = open_store(ground.through(proxy), RealClock())
        new = [NewJob(kind="fault.plain", dedupe_key="one", args=world.page("one"))]
        await store.ping()
        proxy.arm(1)
        with pytest.raises(StoreDown):
            await store.queue.put(new)
        assert await store.queue.put(new) == []
        assert await world.live() == 1
        await store.close()


async def test_a_database_that_is_killed_and_comes_back_finds_us_waiting(
    server: Server, ground: Ground
) -> None:
    async with open_world(ground.url) as world:
        read = await world.put("fault.read", JOBS)
        worker = spawn(work, world.url, None)
        try:
            for _ in range(RESTARTS):
                await _until_some_are_done(world.store, len(read) // 10)
                await asyncio.to_thread(server.kill)
                with pytest.raises(StoreDown):
                    await world.store.ping()
                await asyncio.to_thread(server.start)
                read += await _put_again(world.store, world.page("more"))
            await world.drained()
            assert worker.is_alive()
        finally:
            kill(worker)
        await world.judge(read)


async def test_a_database_that_is_frozen_for_a_while_costs_nothing_but_time(
    server: Server, ground: Ground
) -> None:
    async with open_world(ground.url) as world:
        read = await world.put("fault.read", JOBS)
        worker = spawn(work, world.url, None)
        try:
            await _until_some_are_done(world.store, len(read) // 10)
            await asyncio.to_thread(server.freeze)
            with pytest.raises(StoreDown):
                await world.store.ping()
            await asyncio.to_thread(server.thaw)
            await world.drained()
            assert worker.is_alive()
        finally:
            kill(worker)
        await world.judge(read)


async def _until_some_are_done(store: SqlStore, some: int) -> None:
    before = (await store.queue.counts())[State.DONE]
    async with asyncio.timeout(60):
        while (await store.queue.counts())[State.DONE] < before + some:
            await asyncio.sleep(0.02)


async def _put_again(store: SqlStore, args: dict[str, str]) -> list[str]:
    async with asyncio.timeout(5):
        while True:
            try:
                return await store.queue.put([NewJob(kind="fault.read", args=args)])
            except StoreDown:
                await asyncio.sleep(0.05)
