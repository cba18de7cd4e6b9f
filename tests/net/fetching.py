"""The ground of the fetcher's tests: a store, a job's context, and a fetcher over real sockets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2

from mimawari.kernel.context import Context
from mimawari.kernel.ports import Clock
from mimawari.kernel.values import Limit
from mimawari.kernel.watch import Watch, Watches
from mimawari.net.http import Fetcher
from mimawari.net.page import Site
from mimawari.net.ways import Ways, open_ways
from mimawari.settings import Settings
from mimawari.store.sql import SqlStore
from tests.ready import lay_tables

SITE = Site(name="toy", deadline_for=timedelta(seconds=20))
MANY = Limit("many", count=10**9, per=timedelta(seconds=1))
WATCHES = Watches([Watch(name="w", tasks=(), limits=(MANY, Limit("few", 5, timedelta(hours=1))))])


@dataclass(slots=True)
class Ground:
    """What a test asks sites with."""

    store: SqlStore
    clock: Clock
    ways: Ways

    async def fetcher(self, limit: str = "many") -> Fetcher:
        """Return the fetcher of a new job."""
        context = Context(self.store, self.clock, WATCHES, lambda ctx: Fetcher(self.ways, ctx))
        await context.limit(limit, caller="worker")
        fetcher: Fetcher = context.http
        return fetcher


@asynccontextmanager
async def open_ground(
    folder: Path,
    clock: Clock,
    inside: httpx2.AsyncBaseTransport | None = None,
    **given: Any,
) -> AsyncIterator[Ground]:
    """Open a store of one's own and the ways out, with loopback opened unless said otherwise."""
    store = SqlStore(await lay_tables(folder / "mimawari.db"), clock)
    settings = Settings(**{"allow_hosts": ("127.0.0.1",), **given})
    try:
        async with open_ways(settings, store, clock, inside=inside) as ways:
            yield Ground(store, clock, ways)
    finally:
        await store.close()
