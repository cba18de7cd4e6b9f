"""Schedulers race and die; every target is enqueued once."""

import asyncio
import random
from collections import Counter
from datetime import timedelta

import structlog
from sqlalchemy import select

from mimawari.kernel.clock import RealClock
from mimawari.kernel.scheduler import Scheduler
from mimawari.kernel.values import Entry
from mimawari.kernel.watch import Watches
from mimawari.store.sql.tables import jobs
from tests.conftest import Databases
from tests.faults.world import FULL, go_on, kill, make_watch, open_world, spawn
from tests.stores import open_store

TARGETS = 3000 if FULL else 600
SCHEDULERS = 3


async def schedule(url: str) -> None:
    """Run a scheduler until killed, in small steps so that many meet."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    clock = RealClock()
    watches = Watches([make_watch(go_on)])
    store = open_store(url, clock)
    await Scheduler(store, clock, watches, batch=5, deepest=1_000_000).run()


async def test_schedulers_that_race_and_die_enqueue_each_target_once(
    backend: str, databases: Databases
) -> None:
    chance = random.Random(backend)
    async with open_world(databases.fresh(backend)) as world:
        now = RealClock().now()
        members = [f"target:{n}" for n in range(TARGETS)]
        await world.store.schedule.put(
            [
                Entry(member=member, kind="fault.plain", next_at=now, every=timedelta(days=1))
                for member in members
            ]
        )
        running = [spawn(schedule, world.url) for _ in range(SCHEDULERS)]
        try:
            async with asyncio.timeout(120):
                while await world.store.schedule.due(RealClock().now(), 1):
                    await asyncio.sleep(chance.uniform(0.05, 0.2))
                    victim = chance.randrange(SCHEDULERS)
                    kill(running[victim])
                    running[victim] = spawn(schedule, world.url)
        finally:
            for scheduler in running:
                kill(scheduler)
        async with world.store.read() as reader:
            enqueued = [row.target for row in await reader.execute(select(jobs.c.target))]
        assert Counter(enqueued) == Counter(members)
