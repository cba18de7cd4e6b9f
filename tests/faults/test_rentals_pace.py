"""Three processes read rooms for three days and are killed all the time; the site's log judges."""

import asyncio
import logging
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from multiprocessing.process import BaseProcess
from typing import Any

from mimawari.app.judges.rentals import STEP, Moment, clear_spans, is_clear
from mimawari.kernel.clock import RealClock, ScaledClock
from mimawari.kernel.job import State
from mimawari.kernel.limits import START_FOR
from mimawari.sim.sites.yahoo_realestate.conduct import (
    count_least,
    judge_manners,
    list_blocks,
    list_details,
)
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade
from mimawari.watches.rentals import tasks
from tests.conftest import Databases
from tests.faults.rentals_world import Town, opened_town, put_round, work_slowly
from tests.faults.world import FULL, kill, name_of, spawn

LOG = logging.getLogger(__name__)
LARGE_AREA = "/rent/search/03/13/13991/"
"""With more rooms than three days are long enough for."""

# A grant is good for 60 s, which is 0.2 s of real time here.
SCALE = 300.0
SPAN = timedelta(days=3) if FULL else timedelta(hours=1)
APART = timedelta(minutes=61) if FULL else timedelta(minutes=5)
"""Between two deaths: each may take with it the leave for one request, which is counted as used."""
LOST_WITHIN = timedelta(minutes=5)
"""What was asked so shortly before a death, a second of real time, was perhaps never kept."""


@dataclass(slots=True)
class Crew:
    """Three processes, of which one is replaced now and then; each has a name of its own."""

    url: str
    town: Town
    clock: ScaledClock
    anchor: datetime
    deaths: dict[str, datetime] = field(default_factory=dict)
    _alive: list[tuple[str, BaseProcess]] = field(default_factory=list)

    def hire(self) -> None:
        """Start one more process."""
        name = f"worker-{len(self.deaths) + len(self._alive) + 1}@example.org"
        clocked = (SCALE, self.anchor)
        process = spawn(work_slowly, self.url, self.town.address, clocked, name)
        self._alive.append((name, process))

    def kill(self, place: int) -> None:
        """Kill one of the processes, and note when."""
        name, process = self._alive.pop(place)
        kill(process)
        self.deaths[name] = self.clock.now()

    def disband(self) -> None:
        """Kill all."""
        while self._alive:
            self.kill(0)


async def test_three_processes_that_are_killed_read_at_most_5_and_at_least_4_details_an_hour(
    databases: Databases,
) -> None:
    """Through blocks, 404s, 500s, kills and restarts, by the site's own log."""
    anchor = RealClock().now()
    clock = ScaledClock(SCALE, anchor)
    async with opened_town(clock) as town:
        url = databases.fresh("postgresql" if FULL else "sqlite")
        store = SqlStore(url, clock)
        await upgrade(store.database)
        await put_round(store, town, LARGE_AREA)
        crew = Crew(url, town, clock, anchor)
        moments: list[Moment] = []
        looking = asyncio.create_task(look_on(store, clock, moments))
        try:
            await live_on(crew)
        finally:
            crew.disband()
            looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking
        counts = await store.queue.counts(tasks.DETAIL)
        await store.close()
        asked = town.asked()
    assert counts[State.PENDING] > 0
    check(asked, crew.deaths, moments)


async def live_on(crew: Crew) -> None:
    """Let three days pass, in which the site misbehaves and processes die and are replaced."""
    chance = random.Random(5)
    for _ in range(3):
        crew.hire()
    start = killed_at = crew.clock.now()
    while crew.clock.now() - start < SPAN:
        misbehave(crew.town, chance)
        await crew.clock.sleep(timedelta(minutes=chance.uniform(5, 60)))
        if crew.clock.now() - killed_at >= APART:
            crew.kill(chance.randrange(3))
            crew.hire()
            killed_at = crew.clock.now()


async def look_on(store: SqlStore, clock: ScaledClock, moments: list[Moment]) -> None:
    """Note every few minutes whether there is work and a way to it."""
    while True:
        moments.append(Moment(at=clock.now(), is_clear=await is_clear(store)))
        await clock.sleep(STEP)


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


def check(
    asked: Sequence[Mapping[str, Any]], deaths: Mapping[str, datetime], moments: Sequence[Moment]
) -> None:
    """Judge by what the site was asked; only an answer that died with its asker is forgiven."""
    details, blocks = list_details(asked), list_blocks(asked)
    kept, lost = forget_lost(asked, deaths)
    manners = judge_manners(kept, START_FOR)
    least = count_least(details, clear_spans(moments, blocks))
    figures = f"{manners}; least {least}; {len(blocks)} blocks, {len(deaths)} deaths, {lost} lost"
    LOG.info(figures)
    story = "\n".join(tell(kept, blocks))
    assert manners.most_in_an_hour <= 5, [f"{at:%d %H:%M:%S}" for at in details]
    assert manners.ok, story
    if FULL:
        assert least is not None
        assert least >= 4, story
        assert len(blocks) > 5
        assert len(deaths) > 30
        assert len(details) > 200
    else:
        assert len(details) >= 4


def tell(asked: Sequence[Mapping[str, Any]], blocks: Sequence[datetime]) -> Iterator[str]:
    """Tell what was asked around block pages, so that a failure can be understood."""
    for seen in asked:
        at = datetime.fromisoformat(seen["at"])
        if any(timedelta(0) <= at - block < timedelta(minutes=70) for block in blocks):
            order = seen["order"] and seen["order"]["do"]
            path = seen["path"][:30]
            yield f"{at:%d %H:%M:%S} {name_of(seen):26} {path} {seen['status']} {order or ''}"


def forget_lost(
    asked: Sequence[Mapping[str, Any]], deaths: Mapping[str, datetime]
) -> tuple[list[Mapping[str, Any]], int]:
    """Strike out the answers that nobody can have kept: the last of those who died right after."""
    last = {name_of(seen): seen["n"] for seen in asked}
    kept: list[Mapping[str, Any]] = []
    lost = 0
    for seen in asked:
        name = name_of(seen)
        lived_for = deaths[name] - datetime.fromisoformat(seen["at"])
        if last[name] == seen["n"] and lived_for < LOST_WITHIN:
            kept.append({**seen, "status": None, "order": None})
            lost += 1
        else:
            kept.append(seen)
    return kept, lost
