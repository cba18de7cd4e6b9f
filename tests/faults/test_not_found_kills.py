"""Workers die anywhere in a spell of 404s: nothing is lost, and every effect is undone once."""

import asyncio
import signal
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from mimawari.kernel.clock import RealClock, VirtualClock
from mimawari.kernel.job import State
from mimawari.kernel.not_found import RunState
from mimawari.sites.yahoo_realestate import SITE
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade
from mimawari.store.sql.tables import not_found, outbox
from mimawari.watches.rentals import tasks
from tests.conftest import Databases
from tests.faults.hot_world import ShiftedClock
from tests.faults.rentals_world import kept, opened_town, put_round, work_and_check
from tests.faults.test_hot_kills import dead_or_idle, drained
from tests.faults.world import FULL, PATIENCE_SECONDS, kill, spawn
from tests.servers import BACKENDS
from tests.stores import open_store

KILLS = 40 if FULL else 4
START = datetime(2026, 6, 1, 12, 30, tzinfo=UTC)


async def held(store: SqlStore) -> None:
    """Wait until the site is on hold."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            run = await store.not_found.find(SITE.name)
            if run is not None and run.state is RunState.HELD:
                return
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("backend", BACKENDS if FULL else ("sqlite",))
async def test_rooms_and_jobs_of_a_run_of_404s_come_back_once_whoever_dies(
    backend: str, databases: Databases
) -> None:
    """Every room is as it was, its job is there once, and each is read once in the end."""
    url = databases.fresh(backend)
    clock = VirtualClock(START)
    async with opened_town(clock) as town:
        shift = clock.now() - RealClock().now()
        store = open_store(url, ShiftedClock(shift))
        await upgrade(store.database)
        await put_round(store, town)
        worker = spawn(work_and_check, url, town.address, shift, None)
        await drained(store)
        kill(worker)
        before = await kept(store, town.address)
        order = town.world.orders.add({"part": "rentals", "do": "gone"})
        await put_round(store, town)
        for number in range(KILLS):
            # Each dies somewhere else: in the commits of 404s, in the control, in the hold.
            doomed = spawn(work_and_check, url, town.address, shift, 5 + number * 23 % 97)
            await dead_or_idle(doomed, store)
            kill(doomed)
            assert doomed.exitcode == -signal.SIGKILL
        heir = spawn(work_and_check, url, town.address, shift, None)
        await held(store)
        kill(heir)
        assert await kept(store, town.address) == before
        counts = await store.queue.counts(tasks.DETAIL)
        assert counts[State.PERMANENT_FAIL] == 0
        async with store.read() as reader:
            assert (await reader.execute(select(not_found))).all() == []
            told = (await reader.execute(select(outbox.c.kind))).scalars().all()
        assert "rentals.ended" not in told
        town.world.orders.remove(order["id"])
        asked_before = len(town.asked())
        later = shift + timedelta(hours=2)
        heir = spawn(work_and_check, url, town.address, later, None)
        await drained(store)
        kill(heir)
        assert await kept(store, town.address) == before
        asked = Counter(one["path"] for one in town.asked()[asked_before:])
        rooms = {path: n for path, n in asked.items() if path.startswith("/rent/detail/")}
        assert len(rooms) == len(before["properties"])
        # The control request went to one of them.
        assert sum(rooms.values()) <= len(rooms) + 1
        await store.close()
