"""The rounds of the prices watch: the hourly cron, lists and single items."""

from datetime import datetime, timedelta
from typing import Any

import structlog

from mimawari.columns.stamps import write_stamp
from mimawari.errors import BadInput, Gone, Invalid, Transient
from mimawari.kernel.context import Context
from mimawari.kernel.control import commit_gone, confirm_gone
from mimawari.kernel.job import AT_ONCE, NORMAL, Job
from mimawari.kernel.ports import Tx
from mimawari.kernel.watch import task
from mimawari.sites import mercari
from mimawari.sites.mercari import Item, Query, Side
from mimawari.text import one_line
from mimawari.watches.prices import alerts, daily_sales, products, sync
from mimawari.watches.prices.models import (
    Crawl,
    Found,
    Product,
    SellerType,
    SellingStatus,
    Sight,
)
from mimawari.watches.prices.products import CRON, DETAIL, LIST

SHOWN_FOR = timedelta(hours=1)
"""How long it is known how far a crawl came."""
SIDES = (Side.ON_SALE, Side.SOLD)
FIRST = NORMAL // 2
"""The priority of own pages that go before those of other results, and behind what people ask."""
OFF_SALE = frozenset({mercari.Status.STOP, mercari.Status.CANCEL})

log = structlog.get_logger(component="prices")


@task(CRON, lease="2m", attempts=20, backoff="1m 5m 15m")
async def enqueue_crawls(job: Job, ctx: Context) -> None:
    """Enqueue one crawl for each enabled product."""
    now = ctx.clock.now()
    async with ctx.commit(job) as tx:
        jobs = [products.list_job(one.id) async for one in products.walk_enabled(tx)]
        tx.put(*jobs)
        await alerts.close_unseen(tx, ctx.settings, now)
        if job.target is not None:
            at = products.next_cron(now, ctx.settings)
            tx.next_run(at, f"cron {ctx.settings.prices_cron}")
    log.info("crawls enqueued", what=CRON, result="done", products=len(jobs), next=LIST)


@task(
    LIST, lease="2m", timeout="30m", attempts=4, backoff="1m 5m 15m", site=mercari.NAME,
    concurrency=1,
)  # fmt: skip
async def crawl_list(job: Job, ctx: Context) -> None:
    """Read the newest pages of a product's search, all of them the first time, and keep them."""
    product_id = _number(job, "productId")
    async with ctx.store.read() as reader:
        product = await products.find_product(reader, product_id)
    if product is None:
        log.info("not crawled", what=job.target, result="done", reason="the product was removed")
        return
    crawl = await _gather(job, ctx, product)
    async with ctx.commit(job) as tx:
        await daily_sales.hold(tx, product_id)
        searched, product = product.setting.search, await products.find_product(tx, product_id)
        if product is None:
            return
        if product.setting.search != searched:
            # These pages are of a search that nobody wants any more.
            tx.put(products.list_job(product_id, priority=AT_ONCE))
            log.info("searched anew", what=job.target, result="done", reason="another setting")
            return
        capacity = _find_capacity(ctx, product, crawl.crawled_at)
        applied = await sync.apply_crawl(tx, crawl, product, capacity)
        tx.put(*(products.detail_job(one, priority=FIRST) for one in applied.checks.leads))
        tx.put(*map(products.detail_job, applied.checks.others))
        await alerts.sync_alerts(tx, product, ctx.settings, crawl.crawled_at)
    log.info(
        "crawled",
        what=job.target,
        result="done",
        reason="; ".join(crawl.sight.page_errors) or None,
        found=len(crawl.found),
        added=applied.added,
        left_out=applied.left_out,
        removed=applied.removed,
        pages=f"{crawl.sight.pages_read}/{crawl.sight.pages_asked}",
        capped=crawl.sight.capped_on_sale or crawl.sight.capped_sold,
        next=f"{DETAIL} of {len(applied.follow_ups)}",
    )


def _find_capacity(ctx: Context, product: Product, now: datetime) -> int:
    """Return how many own pages may be read until the product is crawled again."""
    limit = ctx.watches.limit(DETAIL)
    is_on = product.setting.enabled
    until = products.next_cron(now, ctx.settings) if is_on else now + timedelta(days=1)
    return int((until - now) / limit.per * limit.count)


def _number(job: Job, name: str) -> int:
    value = job.args.get(name)
    if not isinstance(value, int):
        raise BadInput(f"{name} is missing from the job's arguments")
    return value


async def _gather(job: Job, ctx: Context, product: Product) -> Crawl:
    await ctx.limit(LIST, caller="prices")
    market = mercari.open_market(ctx.settings, ctx.http, ctx.clock)
    is_first = product.first_run_at is None
    pages = ctx.settings.prices_first_pages if is_first else ctx.settings.prices_pages
    found: dict[str, Found] = {}
    errors: list[Transient | Invalid] = []
    asked, unpriced, capped = 0, 0, {}
    for side in SIDES:
        async for result in mercari.walk(market, make_query(product, side), pages):
            asked += 1
            await ctx.store.cache.set(products.pages_key(job.id), str(asked).encode(), SHOWN_FOR)
            capped[side] = result.capped
            errors += [result.error] if result.error else []
            for item in result.page.items if result.page else ():
                unpriced += item.price_yen is None
                if (one := make_found(item, ctx.settings.mercari_url)) is not None:
                    found[item.id] = one
    if errors and len(errors) == asked:
        raise errors[0]
    sight = Sight(
        pages_asked=asked,
        pages_read=asked - len(errors),
        capped_on_sale=capped.get(Side.ON_SALE, False),
        capped_sold=capped.get(Side.SOLD, False),
        unpriced=unpriced,
        page_errors=tuple(one_line(str(error)) for error in errors),
    )
    return Crawl(
        product_id=product.id,
        task_id=job.id,
        crawled_at=ctx.clock.now(),
        found=tuple(found.values()),
        sight=sight,
    )


def make_query(product: Product, side: Side) -> Query:
    setting = product.setting
    return Query(
        keyword=setting.keyword,
        side=side,
        exclude=" ".join(setting.exclusions),
        category_id=setting.category_id,
        price_min_yen=setting.min_price or None,
        price_max_yen=setting.max_price or None,
        condition_ids=setting.item_conditions,
    )


def make_found(item: Item, site_url: str) -> Found | None:
    """Make a result of an item; None of one without a price, which no figure could use."""
    if item.price_yen is None:
        return None
    is_shop = item.kind is mercari.Kind.SHOPS
    return Found(
        external_id=item.id,
        name=item.title,
        price=item.price_yen,
        selling_url=site_url + item.path,
        image_url=item.image_url or "",
        selling_status=SellingStatus.SOLD_OUT if item.status.is_sold else SellingStatus.ON_SALE,
        seller_type=SellerType.SHOP if is_shop else SellerType.USER,
        seller_id=item.seller_id,
        listed_at=item.created_at,
        category_id=item.category_id,
        category_above=item.category_above,
        condition_id=item.condition_id,
    )


@task(DETAIL, lease="2m", timeout="10m", attempts=5, backoff="5m 15m 1h 4h", site=mercari.NAME)
async def sync_detail(job: Job, ctx: Context) -> None:
    """Read an item's own page: keep its price and status, when it was sold, or that it is gone."""
    result_id = _number(job, "mercariCrawlResultId")
    async with ctx.store.read() as reader:
        row = await sync.find_result(reader, result_id)
        is_vain = row is None or await sync.is_read_in_vain(reader, row, job.enqueued_at)
    if is_vain:
        log.info("nothing to read", what=job.target, result="done", reason="removed, dated or seen")
        return
    await ctx.limit(DETAIL, caller="prices")
    market = mercari.open_market(ctx.settings, ctx.http, ctx.clock)
    asked_at = ctx.clock.now()
    try:
        item = (await market.item(row.external_id)).item
    except Gone as error:
        await _end_as_gone(job, ctx, result_id, str(error))
        return
    await _keep(job, ctx, result_id, item, asked_at)


async def _keep(job: Job, ctx: Context, result_id: int, item: Item, asked_at: datetime) -> None:
    now = ctx.clock.now()
    one = make_found(item, ctx.settings.mercari_url)
    async with ctx.commit(job) as tx:
        await confirm_gone(tx, ctx, mercari.NAME, asked_at)
        row = await sync.hold_result(tx, result_id)
        product = await _find_owner(tx, row)
        if product is None:
            return
        if item.status in OFF_SALE or one is None:
            reason = "it has no price any more" if one is None else "its seller took it off sale"
            await sync.take_out(tx, product.id, {row.external_id: reason}, sync.GONE, now)
        else:
            await sync.save_detail(tx, row, one, _sold_out_at(item, now), now)
            # A search would not show it any more, so that no crawl could notice.
            await sync.inspect_one(tx, product, one, now)
        await alerts.sync_alerts(tx, product, ctx.settings, now)


async def _find_owner(tx: Tx, row: Any) -> Product | None:
    return None if row is None else await products.find_product(tx, row.product_id)


def _sold_out_at(item: Item, now: datetime) -> str:
    """Tell when an item was sold: its last update is the nearest that the site tells.

    Where the site tells none, the day on which we saw it is as precise as it gets.
    """
    return write_stamp(item.updated_at) if item.updated_at else write_stamp(now)[:10]


async def _end_as_gone(job: Job, ctx: Context, result_id: int, reason: str) -> None:
    now = ctx.clock.now()
    # Alerts follow once it is settled that it is the item's trouble and not the site's.
    async with commit_gone(ctx, job, mercari.NAME, reason=None) as page:
        row = await sync.hold_result(page.tx, result_id)
        product = await _find_owner(page.tx, row)
        if product is None:
            return
        page.undo |= {"product_id": product.id, "result_id": result_id}
        if row.selling_status == SellingStatus.SOLD_OUT:
            # It was sold, and its price is known; only the hour is lost.
            page.undo["day"] = await sync.date_roughly(page.tx, row, row.updated_at, now)
        else:
            reasons = {row.external_id: reason}
            await sync.take_out(page.tx, product.id, reasons, sync.GONE, now)
    log.info("gone", what=job.target, result="done", reason=reason)
