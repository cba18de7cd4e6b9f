"""The part `prices_market`: the time that a product's figures take over 100,000 sales."""

import asyncio
import gc
import random
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime, timedelta
from functools import partial
from statistics import median, quantiles
from typing import Any
from zoneinfo import ZoneInfo

from rich.progress import Progress
from sqlalchemy import insert, select

from bench.ours import open_store
from bench.queue import databases
from bench.report import Part, Row, ratio
from mimawari.columns.stamps import parse_stamp, write_stamp
from mimawari.kernel.ports import Store
from mimawari.settings import DEFAULTS
from mimawari.watches.prices import daily_sales, figures, market, products, rules
from mimawari.watches.prices.models import Product, Setting
from mimawari.watches.prices.tables import results, sightings

ENGINES = ("sqlite", "postgresql", "mariadb")
SALES, ON_SALE, DAYS = 100_000, 2_000, 90
BATCH = 2_000
LOOKS, PLAIN_LOOKS = 30, 3
NOW = datetime(2026, 6, 1, 3, tzinfo=UTC)
ZONE = ZoneInfo("Asia/Tokyo")

Medians = dict[date, float]
Values = dict[str, Any]
Look = Callable[[Store, Product], Awaitable[Medians]]


def make_rows(product_id: int, number: int, chance: random.Random) -> tuple[Values, Values]:
    """Make up one result and its sighting: most are sold, some for a price out of line."""
    is_sold = number < SALES
    usual = 3000 * chance.lognormvariate(0, 0.35)
    price = int(usual / 10) * 10 if number % 50 else 9_999_999
    sold_at = NOW - timedelta(days=DAYS - 1) * chance.random()
    listed_at = sold_at - timedelta(hours=chance.expovariate(1 / 60))
    row = {
        "product_id": product_id,
        "external_id": f"m{10**10 + number}",
        "name": f"星くず郵便と竜の切手 アクリルスタンド {number}",
        "price": price,
        "selling_url": f"https://market.example/item/m{number}",
        "image_url": "",
        "selling_status": 2 if is_sold else 1,
        "seller_type": 1,
        "seller_id": "7",
        "sold_out_at": write_stamp(sold_at) if is_sold else None,
        "created_at": listed_at,
        "updated_at": sold_at,
    }
    seen = {
        "product_id": product_id,
        "external_id": row["external_id"],
        "listed_at": listed_at,
        "last_seen_at": NOW,
        "missing_at": None,
        **rules.worth_of(row, listed_at),
    }
    return row, seen


async def fill(store: Store, advance: Callable[[], None]) -> Product:
    """Keep a product with all its sales, packed by day as the watch packs them."""
    chance = random.Random(1)
    async with store.edit() as tx:
        setting = Setting(keyword="星くず郵便")
        product = await products.add_product(tx, "bench", setting, DEFAULTS, NOW)
    for start in range(0, SALES + ON_SALE, BATCH):
        made = [make_rows(product.id, number, chance) for number in range(start, start + BATCH)]
        async with store.edit() as tx:
            await tx.execute(insert(results), [row for row, _ in made])
            await tx.execute(insert(sightings), [seen for _, seen in made])
        advance()
    async with store.edit() as tx:
        rows = [row for row, _ in (make_rows(0, 1, chance) for _ in range(100 * DAYS))]
        await daily_sales.save_days(tx, product.id, rows)
    return product


async def look(store: Store, product: Product) -> Medians:
    """Read the figures as the API does."""
    async with store.read() as reader:
        found = await market.find_market(reader, product.id, DAYS, NOW, DEFAULTS)
    return {day.on: day.figures.median_yen for day in found.days if day.figures}


async def look_plainly(store: Store, product: Product) -> Medians:
    """Read every row that was sold, and sum up by the same rules."""
    query = select(results.c.price, results.c.sold_out_at).where(
        results.c.product_id == product.id, results.c.selling_status == 2
    )
    by_day: dict[date, list[int]] = defaultdict(list)
    async with store.read() as reader:
        for price, sold_out_at in await reader.execute(query):
            by_day[parse_stamp(sold_out_at).astimezone(ZONE).date()].append(price)
    bounds = figures.find_bounds(sorted(price for prices in by_day.values() for price in prices))
    counted = {on: [*bounds.cut(sorted(prices))] for on, prices in by_day.items()}
    return {on: median(prices) for on, prices in counted.items() if prices}


async def measure(url: str, advance: Callable[[], None]) -> tuple[list[float], list[float]]:
    """Time both ways in milliseconds, and check that they agree."""
    async with open_store(url) as store:
        product = await fill(store, advance)
        if await look(store, product) != await look_plainly(store, product):
            raise SystemExit("the two ways differ")
        ours = [await _time(look, store, product) for _ in range(LOOKS)]
        plain = [await _time(look_plainly, store, product) for _ in range(PLAIN_LOOKS)]
    return ours, plain


async def _time(work: Look, store: Store, product: Product) -> float:
    gc.collect()
    start = time.perf_counter()
    await work(store, product)
    return (time.perf_counter() - start) * 1000


def run(progress: Progress) -> Part:
    """Measure on each engine."""
    rows, notes = [], []
    for engine in ENGINES:
        task = progress.add_task(engine, total=(SALES + ON_SALE) // BATCH)
        with databases(engine) as fresh, fresh() as url:
            ours, plain = asyncio.run(measure(url, partial(progress.advance, task)))
        middle, plainly = median(ours), median(plain)
        rows.append(
            Row(
                bench="prices_market",
                engine=engine,
                measure="milliseconds",
                ours=middle,
                peer="row by row",
                peer_value=plainly,
                ratio_to_peer=ratio(plainly, middle),
                floor=None,
                ratio_to_floor=None,
                runs=LOOKS,
            )
        )
        notes.append(f"{engine}: 95 of 100 looks take at most {quantiles(ours, n=20)[-1]:.0f} ms")
    notes.append(
        f"{SALES:,} sales of one product over {DAYS} days and {ON_SALE:,} on sale; figures of each"
        " day, what is left out, days to sell and the cheapest; nothing is cached; row by row: the"
        " same medians from a SELECT of all that was sold"
    )
    return Part(rows, notes)
