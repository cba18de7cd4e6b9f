"""Workers of the rentals watch die anywhere: nothing is lost, and the site is not asked more."""

import random
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select

from mimawari.kernel.clock import RealClock, ScaledClock, VirtualClock
from mimawari.kernel.job import State
from mimawari.kernel.ports import Clock
from mimawari.sim.rentals import Rentals
from mimawari.sim.rentals_manners import judge_manners, list_blocks, list_details
from mimawari.sim.world import World
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade
from mimawari.store.sql.tables import limits
from mimawari.watches.rentals import lists, tasks
from mimawari.watches.rentals.tables import properties
from tests.conftest import Databases
from tests.faults.hot_world import ShiftedClock
from tests.faults.rentals_world import kept, settings_for, work_hastily, work_slowly
from tests.faults.test_hot_kills import dead_or_idle, drained
from tests.faults.world import FULL, kill, running_site, spawn
from tests.servers import ENGINES

KILLS = 50 if FULL else 6
ROUNDS = 3 if FULL else 2
APART = timedelta(hours=24)
START = datetime(2026, 6, 1, 12, 30, tzinfo=UTC)
AREA = "/rent/search/06/27/27991/"
LARGE_AREA = "/rent/search/03/13/13991/"
"""With more rooms than three days are long enough for."""

# A grant is good for 60 s, which is 0.2 s of real time here.
SCALE = 300.0
SPAN = timedelta(days=3) if FULL else timedelta(hours=1)


class Town:
    """A site with a clock of its own."""

    def __init__(self, clock: Clock) -> None:
        self.world = World(clock, (Rentals(clock, 3),), 3)
        self.address = ""

    def asked(self) -> list[dict[str, Any]]:
        """List what the site was asked for, by its own log."""
        found: list[dict[str, Any]] = []
        after = "0"
        while more := self.world.log.list({"part": "rentals", "after": after, "limit": "10000"}):
            if not more["seen"]:
                return found
            found += more["seen"]
            after = str(more["next"])
        return found


@asynccontextmanager
async def opened_town(clock: Clock) -> AsyncIterator[Town]:
    """Serve a site."""
    town = Town(clock)
    async with running_site(town.world) as address:
        town.address = address
        yield town


async def put_round(store: SqlStore, town: Town, area: str = AREA) -> None:
    """Have an area walked over, and every property that is known read."""
    async with store.edit() as tx:
        settings = settings_for(town.address)
        found = await lists.add_list(
            tx, town.address + area, 5000, None, settings, store.database.clock.now()
        )
        tx.put(lists.walk_job(lists.walk_of(found, "test", 5000)))
        rows = await tx.execute(select(properties.c.property_id, properties.c.url))
        tx.put(*(tasks.detail_job(row.property_id, row.url) for row in rows))


async def watch_town(url: str, kills: int) -> tuple[dict[str, Any], Counter[str], int]:
    """Read the town a few times, with so many deaths; tell what is kept and what was asked."""
    clock = VirtualClock(START)
    async with opened_town(clock) as town:
        store = SqlStore(url, RealClock())
        await upgrade(store.database)
        done = 0
        for number in range(ROUNDS):
            shift = clock.now() - RealClock().now()
            shifted = SqlStore(url, ShiftedClock(shift))
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


@pytest.mark.parametrize("engine", ENGINES if FULL else ("sqlite",))
async def test_details_that_die_between_fetch_and_commit_leave_the_same_rows(
    engine: str, databases: Databases
) -> None:
    """No property is lost; a page is asked again only where its commit was, under a new grant."""
    calm, calmly, _ = await watch_town(databases.fresh(engine), 0)
    found, asked, given = await watch_town(databases.fresh(engine), KILLS)
    assert len(calm["properties"]) > 25
    assert calm["changes"].total() > len(calm["properties"])
    assert found == calm
    again = asked - calmly
    assert not calmly - asked
    assert again.total() <= KILLS
    pages = sum(count for path, count in asked.items() if path != "/robots.txt")
    assert pages <= given <= pages + KILLS


async def test_three_processes_that_are_killed_read_at_most_5_details_an_hour(
    databases: Databases,
) -> None:
    """Through blocks, 404s, 500s, kills and restarts, by the site's own log."""
    chance = random.Random(5)
    url = databases.fresh("postgresql" if FULL else "sqlite")
    clock = ScaledClock(SCALE, RealClock().now())
    anchor = clock._anchor  # noqa: SLF001 - all processes count from here
    async with opened_town(clock) as town:
        store = SqlStore(url, clock)
        await upgrade(store.database)
        await put_round(store, town, LARGE_AREA)
        workers = [spawn(work_slowly, url, town.address, SCALE, anchor) for _ in range(3)]
        start, kills = clock.now(), 0
        try:
            while clock.now() - start < SPAN:
                misbehave(town, chance)
                await clock.sleep(timedelta(minutes=chance.uniform(5, 60)))
                place = chance.randrange(3)
                kill(workers[place])
                kills += 1
                workers[place] = spawn(work_slowly, url, town.address, SCALE, anchor)
        finally:
            for worker in workers:
                kill(worker)
        counts = await store.queue.counts(tasks.DETAIL)
        await store.close()
        asked = town.asked()
    assert counts[State.PENDING] > 0
    check(asked, kills)


def misbehave(town: Town, chance: random.Random) -> None:
    """Have the site go wrong in one way or none."""
    detail = {"path": "/rent/detail/", "times": 1}
    orders: list[dict[str, Any]] = [
        {},
        {"do": "status", "code": 500, **detail},
        {"do": "gone", **detail},
        {"do": "blocked", "times": chance.randint(1, 3)},
    ]
    [order] = chance.choices(orders, (12, 4, 2, 2))
    if order:
        town.world.orders.add({"part": "rentals", **order})


def check(asked: list[dict[str, Any]], kills: int) -> None:
    """Judge by what the site was asked; a death may cost one page asked again, and no more."""
    manners = judge_manners(asked)
    details = list_details(asked)
    assert manners.most_in_an_hour <= 5, [f"{at:%d %H:%M:%S}" for at in details]
    assert manners.asked_again_after_404 <= kills
    assert manners.blocked_url_within_an_hour <= kills
    if FULL:
        assert list_blocks(asked)
        assert len(details) > 200
    else:
        assert len(details) >= 4
