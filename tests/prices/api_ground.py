"""The ground of the tests of the prices watch's API: on a socket, with a worker beside it."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx2

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.job import End, Job, JobView, State, Want
from mimawari.kernel.rounds import BLINK_SECONDS, Rounds
from mimawari.kernel.watch import Watches
from mimawari.kernel.worker import ALIVE, ALIVE_FOR
from mimawari.net.http import Fetcher
from mimawari.net.ways import open_ways
from mimawari.sim.sites.mercari.items import FRANCHISES
from mimawari.sim.sites.mercari.site import MarketSite
from mimawari.sim.world import World
from mimawari.watches.prices import tasks, watch
from mimawari.watches.prices.models import Product, SellerType
from mimawari.watches.prices.products import LIST
from tests.app.asking import Asking
from tests.app.beside import Beside
from tests.app.ground import PATIENCE_SECONDS, open_api
from tests.prices.crawling import HOUR, NOON, add_product, apply, found
from tests.prices.test_market import sell

ADDRESS = "http://market.test"
BUSY = FRANCHISES[0].keyword
QUIET = FRANCHISES[-1].keyword
LINES = {"Accept": "application/x-ndjson"}
SOLD_YEN = (900, 950, 1000, 1000, 1000, 1000, 1050, 1101, 9_000_000)
"""What the usual product was sold for; the last one is out of line."""


@dataclass(frozen=True, slots=True)
class Shop(Asking):
    """The API with the prices watch, the market it reads, and a worker that reads only lists."""

    world: World
    waits: Beside
    lists_only: Rounds

    @property
    def clock(self) -> VirtualClock:
        """The clock of all."""
        return self.lists_only.clock

    def order(self, **order: Any) -> None:
        """Have the market misbehave."""
        self.world.orders.add({"part": "market", **order})

    async def add(self, keyword: str = QUIET, **setting: Any) -> Any:
        """Watch a product, by its keyword."""
        body = {"name": keyword, "setting": {"keyword": keyword, **setting}}
        response = await self.post("/products", **body)
        assert response.status_code == 201, response.text
        return response.json()

    async def send(self, method: str, path: str, body: Any) -> Any:
        """Send a body and insist that it is taken."""
        response = await self.http.request(method, f"/api{path}", json=body)
        assert response.status_code == 200, response.text
        return response.json()

    async def say_alive(self) -> None:
        """Let the API know that somebody works, as a worker does each minute."""
        await self.api.store.cache.set(ALIVE, b"test", 10 * ALIVE_FOR)

    async def execute(self, **given: Any) -> httpx2.Response:
        """Ask for crawls, and let a worker work and time pass until it is answered."""
        await self.say_alive()
        asking = self.http.post("/api/crawl/execute", **given)
        return await self.waits.answer(asking, self.lists_only)

    async def until_waiting(self) -> None:
        """Wait until a request waits for time to pass."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not self.waits.sleeping:
                await asyncio.sleep(BLINK_SECONDS)

    async def follow(self, **given: Any) -> list[Mapping[str, Any]]:
        """Ask for crawls and for how far they come, and return each line."""
        response = await self.execute(headers=LINES, **given)
        assert response.status_code == 200, response.text
        assert response.headers["content-type"].startswith("application/x-ndjson")
        return [json.loads(line) for line in response.text.splitlines()]

    async def crawls(self, state: State | None = None) -> list[JobView]:
        """List the crawls of lists, oldest first."""
        return (await self.api.store.queue.list(500, kind=LIST, state=state))[::-1]

    async def claim(self, most: int) -> Sequence[Job]:
        """Claim crawls that wait, as a worker does."""
        want = Want(kind=LIST, most=most, lease_for=HOUR)
        return (await self.api.store.queue.turn((), [want], "test")).jobs

    async def end_crawls(self, state: State) -> None:
        """End the crawls that wait, without any being made."""
        ends = [
            End(id=job.id, token=job.token, state=state, reason="so told")
            for job in await self.claim(100)
        ]
        await self.api.store.queue.turn(ends, (), "test")

    async def sold(self) -> Product:
        """Watch a product of which some were sold, and two are on sale, one of them junk."""
        store = self.api.store
        product = await add_product(store)
        items = [found(f"s{number}", price, sold=True) for number, price in enumerate(SOLD_YEN)]
        shop = found(
            "a", 800, seller_type=SellerType.SHOP, listed_at=NOON - HOUR, name="星くず郵便 =1+1"
        )
        await apply(store, product, 0, *items, shop, found("junk", 10))
        for number, price in enumerate(SOLD_YEN):
            await sell(store, f"s{number}", price, NOON + number * HOUR)
        return product


@asynccontextmanager
async def open_shop(url: str, folder: Path, **given: Any) -> AsyncIterator[Shop]:
    """Serve the API with the prices watch on a database and a market of its own."""
    clock = VirtualClock(NOON + 10 * HOUR)
    waits = Beside(clock)
    settings = {"mercari_api_url": ADDRESS, "mercari_url": ADDRESS, **given}
    async with open_api(url, folder, clock=waits, watches=(watch,), **settings) as api:
        world = World(clock, (MarketSite(clock, 1),), 1)
        inside = httpx2.ASGITransport(app=world)
        some = Watches([replace(watch, tasks=(tasks.crawl_list,))], api.system.settings)
        async with open_ways(api.system.settings, api.store, clock, inside=inside) as ways:
            lists_only = Rounds(api.store, clock, some, {}, partial(Fetcher, ways))
            yield Shop(api, world, waits, lists_only)
