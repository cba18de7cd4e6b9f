"""The part `prices_apply`: a crawl of 1,000 results kept, against a statement for each result."""

import asyncio
import time
from collections.abc import Callable, Sequence
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
from mimawari.kernel.ports import Store, Tx
from mimawari.settings import DEFAULTS
from mimawari.watches.prices import products, rules, sync
from mimawari.watches.prices.models import (
    Crawl,
    Found,
    Product,
    SellerType,
    SellingStatus,
    Setting,
    Sight,
)
from mimawari.watches.prices.tables import results, sightings

ENGINES = ("sqlite", "postgresql")
SIDE = 500
RUNS = 9
# In each crawl so many are new on each side, and so many cost less: a tenth of what it shows.
MOVED, REPRICED = 40, 20
START_AT = datetime(2026, 1, 1, tzinfo=UTC)
SIGHT = Sight(pages_asked=10, pages_read=10, capped_on_sale=True, capped_sold=True, unpriced=0)
OWN_KEYS = {"id", "product_id", "created_at", "updated_at"}


def make_crawls() -> list[tuple[Found, ...]]:
    """Make what a first crawl shows and the next ones, each with a tenth that is news."""
    on_sale = [_found(number, SellingStatus.ON_SALE) for number in range(SIDE)]
    sold = [_found(number, SellingStatus.SOLD_OUT) for number in range(SIDE, 2 * SIDE)]
    shown = [(*on_sale, *sold)]
    for turn in range(RUNS):
        first = (2 + turn) * SIDE
        new = [_found(first + number, SellingStatus.ON_SALE) for number in range(MOVED)]
        gone = [replace(one, selling_status=SellingStatus.SOLD_OUT) for one in on_sale[-MOVED:]]
        on_sale = [*new, *on_sale[:-MOVED]]
        for place in range(MOVED, MOVED + REPRICED):
            on_sale[place] = replace(on_sale[place], price=on_sale[place].price - 10)
        sold = [*gone, *sold][:SIDE]
        shown.append((*on_sale, *sold))
    return shown


def _found(number: int, status: SellingStatus) -> Found:
    name = f"m{10**10 + number}"
    return Found(
        external_id=name,
        name=f"【美品】星くず郵便と竜の切手 トワ局長 アクリルスタンド {number} 匿名配送",
        price=1000 + number % 9000,
        selling_url=f"https://market.example/item/{name}",
        image_url=f"https://static.example/item/detail/orig/photos/{name}_1.jpg",
        selling_status=status,
        seller_type=SellerType.USER,
        seller_id=str(number % 97),
        listed_at=START_AT + timedelta(seconds=number),
    )


async def apply_naively(tx: Tx, crawl: Crawl) -> None:
    """Keep a crawl in the same tables: look at, decide on and write each result by itself."""
    for one in crawl.found:
        here = and_(
            results.c.product_id == crawl.product_id, results.c.external_id == one.external_id
        )
        row = (await tx.execute(select(results).where(here))).first()
        values = {**asdict(one), "updated_at": crawl.crawled_at}
        listed_at = values.pop("listed_at")
        values["selling_status"] = int(one.selling_status)
        values["seller_type"] = int(one.seller_type)
        values["sold_out_at"] = None
        if row is None:
            first = {"product_id": crawl.product_id, "created_at": crawl.crawled_at}
            await tx.execute(insert(results).values(values | first))
        elif any(getattr(row, name) != values[name] for name in values if name != "updated_at"):
            await tx.execute(update(results).where(here).values(values))
        await _note(tx, crawl, one.external_id, values, listed_at)


async def _note(
    tx: Tx, crawl: Crawl, external_id: str, values: dict[str, Any], listed_at: datetime
) -> None:
    here = and_(sightings.c.product_id == crawl.product_id, sightings.c.external_id == external_id)
    seen = {
        "listed_at": listed_at,
        "last_seen_at": crawl.crawled_at,
        "missing_at": None,
        **rules.worth_of(values, listed_at),
    }
    done = await tx.execute(update(sightings).where(here).values(seen))
    if not done.rowcount:
        keys = {"product_id": crawl.product_id, "external_id": external_id}
        await tx.execute(insert(sightings).values(seen | keys))


@dataclass(slots=True)
class Spent:
    """The seconds of each crawl after the first."""

    ours: list[float] = field(default_factory=list)
    naive: list[float] = field(default_factory=list)


async def measure(url: str, advance: Callable[[], None]) -> Spent:
    """Keep the same crawls both ways in turns, for a product each, and check that all agree."""
    spent = Spent()
    async with open_store(url) as store:
        async with store.edit() as tx:
            ours, naive = [
                await products.add_product(tx, name, Setting(keyword="星くず"), DEFAULTS, START_AT)
                for name in ("ours", "naive")
            ]
        for number, shown in enumerate(make_crawls()):
            seconds = await _apply_both(store, number, shown, (ours, naive))
            advance()
            if number:
                spent.ours.append(seconds[0])
                spent.naive.append(seconds[1])
        await _check(store, ours, naive)
    return spent


async def _apply_both(
    store: Store, number: int, shown: tuple[Found, ...], both: Sequence[Product]
) -> tuple[float, float]:
    at = START_AT + timedelta(hours=1 + number)
    crawls = [
        Crawl(
            product_id=one.id, task_id=f"{one.id}/{number}", crawled_at=at, found=shown, sight=SIGHT
        )
        for one in both
    ]
    start = time.perf_counter()
    async with store.edit() as tx:
        known = await products.find_product(tx, both[0].id)
        if known is not None:
            await sync.apply_crawl(tx, crawls[0], known)
    done = time.perf_counter()
    async with store.edit() as tx:
        await apply_naively(tx, crawls[1])
    return done - start, time.perf_counter() - done


async def _check(store: Store, ours: Product, naive: Product) -> None:
    if await _list_rows(store, ours.id) != await _list_rows(store, naive.id):
        raise SystemExit("the two ways differ")


async def _list_rows(store: Store, product_id: int) -> list[str]:
    found: list[str] = []
    async with store.read() as reader:
        for table in (results, sightings):
            rows = await reader.execute(select(table).where(table.c.product_id == product_id))
            found += map(_write, rows)
    return sorted(found)


def _write(row: Any) -> str:
    return repr([(key, value) for key, value in row._asdict().items() if key not in OWN_KEYS])


def run(progress: Progress) -> Part:
    """Measure both ways on each engine."""
    rows, notes = [], []
    for engine in ENGINES:
        task = progress.add_task(engine, total=RUNS + 1)
        with databases(engine) as fresh, fresh() as url:
            spent = asyncio.run(measure(url, partial(progress.advance, task)))
        ours, naive = median(spent.ours), median(spent.naive)
        rows.append(
            Row(
                bench="prices_apply",
                engine=engine,
                measure="results_per_second",
                ours=2 * SIDE / ours,
                peer="row by row",
                peer_value=2 * SIDE / naive,
                ratio_to_peer=ratio(naive, ours),
                floor=None,
                ratio_to_floor=None,
                runs=RUNS,
            )
        )
        notes.append(f"{engine}: a crawl takes {ours * 1000:.0f} ms, row by row {naive * 1000:.0f}")
    notes.append(
        f"{RUNS} crawls of {2 * SIDE:,} results after a first one, a tenth of each is news; both"
        " ways run in turns, in one durable transaction a crawl, and must leave the same rows;"
        " ours also inspects, looks for what is missing and writes down the crawl"
    )
    return Part(rows, notes)
