"""The page of a product: what it is worth, what is cheap, what was left out, and its forms."""

from dataclasses import dataclass, replace
from datetime import datetime, time
from math import ceil
from typing import Any

from starlette.responses import Response

from mimawari.edges import csv_export
from mimawari.errors import BadInput
from mimawari.watches.prices import actions, products, queries
from mimawari.watches.prices.api.market import DayOut
from mimawari.watches.prices.market import Market
from mimawari.watches.prices.models import Product, SellingStatus, Setting
from mimawari.watches.prices.queries import Run, Sort, Wanted
from mimawari.web import forms
from mimawari.web.prices_figures import draw_market, list_steps
from mimawari.web.prices_form import Filled, fill, read_product, typed
from mimawari.web.prices_telling import (
    count_open,
    find_market,
    find_next,
    list_open,
    tell_bounds,
    tell_outlier,
    tell_under,
)
from mimawari.web.visit import Visit
from mimawari.web.words import Words

SPANS = ("30", "90", "365")
MOST_DOTS = 400
SHOWN_BARGAINS = 15
SHOWN_OUTLIERS = 10
SHOWN_CRAWLS = 5
SHOWN_DAYS = 31


@dataclass(frozen=True, slots=True)
class Told:
    """A result, and what is to say of its price."""

    row: Any
    said: str


async def find_product(visit: Visit) -> Product:
    """Find the product that the address names."""
    async with visit.system.store.read() as reader:
        return await queries.find_known(reader, forms.id_of(visit))


async def show(visit: Visit) -> Response:
    """Show a product, or its days as a file."""
    product = await find_product(visit)
    if visit.text("format") == "csv":
        there = await find_market(visit, product.id, _days(visit))
        pieces = csv_export.one_piece([DayOut.of(day) for day in there.days])
        columns = ["on", *(name for name in DayOut.model_fields if name != "on")]
        return await csv_export.download(f"product-{product.id}-days", columns, pieces)
    return await _show(visit, product, fill(product))


def _days(visit: Visit) -> int:
    return int(visit.choice("days", *SPANS))


async def _show(visit: Visit, product: Product, filled: Filled, problem: str = "") -> Response:
    there = await find_market(visit, product.id, _days(visit))
    async with visit.system.store.read() as reader:
        runs = await queries.list_runs(reader, product.id, SHOWN_CRAWLS)
    return visit.page(
        "prices/product.html",
        422 if problem else 200,
        **await _find_market_facts(visit, product.id, there),
        product=product,
        days=str(_days(visit)),
        waits=await find_next(visit, product),
        alerts=await list_open(visit, product.id),
        open_alerts=await count_open(visit, product.id),
        runs=runs,
        notes=explain(visit.words, runs[0]) if runs else [],
        zone=visit.system.settings.zone,
        problem=problem,
        typed=filled,
    )


def explain(words: Words, run: Run) -> list[str]:
    """Say what keeps a crawl from having seen the whole market."""
    said = []
    if run.capped_on_sale:
        said.append(words("prices.note_capped_on_sale"))
    if run.capped_sold:
        said.append(words("prices.note_capped_sold"))
    if run.pages_read < run.pages_asked:
        missing = run.pages_asked - run.pages_read
        said.append(words("prices.note_missing", n=missing, of=run.pages_asked))
    return said


async def _find_market_facts(visit: Visit, product_id: int, there: Market) -> dict[str, Any]:
    since = datetime.combine(there.since_on, time(), visit.system.settings.zone)
    async with visit.system.store.read() as reader:
        sales = await queries.list_sales(reader, product_id, since, there.bounds, MOST_DOTS)
    cheapest = there.cheapest
    return {
        "market": there,
        "chart": draw_market(visit, there, sales[::-1]) if there.days or cheapest else None,
        "dotted": len(sales),
        "under": tell_under(visit.words, cheapest.percent_under_median if cheapest else None),
        "bounds": tell_bounds(visit.words, there),
        "steps": list_steps(visit, there.days_to_sell),
        "bargains": await _list_bargains(visit, product_id, there),
        "outliers": await _list_outliers(visit, product_id, there),
        "shown_days": there.days[: -SHOWN_DAYS - 1 : -1],
        "dearest": _under_median(there),
    }


def _under_median(there: Market) -> int | None:
    """Tell the highest price that is under the median."""
    return None if there.sold is None else ceil(there.sold.median_yen) - 1


async def _list_bargains(visit: Visit, product_id: int, there: Market) -> list[Told]:
    """List what is on sale under the median, the cheapest first."""
    if there.sold is None:
        return []
    wanted = Wanted(
        status=SellingStatus.ON_SALE,
        most_yen=_under_median(there),
        is_outlier=False,
        seen_since=visit.system.clock.now() - visit.system.settings.prices_unseen_after,
        sort=Sort.PRICE,
        is_ascending=True,
    )
    median = there.sold.median_yen
    async with visit.system.store.read() as reader:
        rows = await queries.list_results(
            reader, product_id, wanted, there.bounds, SHOWN_BARGAINS, None
        )
    return [Told(row, tell_under(visit.words, 100 * (1 - row.price / median))) for row in rows]


async def _list_outliers(visit: Visit, product_id: int, there: Market) -> list[Told]:
    """List what is left out of the figures, newest first, each with why."""
    wanted = Wanted(is_outlier=True)
    async with visit.system.store.read() as reader:
        rows = await queries.list_results(
            reader, product_id, wanted, there.bounds, SHOWN_OUTLIERS, None
        )
    return [Told(row, tell_outlier(visit.words, there.bounds, row.price)) for row in rows]


async def change(visit: Visit) -> Response:
    """Change a product; what cannot be taken is told above the form."""
    product = await find_product(visit)
    try:
        name, new = read_product(visit)
        await actions.change_product(
            visit.system,
            product.id,
            lambda known: (name, replace(new, enabled=known.setting.enabled)),
        )
    except BadInput as error:
        return await _show(visit, product, typed(visit), visit.problem(error))
    return visit.go(f"/prices/{product.id}")


async def switch(visit: Visit) -> Response:
    """Crawl a product by itself from now on, or no more."""
    is_on = visit.form.get("enabled") == "true"

    def apply(known: Product) -> tuple[str, Setting]:
        return known.name, replace(known.setting, enabled=is_on)

    changed = await actions.change_product(visit.system, forms.id_of(visit), apply)
    return visit.go(f"/prices/{changed.id}")


async def crawl(visit: Visit) -> Response:
    """Have a product crawled now."""
    product = await find_product(visit)
    await actions.ask_for_crawl(visit.system, product.id)
    return visit.go(f"/prices/{product.id}")


async def remove(visit: Visit) -> Response:
    """Forget a product with all that was found of it."""
    product = await find_product(visit)
    async with visit.system.store.edit() as tx:
        await products.remove_product(tx, product.id)
    return visit.go("/prices")


PAGES = (
    ("/prices/{id:int}", show, ("GET",)),
    ("/prices/{id:int}", change, ("POST",)),
    ("/prices/{id:int}/switch", switch, ("POST",)),
    ("/prices/{id:int}/crawl", crawl, ("POST",)),
    ("/prices/{id:int}/remove", remove, ("POST",)),
)
