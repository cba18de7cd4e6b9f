"""The pages of the prices watch: the products with what they are worth, and one more to watch."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from markupsafe import Markup
from pydantic import BaseModel
from starlette.responses import Response

from mimawari.edges import csv_export, pagination
from mimawari.edges.pagination import Listing
from mimawari.edges.request_fields import LARGEST_ID
from mimawari.errors import BadInput
from mimawari.watches.prices import market, products, queries
from mimawari.watches.prices.market import Market
from mimawari.watches.prices.models import Product
from mimawari.web import prices_product, prices_results
from mimawari.web.prices_figures import draw_spark
from mimawari.web.prices_form import blank, read_product, typed
from mimawari.web.prices_telling import (
    Next,
    count_open,
    find_market,
    find_next,
    list_open,
    tell_alert,
    tell_under,
)
from mimawari.web.visit import Visit

SHOWN = 20
SHOWN_ALERTS = 10


class Line(BaseModel):
    """A product as a line of a file."""

    id: int
    name: str
    keyword: str
    enabled: bool
    sold: int
    median_yen: int | None
    cheapest_yen: int | None
    percent_under_median: float | None
    cheapest_seen_at: datetime | None
    on_sale: int
    unseen: int
    last_run_at: datetime | None

    @classmethod
    def of(cls, product: Product, there: Market) -> "Line":
        """Write a product and what it is worth."""
        sold, cheapest = there.sold, there.cheapest
        return cls(
            id=product.id,
            name=product.name,
            keyword=product.setting.keyword,
            enabled=product.setting.enabled,
            sold=sold.count if sold else 0,
            median_yen=round(sold.median_yen) if sold else None,
            cheapest_yen=cheapest.price if cheapest else None,
            percent_under_median=cheapest.percent_under_median if cheapest else None,
            cheapest_seen_at=cheapest.last_seen_at if cheapest else None,
            on_sale=there.on_sale,
            unseen=there.unseen,
            last_run_at=product.last_run_at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A product, what it is worth, and when it is crawled next."""

    product: Product
    market: Market
    under: str
    spark: Markup
    next: Next
    alerts: Sequence[tuple[Any, str]]
    open_alerts: int


async def show_products(visit: Visit) -> Response:
    """Show the products with what they are worth, or all of them as a file."""
    if visit.text("format") == "csv":
        return await _download(visit)
    return await _show(visit, blank())


async def _show(visit: Visit, filled: dict[str, Any], problem: str = "") -> Response:
    found, more = await pagination.find_page(_listing(visit), SHOWN)
    before = visit.number("alerts", 0) or None
    wanted = queries.want_alerts(visit.system, None, is_open=True)
    async with visit.system.store.read() as reader:
        told = await queries.list_alerts(reader, SHOWN_ALERTS + 1, before, wanted)
    alerts = told[:SHOWN_ALERTS]
    return visit.page(
        "prices/products.html",
        422 if problem else 200,
        rows=[await _make_row(visit, one) for one in found],
        following=found[-1].id if more else None,
        alerts=[(row, tell_alert(visit.words, row)) for row in alerts],
        more_alerts=alerts[-1].id if len(told) > SHOWN_ALERTS else None,
        days=market.USUAL_DAYS,
        problem=problem,
        typed=filled,
    )


def _listing(visit: Visit) -> Listing[Product, int]:
    async def fetch(after: int, most: int) -> Sequence[Product]:
        async with visit.system.store.read() as reader:
            return await products.list_products(reader, most, after)

    start = visit.number("after", 0, LARGEST_ID)
    return Listing(fetch=fetch, start=start, place_of=lambda one: one.id)


async def _make_row(visit: Visit, product: Product) -> Row:
    there = await find_market(visit, product.id)
    percent = there.cheapest.percent_under_median if there.cheapest else None
    return Row(
        product=product,
        market=there,
        under=tell_under(visit.words, percent),
        spark=draw_spark(visit, there),
        next=await find_next(visit, product),
        alerts=await list_open(visit, product.id),
        open_alerts=await count_open(visit, product.id),
    )


async def _download(visit: Visit) -> Response:
    async def lines() -> AsyncIterator[Sequence[Line]]:
        async for some in pagination.walk(_listing(visit), None):
            yield [Line.of(one, await find_market(visit, one.id)) for one in some]

    return await csv_export.download("products", list(Line.model_fields), lines())


async def add(visit: Visit) -> Response:
    """Watch one more product; what cannot be taken is told above the form."""
    system = visit.system
    try:
        name, setting = read_product(visit)
    except BadInput as error:
        return await _show(visit, typed(visit), visit.problem(error))
    async with system.store.edit() as tx:
        added = await products.add_product(tx, name, setting, system.settings, system.clock.now())
    return visit.go(f"/prices/{added.id}")


PAGES = (
    ("/prices", show_products, ("GET",)),
    ("/prices", add, ("POST",)),
    *prices_product.PAGES,
    *prices_results.PAGES,
)
