"""Three processes, kills, restarts and clock steps: the site never counts a sixth in an hour."""

import asyncio
import multiprocessing
import os
import random
from ctypes import c_double
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import structlog
from redis.asyncio import Redis

from mimawari.errors import Wait
from mimawari.kernel.clock import Mark, RealClock, ScaledClock
from mimawari.kernel.values import Limit
from mimawari.sim.sites.counting import CountingSite
from mimawari.store.sql.migrate import upgrade
from tests.conftest import Databases
from tests.faults.world import FULL, kill, running_site, spawn
from tests.servers import BACKENDS, ENGINES
from tests.stores import BESIDE, open_store

# A grant is good for 60 s, which is 0.6 s of real time here: enough for a busy machine.
SCALE = 100.0
SPACING_SECONDS = 720 / SCALE
GRANTS = 40 if FULL else 7
FIVE_AN_HOUR = Limit("rentals.detail", 5, timedelta(hours=1))
ANCHOR = datetime(2026, 1, 1, tzinfo=UTC)
_shared = multiprocessing.get_context("forkserver")


class SteppedClock(ScaledClock):
    """A clock whose wall is turned from outside while true time goes on."""

    def __init__(self, turned: Any) -> None:
        super().__init__(SCALE, ANCHOR)
        self._turned = turned

    def now(self) -> datetime:
        """Return the turned time."""
        return super().now() + timedelta(seconds=self._turned.value)

    def mark(self) -> Mark:
        """Return true time with the turned wall."""
        mark = super().mark()
        return Mark(self.now(), mark.boot, mark.ticks)


async def ask(url: str, address: str, turned: Any) -> None:
    """Ask the site as often as the limiter lets us, for ever."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    clock = SteppedClock(turned)
    store = open_store(url, clock)
    async with httpx2.AsyncClient() as http:
        while True:
            verdict = await store.limiter.acquire(FIVE_AN_HOUR, f"process {os.getpid()}")
            if isinstance(verdict, Wait):
                # Asks far more often than it is told to, to try the limiter.
                await asyncio.sleep(0.05)
            elif verdict.is_valid(clock.mark()):
                await http.get(f"{address}/page/detail")
                await store.limiter.settle(verdict)


async def emptied(url: str) -> None:
    """Empty the Redis beside the database, where there is one."""
    _, _, redis_url = url.partition(BESIDE)
    if redis_url:
        async with Redis.from_url(redis_url) as client:
            await client.flushall()


async def judged(engine: str, url: str) -> None:
    """Let three processes ask, die and be born while their clocks are turned, and count."""
    chance = random.Random(engine)
    turned = _shared.Value(c_double, 0.0)
    store = open_store(url, RealClock())
    await upgrade(store.database)
    await store.close()
    site = CountingSite(SteppedClock(turned))
    async with running_site(site) as address:
        asking = [spawn(ask, url, address, turned) for _ in range(3)]
        try:
            async with asyncio.timeout(GRANTS * SPACING_SECONDS * 3 + 30):
                while len(site.seen) < GRANTS:
                    await asyncio.sleep(chance.uniform(0.1, 3.0))
                    turned.value = chance.choice((-3600.0, -60.0, 0.0, 3600.0, 7200.0))
                    victim = chance.randrange(3)
                    kill(asking[victim])
                    asking[victim] = spawn(ask, url, address, turned)
                    await emptied(url)
        finally:
            for process in asking:
                kill(process)
    arrivals = sorted(entry["ticks"] for entry in site.seen)
    assert len(arrivals) >= GRANTS
    for first, sixth in zip(arrivals, arrivals[5:], strict=False):
        assert sixth - first >= 3600


async def test_the_site_never_counts_more_than_five_an_hour(databases: Databases) -> None:
    # Beside Redis it is the same limiter, so that is tried at full length only.
    tried = BACKENDS if FULL else ENGINES
    # Side by side, because nearly all of it is waiting.
    await asyncio.gather(*(judged(engine, databases.fresh(engine)) for engine in tried))
