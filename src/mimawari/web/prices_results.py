"""The pages of what crawls have found of a product, and of what was taken out again."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from starlette.responses import Response

from mimawari.edges import csv_export, pagination
from mimawari.edges.pagination import Listing
from mimawari.errors import BadInput
from mimawari.watches.prices import queries
from mimawari.watches.prices.figures import Bounds
from mimawari.watches.prices.queries import Place
from mimawari.watches.prices.schemas.requests import ResultsAsked, read_place, write_place
from mimawari.watches.prices.schemas.responses import RemovedOut, ResultOut
from mimawari.web import forms
from mimawari.web.prices_product import find_product
from mimawari.web.prices_telling import find_market, tell_outlier
from mimawari.web.visit import Visit

SHOWN = 30
FILTERS = (
    *("status", "seller", "min_price", "max_price"),
    *("search", "outlier", "sort", "order"),
)


async def show_results(visit: Visit) -> Response:
    """Show what was found of a product, by what is asked for, or write it as a file."""
    product = await find_product(visit)
    typed = {name: visit.text(name) for name in FILTERS}
    try:
        given = _read(visit)
    except BadInput as error:
        return _page(visit, 422, product=product, typed=typed, problem=visit.problem(error))
    there = await find_market(visit, product.id)
    listing = _results(visit, product.id, given, there.bounds)
    if visit.text("format") == "csv":
        pieces = pagination.walk(listing, None)
        columns = list(ResultOut.model_fields)
        return await csv_export.download(f"product-{product.id}-results", columns, pieces)
    shown, more = await pagination.find_page(listing, SHOWN)
    following = write_place(queries.place_of(shown[-1], given.sort)) if more else None
    words, bounds = visit.words, there.bounds
    rows = [
        (row, _tell_sold(visit, row.sold_out_at), tell_outlier(words, bounds, row.price))
        for row in shown
    ]
    return _page(visit, product=product, typed=typed, rows=rows, following=following)


def _page(visit: Visit, status: int = 200, **facts: Any) -> Response:
    nothing: dict[str, Any] = {"rows": (), "following": None, "problem": ""}
    return visit.page("prices/results.html", status, **nothing | facts)


def _tell_sold(visit: Visit, text: str | None) -> str:
    """Say when something was sold: the moment, or the day alone where no more is known."""
    if text is None or len(text) == len("2026-01-31"):
        return text or "–"
    return visit.when(datetime.fromisoformat(text), "%m-%d %H:%M")


def _read(visit: Visit) -> ResultsAsked:
    said = {name: text for name in (*FILTERS, "after") if (text := visit.text(name).strip())}
    for name in ("min_price", "max_price"):
        if name in said:
            said[name] = str(forms.read_whole(said[name]))
    return forms.check(ResultsAsked, said, visit.words, "product")


def _results(
    visit: Visit, product_id: int, given: ResultsAsked, bounds: Bounds
) -> Listing[ResultOut, Place | None]:
    async def fetch(after: Place | None, most: int) -> Sequence[ResultOut]:
        async with visit.system.store.read() as reader:
            rows = await queries.list_results(reader, product_id, given.wanted, bounds, most, after)
        return [ResultOut.of(row, bounds) for row in rows]

    return Listing(
        fetch=fetch,
        start=None if given.after is None else read_place(given.after, given.sort),
        place_of=lambda one: queries.place_of(one, given.sort),
    )


async def show_removed(visit: Visit) -> Response:
    """Show what was taken out of a product's results, and why, or write it as a file."""
    product = await find_product(visit)

    async def fetch(before: int | None, most: int) -> Sequence[RemovedOut]:
        async with visit.system.store.read() as reader:
            rows = await queries.list_removed(reader, product.id, most, before)
        return [RemovedOut.of(row) for row in rows]

    start = visit.number("before", 0) or None
    listing = Listing(fetch=fetch, start=start, place_of=lambda one: one.id)
    if visit.text("format") == "csv":
        pieces = pagination.walk(listing, None)
        columns = list(RemovedOut.model_fields)
        return await csv_export.download(f"product-{product.id}-removed", columns, pieces)
    shown, more = await pagination.find_page(listing, SHOWN)
    following = shown[-1].id if more else None
    return visit.page("prices/removed.html", product=product, rows=shown, following=following)


PAGES = (
    ("/prices/{id:int}/results", show_results, ("GET",)),
    ("/prices/{id:int}/removed", show_removed, ("GET",)),
)
