"""The ground of the rentals watch's fault tests: a site, and workers on it that die."""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog
from sqlalchemy import select

from mimawari.kernel.clock import ScaledClock
from mimawari.kernel.ports import Clock
from mimawari.kernel.scheduler import Scheduler
from mimawari.kernel.values import Limit
from mimawari.kernel.watch import Watch, Watches
from mimawari.kernel.worker import Worker
from mimawari.net.http import Fetcher
from mimawari.net.ways import open_ways
from mimawari.settings import DEFAULTS, Settings
from mimawari.sim.sites.yahoo_realestate.site import Rentals
from mimawari.sim.world import World
from mimawari.store.sql import SqlStore
from mimawari.watches.rentals import lists, tasks, watch
from mimawari.watches.rentals.site_check import KIND
from mimawari.watches.rentals.tables import changes, properties, snapshots
from tests.faults.hot_world import ShiftedClock, die_at
from tests.faults.lines import die_before
from tests.faults.world import running_site
from tests.stores import open_store

SECOND = timedelta(seconds=1)
AREA = "/rent/search/06/27/27991/"


def hasty() -> Watch:
    """Return the watch with leases and limits so short that tests need not wait for them."""
    hurried = tuple(
        replace(one, lease_for=SECOND, attempts=1000, backoff=(SECOND / 5,)) for one in watch.tasks
    )
    limits = tuple(Limit(name, count=1000, per=SECOND) for name in (tasks.DETAIL, tasks.LIST))
    return Watch(name="rentals", tasks=hurried, limits=limits, breakers=watch.breakers)


def settings_for(address: str) -> Settings:
    """Return settings that lead to the site."""
    host = address.removeprefix("http://")
    return DEFAULTS.model_copy(update={"rentals_url": address, "allow_hosts": (host,)})


async def work_hastily(url: str, address: str, shift: timedelta, statement: int | None) -> None:
    """Run a hasty worker until killed, by itself or by another."""
    clock = ShiftedClock(shift)
    store = open_store(url, clock)
    if statement is not None:
        die_at(store, statement)
    await _work(store, clock, Watches([hasty()], settings_for(address)))


async def work_and_check(url: str, address: str, shift: timedelta, statement: int | None) -> None:
    """Run a hasty worker that makes control requests until killed, by itself or by another."""
    clock = ShiftedClock(shift)
    store = open_store(url, clock)
    if statement is not None:
        die_at(store, statement)
    checking = replace(hasty(), controls=watch.controls)
    await _work(store, clock, Watches([checking], settings_for(address)))


async def gather_404s(url: str, address: str, shift: timedelta) -> None:
    """Run a hasty worker that leaves the control request to others, until killed."""
    clock = ShiftedClock(shift)
    others = tuple(one for one in hasty().tasks if one.kind != KIND)
    gathering = replace(hasty(), tasks=others, controls=watch.controls)
    await _work(open_store(url, clock), clock, Watches([gathering], settings_for(address)))


async def work_until_line(url: str, address: str, shift: timedelta, line: tuple[str, int]) -> None:
    """Run a hasty worker that makes control requests until a line of the control's code is next."""
    die_before(*line)
    await work_and_check(url, address, shift, None)


async def work_slowly(url: str, address: str, clocked: tuple[float, datetime], name: str) -> None:
    """Run the watch as it is, scheduler and worker, on a clock that all share, until killed.

    The site's log knows it by its name.
    """
    clock = ScaledClock(*clocked)
    store = open_store(url, clock)
    settings = settings_for(address).model_copy(update={"contact": name})
    watches = Watches([watch], settings)
    scheduling = asyncio.create_task(Scheduler(store, clock, watches).run())
    await _work(store, clock, watches)
    await scheduling


async def _work(store: SqlStore, clock: Clock, watches: Watches) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    async with open_ways(watches.settings, store, clock) as ways:
        http = partial(Fetcher, ways)
        await Worker(store, clock, watches, name=f"w{os.getpid()}", http=http).run()


async def kept(store: SqlStore, address: str) -> dict[str, Any]:
    """Tell all that was kept of properties, but for when it happened and where the site is."""

    def plain(value: Any) -> Any:
        return value.replace(address, "") if isinstance(value, str) else value

    times = {column.name for column in properties.c if column.name.endswith("_at")}
    async with store.read() as reader:
        rows = [row._asdict() for row in await reader.execute(select(properties))]
        told = (await reader.execute(select(changes))).all()
        shots = (await reader.execute(select(snapshots))).all()
    return {
        "properties": {
            row["property_id"]: {key: plain(row[key]) for key in row if key not in times}
            for row in rows
        },
        "changes": Counter(
            (row.property_id, row.kind, plain(row.old_value), plain(row.new_value)) for row in told
        ),
        "snapshots": Counter((row.property_id, row.status, row.rent_yen) for row in shots),
    }


class Town:
    """A site with a clock of its own."""

    def __init__(self, clock: Clock) -> None:
        self.world = World(clock, (Rentals(clock, 3),), 3)
        self.address = ""

    def asked(self) -> list[dict[str, Any]]:
        """List what the site was asked for, by its own log."""
        found: list[dict[str, Any]] = []
        after = "0"
        while more := self.world.log.list({"part": "rentals", "after": after, "limit": "10000"}):
            if not more["seen"]:
                return found
            found += more["seen"]
            after = str(more["next"])
        return found


@asynccontextmanager
async def opened_town(clock: Clock) -> AsyncIterator[Town]:
    """Serve a site."""
    town = Town(clock)
    async with running_site(town.world) as address:
        town.address = address
        yield town


async def put_round(store: SqlStore, town: Town, area: str = AREA) -> None:
    """Have an area walked over, and every property that is known read."""
    async with store.edit() as tx:
        settings = settings_for(town.address)
        found = await lists.add_list(
            tx, town.address + area, 5000, None, settings, store.database.clock.now()
        )
        tx.put(lists.walk_job(lists.walk_of(found, "test", 5000)))
        rows = await tx.execute(select(properties.c.property_id, properties.c.url))
        tx.put(*(tasks.detail_job(row.property_id, row.url) for row in rows))
