"""Workers of the prices watch die anywhere: the rows are those of a watch that never died."""

import signal
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mimawari.kernel.clock import RealClock, VirtualClock
from mimawari.kernel.job import State
from mimawari.sim.sites.mercari.site import MarketSite
from mimawari.sim.world import World
from mimawari.store.sql.migrate import upgrade
from mimawari.watches.prices.models import SellingStatus
from mimawari.watches.prices.products import CRON, DETAIL, LIST
from tests.conftest import Databases
from tests.faults.hot_world import ShiftedClock
from tests.faults.prices_world import (
    SETTINGS,
    Done,
    add_products,
    asked,
    kept,
    list_done,
    put_cron,
    work_prices,
)
from tests.faults.test_hot_kills import dead_or_idle, drained
from tests.faults.world import FULL, kill, running_site, spawn
from tests.servers import BACKENDS
from tests.stores import open_store

KILLS = 50 if FULL else 6
ROUNDS = 4 if FULL else 3
APART = timedelta(hours=10)
ROUND_SECONDS = 900.0
"""Every row on sale outside the results is asked after, which takes minutes a round."""
START = datetime(2026, 6, 1, 12, 30, tzinfo=UTC)
SEED = 3
AT_ONCE = 3
"""A worker has at the most one job of each kind at work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What is kept in the end, and how it came about."""

    kept: dict[str, Any]
    asked: Counter[tuple[str, ...]]
    done: list[Done]

    def count_lost(self, kind: str, about: str) -> int:
        """Count the attempts of some jobs that came to nothing."""
        return sum(one.lost for one in self.done if (one.kind, one.about) == (kind, about))


async def run_round(url: str, address: str, now: datetime, deaths: range) -> None:
    """Have all products crawled once, with some deaths on the way, until nothing is left to do."""
    shift = now - RealClock().now()
    store = open_store(url, ShiftedClock(shift))
    await put_cron(store)
    for number in deaths:
        # Each dies somewhere else: the statements of a round are gone through in turn.
        doomed = spawn(work_prices, url, address, shift, 3 + number * 29 % 131)
        await dead_or_idle(doomed, store)
        kill(doomed)
        assert doomed.exitcode == -signal.SIGKILL
    heir = spawn(work_prices, url, address, shift, None)
    try:
        await drained(store, ROUND_SECONDS)
    finally:
        kill(heir)
    await store.close()


async def watch_market(url: str, kills: int) -> Outcome:
    """Go round to a market that stands still during each round, with so many deaths."""
    clock = VirtualClock(START)
    world = World(clock, (MarketSite(clock, SEED),), SEED)
    async with running_site(world) as address:
        store = open_store(url, clock)
        await upgrade(store.database)
        await add_products(store, address, START)
        for number in range(ROUNDS):
            deaths = range(kills * number // ROUNDS, kills * (number + 1) // ROUNDS)
            await run_round(url, address, clock.now(), deaths)
            await clock.advance(APART)
        found = await kept(store, address, clock.now())
        done = await list_done(store)
        await store.close()
    return Outcome(kept=found, asked=asked(world), done=done)


def insist_on_much(calm: Outcome) -> None:
    """Insist that there was something to lose: sales, changes and things to tell."""
    kinds = Counter(one.kind for one in calm.done)
    assert (kinds[CRON], kinds[LIST]) == (ROUNDS, ROUNDS * len(SETTINGS))
    assert kinds[DETAIL] > 60
    assert {(one.state, one.lost) for one in calm.done} == {(State.DONE, 0)}
    assert calm.kept["runs"].total() == kinds[LIST]
    rows = calm.kept["mercari_crawl_results"].values()
    assert sum(row["selling_status"] == SellingStatus.SOLD_OUT for row in rows) > 50
    assert all(
        (row["selling_status"] == SellingStatus.SOLD_OUT) == bool(row["sold_out_at"])
        for row in rows
    )
    assert len(calm.kept["mercari_crawl_results_removed"]) > 1
    assert calm.kept["told"].total() >= calm.kept["alerts"].total() >= 2


@pytest.mark.skipif(not FULL, reason="takes minutes: `make faults` runs it")
@pytest.mark.parametrize("backend", BACKENDS)
async def test_crawls_and_details_that_die_anywhere_leave_what_they_would_have_left(
    backend: str, databases: Databases
) -> None:
    """Rows, alerts and follow-ups are the same; only what a death undid is asked for again."""
    calm = await watch_market(databases.fresh(backend), 0)
    insist_on_much(calm)
    died = await watch_market(databases.fresh(backend), KILLS)
    for name, rows in calm.kept.items():
        assert died.kept[name] == rows, name
    assert not calm.asked - died.asked
    for what, count in (died.asked - calm.asked).items():
        assert count <= died.count_lost(what[0], what[1]), what
    lost = sum(one.lost for one in died.done)
    assert KILLS / 2 < lost <= KILLS * AT_ONCE
