"""Crawls and applies die anywhere; the counts are those of a watch that never died."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from multiprocessing.process import BaseProcess
from typing import Any

from mimawari.kernel.clock import RealClock, VirtualClock
from mimawari.kernel.job import State
from mimawari.sim.sites.mercari.items import FRANCHISES
from mimawari.sim.sites.mercari.site import MarketSite
from mimawari.sim.world import World
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade
from mimawari.watches.hot import franchises
from mimawari.watches.hot.models import Ip, NewIp
from tests.conftest import Databases
from tests.faults.hot_world import ShiftedClock, counted, settings_for, work_hot
from tests.faults.world import FULL, PATIENCE_SECONDS, kill, running_site, spawn
from tests.stores import open_store

KILLS = 50 if FULL else 6
ROUNDS = 4 if FULL else 2
APART = timedelta(hours=2)
# Half past, so that a round of some seconds never crosses an hour.
START = datetime(2026, 6, 1, 12, 30, tzinfo=UTC)
KEYWORDS = (FRANCHISES[1].keyword, FRANCHISES[5].keyword)


class Town:
    """A market whose time stands still during each round."""

    def __init__(self) -> None:
        self.clock = VirtualClock(START)
        self.world = World(self.clock, (MarketSite(self.clock, 3),), 3)
        self.address = ""

    @property
    def shift(self) -> timedelta:
        """How far the market's time is from ours."""
        return self.clock.now() - RealClock().now()


@asynccontextmanager
async def opened_town() -> AsyncIterator[Town]:
    town = Town()
    async with running_site(town.world) as address:
        town.address = address
        yield town


async def add_ips(store: SqlStore, town: Town) -> list[Ip]:
    new = [NewIp(name=word, keyword=word, active=False) for word in KEYWORDS]
    async with store.edit() as tx:
        return await franchises.add_ips(tx, new, settings_for(town.address), START)


async def live(store: SqlStore) -> int:
    counts = await store.queue.counts()
    return counts[State.PENDING] + counts[State.PROCESSING]


async def drained(store: SqlStore, seconds: float = PATIENCE_SECONDS) -> None:
    async with asyncio.timeout(seconds):
        while await live(store):
            await asyncio.sleep(0.05)


async def dead_or_idle(doomed: BaseProcess, store: SqlStore) -> None:
    """Wait until a process has died, or has nothing left to die of."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while doomed.exitcode is None and await live(store):
            await asyncio.sleep(0.02)


async def watch_town(url: str, kills: int) -> dict[str, Any]:
    """Go round to the market a few times, with so many deaths on the way, and tell the counts."""
    async with opened_town() as town:
        store = open_store(url, RealClock())
        await upgrade(store.database)
        found = await add_ips(store, town)
        done = 0
        for number in range(ROUNDS):
            shift = town.shift
            jobs = [franchises.crawl_now(ip, settings_for(town.address)) for ip in found]
            shifted = open_store(url, ShiftedClock(shift))
            await shifted.queue.put(jobs)
            for _ in range(kills * (number + 1) // ROUNDS - done):
                done += 1
                # Each dies somewhere else: the statements of a round are gone through in turn.
                doomed = spawn(work_hot, url, town.address, shift, 3 + done * 7 % 131)
                await dead_or_idle(doomed, store)
                kill(doomed)
                assert doomed.exitcode == -signal.SIGKILL
            heir = spawn(work_hot, url, town.address, shift, None)
            try:
                await drained(store)
            finally:
                kill(heir)
            await shifted.close()
            await town.clock.advance(APART)
        counts = await counted(store)
        await store.close()
    assert done == kills
    return counts


async def test_crawls_that_die_anywhere_count_as_if_none_had_died(
    backend: str, databases: Databases
) -> None:
    calm = await watch_town(databases.fresh(backend), 0)
    assert sum(flow[1] for flow in calm["flows"]) > 5 * (ROUNDS - 1)
    assert sum(flow[2] for flow in calm["flows"]) > 2 * (ROUNDS - 1)
    assert len(calm["flows"]) == len(KEYWORDS) * (ROUNDS - 1)
    assert await watch_town(databases.fresh(backend), KILLS) == calm
