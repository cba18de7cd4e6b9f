"""All watches on many processes that die, for three days; the truth of each judges it."""

import asyncio
import logging
import os
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from mimawari.app import (
    check_books,
    check_hot,
    check_prices,
    check_rentals,
    check_streams,
    check_streams_judge,
)
from mimawari.app.check_streams_plan import Script
from mimawari.app.checking import START, Order, list_seen
from mimawari.kernel.clock import RealClock, ScaledClock
from mimawari.kernel.job import State
from mimawari.kernel.limits import START_FOR
from mimawari.sim.books import Books
from mimawari.sim.books_looks import look_again
from mimawari.sim.chance import chance_of
from mimawari.sim.hooks import Hooks
from mimawari.sim.live import Live
from mimawari.sim.live_programme import Programme, Shot
from mimawari.sim.market_looks import Looks
from mimawari.sim.market_site import MarketSite
from mimawari.sim.rentals import Rentals
from mimawari.sim.rentals_manners import count_least, judge_manners, list_blocks, list_details
from mimawari.sim.rentals_names import AREAS
from mimawari.sim.world import World
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade
from mimawari.watches.books import jobs as book_jobs
from mimawari.watches.books.jobs import PAGE
from mimawari.watches.books.models import Search
from mimawari.watches.books.tables import usage
from mimawari.watches.hot import targets
from mimawari.watches.hot.models import NewIp
from mimawari.watches.hot.reads import Window
from mimawari.watches.hot.tables import crawls
from mimawari.watches.prices import products
from mimawari.watches.rentals import lists
from mimawari.watches.rentals.models import MOST_ROOMS
from mimawari.watches.streams.models import Config
from mimawari.watches.streams.outside import CHECK
from tests.conftest import Databases
from tests.faults.all_world import ASKING, ORDERING, WORKING, Crew, Given, find_lost
from tests.faults.world import FULL, running_site
from tests.stores import open_store

LOG = logging.getLogger(__name__)
SEED = 7
SCALE = float(os.environ.get("MIMAWARI_FAULTS_SCALE", "90"))
SPAN = timedelta(days=float(os.environ.get("MIMAWARI_FAULTS_DAYS", "3")))
STEP = timedelta(minutes=2.5)
APART = timedelta(minutes=61)
"""Between two deaths: each may take with it the leave for one request, which is counted as used."""
WORKERS_SHARE = 0.8
LAST_WORK_SECONDS = 300.0
PRODUCTS = check_prices.SETTINGS[-8:]
KEYWORDS = [
    word
    for word in check_hot.list_keywords(20)
    if word not in {one.keyword for one in check_prices.SETTINGS}
][:10]
MINUTE = timedelta(minutes=1)
PROGRAMME_EVERY = timedelta(hours=6)
MOMENT = (timedelta(seconds=70), timedelta(seconds=360))
"""From when to when into a stream somebody dies who watches it."""
THRESHOLD = 30
SHOTS = (("black", 60, 110), ("silence", 150, 200), ("black", 260, 285), ("silence", 340, 420))
"""What is bad in each programme, and from which second to which; the third is too short to tell."""


@dataclass(slots=True)
class Stage:
    """The world with all its parts, and what is watched in it."""

    clock: ScaledClock
    world: World
    market: MarketSite
    searches: list[Search]
    calls: int
    scripts: list[Script]
    begin_at: datetime
    moments: list[check_rentals.Moment] = field(default_factory=list)
    resets: dict[str, list[datetime]] = field(default_factory=dict)


def make_stage(clock: ScaledClock) -> Stage:
    """Make a world and choose what is watched."""
    market, books = MarketSite(clock, SEED), Books(clock, SEED)
    live = Live(clock, SEED, has_catalogue=False)
    world = World(clock, (market, Rentals(clock, SEED), books, live, Hooks(clock)), SEED)
    chance = chance_of("all watches", SEED)
    begin_at = clock.now()
    scripts = [*draw_scripts(begin_at)]
    for script in scripts:
        live.put(script.programme)
    searches = check_books.choose_searches(chance, books)
    return Stage(
        clock=clock,
        world=world,
        market=market,
        searches=searches,
        calls=chance.randint(55, 85),
        scripts=scripts,
        begin_at=begin_at,
        resets={one.name: [] for one in searches},
    )


def draw_scripts(begin_at: datetime) -> list[Script]:
    """Plan streams, one after the other, of which nothing is gone while nobody watches."""
    chance = chance_of("all watches", SEED, "streams")
    return [
        Script(
            programme=Programme(
                video_id=f"all-{number:07d}",
                title=f"配信 {number}",
                starts_at=begin_at + number * PROGRAMME_EVERY + 30 * MINUTE,
                seconds=480.0,
                shots=tuple(
                    Shot(what=what, start=start + chance.randint(0, 50) / 10, end=end)
                    for what, start, end in SHOTS
                ),
                segment_seconds=4.0,
                window=120,
            ),
            config=Config(
                check_interval_sec=10,
                blackout_threshold_sec=THRESHOLD,
                silence_threshold_sec=THRESHOLD,
            ),
            holds=(),
            errors=(),
        )
        for number in range(SPAN // PROGRAMME_EVERY or 1)
    ]


async def add_targets(store: SqlStore, stage: Stage, given: Given) -> None:
    """Have everything watched from now on."""
    settings, now = given.settings(""), stage.clock.now()
    async with store.edit() as tx:
        await targets.add_ips(
            tx, [NewIp(name=word, keyword=word) for word in KEYWORDS], settings, now
        )
        for one in PRODUCTS:
            await products.add_product(tx, one.keyword, one, settings, now)
        for area in AREAS:
            url = f"{given.address}/rent/search/{area.path}/"
            await lists.add_list(tx, url, MOST_ROOMS, check_rentals.EVERY, settings, now)
        for search in stage.searches:
            await book_jobs.add_job(tx, search, settings, now)
    await check_streams.add_monitors(store, given.address, stage.scripts, now)


async def live_on(crew: Crew, stage: Stage) -> None:
    """Let days pass, in which sites misbehave and processes die and are replaced."""
    chance = random.Random(SEED)
    settings = crew.given.settings("")
    orders: list[Order] = plan_orders(stage)
    killed_at = stage.clock.now()
    while (now := stage.clock.now()) < stage.begin_at + SPAN:
        while orders and orders[0][0] <= now:
            stage.world.orders.add(orders.pop(0)[1])
        is_clear = await check_rentals.is_clear(crew.store)
        stage.moments.append(check_rentals.Moment(at=now, is_clear=is_clear))
        for name in await check_books.reset_rested(crew.store, settings, now):
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
        *check_rentals.plan_orders(SEED, SPAN),
        *check_books.plan_orders(SEED, SPAN),
    ]
    shift = stage.begin_at - START
    return sorted(((at + shift, order) for at, order in planned), key=lambda order: order[0])


async def end_all(crew: Crew) -> datetime:
    """Order nothing more, let all come to its end that can, and tell from when on."""
    await crew.disband(ORDERING)
    until = crew.clock.now()
    crew.hire((*ORDERING[1:],))
    kinds = (targets.KIND, "hot.apply", products.CRON, products.LIST, products.DETAIL, PAGE)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the world was asked, and which of its answers died with who asked."""

    all: Sequence[Mapping[str, Any]]
    lost: frozenset[int]
    spent: Sequence[datetime]

    def kept(self, part: str) -> list[Mapping[str, Any]]:
        """List the requests to a part whose answers somebody may have kept."""
        return [one for one in self.all if one["part"] == part and one["n"] not in self.lost]


async def gather_asked(stage: Stage, crew: Crew) -> Asked:
    """Gather what was asked, and tell apart what was lost."""
    asked = [*list_seen(stage.world)]
    async with crew.store.read() as reader:
        found = [await book_jobs.find_known(reader, one.name) for one in stage.searches]
        rows = (await reader.execute(select(usage))).all()
    queries = {one.name: one.q for one in found}
    lost: set[int] = set()
    unasked: list[datetime] = []
    for loss, numbers in find_lost(asked, crew.losses, queries):
        lost.update(numbers)
        if loss.kind == PAGE and not numbers:
            unasked.append(loss.at)
    times = {one["n"]: datetime.fromisoformat(one["at"]) for one in asked}
    calls = [one for one in asked if one["part"] == "books"]
    # A call that was paid for and never made is known by the count of both sides alone.
    unmade = sum(row.calls + row.reserved for row in rows) - len(calls)
    assert 0 <= unmade <= len(unasked), (unmade, unasked)
    made = [times[one["n"]] for one in calls if one["n"] in lost]
    return Asked(all=asked, lost=frozenset(lost), spent=[*made, *unasked[:unmade]])


async def judge_hot(stage: Stage, crew: Crew, asked: Asked) -> None:
    """Insist on every count."""
    window = Window.before(stage.clock.now(), 24)
    ours = await check_hot.read_ours(crew.store, KEYWORDS, window)
    searches = [
        one
        for one in asked.kept("market")
        if one["searched"] and one["searched"]["keyword"] in KEYWORDS
    ]
    async with crew.store.read() as reader:
        rows = await reader.execute(select(crawls.c.pages_asked - crawls.c.pages_read))
        unread = sum(rows.scalars())
    report = check_hot.judge(ours, Looks(SEED, searches), stage.market.market)
    LOG.info("hot: %s", {**asdict(report), "targets": len(report.targets), "unread": unread})
    assert not report.differing, [one for one in report.targets if not one.ok]
    assert report.crawls > len(KEYWORDS)


async def judge_prices(stage: Stage, crew: Crew, asked: Asked, until: datetime) -> None:
    """Insist on every sale that was seen, its price, its day and every median."""
    keywords = {one.keyword for one in PRODUCTS}
    zone = crew.given.settings("").zone
    now = stage.clock.now()
    evidence = check_prices.Evidence(
        seed=SEED,
        days=SPAN.total_seconds() / 86400,
        settings=PRODUCTS,
        requests=[
            one
            for one in asked.kept("market")
            if not one["searched"] or one["searched"]["keyword"] in keywords
        ],
        until=until,
        zone=zone,
        crawls=await check_prices.count_crawls(crew.store),
        stored=await check_prices.list_stored(crew.store),
        markets=await check_prices.find_markets(crew.store, stage.begin_at, now, zone),
    )
    report = check_prices.judge(evidence, check_prices.look_again(evidence))
    LOG.info("prices: %s", report)
    assert report.ok, report.examples


async def judge_rentals(stage: Stage, crew: Crew, asked: Asked) -> None:
    """Insist on every change that was seen, and on how the site was asked."""
    everything = [one for one in asked.all if one["part"] == "rentals"]
    kept = [
        {**one, "status": None, "order": None} if one["n"] in asked.lost else one
        for one in everything
    ]
    days = SPAN.total_seconds() / 86400
    changes = await check_rentals.read_changes(crew.store)
    evidence = check_rentals.Evidence(
        seed=SEED, days=days, requests=kept, moments=stage.moments, changes=changes
    )
    report = check_rentals.judge(evidence)
    manners = judge_manners(kept, START_FOR)
    blocks = list_blocks(everything)
    spans = check_rentals.clear_spans(stage.moments, blocks)
    least = count_least(list_details(everything), spans)
    LOG.info("rentals: %s; %s; least %s; %s blocks", report, manners, least, len(blocks))
    assert (report.missing, report.extra) == (0, 0), report
    assert manners.ok, manners
    assert manners.most_in_an_hour <= 5
    assert least is None or least >= 4


async def judge_books(stage: Stage, crew: Crew, asked: Asked) -> None:
    """Insist on every book, on every cursor and on the quota."""
    now = stage.clock.now()
    evidence = check_books.Evidence(
        seed=SEED,
        days=SPAN.total_seconds() / 86400,
        quota=stage.calls,
        zone=crew.given.settings("").zone,
        requests=asked.kept("books"),
        watched=[
            await check_books.read_job(crew.store, one, stage.resets[one.name], now)
            for one in stage.searches
        ],
        books=await check_books.list_books(crew.store),
        spent=asked.spent,
    )
    report = check_books.judge(evidence, look_again(SEED, evidence.requests))
    LOG.info("books: %s", report)
    assert not report.examples, report.examples
    assert report.books > 0


async def judge_streams(stage: Stage, crew: Crew) -> None:
    """Insist on every alert, its recovery and their times; how late they come is not judged."""
    evidence = check_streams_judge.Evidence(
        seed=SEED,
        scripts=stage.scripts,
        told=check_streams.list_told(stage.world.find(Hooks)),
        requests=0,
        segments=await check_streams.count_segments(crew.store),
    )
    report = check_streams_judge.judge(evidence)
    LOG.info("streams: %s", report)
    wrong = [one for one in report.examples if one.what != "late"]
    assert not wrong, wrong
    assert report.expected == report.alerted == report.recovered == 3 * len(stage.scripts)


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
