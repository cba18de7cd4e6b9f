"""All watches on many processes that die, for three days; the truth of each judges it."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from mimawari.app.judges import books, rentals
from mimawari.app.judges.virtual_run import START, Order
from mimawari.kernel.clock import RealClock, ScaledClock
from mimawari.kernel.job import State
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade
from mimawari.watches.books.jobs import PAGE
from mimawari.watches.hot import franchises
from mimawari.watches.prices import products
from mimawari.watches.streams.outside import CHECK
from tests.conftest import Databases
from tests.faults.all_judges import (
    gather_asked,
    judge_books,
    judge_hot,
    judge_prices,
    judge_rentals,
    judge_streams,
)
from tests.faults.all_stage import SEED, SPAN, Stage, add_targets, make_stage
from tests.faults.all_world import ASKING, ORDERING, WORKING, Crew, Given
from tests.faults.world import FULL, running_site
from tests.stores import open_store

LOG = logging.getLogger(__name__)
SCALE = 90.0
STEP = timedelta(minutes=2.5)
APART = timedelta(minutes=61)
"""Between two deaths: each may take with it the leave for one request, which is counted as used."""
WORKERS_SHARE = 0.8
LAST_WORK_SECONDS = 300.0
MOMENT = (timedelta(seconds=70), timedelta(seconds=360))
"""From when to when into a stream somebody dies who watches it."""


async def live_on(crew: Crew, stage: Stage) -> None:
    """Let days pass, in which sites misbehave and processes die and are replaced."""
    chance = random.Random(SEED)
    settings = crew.given.settings("")
    orders: list[Order] = plan_orders(stage)
    killed_at = stage.clock.now()
    while (now := stage.clock.now()) < stage.begin_at + SPAN:
        while orders and orders[0][0] <= now:
            stage.world.orders.add(orders.pop(0)[1])
        is_clear = await rentals.is_clear(crew.store)
        stage.moments.append(rentals.Moment(at=now, is_clear=is_clear))
        for name in await books.reset_rested(crew.store, settings, now):
            stage.resets[name].append(now)
        if now - killed_at >= APART and (victim := choose(stage, now, chance)) is not None:
            killed_at = now
            place = await crew.find_busy(victim) if victim else crew.places(ORDERING)[0]
            crew.hire(await crew.kill(place))
            if int((now - stage.begin_at) / APART) % 10 == 0:
                LOG.info("%s of %s, %s deaths", now - stage.begin_at, SPAN, crew.deaths)
        await stage.clock.sleep(STEP * chance.uniform(0.5, 1))


def choose(stage: Stage, now: datetime, chance: random.Random) -> frozenset[str] | None:
    """Choose who dies: of what kind its work is, nobody's if it only orders, or None not now.

    In every stream somebody dies who watches it, so before one nobody else may.
    """
    into = [now - script.programme.starts_at for script in stage.scripts]
    if any(MOMENT[0] < one < MOMENT[1] for one in into):
        return frozenset({CHECK})
    if any(MOMENT[0] - APART < one <= MOMENT[0] for one in into):
        return None
    return ASKING if chance.random() < WORKERS_SHARE else frozenset()


def plan_orders(stage: Stage) -> list[Order]:
    """Plan what goes wrong at the sites that take orders, as each one's own check does."""
    planned = [
        *rentals.plan_orders(SEED, SPAN),
        *books.plan_orders(SEED, SPAN),
    ]
    shift = stage.begin_at - START
    return sorted(((at + shift, order) for at, order in planned), key=lambda order: order[0])


async def end_all(crew: Crew) -> datetime:
    """Order nothing more, let all come to its end that can, and tell from when on."""
    await crew.disband(ORDERING)
    until = crew.clock.now()
    crew.hire((*ORDERING[1:],))
    kinds = (franchises.KIND, "hot.apply", products.CRON, products.LIST, products.DETAIL, PAGE)
    async with asyncio.timeout(LAST_WORK_SECONDS):
        while await count_live(crew.store, kinds):
            await asyncio.sleep(0.2)
    await crew.disband(WORKING)
    await crew.disband((*ORDERING[1:],))
    return until


async def count_live(store: SqlStore, kinds: Sequence[str]) -> int:
    """Count the jobs of some kinds that have not ended."""
    total = 0
    for kind in kinds:
        counts = await store.queue.counts(kind)
        total += counts[State.PENDING] + counts[State.PROCESSING]
    return total


@asynccontextmanager
async def open_crew(url: str, folder: Path, stage: Stage, anchor: datetime) -> AsyncIterator[Crew]:
    """Serve the world, make the tables, and start four workers and two who order."""
    store = open_store(url, stage.clock)
    await upgrade(store.database)
    async with running_site(stage.world) as address:
        given = Given(
            url=url, folder=str(folder), address=address, scale=SCALE, anchor=anchor,
            calls=stage.calls,
        )  # fmt: skip
        await add_targets(store, stage, given)
        crew = Crew(given, stage.clock, store)
        for roles in (*[WORKING] * 4, *[ORDERING] * 2):
            crew.hire(roles)
        try:
            yield crew
        finally:
            for roles in (WORKING, ORDERING, (*ORDERING[1:],)):
                await crew.disband(roles)
            await store.close()


@pytest.mark.skipif(not FULL, reason="takes most of an hour: make faults")
async def test_all_watches_on_many_processes_that_die_are_as_true_as_on_one_that_lives(
    databases: Databases, tmp_path: Path
) -> None:
    """Four workers and two who order, on PostgreSQL and Redis, three days, a death an hour."""
    anchor = RealClock().now()
    stage = make_stage(ScaledClock(SCALE, anchor))
    async with open_crew(databases.fresh("redis"), tmp_path, stage, anchor) as crew:
        await live_on(crew, stage)
        until = await end_all(crew)
        asked = await gather_asked(stage, crew)
        LOG.info("%s requests, %s lost, %s deaths", len(asked.all), len(asked.lost), crew.deaths)
        found = await asyncio.gather(
            judge_hot(stage, crew, asked),
            judge_prices(stage, crew, asked, until),
            judge_rentals(stage, crew, asked),
            judge_books(stage, crew, asked),
            judge_streams(stage, crew),
            return_exceptions=True,
        )
    if wrong := [one for one in found if isinstance(one, Exception)]:
        raise ExceptionGroup("not as the truth", wrong)
