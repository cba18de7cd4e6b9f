"""Workers of the rentals watch die anywhere: nothing is lost, and the site is not asked more."""

import signal
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select

from mimawari.kernel.clock import RealClock, VirtualClock
from mimawari.store.sql.migrate import upgrade
from mimawari.store.sql.tables import limits
from mimawari.watches.rentals import tasks
from tests.conftest import Databases
from tests.faults.hot_world import ShiftedClock
from tests.faults.rentals_world import kept, opened_town, put_round, work_hastily
from tests.faults.test_hot_kills import dead_or_idle, drained
from tests.faults.world import FULL, kill, spawn
from tests.servers import BACKENDS
from tests.stores import open_store

KILLS = 50 if FULL else 6
ROUNDS = 3 if FULL else 2
APART = timedelta(hours=24)
START = datetime(2026, 6, 1, 12, 30, tzinfo=UTC)


async def watch_town(url: str, kills: int) -> tuple[dict[str, Any], Counter[str], int]:
    """Read the town a few times, with so many deaths; tell what is kept and what was asked."""
    clock = VirtualClock(START)
    async with opened_town(clock) as town:
        store = open_store(url, RealClock())
        await upgrade(store.database)
        done = 0
        for number in range(ROUNDS):
            shift = clock.now() - RealClock().now()
            shifted = open_store(url, ShiftedClock(shift))
            await put_round(shifted, town)
            for _ in range(kills * (number + 1) // ROUNDS - done):
                done += 1
                # Each dies somewhere else: the statements of a round are gone through in turn.
                doomed = spawn(work_hastily, url, town.address, shift, 3 + done * 7 % 131)
                await dead_or_idle(doomed, store)
                kill(doomed)
                assert doomed.exitcode == -signal.SIGKILL
            heir = spawn(work_hastily, url, town.address, shift, None)
            try:
                await drained(store)
            finally:
                kill(heir)
            await shifted.close()
            await clock.advance(APART)
        found = await kept(store, town.address)
        async with store.read() as reader:
            rows = await reader.execute(select(limits))
            given = sum(row.given for row in rows if row.name in {tasks.DETAIL, tasks.LIST})
        await store.close()
        asked = Counter(one["path"] for one in town.asked())
    assert done == kills
    return found, asked, given


@pytest.mark.parametrize("backend", BACKENDS if FULL else ("sqlite",))
async def test_details_that_die_between_fetch_and_commit_leave_the_same_rows(
    backend: str, databases: Databases
) -> None:
    """No property is lost; a page is asked again only where its commit was, under a new grant."""
    calm, calmly, _ = await watch_town(databases.fresh(backend), 0)
    found, asked, given = await watch_town(databases.fresh(backend), KILLS)
    assert len(calm["properties"]) > 25
    assert calm["changes"].total() > len(calm["properties"])
    assert found == calm
    again = asked - calmly
    assert not calmly - asked
    assert again.total() <= KILLS
    pages = sum(count for path, count in asked.items() if path != "/robots.txt")
    assert pages <= given <= pages + KILLS
