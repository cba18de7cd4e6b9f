"""The part `fetch`: requests per second through all our manners, against a bare client loop."""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from statistics import median

import httpx2
import structlog
from rich.progress import Progress

from bench.report import Part, Row, ratio
from mimawari.kernel.clock import RealClock
from mimawari.kernel.context import Context
from mimawari.kernel.values import Limit
from mimawari.kernel.watch import Watch, Watches
from mimawari.net.http import Fetcher
from mimawari.net.page import Site
from mimawari.net.ways import open_ways
from mimawari.settings import Settings
from mimawari.sim.sites.counting import CountingSite
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade
from tests.sim.ground import serve

RUNS = 3
SECONDS = 2.0
SITE = Site(name="counting")
LIMIT = Limit("bench", count=10**9, per=timedelta(seconds=1))

Ask = Callable[[], Awaitable[object]]


async def requests_per_second(ask: Ask) -> float:
    """Ask one after another for a while."""
    count, start = 0, time.perf_counter()
    while (spent := time.perf_counter() - start) < SECONDS:
        await ask()
        count += 1
    return count / spent


async def measure(folder: Path, progress: Progress) -> tuple[list[float], list[float]]:
    """Measure ours and the bare loop in turns, on one server."""
    ours: list[float] = []
    bare: list[float] = []
    clock = RealClock()
    task = progress.add_task("fetch", total=RUNS * 2)
    store = SqlStore(f"sqlite:///{folder}/bench.db", clock)
    await upgrade(store.database)
    settings = Settings(allow_hosts=("127.0.0.1",))
    async with serve(CountingSite(clock)) as http, open_ways(settings, store, clock) as ways:
        url = f"{http.base_url}/page/a"
        watches = Watches([Watch(name="bench", tasks=(), limits=(LIMIT,))])
        context = Context(store, clock, watches, partial(Fetcher, ways))
        await context.limit("bench", caller="bench")
        async with httpx2.AsyncClient() as client:
            for _ in range(RUNS):
                bare.append(await requests_per_second(partial(client.get, url)))
                progress.advance(task)
                ours.append(await requests_per_second(partial(context.http.fetch, SITE, url)))
                progress.advance(task)
    await store.close()
    return ours, bare


def run(progress: Progress) -> Part:
    """Set ours beside the bare loop."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    with tempfile.TemporaryDirectory(prefix="mimawari-bench-") as folder:
        ours, bare = (median(each) for each in asyncio.run(measure(Path(folder), progress)))
    row = Row(
        bench="fetch",
        engine="sqlite",
        measure="requests_per_second",
        ours=ours,
        peer="bare httpx2",
        peer_value=bare,
        ratio_to_peer=ratio(ours, bare),
        floor=None,
        ratio_to_floor=None,
        runs=RUNS,
    )
    cost = (1 / ours - 1 / bare) * 1000
    note = (
        f"one after another to a server in the same process; a request costs {cost:.1f} ms more"
        " than the bare loop's: breaker, robots.txt, limiter (two durable commits), guard,"
        " deadline, bounds and log line"
    )
    return Part([row], [note])
