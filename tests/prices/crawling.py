"""Products and crawls as the tests make them up, applied as the watch applies them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select

from mimawari.settings import DEFAULTS
from mimawari.store.sql import SqlStore
from mimawari.watches.prices import products, sync
from mimawari.watches.prices.models import (
    Crawl,
    Found,
    Product,
    SellerType,
    SellingStatus,
    Setting,
    Sight,
)
from mimawari.watches.prices.sync import Applied
from mimawari.watches.prices.tables import removed, results

NOON = datetime(2026, 6, 1, 3, tzinfo=UTC)
"""Noon in Tokyo."""
HOUR = timedelta(hours=1)
LATER = NOON + 99 * HOUR
"""After every crawl."""
WHOLE = Sight(pages_asked=2, pages_read=2, capped_on_sale=False, capped_sold=False, unpriced=0)
CAPPED = Sight(pages_asked=6, pages_read=6, capped_on_sale=True, capped_sold=True, unpriced=0)


def found(external_id: str, price: int = 1000, *, sold: bool = False, **given: Any) -> Found:
    """Make up an item as a search shows it."""
    values: dict[str, Any] = {
        "name": f"星くず郵便 {external_id}",
        "selling_url": f"https://jp.mercari.com/item/{external_id}",
        "image_url": "",
        "seller_type": SellerType.USER,
        "seller_id": "7",
        "listed_at": NOON,
        **given,
    }
    status = SellingStatus.SOLD_OUT if sold else SellingStatus.ON_SALE
    return Found(external_id=external_id, price=price, selling_status=status, **values)


async def add_product(store: SqlStore, **given: Any) -> Product:
    """Keep a product."""
    setting = Setting(**{"keyword": "星くず郵便", **given})
    async with store.edit() as tx:
        return await products.add_product(tx, "a product", setting, DEFAULTS, NOON)


async def apply(
    store: SqlStore, product: Product, hours: float, *items: Found, sight: Sight = WHOLE
) -> Applied:
    """Apply a crawl, so many hours after noon, by the settings as they are."""
    at = NOON + hours * HOUR
    crawl = Crawl(
        product_id=product.id, task_id=f"{product.id}-{hours}", crawled_at=at,
        found=items, sight=sight,
    )  # fmt: skip
    async with store.edit() as tx:
        now = await products.find_product(tx, product.id)
        assert now is not None
        return await sync.apply_crawl(tx, crawl, now)


async def change(store: SqlStore, product: Product, **given: Any) -> None:
    """Change what is searched for."""
    setting = Setting(**{"keyword": "星くず郵便", **given})
    async with store.edit() as tx:
        await products.change_product(tx, product.id, product.name, setting, LATER)


async def kept(store: SqlStore) -> dict[str, Any]:
    """Find all results by the ids of their items."""
    async with store.read() as reader:
        rows = await reader.execute(select(results))
        return {row.external_id: row for row in rows}


async def taken_out(store: SqlStore) -> dict[str, Any]:
    """Find all results that were taken out."""
    async with store.read() as reader:
        rows = await reader.execute(select(removed))
        return {row.external_id: row for row in rows}
