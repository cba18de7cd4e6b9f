"""Two watches at work on simulated sites in virtual time, with their pages and their messages."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx2

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.rounds import Rounds
from mimawari.net.http import Fetcher
from mimawari.net.ways import open_ways
from mimawari.notify import watch as notify
from mimawari.sim.sites.mercari.site import MarketSite
from mimawari.sim.sites.yahoo_realestate.site import Rentals
from mimawari.sim.world import World
from mimawari.store.sql.link import NearLink
from mimawari.watches.prices import watch as prices
from mimawari.watches.rentals import watch as rentals
from tests.notify.catcher import Catcher, open_catcher
from tests.web.ground import Browser, open_site

START = datetime(2026, 6, 1, 12, 30, tzinfo=UTC)
ROOMS, MARKET = "http://rentals.test", "http://market.test"


@dataclass(frozen=True, slots=True)
class Stage:
    """Somebody who looks at two watches at work, the sites they ask, and the messages sent."""

    visitor: Browser
    world: World
    rounds: Rounds
    catcher: Catcher

    async def get(self, path: str, **given: Any) -> Any:
        """Get what the API answers."""
        answer = await self.visitor.api.http.get(f"/api{path}", params=given)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def add(self, path: str, **body: Any) -> Any:
        """Add something through the API, and return it."""
        answer = await self.visitor.api.http.post(f"/api{path}", json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()

    async def notify(self) -> None:
        """Have somebody told of all that happens."""
        await self.add("/notify/targets", name="all", url=self.catcher.url(), language="en")


@asynccontextmanager
async def open_stage(url: str, folder: Path) -> AsyncIterator[Stage]:
    """Set both watches to work, with somebody who is logged in."""
    clock = VirtualClock(START)
    world = World(clock, (Rentals(clock, 1), MarketSite(clock, 1)), 1)
    async with open_catcher() as catcher:
        given: dict[str, Any] = {
            "rentals_url": ROOMS,
            "mercari_api_url": MARKET,
            "mercari_url": MARKET,
            "allow_hosts": catcher.settings.allow_hosts,
        }
        watches = (rentals, prices, notify)
        async with open_site(url, folder, clock=clock, watches=watches, **given) as visitor:
            assert (await visitor.log_in()).status_code == 303
            system = visitor.api.system
            store = system.store
            # Threads are for those who must not wait; here time itself does.
            store.database.link = NearLink(store.database.link.engine)
            inside = httpx2.ASGITransport(app=world)
            async with open_ways(system.settings, store, clock, inside=inside) as ways:
                http = partial(Fetcher, ways)
                told = system.watches.open_destinations(store, clock)
                rounds = Rounds(store, clock, system.watches, told, http)
                yield Stage(visitor, world, rounds, catcher)
