"""The ground of the hot watch's fault tests: a market that stands still, and workers that die."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import Any

import structlog
from sqlalchemy import event, select

from mimawari.kernel.clock import Mark, RealClock
from mimawari.kernel.values import Limit
from mimawari.kernel.watch import Watch, Watches
from mimawari.kernel.worker import Worker
from mimawari.net.http import Fetcher
from mimawari.net.ways import open_ways
from mimawari.settings import DEFAULTS, Settings
from mimawari.store.sql import SqlStore
from mimawari.watches.hot import watch
from mimawari.watches.hot.tables import changes, crawls, hours, items
from tests.stores import open_store

SECOND = timedelta(seconds=1)


class ShiftedClock(RealClock):
    """A clock that runs as the real one does, at another hour."""

    def __init__(self, shift: timedelta) -> None:
        super().__init__()
        self._shift = shift

    def now(self) -> datetime:
        """Return the shifted time."""
        return super().now() + self._shift

    def mark(self) -> Mark:
        """Return this moment in true time."""
        real = super().mark()
        return Mark(real.wall + self._shift, real.boot, real.ticks)


def hasty() -> Watch:
    """Return the hot watch with leases so short that tests need not wait for them."""
    tasks = tuple(
        replace(one, lease_for=SECOND, attempts=1000, backoff=(SECOND / 5,)) for one in watch.tasks
    )
    limits = (Limit("hot.crawl", count=1000, per=SECOND),)
    return Watch(name="hot", tasks=tasks, limits=limits, breakers=watch.breakers)


def settings_for(address: str) -> Settings:
    """Return settings that lead to the market."""
    host = address.removeprefix("http://")
    return DEFAULTS.model_copy(
        update={
            "mercari_api_url": address,
            "mercari_url": address,
            "allow_hosts": (host,),
            "hot_pages_on_sale": 2,
            "hot_pages_sold": 2,
        }
    )


def die_at(store: SqlStore, statement: int) -> None:
    """Kill this process just before its so many-th statement."""
    numbers: Iterator[int] = count(1)
    engine: Any = store.database.link.engine

    def hear(*_told: Any) -> None:
        if next(numbers) == statement:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(engine, "before_cursor_execute", hear)


async def work_hot(url: str, address: str, shift: timedelta, statement: int | None) -> None:
    """Run a worker of the hot watch until killed, by itself or by another."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    clock = ShiftedClock(shift)
    store = open_store(url, clock)
    if statement is not None:
        die_at(store, statement)
    settings = settings_for(address)
    async with open_ways(settings, store, clock) as ways:
        watches = Watches([hasty()], settings)
        http = partial(Fetcher, ways)
        await Worker(store, clock, watches, name=f"w{os.getpid()}", http=http).run()


async def counted(store: SqlStore) -> dict[str, Any]:
    """Tell all that was counted and kept, but for the seconds at which it happened."""
    async with store.read() as reader:
        flows = await reader.execute(select(hours).order_by(hours.c.ip_id, hours.c.hour_at))
        stories = await reader.execute(select(changes))
        kept = await reader.execute(select(items))
        rounds = await reader.execute(select(crawls.c.ip_id, crawls.c.inflow, crawls.c.outflow))
        return {
            "flows": [(row.ip_id, row.inflow, row.outflow, row.inflow_total) for row in flows],
            "stories": Counter(
                (row.ip_id, row.source_id, row.kind, row.price_before_yen, row.price_yen)
                for row in stories
            ),
            "items": {
                (row.ip_id, row.source_id): (row.status, row.price_yen, row.title) for row in kept
            },
            "rounds": Counter(tuple(row) for row in rounds),
        }
