"""The rentals watch at work on the simulated site, in virtual time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import httpx2
from sqlalchemy import select

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.context import OpenHttp
from mimawari.kernel.deliverer import in_the_log
from mimawari.kernel.job import JobView, State
from mimawari.kernel.rounds import Rounds
from mimawari.kernel.watch import Watches
from mimawari.net.http import Fetcher
from mimawari.net.ways import open_ways
from mimawari.settings import DEFAULTS, Settings
from mimawari.sim.sites.yahoo_realestate.site import Rentals
from mimawari.sim.world import World
from mimawari.store.sql import SqlStore
from mimawari.watches.rentals import lists, tasks, watch
from mimawari.watches.rentals.models import RentalList
from mimawari.watches.rentals.tables import changes, properties

EVENING = datetime(2026, 6, 1, 12, tzinfo=UTC)
ADDRESS = "http://rentals.test"
AREA = f"{ADDRESS}/rent/search/06/27/27991/"
"""The smallest of the site's areas: one page."""
LARGE_AREA = f"{ADDRESS}/rent/search/03/13/13991/"
HOUR = timedelta(hours=1)


class Scene:
    """The watch, the site it reads, and a way to let time pass."""

    def __init__(self, store: SqlStore, world: World, rounds: Rounds, http: OpenHttp) -> None:
        self.store = store
        self.http = http
        self.world = world
        self.rounds = rounds

    @property
    def clock(self) -> VirtualClock:
        """The clock of all."""
        return self.rounds.clock

    @property
    def settings(self) -> Settings:
        """What the watch goes by."""
        return self.rounds.watches.settings

    def order(self, **order: Any) -> None:
        """Have the site misbehave."""
        self.world.orders.add({"part": "rentals", **order})

    def asked(self, prefix: str = "/rent/") -> list[dict[str, Any]]:
        """List what the site was asked for, in order, by its own log."""
        found = self.world.log.list({"part": "rentals", "limit": "10000"})["seen"]
        return [one for one in found if one["path"].startswith(prefix)]

    def details(self) -> list[dict[str, Any]]:
        """List the details that the site was asked for."""
        return self.asked("/rent/detail/")

    async def walk(self, url: str = AREA, limit: int = 100, **given: Any) -> RentalList:
        """Have a list walked over, and let a little time pass."""
        async with self.store.edit() as tx:
            now = self.clock.now()
            found = await lists.add_list(tx, url, limit, None, self.settings, now)
            tx.put(lists.walk_job(lists.walk_of(found, "test", limit)))
        await self.pass_time(**(given or {"minutes": 5}))
        return found

    async def ask(self, property_id: str) -> None:
        """Have one property read when its turn comes."""
        url = f"{ADDRESS}/rent/detail/{property_id}/"
        await self.store.queue.put([tasks.detail_job(property_id, url)])

    async def pass_time(self, **span: float) -> None:
        """Let time pass."""
        await self.rounds.pass_time(timedelta(**span))

    async def jobs(self, kind: str = tasks.DETAIL, state: State | None = None) -> list[JobView]:
        """List jobs, oldest first."""
        return (await self.store.queue.list(500, kind=kind, state=state))[::-1]

    async def rows(self) -> dict[str, Any]:
        """Find all properties by their ids."""
        async with self.store.read() as reader:
            found = await reader.execute(select(properties))
            return {row.property_id: row for row in found}

    async def story(self, property_id: str) -> list[tuple[str, str | None, str | None]]:
        """List what changed about a property, in order."""
        mine = changes.c.property_id == property_id
        query = select(changes).where(mine).order_by(changes.c.id)
        async with self.store.read() as reader:
            rows = await reader.execute(query)
            return [(row.kind, row.old_value, row.new_value) for row in rows]


@asynccontextmanager
async def open_scene(store: SqlStore, clock: VirtualClock, **given: Any) -> AsyncIterator[Scene]:
    """Set the watch to work on a store, on a site of its own."""
    settings = DEFAULTS.model_copy(update={"rentals_url": ADDRESS, **given})
    world = World(clock, (Rentals(clock, 1),), 1)
    inside = httpx2.ASGITransport(app=world)
    async with open_ways(settings, store, clock, inside=inside) as ways:
        watches = Watches([watch], settings)
        http = partial(Fetcher, ways)
        rounds = Rounds(store, clock, watches, in_the_log(), http)
        yield Scene(store, world, rounds, http)
