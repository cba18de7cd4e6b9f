"""Workers die in every way; nothing is lost and nothing happens twice."""

import asyncio
import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest

from mimawari.kernel.clock import RealClock
from mimawari.kernel.job import NewJob
from mimawari.sim.sites.counting import CountingSite
from mimawari.text import parse_duration
from tests.conftest import Databases
from tests.faults.world import (
    FULL,
    LEASE,
    STEPS,
    deliver_all,
    kill,
    open_world,
    running_site,
    spawn,
    work,
)

KILLS = 200 if FULL else 12
WORKERS = 3


@pytest.mark.parametrize("step", STEPS)
async def test_a_kill_at_any_step_loses_and_doubles_nothing(
    step: str, backend: str, databases: Databases
) -> None:
    async with open_world(databases.fresh(backend)) as world:
        read = await world.put("fault.read", 10)
        plain = await world.put("fault.plain", 5)
        doomed = spawn(work, world.url, step)
        await asyncio.to_thread(doomed.join, 30)
        assert doomed.exitcode == -signal.SIGKILL
        heir = spawn(work, world.url, None)
        try:
            await world.drained()
        finally:
            kill(heir)
        await world.judge(read, plain)
        assert len(await deliver_all(world)) == len(read)


async def test_random_kills_lose_and_double_nothing(backend: str, databases: Databases) -> None:
    chance = random.Random(backend)
    async with open_world(databases.fresh(backend)) as world:
        read = await world.put("fault.read", KILLS * 4)
        workers = [spawn(work, world.url, None) for _ in range(WORKERS)]
        try:
            for _ in range(KILLS):
                await asyncio.sleep(chance.uniform(0.02, 0.3))
                victim = chance.randrange(WORKERS)
                kill(workers[victim])
                workers[victim] = spawn(work, world.url, None)
                if not await world.live():
                    read += await world.put("fault.read", 100)
            await world.drained()
        finally:
            for worker in workers:
                kill(worker)
        await world.judge(read)
        assert len(await deliver_all(world)) == len(read)


@pytest.mark.skipif(not FULL, reason="a server waits 15 s for a frozen client: make faults")
@pytest.mark.parametrize("server", ["postgresql", "mariadb"])
async def test_a_worker_frozen_inside_its_commit_holds_up_nobody_for_long(
    server: str, databases: Databases
) -> None:
    async with open_world(databases.fresh(server)) as world:
        read = await world.put("fault.read", 3)
        frozen = spawn(work, world.url, "inside", signal.SIGSTOP)
        assert frozen.pid is not None
        async with asyncio.timeout(30):
            while not is_stopped(frozen.pid):
                await asyncio.sleep(0.05)
        heir = spawn(work, world.url, None)
        try:
            await world.drained()
            await world.judge(read)
            os.kill(frozen.pid, signal.SIGCONT)
            read += await world.put("fault.read", 5)
            await world.drained()
        finally:
            kill(heir)
            kill(frozen)
        await world.judge(read)


def is_stopped(pid: int) -> bool:
    """Tell whether a process stands still."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


class HeldSite(CountingSite):
    """A counting site whose first answer is held back."""

    def __init__(self) -> None:
        super().__init__(RealClock())
        self.asked = asyncio.Event()
        self.let_go = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer, the first time only when let go."""
        if scope["type"] == "http" and not self.asked.is_set():
            self.asked.set()
            await self.let_go.wait()
        await super().__call__(scope, receive, send)


async def test_a_worker_frozen_past_its_lease_changes_nothing_when_it_wakes(
    backend: str, databases: Databases
) -> None:
    async with open_world(databases.fresh(backend)) as world:
        site = HeldSite()
        async with running_site(site) as address:
            args = {"page": "held", "url": f"{address}/page/held"}
            read = await world.store.queue.put([NewJob(kind="fault.read", args=args)])
            frozen = spawn(work, world.url, None)
            assert frozen.pid is not None
            async with asyncio.timeout(30):
                await site.asked.wait()
            os.kill(frozen.pid, signal.SIGSTOP)
            heir = spawn(work, world.url, None)
            try:
                await world.drained()
                await world.judge(read)
                await RealClock().sleep(parse_duration(LEASE) * 3)
                site.let_go.set()
                os.kill(frozen.pid, signal.SIGCONT)
                # The woken worker is alive: it takes new work, after its stale commit.
                kill(heir)
                read += await world.put("fault.read", 5)
                await world.drained()
            finally:
                kill(heir)
                kill(frozen)
            await world.judge(read)
