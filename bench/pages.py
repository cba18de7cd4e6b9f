"""The part `pages`: how large each page is at first sight and how long the server takes for it."""

import asyncio
import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from statistics import median

import structlog
from rich.progress import Progress

from bench.queue import databases
from bench.report import Part, Row, ratio
from mimawari.app.ops import System
from mimawari.ids import new_id
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.exchange import Exchange
from mimawari.kernel.job import NewJob
from mimawari.kernel.values import Delivery, NewEvent
from mimawari.watches.hot.models import NewIp
from mimawari.watches.streams.models import EventType, Heard
from tests.books import waiting
from tests.hot.api_ground import HOUR, Hot, listed
from tests.prices import crawling
from tests.rentals import seeing
from tests.web.ground import Browser, open_site
from tests.web.scene import GIVEN, add_monitor, keep, notice

ENGINES = ("sqlite", "postgresql")
ITEMS = 10_000
BATCH = 1_000
FEW = 100
LOOKS = 15
MOST_MS, MOST_KB = 200.0, 300.0
STATIC = ("/static/site.css", "/static/site.js", "/static/icon.svg")
LISTS = (
    "/", "/hot", "/hot/ips", "/prices", "/rentals", "/rentals/list", "/rentals/changes", "/books",
    "/books/list", "/books/mail", "/streams", "/streams/new", "/queue", "/deliveries", "/why",
    "/settings",
)  # fmt: skip
ONES = (r"/hot/[0-9]+", r"/prices/[0-9]+", r"/rentals/[0-9a-f]{44}", "/streams/mon-[0-9a-f]+",
        "/deliveries/[0-9a-f-]{36}", "/queue/[0-9a-f-]{36}", "/books/jobs/[a-z]+")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Seen:
    """What was measured of a page."""

    path: str
    milliseconds: float
    kilobytes: float


async def fill(system: System, browser: Browser, clock: VirtualClock) -> None:
    """Keep 10,000 of everything that pages list."""
    await _fill_hot(Hot(browser.api, clock))
    store = system.store
    product = await crawling.add_product(store)
    for start in range(0, ITEMS, BATCH):
        numbers = range(start, start + BATCH)
        found = [crawling.found(f"m{n}", 1000 + n % 900, sold=n % 3 > 0) for n in numbers]
        await crawling.apply(store, product, start / ITEMS, *found)
        await seeing.keep(store, clock.now(), *(seeing.on_page(f"{n:044x}") for n in numbers))
    await waiting.add_job(store, "new")
    for start in range(0, ITEMS, BATCH):
        await waiting.find_books(store, "new", *range(start, start + BATCH))
    for number in range(ITEMS // BATCH):
        await store.queue.put([NewJob(kind="rentals.detail", priority=0)] * BATCH)
        await _fill_outbox(system, number)
    await _fill_streams(system)


async def _fill_hot(hot: Hot) -> None:
    names = [NewIp(name=f"作品{n}", keyword=f"作品{n}") for n in range(FEW)]
    first, *_ = await hot.add(*names)
    await hot.crawl(first.id)
    for number in range(ITEMS // BATCH):
        hot.clock.step(HOUR)
        await hot.crawl(first.id, listed(f"m{number}a", BATCH))
    hot.clock.step(HOUR)


async def _fill_outbox(system: System, number: int) -> None:
    events = [
        NewEvent(
            id=new_id(),
            key=f"k{number}:{n}",
            kind="hot.alert_opened",
            body={},
            destination="log:",
        )
        for n in range(BATCH)
    ]
    await system.store.outbox.put(events)
    said = Exchange(address="https://receiver.example/", body="{}" * 1000, status=200, answer="ok")
    taken = await system.store.outbox.take(system.clock.now(), BATCH, timedelta(minutes=1))
    done = [Delivery(id=one.id, token=one.token, delivered=True, exchange=said) for one in taken]
    await system.store.outbox.settle(done)


async def _fill_streams(system: System) -> None:
    now = system.clock.now()
    heard = [Heard(at=now - timedelta(seconds=10 * n), lufs=-20.0 - n % 9) for n in range(2160)]
    for number in range(FEW // 2):
        monitor = await add_monitor(system, number)
        told = [notice(EventType.SILENCE, now, started_at=now) for _ in range(ITEMS * 2 // FEW)]
        await keep(system, monitor, *told, heard=heard[::-1] if number == FEW // 2 - 1 else ())


async def look(browser: Browser, path: str, static: int) -> Seen:
    """Look at a page again and again."""
    took = []
    for _ in range(LOOKS):
        since = time.perf_counter()
        answer = await browser.get(path)
        took.append(time.perf_counter() - since)
        if answer.status_code != 200:
            raise LookupError(f"{path} answered {answer.status_code}")
    return Seen(path, median(took) * 1000, (len(answer.content) + static) / 1000)


async def find_ones(browser: Browser) -> list[str]:
    """Find one of every page that is about one thing."""
    texts = [(await browser.get(path)).text for path in LISTS]
    links = [link for text in texts for link in re.findall(r'href="(/[^"?#]+)', text)]
    return [
        next(link for link in links if re.fullmatch(pattern, link) and link not in LISTS)
        for pattern in ONES
    ]


async def measure(url: str) -> list[Seen]:
    """Fill a database, and look at every page of it."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    clock = VirtualClock(crawling.NOON)
    with tempfile.TemporaryDirectory() as folder:
        async with open_site(url, Path(folder), clock=clock, **GIVEN) as browser:
            await browser.log_in()
            await fill(browser.api.system, browser, clock)
            static = [len((await browser.get(path)).content) for path in STATIC]
            paths = [*LISTS, *await find_ones(browser)]
            return [await look(browser, path, sum(static)) for path in paths]


def make_rows(engine: str, seen: Sequence[Seen]) -> list[Row]:
    """Set each page beside what it may take."""
    rows = []
    for one in seen:
        name = re.sub(r"[0-9a-f-]{12,}", "…", one.path)
        rows += [
            _make_row(engine, f"{name} ms", one.milliseconds, MOST_MS),
            _make_row(engine, f"{name} KB", one.kilobytes, MOST_KB),
        ]
    return rows


def _make_row(engine: str, measured: str, ours: float, most: float) -> Row:
    share = ratio(ours, most)
    return Row("pages", engine, measured, ours, "most", most, share, None, None, LOOKS)


def run(progress: Progress) -> Part:
    """Measure the pages on each engine."""
    rows: list[Row] = []
    for engine in ENGINES:
        task = progress.add_task(f"pages on {engine}", total=None)
        with databases(engine) as fresh, fresh() as url:
            rows += make_rows(engine, asyncio.run(measure(url)))
        progress.remove_task(task)
    slowest = max((row for row in rows if row.measure.endswith("ms")), key=lambda row: row.ours)
    largest = max((row for row in rows if row.measure.endswith("KB")), key=lambda row: row.ours)
    notes = (
        f"{ITEMS:,} items, properties, books, jobs and events each, over a real socket",
        "KB are of the page with its style, script and icon, before any compression",
        f"slowest: {slowest.engine} {slowest.measure} {slowest.ours:.0f}",
        f"largest: {largest.engine} {largest.measure} {largest.ours:.0f}",
    )
    return Part(rows, notes)
