"""Lays the demo's last thirty days in: the world as it was, kept by the watches' own functions.

Nobody has to be polite to the past: it is asked in this process, without queue and limits.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import ParamSpec, TypeVar

import httpx2

from mimawari.app.demo.cast import AREA, SEARCHES, STARTS_AT, add_past
from mimawari.app.ops import open_store, upgrade_tables
from mimawari.columns.stamps import write_stamp
from mimawari.errors import Gone
from mimawari.ids import new_id
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.deliverer import in_the_log
from mimawari.kernel.ports import Tx
from mimawari.kernel.rounds import Rounds
from mimawari.kernel.watch import Watches
from mimawari.net.exchange import Ask, exchange
from mimawari.net.page import Known, Page, Site
from mimawari.net.verdict import judge
from mimawari.settings import Settings
from mimawari.sim.sites.mercari import market as sim_market
from mimawari.sim.sites.mercari.lives import Item as SimItem
from mimawari.sim.sites.mercari.market import Market, Wanted
from mimawari.sim.sites.mercari.replies import search_entry
from mimawari.sim.sites.mercari.site import MarketSite
from mimawari.sim.world import World
from mimawari.sites import mercari, yahoo_realestate
from mimawari.sites.mercari.replies import parse_search
from mimawari.store.sql import SqlStore
from mimawari.store.sql.link import NearLink
from mimawari.watches.books import jobs
from mimawari.watches.books import watch as books_watch
from mimawari.watches.hot import models as hot_models
from mimawari.watches.hot import queries as hot_reads
from mimawari.watches.hot import tasks as hot_tasks
from mimawari.watches.prices import alerts, products
from mimawari.watches.prices import models as prices_models
from mimawari.watches.prices import sync as prices_sync
from mimawari.watches.prices.tasks import make_found
from mimawari.watches.rentals import rules as rentals_rules
from mimawari.watches.rentals import sync as rentals_sync
from mimawari.watches.rentals.sync import Look

DAY = timedelta(days=1)
DAYS = 30
FINE_FOR, FINE_STEP = DAY, timedelta(hours=3)
"""The last day is laid in more finely, for what is shown by the hour."""
SHOWN = 120
"""So many items are on a page of the market."""
PRODUCTS_EVERY, ROOMS_EVERY, LIST_EVERY, BOOKS_EVERY = 3 * DAY, 4 * DAY, 8 * DAY, 6 * DAY
READ_ROOMS = 8
MANY = 1000
SIDES = (sim_market.ON_SALE, sim_market.SOLD)

P = ParamSpec("P")
T = TypeVar("T")
Tell = Callable[[float], None]
"""Is told how much of the past is there, from 0 to 1."""


class Inside:
    """Asks the world in this process."""

    def __init__(self, world: World) -> None:
        self._way = httpx2.ASGITransport(app=world)
        self._clock = world.clock

    async def fetch(
        self,
        site: Site,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        known: Known | None = None,
    ) -> Page:
        """Return the page, or raise the error that says what became of the request."""
        del known
        reply = await exchange(self._way, Ask(method, httpx2.URL(url), headers or {}, body), site)
        page = Page(
            url=url,
            status=reply.status,
            headers=reply.headers,
            body=reply.body,
            fetched_at=self._clock.now(),
        )
        verdict = (site.judge(page) if site.judge else None) or judge(page)
        error = verdict.error(site.name, page.body)
        if error is not None:
            raise error
        return replace(page, outcome=verdict.outcome)

    async def read(self, parse: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a parser; what it reads is our own."""
        return parse(*args, **kwargs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The first page of each side of a search, and whether there is more."""

    items: Sequence[mercari.Item]
    capped_on_sale: bool
    capped_sold: bool


class Stall:
    """What the market shows of a search, read as the site's own reader reads it."""

    def __init__(self, market: Market, url: str) -> None:
        self._market = market
        self._url = url
        self._read: dict[tuple[str, int], mercari.Item] = {}

    def show(self, wanted: Wanted) -> Shown:
        """Show the newest of both sides, a page of each."""
        on_sale, sold = (self._market.search(wanted.of(side)) for side in SIDES)
        return Shown(
            items=self._make([*on_sale[:SHOWN], *sold[:SHOWN]]),
            capped_on_sale=len(on_sale) > SHOWN,
            capped_sold=len(sold) > SHOWN,
        )

    def find(self, item_id: str) -> mercari.Item | None:
        """Find an item by its id; one that is gone is None."""
        found = self._market.find(item_id)
        return None if found is None else self._make([found])[0]

    def _make(self, found: Sequence[SimItem]) -> list[mercari.Item]:
        keys = [(item.goods.id, item.updated) for item in found]
        new = [item for item, key in zip(found, keys, strict=True) if key not in self._read]
        if new:
            entries = [search_entry(item, self._url) for item in new]
            reply = {"items": entries, "meta": {"nextPageToken": ""}}
            read = {one.id: one for one in parse_search(json.dumps(reply).encode()).items}
            named = {item.goods.id: item.updated for item in new}
            self._read |= {(key, named[key]): one for key, one in read.items()}
        return [self._read[key] for key in keys if key in self._read]


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """Lays in what each watch would have found at a moment."""

    settings: Settings
    clock: VirtualClock
    store: SqlStore
    stall: Stall
    inside: Inside
    rounds: Rounds
    rooms: dict[str, str] = field(default_factory=dict)

    async def count_franchises(self, tx: Tx) -> None:
        """Count what has come and gone of every franchise."""
        now, url = self.clock.now(), self.settings.mercari_url
        for ip in await hot_reads.list_ips(tx, MANY):
            shown = self.stall.show(Wanted(keyword=ip.keyword))
            crawl = hot_models.Crawl(
                ip_id=ip.id,
                task_id=new_id(),
                crawled_at=now,
                items=tuple(hot_tasks.make_seen(item, url) for item in shown.items),
                coverage=hot_models.Coverage(
                    pages_asked=2,
                    pages_read=2,
                    capped_on_sale=shown.capped_on_sale,
                    capped_sold=shown.capped_sold,
                ),
            )
            await hot_tasks.take_in(tx, crawl, self.settings, now)

    async def look_at_products(self, tx: Tx) -> None:
        """Keep what is on sale and was sold of every product, with when it was sold."""
        for product in await products.list_products(tx, MANY):
            crawl = self._crawl(product)
            applied = await prices_sync.apply_crawl(tx, crawl, product)
            for result_id in applied.follow_ups:
                await self._follow_up(tx, product.id, result_id)
            await alerts.sync_alerts(tx, product, self.settings, crawl.crawled_at)

    def _crawl(self, product: prices_models.Product) -> prices_models.Crawl:
        setting = product.setting
        shown = self.stall.show(
            Wanted(keyword=setting.keyword, exclude=" ".join(setting.exclusions))
        )
        found = [make_found(item, self.settings.mercari_url) for item in shown.items]
        priced = tuple(one for one in found if one is not None)
        sight = prices_models.Sight(
            pages_asked=2,
            pages_read=2,
            capped_on_sale=shown.capped_on_sale,
            capped_sold=shown.capped_sold,
            unpriced=len(found) - len(priced),
        )
        return prices_models.Crawl(
            product_id=product.id,
            task_id=new_id(),
            crawled_at=self.clock.now(),
            found=priced,
            sight=sight,
        )

    async def _follow_up(self, tx: Tx, product_id: int, result_id: int) -> None:
        """Keep what an item's own page says, or that it is gone."""
        now = self.clock.now()
        row = await prices_sync.find_result(tx, result_id)
        item = self.stall.find(row.external_id)
        one = make_found(item, self.settings.mercari_url) if item is not None else None
        if item is not None and one is not None and item.updated_at is not None:
            await prices_sync.save_detail(tx, row, one, write_stamp(item.updated_at), now)
        else:
            gone = {row.external_id: "its page is gone"}
            await prices_sync.take_out(tx, product_id, gone, prices_sync.GONE, now)

    async def read_list(self, tx: Tx) -> None:
        """Keep the rooms of a list."""
        url = f"{self.settings.rentals_url}/rent/search/{AREA.path}/"
        page = await yahoo_realestate.fetch_list(
            self.inside, url, site_url=self.settings.rentals_url
        )
        seen = [rentals_rules.seen_on_list(room) for room in page.rooms[:READ_ROOMS]]
        await rentals_sync.keep_seen(tx, seen, self._look())
        self.rooms.update({one.property_id: one.url for one in seen})

    async def read_rooms(self, tx: Tx) -> None:
        """Keep what each known room's own page says."""
        for property_id, url in [*self.rooms.items()]:
            try:
                found = await yahoo_realestate.fetch_detail(
                    self.inside, url, site_url=self.settings.rentals_url
                )
            except Gone:
                del self.rooms[property_id]
                await rentals_sync.mark_gone(tx, property_id, url, self._look())
                continue
            await rentals_sync.keep_seen(tx, [rentals_rules.seen_on_page(found)], self._look())

    def _look(self) -> Look:
        return Look(job_id=new_id(), at=self.clock.now(), zone=self.settings.zone)

    async def search_books(self) -> None:
        """Run every search for books by its own job, mail included."""
        async with self.store.edit() as tx:
            tx.put(*(jobs.page_job(search.name) for search in SEARCHES))
        await self.rounds.work()


async def lay_past(settings: Settings, world: World, clock: VirtualClock, tell: Tell) -> None:
    """Lay the past in, up to the demo's start, in a store that is closed then."""
    store = open_store(settings, clock)
    # Threads are for those who must not wait; here time itself does.
    store.database.link = NearLink(store.database.link.engine)
    try:
        await upgrade_tables(settings, store)
        past = _open(settings, world, clock, store)
        async with store.edit() as tx:
            await add_past(tx, settings, clock.now())
        for at in list_moments():
            await _come_to(past, at)
            tell(1 - (STARTS_AT - at) / (DAYS * DAY))
    finally:
        await store.close()


def _open(settings: Settings, world: World, clock: VirtualClock, store: SqlStore) -> Past:
    inside = Inside(world)
    watches = Watches([books_watch], settings)
    destinations = {**in_the_log(), **watches.open_destinations(store, clock)}
    return Past(
        settings=settings,
        clock=clock,
        store=store,
        stall=Stall(world.find(MarketSite).market, settings.mercari_url),
        inside=inside,
        rounds=Rounds(store, clock, watches, destinations, lambda _: inside),
    )


async def _come_to(past: Past, at: datetime) -> None:
    """Lay in what was found at a moment."""
    await past.clock.advance(at - past.clock.now())
    since = at - (STARTS_AT - DAYS * DAY)
    async with past.store.edit() as tx:
        await past.count_franchises(tx)
        if since % PRODUCTS_EVERY == timedelta(0):
            await past.look_at_products(tx)
        if since % LIST_EVERY == timedelta(0):
            await past.read_list(tx)
        if since % ROOMS_EVERY == timedelta(0):
            await past.read_rooms(tx)
    if since % BOOKS_EVERY == timedelta(0):
        await past.search_books()
    await past.rounds.deliverer.tick()


def list_moments() -> Iterator[datetime]:
    """List when the past was looked at."""
    at = STARTS_AT - DAYS * DAY
    while at < STARTS_AT:
        yield at
        at += DAY if at < STARTS_AT - FINE_FOR else FINE_STEP
