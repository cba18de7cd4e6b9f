"""Routes of the site's lists: walk over one now, and saved searches."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from mimawari.edges.request_job import Later
from mimawari.edges.routes import SystemOf
from mimawari.edges.system import System
from mimawari.errors import NotFound
from mimawari.watches.rentals import actions, lists, queries
from mimawari.watches.rentals.models import RentalList, Run
from mimawari.watches.rentals.queue_status import count_queue
from mimawari.watches.rentals.schemas.requests import ListIn, RunId, SearchId, SearchIn
from mimawari.watches.rentals.schemas.responses import SearchesOut, SearchOut, WalkLaterOut, WalkOut

lists_router = APIRouter()
WAIT_FOR = timedelta(seconds=60)
_LATER: dict[int | str, dict[str, Any]] = {
    202: {"model": WalkLaterOut, "description": "The walk is under way; ask for it again later."}
}


@lists_router.post("/scrape/list", response_model=WalkOut, responses=_LATER)
async def walk_over_list(system: SystemOf, given: ListIn) -> WalkOut | JSONResponse:
    """Walk over a list and enqueue the rooms that are new; no room's own page is read by this."""
    run_id = await actions.ask_for_list(system, given.url, given.limit, "api")
    until = system.clock.now() + WAIT_FOR
    return await _answer(system, run_id, await actions.wait_for_run(system, run_id, until))


@lists_router.get("/scrape/list/{run_id}", response_model=WalkOut, responses=_LATER)
async def show_walk(system: SystemOf, run_id: RunId) -> WalkOut | JSONResponse:
    """Show a walk over a list, without waiting for its end."""
    found = await actions.wait_for_run(system, run_id, system.clock.now())
    return await _answer(system, run_id, found)


async def _answer(system: System, run_id: str, found: Run | Later) -> WalkOut | JSONResponse:
    queue_status = await count_queue(system)
    if isinstance(found, Later):
        later = WalkLaterOut.on(found, run_id, queue_status)
        return JSONResponse(later.model_dump(mode="json"), 202)
    async with system.store.read() as reader:
        walked = await lists.find_list(reader, found.list_id)
    if walked is None:
        raise NotFound(f"the list of the walk {run_id} was removed")
    return WalkOut.over(found, walked.url, queue_status)


@lists_router.get("/searches")
async def list_searches(system: SystemOf) -> SearchesOut:
    """List the saved searches, each with how much its last walk saw."""
    async with system.store.read() as reader:
        saved = await lists.list_saved(reader)
    return SearchesOut(searches=await _show(system, saved))


async def _show(system: System, saved: Sequence[RentalList]) -> list[SearchOut]:
    async with system.store.read() as reader:
        rows = await queries.list_last_runs(reader, [one.id for one in saved])
    last = {row.list_id: lists.make_run(row) for row in rows}
    shown = []
    for one in saved:
        entry = await system.store.schedule.find(lists.member_of(one.id))
        shown.append(SearchOut.of(one, last.get(one.id), entry.next_at if entry else None))
    return shown


@lists_router.post("/searches", status_code=201)
async def save_search(system: SystemOf, given: SearchIn) -> SearchOut:
    """Walk over a list now and again, from now on; one that is saved already is changed."""
    found = await actions.save_search(system, given.url, given.limit, given.every_for)
    (shown,) = await _show(system, [found])
    return shown


@lists_router.delete("/searches/{search_id}", status_code=204)
async def forget_search(system: SystemOf, search_id: SearchId) -> None:
    """Walk over a list no more; the properties it showed stay."""
    if not await actions.forget_search(system, search_id):
        raise NotFound(f"no saved search goes by the id {search_id}; GET /api/searches lists them")
