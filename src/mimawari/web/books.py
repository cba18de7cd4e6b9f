"""The pages of the books watch: its jobs and their cursors, the day's calls, the last runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup
from starlette.responses import Response

from mimawari.edges import site_status
from mimawari.edges.request_job import is_running
from mimawari.errors import BadInput
from mimawari.kernel.why import why
from mimawari.sites import google_books
from mimawari.watches.books import jobs, queries, quota
from mimawari.watches.books.models import Run
from mimawari.watches.books.queries import JobState
from mimawari.web import books_forms, books_list, books_mail, draw
from mimawari.web.books_forms import NEW_JOB, Typed, name_of, parse_search, read_typed, write_typed
from mimawari.web.visit import Visit
from mimawari.web.written import MOST_ROWS, make_file

A_PAGE = 20
LAST = 15
COMPARED = 5
"""So many runs are looked at for how the site's number of volumes drifts."""
_COLUMNS = (
    "id", "started_at", "ended_at", "stop_reason", "pages", "volumes", "refused", "collected",
    "new_books", "next_index", "total_items", "is_dry", "words",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far the reading has come of what the site says there is."""

    start_index: int
    total: int | None
    drift: int | None
    """How much more there is than the site said in the run before."""
    bar: Markup | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A job as a card shows it."""

    state: JobState
    reach: Reach
    is_under_way: bool
    next_at: datetime | None
    reason: str


async def show(visit: Visit) -> Response:
    """Show how the watch stands."""
    return await _show(visit)


async def _show(visit: Visit, problem: str | None = None, typed: Typed = NEW_JOB) -> Response:
    system, now = visit.system, visit.system.clock.now()
    async with system.store.read() as reader:
        states = await queries.list_states(reader)
        usage = await quota.find_usage(reader, system.settings, now)
        last = await queries.list_last_runs(reader, LAST)
    offset = visit.number("offset", 0)
    limit = await site_status.find_limit(system, jobs.PAGE)
    breaker = await site_status.find_breaker(system, google_books.SITE.name)
    return visit.page(
        "books/index.html",
        422 if problem else 200,
        jobs=[await _make_shown(visit, one) for one in states[offset : offset + A_PAGE]],
        total=len(states),
        limit=A_PAGE,
        offset=offset,
        usage=usage,
        meter=draw.gauge(usage.calls + usage.reserved, usage.limit, visit.words("books.quota")),
        next_day=quota.next_day(now, system.settings),
        day_zone=system.settings.zone.key,
        site_limit=limit,
        limit_reason=visit.reason(limit.reason),
        breaker=breaker,
        is_running=await is_running(system),
        runs=last,
        problem=problem,
        typed=typed,
    )


async def _make_shown(visit: Visit, state: JobState) -> Shown:
    system = visit.system
    member = jobs.member_of(state.job.name)
    answer = await why(system.store, system.clock, system.watches, member)
    async with system.store.read() as reader:
        runs = await queries.list_runs(reader, state.job.id, COMPARED)
    same = [run for run in runs if run.query_set_hash == state.job.query_set_hash]
    return Shown(
        state=state,
        reach=_measure(visit, state, same),
        is_under_way=answer is not None and answer.job_id is not None,
        next_at=answer.next_at if answer else None,
        reason=visit.reason(answer.reason if answer else None),
    )


def _measure(visit: Visit, state: JobState, runs: Sequence[Run]) -> Reach:
    """Measure the cursor against what the site told of last, and that against what it told then."""
    start_index = state.cursor.start_index if state.cursor else 0
    totals = [run.total_items for run in runs if run.total_items is not None]
    total = totals[0] if totals else None
    label = visit.words("books.cursor")
    # Where nothing more is given, what was read is all there is, whatever the site says.
    whole = start_index if state.is_exhausted else total
    return Reach(
        start_index=start_index,
        total=total,
        drift=totals[0] - totals[1] if len(totals) > 1 else None,
        bar=None if whole is None else draw.gauge(start_index, max(whole, 1), label),
    )


async def add(visit: Visit) -> Response:
    """Add a job; what cannot be added is shown again with what is wrong."""
    typed = read_typed(visit)
    try:
        await books_forms.add_job(visit, parse_search(typed, visit.words))
    except BadInput as error:
        return await _show(visit, visit.problem(error), typed)
    return visit.go("/books")


async def show_job(visit: Visit) -> Response:
    """Show one job whole."""
    if visit.text("format") == "csv":
        return await _download(visit)
    return await _show_job(visit)


async def _download(visit: Visit) -> Response:
    async with visit.system.store.read() as reader:
        state = await queries.find_state(reader, name_of(visit))
        runs = await queries.list_runs(reader, state.job.id, MOST_ROWS)
    rows = [[getattr(run, name) for name in _COLUMNS] for run in runs]
    return make_file(f"runs-{state.job.name}", _COLUMNS, rows)


async def _show_job(
    visit: Visit, problem: str | None = None, typed: Typed | None = None
) -> Response:
    offset = visit.number("offset", 0)
    async with visit.system.store.read() as reader:
        state = await queries.find_state(reader, name_of(visit))
        runs = await queries.list_runs(reader, state.job.id, A_PAGE, offset)
        total = await queries.count_runs(reader, state.job.id)
    return visit.page(
        "books/job.html",
        422 if problem else 200,
        shown=await _make_shown(visit, state),
        runs=[(state.job.name, run) for run in runs],
        total=total,
        limit=A_PAGE,
        offset=offset,
        problem=problem,
        typed=typed or write_typed(state.job),
    )


async def change(visit: Visit) -> Response:
    """Change a job; what cannot be is shown again with what is wrong."""
    typed = {**read_typed(visit), "name": name_of(visit)}
    async with visit.system.store.read() as reader:
        await jobs.find_known(reader, typed["name"])
    try:
        await books_forms.change_job(visit, parse_search(typed, visit.words))
    except BadInput as error:
        return await _show_job(visit, visit.problem(error), typed)
    return visit.go(f"/books/jobs/{typed['name']}")


PAGES = (
    ("/books", show, ("GET",)),
    ("/books/jobs", add, ("POST",)),
    ("/books/jobs/{name}", show_job, ("GET",)),
    ("/books/jobs/{name}", change, ("POST",)),
    *books_forms.PAGES,
    *books_list.PAGES,
    *books_mail.PAGES,
)
