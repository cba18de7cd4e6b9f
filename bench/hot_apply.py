"""The part `hot_apply`: items of crawls applied per second, against a statement for each item."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from statistics import median
from typing import Any

from rich.progress import Progress
from sqlalchemy import and_, insert, select, update

from bench.ours import open_store
from bench.queue import databases
from bench.report import Part, Row, ratio
from mimawari.kernel.job import Job, NewJob, Want
from mimawari.kernel.ports import Store, Tx
from mimawari.watches.hot import messages, rules, sync
from mimawari.watches.hot.models import (
    SALES,
    Change,
    Coverage,
    Crawl,
    ItemState,
    Kind,
    Seen,
    Status,
)
from mimawari.watches.hot.tables import changes, crawls, hours, ips, items

# A run is a stretch of crawls on one database, for the naive way takes seconds for each.
RUNS = 3
STRETCH = 7
ENGINES = ("sqlite", "postgresql")
SIDE = 600
CRAWLS = RUNS * STRETCH
# In each crawl 50 are new, 50 are sold and 20 cost less: a tenth of what it shows.
MOVED, REPRICED = 50, 20
KIND = "bench.apply"
# The IPs that each way keeps.
OURS, NAIVE = 1, 2
START_AT = datetime(2026, 1, 1, tzinfo=UTC)
WHOLE = Coverage(pages_asked=10, pages_read=10)
OWN_KEYS = {"ip_id", "id", "task_id", "name", "keyword", "created_at", "updated_at"}


def make_crawls() -> list[tuple[Seen, ...]]:
    """Make what a first crawl shows and the next ones, each with a tenth that is news."""
    on_sale = [_seen(number, Status.AVAILABLE) for number in range(SIDE)]
    sold = [_seen(number, Status.SOLD) for number in range(SIDE, 2 * SIDE)]
    shown = [(*on_sale, *sold)]
    for turn in range(CRAWLS):
        first = (2 + turn) * SIDE
        new = [_seen(first + number, Status.AVAILABLE) for number in range(MOVED)]
        gone = [replace(item, status=Status.SOLD) for item in on_sale[-MOVED:]]
        on_sale = [*new, *on_sale[:-MOVED]]
        for place in range(MOVED, MOVED + REPRICED):
            on_sale[place] = replace(on_sale[place], price_yen=(on_sale[place].price_yen or 0) - 10)
        sold = [*gone, *sold][:SIDE]
        shown.append((*on_sale, *sold))
    return shown


def _seen(number: int, status: Status) -> Seen:
    name = f"m{10**10 + number}"
    return Seen(
        source_id=name,
        title=f"【美品】星くず郵便と竜の切手 トワ局長 アクリルスタンド {number} 匿名配送",
        price_yen=1000 + number % 9000,
        status=status,
        image_url=f"https://static.example/item/detail/orig/photos/{name}_1.jpg",
        item_url=f"https://market.example/item/{name}",
    )


async def apply_naively(tx: Tx, crawl: Crawl, now: datetime) -> None:
    """Apply a crawl by the same rules and in the same tables: look, decide and write by item."""
    locked = select(ips).where(ips.c.id == crawl.ip_id).with_for_update()
    ip = (await tx.execute(locked)).one()
    kinds: list[Kind] = []
    for item in crawl.items:
        kinds += [change.kind for change in await _apply_item(tx, crawl, item)]
    coverage = sync.coverage_values(crawl.coverage)
    values = {
        "task_id": crawl.task_id,
        "ip_id": crawl.ip_id,
        "crawled_at": crawl.crawled_at,
        "items": len(crawl.items),
        "inflow": kinds.count(Kind.NEW_LISTING),
        "outflow": sum(kind in SALES for kind in kinds),
        "error": "",
        **coverage,
    }
    await tx.execute(insert(crawls).values(values))
    told = {"updated_at": now, "last_crawled_at": crawl.crawled_at, **coverage}
    await tx.execute(update(ips).where(ips.c.id == crawl.ip_id).values(told))
    await sync.save_hour(tx, ip, crawl.crawled_at)


async def _apply_item(tx: Tx, crawl: Crawl, item: Seen) -> tuple[Change, ...]:
    here = and_(items.c.ip_id == crawl.ip_id, items.c.source_id == item.source_id)
    row = (await tx.execute(select(items).where(here))).first()
    compared = rules.compare(_known(item.source_id, row), [item], crawl.crawled_at)
    values = {
        "title": item.title,
        "image_url": item.image_url,
        "item_url": item.item_url,
        **asdict(compared.states[item.source_id]),
    }
    if row is None:
        first = {"ip_id": crawl.ip_id, "source_id": item.source_id}
        first["first_seen_at"] = crawl.crawled_at
        await tx.execute(insert(items).values(first | values))
    else:
        await tx.execute(update(items).where(here).values(values))
    for change in compared.changes:
        told = {"ip_id": crawl.ip_id, "at": crawl.crawled_at, **asdict(change)}
        await tx.execute(insert(changes).values(told))
    return compared.changes


def _known(source_id: str, row: Any) -> Mapping[str, ItemState]:
    if row is None:
        return {}
    state = ItemState(
        status=Status(row.status),
        price_yen=row.price_yen,
        sold_at=row.sold_at,
        last_seen_at=row.last_seen_at,
    )
    return {source_id: state}


@dataclass(slots=True)
class Spent:
    """The seconds of each crawl after the first."""

    ours: list[float] = field(default_factory=list)
    naive: list[float] = field(default_factory=list)
    parsing: list[float] = field(default_factory=list)


async def measure(url: str, advance: Callable[[], None]) -> Spent:
    """Apply the same crawls both ways in turns, to an IP each, and check that all rows agree."""
    spent = Spent()
    async with open_store(url) as store:
        async with store.edit() as tx:
            await tx.execute(insert(ips), [_ip(OURS, "ours"), _ip(NAIVE, "naive")])
        for number, shown in enumerate(make_crawls()):
            seconds = await _apply_both(store, number, shown)
            advance()
            if number:
                spent.parsing.append(seconds[0])
                spent.ours.append(seconds[1])
                spent.naive.append(seconds[2])
        await _check(store)
    return spent


def _ip(ip_id: int, name: str) -> dict[str, Any]:
    return {
        "id": ip_id,
        "name": name,
        "name_en": "",
        "keyword": name,
        "weight": 1.0,
        "active": True,
        "tags": "[]",
        "failures": 0,
        "last_error": "",
        "inflow_total": 0,
        "outflow_total": 0,
        **sync.coverage_values(Coverage()),
        "created_at": START_AT,
        "updated_at": START_AT,
    }


async def _apply_both(
    store: Store, number: int, shown: tuple[Seen, ...]
) -> tuple[float, float, float]:
    at = START_AT + timedelta(minutes=40) * number
    asked = [
        Crawl(ip_id=ip_id, task_id=f"{ip_id}/{number}", crawled_at=at, items=shown, coverage=WHOLE)
        for ip_id in (OURS, NAIVE)
    ]
    args = [messages.write_crawl(crawl) for crawl in asked]
    first, second = await _claim(store, args)
    start = time.perf_counter()
    crawl = messages.parse_crawl(first.args)
    parsed = time.perf_counter()
    async with store.commit(first) as tx:
        await sync.apply_crawl(tx, crawl, at)
    done = time.perf_counter()
    async with store.commit(second) as tx:
        # A first crawl is only there to be known; nobody measures it.
        await (apply_naively if number else sync.apply_crawl)(tx, asked[1], at)
    return parsed - start, done - parsed, time.perf_counter() - done


async def _claim(store: Store, args: Sequence[Mapping[str, Any]]) -> list[Job]:
    await store.queue.put([NewJob(kind=KIND, args=each) for each in args])
    want = Want(kind=KIND, most=len(args), lease_for=timedelta(minutes=10))
    jobs = (await store.queue.turn([], [want], "bench")).jobs
    return sorted(jobs, key=lambda job: int(job.args["ipId"]))


async def _check(store: Store) -> None:
    """Fail unless both ways left the same rows."""
    async with store.read() as reader:
        for table in (items, changes, hours, crawls, ips):
            owner = table.c.id if table is ips else table.c.ip_id
            both = []
            for ip_id in (OURS, NAIVE):
                found = await reader.execute(select(table).where(owner == ip_id))
                rows = [_plain(row._mapping) for row in found]  # noqa: SLF001 - its public name
                both.append(sorted(rows))
            if both[0] != both[1] or not both[0]:
                raise ValueError(f"{table.name}: the two ways left different rows")


def _plain(row: Mapping[str, Any]) -> str:
    return repr([(name, value) for name, value in row.items() if name not in OWN_KEYS])


def rows_of(engine: str, spent: Spent) -> list[Row]:
    """Set our medians beside the naive way's, without parsing the message and with it."""
    ours, naive, parsing = (
        median(sum(each[start : start + STRETCH]) for start in range(0, CRAWLS, STRETCH))
        for each in (spent.ours, spent.naive, spent.parsing)
    )
    shown = 2 * SIDE * STRETCH
    return [
        Row(
            bench="hot_apply",
            engine=engine,
            measure=measure_name,
            ours=shown / (ours + more),
            peer="item by item",
            peer_value=shown / (naive + more),
            ratio_to_peer=ratio(naive + more, ours + more),
            floor=None,
            ratio_to_floor=None,
            runs=RUNS,
        )
        for measure_name, more in (("items_per_second", 0.0), ("with_parsing", parsing))
    ]


def run(progress: Progress) -> Part:
    """Measure both ways on each engine."""
    rows, notes = [], []
    for engine in ENGINES:
        task = progress.add_task(engine, total=CRAWLS + 1)
        with databases(engine) as fresh, fresh() as url:
            spent = asyncio.run(measure(url, partial(progress.advance, task)))
        rows += rows_of(engine, spent)
        ours, parsing = (median(each) * 1000 for each in (spent.ours, spent.parsing))
        notes.append(f"{engine}: a crawl takes {ours:.0f} ms, and {parsing:.0f} ms to parse")
    notes.append(
        f"{CRAWLS} crawls of {2 * SIDE:,} items after a first one, a tenth of each is news, in"
        f" {RUNS} stretches;"
        " both ways run in turns, in the real commit of a job with all its durability, by the"
        " same rules, and must leave the same rows; item by item: one SELECT and one INSERT or"
        " UPDATE for each item, one INSERT for each change"
    )
    return Part(rows, notes)
