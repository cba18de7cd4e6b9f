"""The world in which all watches are at work at once, and what is watched there."""

import os
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from mimawari.app.judges import books as check_books
from mimawari.app.judges import hot, prices, rentals, streams
from mimawari.app.judges.streams_plan import Script
from mimawari.kernel.clock import ScaledClock
from mimawari.sim.chance import chance_of
from mimawari.sim.sites.google_books.site import Books
from mimawari.sim.sites.mercari.site import MarketSite
from mimawari.sim.sites.webhooks import Hooks
from mimawari.sim.sites.yahoo_realestate.names import AREAS
from mimawari.sim.sites.yahoo_realestate.site import Rentals
from mimawari.sim.sites.youtube.programme import Programme, Shot
from mimawari.sim.sites.youtube.site import Live
from mimawari.sim.world import World
from mimawari.store.sql import SqlStore
from mimawari.watches.books import jobs as book_jobs
from mimawari.watches.books.models import Search
from mimawari.watches.hot import franchises
from mimawari.watches.hot.models import NewIp
from mimawari.watches.prices import products
from mimawari.watches.rentals import lists
from mimawari.watches.rentals.models import MOST_ROOMS
from mimawari.watches.streams.models import Config
from tests.faults.all_world import Given

SEED = 7
SPAN = timedelta(days=float(os.environ.get("MIMAWARI_FAULTS_DAYS", "3")))
"""Less where somebody wants to see soon that it runs at all."""
PRODUCTS = prices.SETTINGS[-8:]
KEYWORDS = [
    word for word in hot.list_keywords(20) if word not in {one.keyword for one in prices.SETTINGS}
][:10]
MINUTE = timedelta(minutes=1)
PROGRAMME_EVERY = timedelta(hours=6)
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
    moments: list[rentals.Moment] = field(default_factory=list)
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
        await franchises.add_ips(
            tx, [NewIp(name=word, keyword=word) for word in KEYWORDS], settings, now
        )
        for one in PRODUCTS:
            await products.add_product(tx, one.keyword, one, settings, now)
        for area in AREAS:
            url = f"{given.address}/rent/search/{area.path}/"
            await lists.add_list(tx, url, MOST_ROOMS, rentals.EVERY, settings, now)
        for search in stage.searches:
            await book_jobs.add_job(tx, search, settings, now)
    await streams.add_monitors(store, given.address, stage.scripts, now)
