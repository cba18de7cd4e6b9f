"""How to find out whether 404s in a row are true: the control request of the market."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import select

from mimawari.kernel.context import Context
from mimawari.kernel.control import Control, make_check
from mimawari.kernel.job import Job
from mimawari.kernel.not_found import NotFound
from mimawari.kernel.ports import Reader, Tx
from mimawari.kernel.watch import task
from mimawari.sites import mercari
from mimawari.sites.mercari import Query, Side
from mimawari.watches.prices import alerts, products, sync, tasks
from mimawari.watches.prices.tables import SAME_ITEM, results, sightings

KIND = "prices.control"
SURE_FIND = "フィギュア"
"""Where no product is watched, this is searched for: there is always some of it."""
MOST_PRODUCTS = 100


async def find_shown(reader: Reader, since: datetime) -> str | None:
    """Find the item on sale that was seen last, if that was after a time."""
    query = (
        select(results.c.external_id)
        .select_from(sightings)
        .join(results, SAME_ITEM)
        .where(sightings.c.on_sale_yen.is_not(None), sightings.c.last_seen_at >= since)
        .order_by(sightings.c.last_seen_at.desc(), results.c.id.desc())
    )
    external_id: str | None = (await reader.execute(query.limit(1))).scalar()
    return external_id


async def fetch_item(ctx: Context, job: Job, external_id: str) -> None:
    """Read an item's own page, and keep nothing of it."""
    del job
    market = mercari.open_market(ctx.settings, ctx.http, ctx.clock)
    await market.item(external_id)


async def fetch_list(ctx: Context, job: Job, turn: int) -> Sequence[str]:
    """Read the first page of a product's search, of each product by turns."""
    del job
    async with ctx.store.read() as reader:
        known = await products.list_products(reader, MOST_PRODUCTS, enabled=True)
    query = Query(keyword=SURE_FIND, side=Side.ON_SALE)
    if known:
        query = tasks.make_query(known[turn % len(known)], Side.ON_SALE)
    market = mercari.open_market(ctx.settings, ctx.http, ctx.clock)
    page = await market.search_page(query)
    return [item.id for item in page.items]


async def confirm(tx: Tx, ctx: Context, items: Sequence[NotFound]) -> None:
    """Close the alerts of what is gone, and open those of what is the cheapest now."""
    for product_id in sorted({item.undo["product_id"] for item in items if item.undo}):
        product = await products.find_product(tx, product_id)
        if product is not None:
            await alerts.sync_alerts(tx, product, ctx.settings, ctx.clock.now())


async def restore(tx: Tx, items: Sequence[NotFound]) -> None:
    """Bring results back that were taken out, and forget the days on which they were sold."""
    for item in sorted(items, key=lambda item: item.undo.get("product_id", 0)):
        if "day" in item.undo:
            await sync.undate(tx, item.undo["result_id"], item.undo["day"], item.at)
        elif item.undo:
            await sync.restore_gone(tx, item.undo["product_id"], item.undo["result_id"])


CONTROL = Control(
    site=mercari.NAME,
    kind=KIND,
    settle_after=timedelta(minutes=10),
    detail_limit=products.DETAIL,
    list_limit=products.LIST,
    find_shown=find_shown,
    fetch_item=fetch_item,
    fetch_list=fetch_list,
    confirm=confirm,
    restore=restore,
)
check_site = task(
    KIND, lease="2m", timeout="10m", attempts=1000, backoff="1m 5m 15m", site=mercari.NAME
)(make_check(CONTROL))
