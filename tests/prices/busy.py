"""A judge of busy products: it knows the world, the site's log, and what the API tells.

It shares no rule with the watch. What the site has shown is found by making each request of its
log again on a market of its own, at the moment of the request.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import parse_qs

import httpx2
from sqlalchemy import event, text

from mimawari.app.judges.virtual_run import START
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.deliverer import in_the_log
from mimawari.kernel.rounds import Rounds
from mimawari.kernel.values import Limit
from mimawari.net.http import Fetcher
from mimawari.net.ways import open_ways
from mimawari.sim.sites.mercari.api import cut
from mimawari.sim.sites.mercari.items import FRANCHISES, Franchise
from mimawari.sim.sites.mercari.lives import Kind
from mimawari.sim.sites.mercari.market import ON_SALE, SOLD, Market, Wanted
from mimawari.sim.sites.mercari.observed import Moments
from mimawari.sim.sites.mercari.site import MarketSite
from mimawari.sim.world import World
from mimawari.store.sql.link import NearLink
from mimawari.watches.prices import watch
from tests.app.ground import Api, open_api

ADDRESS = "http://market.test"
DETAILS = "prices.syncDetail"
SEED = 1
HOUR = timedelta(hours=1)
STEP = timedelta(minutes=15)
GONE_FOR = timedelta(minutes=75)
UNSEEN_FOR = timedelta(hours=24)
FAR = timedelta(days=99)
ROWS = (
    "SELECT external_id FROM mercari_crawl_results"
    " WHERE product_id = :product_id AND selling_status = 1 ORDER BY price, id"
)


@dataclass(frozen=True, slots=True)
class Target:
    """A product of one franchise, and its target in percent of what such things sell for."""

    franchise: Franchise
    percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How busy the market is, and how many own pages may be read."""

    targets: Sequence[Target]
    details_a_minute: int
    span: timedelta
    crowd: int = 1


@dataclass(slots=True)
class Witness:
    """What the site has shown so far, by its log and a market that is looked at again."""

    market: Market
    clock: Moments
    after: str = "0"
    """Up to where the site's log was read."""
    seen_at: dict[str, datetime] = field(default_factory=dict)
    price_yen: dict[str, int] = field(default_factory=dict)
    on_page: dict[str, set[str]] = field(default_factory=dict)
    looked_at: dict[str, datetime] = field(default_factory=dict)
    """When the own page of each item was asked for last."""
    others: int = 0
    """How many own pages were of sales, or were looked at again within two hours."""

    def read(self, world: World) -> None:
        """Look at everything again that was asked for since."""
        while True:
            asked = {"part": "market", "after": self.after, "limit": "10000"}
            found = world.log.list(asked)
            for one in found["seen"]:
                self._read_request(one)
            if not found["seen"]:
                return
            self.after = str(found["next"])

    def _read_request(self, one: Mapping[str, Any]) -> None:
        self.clock.at = datetime.fromisoformat(one["at"])
        if one["searched"]:
            self._read_page(**one["searched"])
        elif one["path"].startswith(("/items/get", "/v1/marketplaces")):
            asked = parse_qs(one["query"]).get("id", [one["path"].split("/")[-1]])
            self._read_item(asked[0])

    def _read_page(self, *, keyword: str, statuses: list[str], page: int) -> None:
        kinds = ON_SALE if statuses == ["on_sale"] else SOLD
        found = cut(self.market.search(Wanted(keyword=keyword, statuses=kinds)), keyword, page)
        if kinds is ON_SALE and page == 0:
            self.on_page[keyword] = set()
        for item in found.items:
            if kinds is ON_SALE and item.goods.kind is not Kind.NO_PRICE:
                self._see(item.goods.id, item.price_yen)
                self.on_page[keyword].add(item.goods.id)

    def _read_item(self, item_id: str) -> None:
        item = self.market.find(item_id)
        is_there = item is not None and item.status in ON_SALE
        if item is not None and is_there:
            self._see(item_id, item.price_yen)
        again = self.clock.at - self.looked_at.get(item_id, START - FAR) < 2 * HOUR
        self.others += not is_there or again
        self.looked_at[item_id] = self.clock.at

    def _see(self, item_id: str, price_yen: int) -> None:
        self.seen_at[item_id] = self.clock.at
        self.price_yen[item_id] = price_yen


@dataclass(slots=True)
class Judge:
    """Compares what the API tells with what is really so, and collects what is wrong."""

    scale: Scale
    world: World
    market: Market
    api: Api
    clock: VirtualClock
    witness: Witness
    wrong: list[str] = field(default_factory=list)
    ages: list[tuple[timedelta, timedelta]] = field(default_factory=list)
    """How long the longest unseen row was not looked at, and how long the limit allows."""
    outside: int = 0
    alerts: int = 0
    unsaid: dict[int, tuple[str, datetime]] = field(default_factory=dict)

    async def look(self) -> None:
        """Look at everything once."""
        self.witness.read(self.world)
        for number, target in enumerate(self.scale.targets, 1):
            rows = await self._list_on_sale(number)
            self._check_cheapest(rows)
            self._check_unseen(rows, target.franchise.keyword)
            worth = await self._get(f"/products/{number}/market")
            alerts = (await self._get("/prices/alerts", product_id=number, limit=200))["alerts"]
            self.alerts = max(self.alerts, len(alerts))
            self._check_named(worth, [one for one in alerts if one["is_open"]])
            self._check_told(number, target, {one["external_id"] for one in alerts})

    async def _get(self, path: str, **given: Any) -> Any:
        response = await self.api.http.get(f"/api{path}", params=given)
        assert response.status_code == 200, response.text
        return response.json()

    async def _list_on_sale(self, number: int) -> list[str]:
        """List the items that are on sale by the watch's own rows, the cheapest first."""
        async with self.api.store.read() as reader:
            rows = await reader.execute(text(ROWS), {"product_id": number})
            return list(rows.scalars())

    def _gone_for(self, item_id: str) -> timedelta:
        item = self.market.items().get(item_id)
        if item is None:
            return FAR
        if item.status in ON_SALE:
            return timedelta()
        return timedelta(seconds=self.clock.now().timestamp() - item.updated)

    def _unseen_for(self, item_id: str) -> timedelta:
        return self.clock.now() - self.witness.seen_at.get(item_id, START - FAR)

    def _check_cheapest(self, rows: Sequence[str]) -> None:
        for item_id in rows[:10]:
            gone_for = self._gone_for(item_id)
            if gone_for > GONE_FOR:
                self._complain(f"{item_id} of the ten cheapest is gone for {gone_for}")

    def _check_unseen(self, rows: Sequence[str], keyword: str) -> None:
        shown = self.witness.on_page.get(keyword, set())
        outside = [item_id for item_id in rows if item_id not in shown]
        looked = self.witness.looked_at
        ages = [
            self.clock.now() - max(looked.get(one, START), self.witness.seen_at.get(one, START))
            for one in outside
        ]
        self.outside = max(self.outside, len(outside))
        allowed = self._allowed()
        self.ages.append((max(ages, default=timedelta()), allowed))
        if ages and max(ages) > allowed:
            self._complain(f"a row of {len(outside)} waits for {max(ages)}, not {allowed}")

    def _allowed(self) -> timedelta:
        """Return in what time the limit allows all rows outside the pages to be asked after.

        What else the own pages were needed for (sales without a date, and looking again at what
        was looked at within two hours, being cheap) is counted in the log.
        """
        elapsed = max(HOUR, self.clock.now() - START)
        pages = self.scale.details_a_minute * (elapsed / timedelta(minutes=1))
        left_an_hour = max(1.0, (pages - self.witness.others) / (elapsed / HOUR))
        # Two crawls: one that notices what left the pages, and one that orders anew.
        return self.outside / left_an_hour * HOUR + 2 * HOUR

    def _check_named(self, worth: Mapping[str, Any], alerts: Sequence[Mapping[str, Any]]) -> None:
        named = [one for one in (worth["cheapest"], worth["doubtful"], *alerts) if one]
        for one in named:
            if self._unseen_for(one["external_id"]) > UNSEEN_FOR:
                self._complain(f"{one['external_id']} is named, and was not seen for a day")

    def _check_told(self, number: int, target: Target, told: set[str]) -> None:
        """Insist that the cheapest that is there and was shown for the target has been told."""
        there = [
            (self.witness.price_yen[item.goods.id], item.goods.id)
            for item in self.market.search(
                Wanted(keyword=target.franchise.keyword, statuses=ON_SALE)
            )
            if item.goods.id in self.witness.seen_at
            and self._unseen_for(item.goods.id) < UNSEEN_FOR
        ]
        price_yen, item_id = min(there, default=(0, ""))
        has_told = any(known in told and yen <= price_yen for yen, known in there)
        if not item_id or price_yen > self.target_yen(target) or has_told:
            self.unsaid.pop(number, None)
            return
        known, since = self.unsaid.get(number, (item_id, self.clock.now()))
        self.unsaid[number] = (item_id, since if known == item_id else self.clock.now())
        if self.clock.now() - self.unsaid[number][1] > GONE_FOR:
            self._complain(f"{item_id} for {price_yen} yen was not told")

    def target_yen(self, target: Target) -> int:
        """Return a target in yen, by what was sold when the watch began."""
        return targets_of(self.scale)[target.franchise.key]

    def _complain(self, what: str) -> None:
        self.wrong.append(f"{self.clock.now():%d. %H:%M} {what}")


_TARGETS: dict[int, dict[str, int]] = {}


def targets_of(scale: Scale) -> dict[str, int]:
    """Return the targets in yen of all franchises, from what the world had sold by then."""
    if id(scale) not in _TARGETS:
        market = Market(Moments(START), SEED, _franchises(scale), scale.crowd)
        _TARGETS[id(scale)] = {
            one.franchise.key: int(
                median(
                    item.price_yen
                    for item in market.search(Wanted(keyword=one.franchise.keyword, statuses=SOLD))
                )
                * one.percent
                / 100
            )
            for one in scale.targets
        }
    return _TARGETS[id(scale)]


def _franchises(scale: Scale) -> list[Franchise]:
    return [one for one in FRANCHISES if one in [target.franchise for target in scale.targets]]


@asynccontextmanager
async def open_judge(scale: Scale, url: str, folder: Path) -> AsyncIterator[tuple[Judge, Rounds]]:
    """Watch products of a busy market in virtual time, and judge what the API tells of them."""
    clock = VirtualClock(START)
    site = MarketSite(clock, SEED, _franchises(scale), scale.crowd)
    world = World(clock, (site,), SEED)
    detail = Limit(DETAILS, count=scale.details_a_minute, per=timedelta(minutes=1))
    declared: Any = watch.limits
    kept = [one for one in declared if one.name != DETAILS]
    slower = replace(watch, limits=(*kept, detail))
    settings: dict[str, Any] = {"mercari_api_url": ADDRESS, "mercari_url": ADDRESS}
    async with open_api(url, folder, clock=clock, watches=(slower,), **settings) as api:
        store = api.store
        # Threads are for those who must not wait; here time itself does.
        store.database.link = NearLink(_unsynced(store.database.link.engine))
        inside = httpx2.ASGITransport(app=world)
        async with open_ways(api.system.settings, store, clock, inside=inside) as ways:
            http = partial(Fetcher, ways)
            rounds = Rounds(store, clock, api.system.watches, in_the_log(), http)
            moments = Moments(START)
            again = Market(moments, SEED, _franchises(scale), scale.crowd)
            judge = Judge(scale, world, site.market, api, clock, Witness(again, moments))
            for target in scale.targets:
                setting = {
                    "keyword": target.franchise.keyword,
                    "target_price": judge.target_yen(target),
                }
                body = {"name": target.franchise.key, "setting": setting}
                assert (await api.http.post("/api/products", json=body)).status_code == 201
            yield judge, rounds


def _unsynced(engine: Any) -> Any:
    """Have a file written without waiting for the disk, which a power cut alone could tell."""

    @event.listens_for(engine, "connect")
    def hurry(connection: Any, _record: Any) -> None:
        connection.execute("PRAGMA synchronous = OFF")

    engine.dispose()
    return engine


async def watch_and_judge(scale: Scale, url: str, folder: Path) -> Judge:
    """Let time pass, and judge four times an hour, each time when what was due is done."""
    async with open_judge(scale, url, folder) as (judge, rounds):
        end = judge.clock.now() + scale.span
        while judge.clock.now() < end:
            await rounds.pass_time(STEP)
            await judge.look()
        return judge
