"""The products: what is searched for, kept and put on the schedule."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from cronsim import CronSim
from sqlalchemy import delete, insert, select, update

from mimawari.kernel.job import AT_ONCE, NewJob
from mimawari.kernel.naming import Naming
from mimawari.kernel.ports import Reader, Tx
from mimawari.kernel.values import Entry
from mimawari.kernel.watch import Target
from mimawari.settings import Settings
from mimawari.watches.prices import daily_sales
from mimawari.watches.prices.models import Product, Setting
from mimawari.watches.prices.tables import products, results, settings

CRON, LIST, DETAIL = "prices.cron", "prices.listCrawl", "prices.syncDetail"
MEMBER = "prices:cron"
HOUR = timedelta(hours=1)
PAGE = 500
NAMING = (
    Naming(member="prices:([0-9]{1,9})", names=select(products.c.id, products.c.name)),
    Naming(member="prices:result:([0-9]{1,9})", names=select(results.c.id, results.c.name)),
)


def key_of(product_id: int) -> str:
    """Name a product's place in the queue; it has one at a time."""
    return f"{LIST}:{product_id}"


def list_job(product_id: int, **given: Any) -> NewJob:
    """Ask for a crawl of a product; of several askers the first counts."""
    return NewJob(
        kind=LIST,
        args={"type": "listCrawl", "productId": product_id},
        dedupe_key=key_of(product_id),
        target=f"prices:{product_id}",
        **given,
    )


def detail_job(result_id: int, **given: Any) -> NewJob:
    """Ask for an item's own page; of several askers the first counts."""
    return NewJob(
        kind=DETAIL,
        args={"type": "syncDetail", "mercariCrawlResultId": result_id},
        dedupe_key=f"{DETAIL}:{result_id}",
        target=f"prices:result:{result_id}",
        **given,
    )


def pages_key(job_id: str) -> str:
    """Name where a crawl says how many pages it has read so far."""
    return f"prices:pages:{job_id}"


def next_cron(now: datetime, found: Settings) -> datetime:
    """Tell when products are crawled next, by the cron line and its zone."""
    times = CronSim(found.prices_cron, now.astimezone(found.zone))
    return next(times).astimezone(UTC)


def cron_entry(now: datetime, found: Settings) -> Entry:
    """Place the crawls of all products on the schedule."""
    reason = f"cron {found.prices_cron}"
    at = next_cron(now, found)
    return Entry(member=MEMBER, kind=CRON, next_at=at, every=HOUR, reason=reason)


async def list_targets(reader: Reader, found: Settings) -> Sequence[Target]:
    """List what is gone round to; the schedule is rebuilt from it."""
    del found
    has_any = (await reader.execute(select(products.c.id).limit(1))).first()
    return [Target(member=MEMBER, kind=CRON, every=HOUR)] if has_any else []


def _setting_values(setting: Setting) -> dict[str, Any]:
    return {
        **asdict(setting),
        "enabled": int(setting.enabled),
        "exclusions": json.dumps(setting.exclusions, ensure_ascii=False),
        "item_conditions": json.dumps(setting.item_conditions),
    }


def make_product(row: Any) -> Product:
    """Make a product of its row and that of its setting."""
    setting = Setting(
        keyword=row.keyword,
        category_id=row.category_id,
        min_price=row.min_price,
        max_price=row.max_price,
        enabled=bool(row.enabled),
        exclusions=tuple(json.loads(row.exclusions)),
        item_conditions=tuple(json.loads(row.item_conditions)),
        target_price=row.target_price,
        median_percent=row.median_percent,
    )
    return Product(
        id=row.product_id,
        name=row.name,
        setting=setting,
        created_at=row.created_at,
        updated_at=row.updated_at,
        first_run_at=row.first_run_at,
        last_run_at=row.last_run_at,
    )


def _joined() -> Any:
    return select(settings, products.c.name).join(products, products.c.id == settings.c.product_id)


async def find_product(reader: Reader | Tx, product_id: int) -> Product | None:
    """Find a product by its id."""
    query = _joined().where(settings.c.product_id == product_id)
    row = (await reader.execute(query)).first()
    return None if row is None else make_product(row)


async def list_products(
    reader: Reader | Tx, limit: int, after: int = 0, *, enabled: bool | None = None
) -> list[Product]:
    """List products by id, a page at a time."""
    query = _joined().where(settings.c.product_id > after).order_by(settings.c.product_id)
    if enabled is not None:
        query = query.where(settings.c.enabled == int(enabled))
    return [make_product(row) for row in await reader.execute(query.limit(limit))]


async def walk_enabled(reader: Reader | Tx) -> AsyncIterator[Product]:
    """Yield all products that are crawled by themselves, by id, some in memory at a time."""
    after = 0
    while some := await list_products(reader, PAGE, after, enabled=True):
        for one in some:
            yield one
        after = some[-1].id


async def add_product(
    tx: Tx, name: str, setting: Setting, found: Settings, now: datetime
) -> Product:
    """Keep a new product, and crawl it at once if it is enabled."""
    stamps = {"created_at": now, "updated_at": now}
    made = await tx.execute(insert(products).values(name=name, **stamps).returning(products.c.id))
    product_id = made.scalar_one()
    values = {"product_id": product_id, **_setting_values(setting), **stamps}
    await tx.execute(insert(settings).values(values))
    tx.place_new(cron_entry(now, found))
    if setting.enabled:
        tx.put(list_job(product_id, priority=AT_ONCE))
    return Product(
        id=product_id, name=name, setting=setting, first_run_at=None, last_run_at=None, **stamps
    )


async def change_product(
    tx: Tx, product_id: int, name: str, setting: Setting, now: datetime
) -> None:
    """Change a product; another search is read from its first page to its last again."""
    await daily_sales.hold(tx, product_id)
    known = await find_product(tx, product_id)
    mine = products.c.id == product_id
    await tx.execute(update(products).where(mine).values(name=name, updated_at=now))
    values = {**_setting_values(setting), "updated_at": now}
    if known is not None and known.setting.search != setting.search:
        values["first_run_at"] = None
    await tx.execute(update(settings).where(settings.c.product_id == product_id).values(values))


async def remove_product(tx: Tx, product_id: int) -> bool:
    """Forget a product with all that was found of it; say whether it was there."""
    await daily_sales.hold(tx, product_id)
    gone = await tx.execute(delete(products).where(products.c.id == product_id))
    return bool(gone.rowcount)
