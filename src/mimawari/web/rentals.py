"""The pages of the rentals watch: its limit, queue and searches, what changed, all properties."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from pydantic import BaseModel
from starlette.responses import Response

from mimawari.edges import pagination
from mimawari.errors import BadInput, NotFound
from mimawari.kernel.job import State
from mimawari.kernel.why import why
from mimawari.sites.yahoo_realestate import SITE
from mimawari.watches.rentals import actions, lists, queries, tasks
from mimawari.watches.rentals.api.properties import (
    changes_listing,
    download_changes,
    download_properties,
    properties_listing,
)
from mimawari.watches.rentals.models import USUAL_ROOMS, Kind, RentalList, Status
from mimawari.watches.rentals.queries import Sort
from mimawari.watches.rentals.queue_status import count_queue, find_gauge
from mimawari.watches.rentals.schemas.requests import (
    ChangesAsked,
    PropertiesAsked,
    SearchIn,
    write_place,
)
from mimawari.watches.rentals.schemas.responses import SearchOut
from mimawari.web import draw, forms, rentals_property
from mimawari.web.rentals_changes import tell
from mimawari.web.rentals_timeline import make_timeline
from mimawari.web.visit import Visit

CALLER = "web"
FIELDS = "rentals_field"
M = TypeVar("M", bound=BaseModel)
LAST = 10
A_PAGE = 50
NEW_SEARCH = {"url": "", "every": "1d", "limit": str(USUAL_ROOMS)}
FILTERS = (
    *("status", "min_rent", "max_rent", "min_area", "layout"),
    *("search", "sort", "order", "after"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A saved search, and when it is walked over next."""

    search: SearchOut
    state: str
    next_at: datetime | None
    reason: str


async def show(visit: Visit) -> Response:
    """Show how the watch stands."""
    return await _show(visit)


async def _show(
    visit: Visit, problem: str | None = None, typed: Mapping[str, str] | None = None
) -> Response:
    system = visit.system
    gauge, counts = await find_gauge(system), await count_queue(system)
    given = ChangesAsked(limit=LAST)
    changes, _ = await pagination.find_page(changes_listing(system, given), given.page)
    saved = await _list_saved(visit)
    return visit.page(
        "rentals/index.html",
        422 if problem else 200,
        gauge=gauge,
        meter=draw.gauge(gauge.used, gauge.details_per_hour, visit.words("rentals.limit")),
        reason=visit.reason(gauge.reason),
        breaker_reason=visit.reason(gauge.breaker.reason),
        counts={state.value: getattr(counts, state.value) for state in State},
        is_running=counts.is_running,
        drained_for=system.watches.limit(tasks.DETAIL).spacing * counts.pending,
        timeline=await make_timeline(visit),
        saved=saved,
        changes=[tell(visit, one) for one in changes],
        problem=problem,
        typed=typed or _find_typed(visit, saved),
        site=SITE.name,
    )


def _find_typed(visit: Visit, saved: list[Saved]) -> Mapping[str, str]:
    """Fill the form with a search that is to be changed, or with what is usual."""
    chosen = visit.number("change", 0)
    for one in saved:
        if one.search.id == chosen:
            search = one.search
            return {"url": search.url, "every": search.every, "limit": str(search.limit)}
    return NEW_SEARCH


async def _list_saved(visit: Visit) -> list[Saved]:
    async with visit.system.store.read() as reader:
        found = await lists.list_saved(reader)
        rows = await queries.list_last_runs(reader, [one.id for one in found])
    last = {row.list_id: lists.make_run(row) for row in rows}
    return [await _find_next(visit, one, last.get(one.id)) for one in found]


async def _find_next(visit: Visit, one: RentalList, last: Any) -> Saved:
    system = visit.system
    answer = await why(system.store, system.clock, system.watches, lists.member_of(one.id))
    next_at = answer.next_at if answer else None
    return Saved(
        search=SearchOut.of(one, last, next_at),
        state=answer.state if answer else "",
        next_at=next_at,
        reason=visit.reason(answer.reason if answer else None),
    )


async def save_search(visit: Visit) -> Response:
    """Save a search or change one; what cannot be saved is shown again with what is wrong."""
    typed = {name: visit.form.get(name, "").strip() for name in NEW_SEARCH}
    try:
        limit = forms.read_whole(typed["limit"])
        given = forms.check(SearchIn, {**forms.fill_in(typed), "limit": limit}, visit.words, FIELDS)
        await actions.save_search(visit.system, given.url, given.limit, given.every_for)
    except BadInput as error:
        return await _show(visit, visit.problem(error), typed)
    return visit.go("/rentals#searches")


async def _find_saved(visit: Visit) -> RentalList:
    search_id = int(visit.request.path_params["search_id"])
    async with visit.system.store.read() as reader:
        saved = await lists.list_saved(reader)
    found = next((one for one in saved if one.id == search_id), None)
    if found is None:
        raise NotFound(visit.words("rentals.no_search", id=search_id))
    return found


async def run_search(visit: Visit) -> Response:
    """Have a saved search walked over now, as far as the limits let it."""
    found = await _find_saved(visit)
    await actions.ask_for_list(visit.system, found.url, found.limit, CALLER)
    return visit.go("/rentals#searches")


async def remove_search(visit: Visit) -> Response:
    """Forget a saved search; what it found stays."""
    found = await _find_saved(visit)
    await actions.forget_search(visit.system, found.id)
    return visit.go("/rentals#searches")


def _check(visit: Visit, form: type[M], names: Sequence[str]) -> M:
    """Check what the address asks for."""
    given = forms.fill_in({name: visit.text(name) for name in names})
    return forms.check(form, given, visit.words, FIELDS)


async def list_changes(visit: Visit) -> Response:
    """List what changed, newest first, or write it to a file."""
    names = ("kind", "property_id", "before")
    problem, given = None, ChangesAsked()
    try:
        given = _check(visit, ChangesAsked, names)
    except BadInput as error:
        problem = visit.problem(error)
    listing = changes_listing(visit.system, given)
    if visit.text("format") == "csv" and not problem:
        return await download_changes(listing, None)
    shown, more = await pagination.find_page(listing, A_PAGE)
    return visit.page(
        "rentals/changes.html",
        422 if problem else 200,
        changes=[tell(visit, one) for one in shown],
        following=shown[-1].id if more else None,
        kinds=list(Kind),
        problem=problem,
    )


async def list_properties(visit: Visit) -> Response:
    """List properties as they are asked for, or write them to a file."""
    problem, given = None, PropertiesAsked()
    try:
        given = _check(visit, PropertiesAsked, FILTERS)
    except BadInput as error:
        problem = visit.problem(error)
    listing = properties_listing(visit.system, given)
    if visit.text("format") == "csv" and not problem:
        return await download_properties(listing, None)
    shown, more = await pagination.find_page(listing, A_PAGE)
    async with visit.system.store.read() as reader:
        total = await queries.count_properties(reader, given.wanted)
    last = write_place(queries.place_of(shown[-1], given.sort)) if more else None
    return visit.page(
        "rentals/list.html",
        422 if problem else 200,
        found=shown,
        total=total,
        following=last,
        statuses=list(Status),
        sorts=list(Sort),
        problem=problem,
    )


PAGES = (
    ("/rentals", show, ("GET",)),
    ("/rentals/list", list_properties, ("GET",)),
    ("/rentals/changes", list_changes, ("GET",)),
    ("/rentals/searches", save_search, ("POST",)),
    ("/rentals/searches/{search_id:int}/run", run_search, ("POST",)),
    ("/rentals/searches/{search_id:int}/remove", remove_search, ("POST",)),
    *rentals_property.PAGES,
)
