"""Routes of the crawls: crawl now, and what crawls have found and taken out."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from mimawari.edges import csv_export, pagination
from mimawari.edges.pagination import Listing
from mimawari.edges.routes import SystemOf
from mimawari.edges.system import System
from mimawari.watches.prices import actions, market, queries
from mimawari.watches.prices.actions import Asked, Stage, Standing
from mimawari.watches.prices.queries import Place
from mimawari.watches.prices.schemas.requests import (
    ExecuteAsked,
    ExecuteIn,
    ProductId,
    RemovedAsked,
    ResultsAsked,
    read_place,
    write_place,
)
from mimawari.watches.prices.schemas.responses import (
    CrawlOut,
    CrawlsOut,
    RemovedOut,
    RemovedPageOut,
    ResultOut,
    ResultsOut,
)

crawl_router = APIRouter(prefix="/crawl")
NDJSON = "application/x-ndjson"
_LINES = (
    '{"step":"pages","productId":1,"jobId":"019f…","pagesRead":3}\n'
    '{"step":"over","crawl":{"productId":1,"state":"done","found":240}}\n'
    '{"crawls":[{"productId":1,"state":"done","found":240}]}\n'
)
_EXECUTED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "All crawls are over. With `Accept: application/x-ndjson`: a line for each"
        " step while they are under way, and this object as the last one, however they stand.",
        "content": {NDJSON: {"schema": {"type": "string"}, "example": _LINES}},
    },
    202: {"model": CrawlsOut, "description": "Some are not over: when they may run, and why then."},
}


@crawl_router.post("/execute", response_model=CrawlsOut, responses=_EXECUTED)
async def execute(
    system: SystemOf,
    request: Request,
    query: Annotated[ExecuteAsked, Query()],
    given: ExecuteIn | None = None,
) -> Response:
    """Crawl a product, or all that are enabled, before others.

    Waits for the lists; the items' own pages are read later. A crawl that failed says so itself.
    """
    chosen = await actions.ask_for_crawls(system, given.product_id if given else None)
    if query.wait == "false":
        return JSONResponse(_shown(await _stand(system, chosen)), 202)
    until = system.clock.now() + actions.WAIT_FOR
    steps = actions.follow(system, chosen, until)
    if _wants_lines(request):
        return StreamingResponse(_lines(system, chosen, steps), media_type=NDJSON)
    async for _ in steps:
        pass
    stands = await _stand(system, chosen)
    return JSONResponse(_shown(stands), 200 if all(one.is_over for one in stands) else 202)


def _wants_lines(request: Request) -> bool:
    kinds = request.headers.get("accept", "").lower().split(",")
    return any(kind.split(";")[0].strip() == NDJSON for kind in kinds)


async def _stand(system: System, chosen: Sequence[Asked]) -> list[Standing]:
    return [await actions.find_standing(system, one) for one in chosen]


def _shown(crawls: Sequence[Standing]) -> dict[str, Any]:
    shown = CrawlsOut(crawls=[CrawlOut.of(one) for one in crawls])
    return shown.model_dump(mode="json", by_alias=True)


async def _lines(
    system: System, chosen: Sequence[Asked], steps: AsyncIterator[Standing]
) -> AsyncIterator[str]:
    async for one in steps:
        shown = CrawlOut.of(one).model_dump(mode="json", by_alias=True)
        if one.is_over:
            yield _line({"step": "over", "crawl": shown})
        elif one.stage is Stage.WAITING:
            waits = ("productId", "jobId", "nextAt", "reason")
            yield _line({"step": "waits", **{name: shown[name] for name in waits}})
        else:
            named = ("productId", "jobId", "pagesRead")
            yield _line({"step": "pages", **{name: shown[name] for name in named}})
    yield _line(_shown(await _stand(system, chosen)))


def _line(said: dict[str, Any]) -> str:
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")) + "\n"


@crawl_router.get("/results/{product_id}", response_model=ResultsOut, responses=csv_export.CSV)
async def list_results(
    system: SystemOf, product_id: ProductId, given: Annotated[ResultsAsked, Query()]
) -> ResultsOut | Response:
    """List what crawls have found of a product, each with why it is left out of the figures."""
    listing = await _results(system, product_id, given)
    if given.format == "csv":
        pieces = pagination.walk(listing, given.limit)
        name = f"product-{product_id}-results"
        return await csv_export.download(name, list(ResultOut.model_fields), pieces)
    shown, more = await pagination.find_page(listing, given.page)
    following = write_place(queries.place_of(shown[-1], given.sort)) if more else None
    return ResultsOut(results=shown, next=following)


async def _results(
    system: System, product_id: int, given: ResultsAsked
) -> Listing[ResultOut, Place | None]:
    now, settings = system.clock.now(), system.settings
    async with system.store.read() as reader:
        await queries.find_known(reader, product_id)
        worth = await market.find_market(reader, product_id, market.USUAL_DAYS, now, settings)
    bounds = worth.bounds

    async def fetch(after: Place | None, most: int) -> Sequence[ResultOut]:
        async with system.store.read() as reader:
            rows = await queries.list_results(reader, product_id, given.wanted, bounds, most, after)
        return [ResultOut.of(row, bounds) for row in rows]

    return Listing(
        fetch=fetch,
        start=None if given.after is None else read_place(given.after, given.sort),
        place_of=lambda one: queries.place_of(one, given.sort),
    )


@crawl_router.get("/removed/{product_id}", response_model=RemovedPageOut, responses=csv_export.CSV)
async def list_removed(
    system: SystemOf, product_id: ProductId, given: Annotated[RemovedAsked, Query()]
) -> RemovedPageOut | Response:
    """List what was taken out of a product's results, and why."""
    async with system.store.read() as reader:
        await queries.find_known(reader, product_id)

    async def fetch(before: int | None, most: int) -> Sequence[RemovedOut]:
        async with system.store.read() as reader:
            rows = await queries.list_removed(reader, product_id, most, before)
        return [RemovedOut.of(row) for row in rows]

    listing = Listing(fetch=fetch, start=given.before, place_of=lambda one: one.id)
    if given.format == "csv":
        pieces = pagination.walk(listing, given.limit)
        name = f"product-{product_id}-removed"
        return await csv_export.download(name, list(RemovedOut.model_fields), pieces)
    shown, more = await pagination.find_page(listing, given.page)
    return RemovedPageOut(removed=shown, next=shown[-1].id if more else None)
