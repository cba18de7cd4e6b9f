"""The last day of the rentals watch as lanes: pauses, the breaker, walks over lists, details."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from markupsafe import Markup

from mimawari.kernel.job import JobView, State
from mimawari.kernel.values import Pause
from mimawari.sites.yahoo_realestate import SITE
from mimawari.watches.rentals import queries, tasks
from mimawari.web import draw
from mimawari.web.draw import Frame, Lane
from mimawari.web.visit import Visit

DAY = timedelta(days=1)
MARK_FOR = timedelta(minutes=4)
"""How wide a moment is drawn, so that it can be seen and pointed at."""
MOST = 150
TOLD = 8
"""How many pauses are told in words, newest first."""
LOOKS = {State.DONE: "ok", State.FAILED: "error", State.PERMANENT_FAIL: "waiting"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """What is drawn, and the pauses in words."""

    drawn: Markup
    pauses: Sequence[Pause]


async def make_timeline(visit: Visit) -> Timeline:
    """Draw the last day, and on to the end of a pause that is not over."""
    now = visit.system.clock.now()
    pauses = await _list_pauses(visit, now - DAY)
    frame = Frame(start=now - DAY, end=max([now, *(one.until for one in pauses)]), top=1)
    rows = [
        Lane(label=visit.words("rentals.lane_hold"), spans=_spans(visit, pauses, "hold")),
        Lane(label=visit.words("rentals.lane_breaker"), spans=_spans(visit, pauses, "breaker")),
        Lane(label=visit.words("rentals.lane_lists"), spans=await _walks(visit, now)),
        Lane(label=visit.words("rentals.lane_details"), spans=await _details(visit, now)),
    ]
    title = visit.words("rentals.timeline")
    drawn = draw.lanes(title, rows, frame, lambda at: visit.when(at, "%m-%d %H:%M"))
    return Timeline(drawn=drawn, pauses=pauses[: -TOLD - 1 : -1])


async def _list_pauses(visit: Visit, since: datetime) -> list[Pause]:
    """List when nobody read a property: its limit was on hold, or the site's breaker open."""
    found = await visit.system.store.pauses.list(since, [SITE.name, tasks.DETAIL])
    return [replace(one, reason=visit.reason(one.reason)) for one in found]


def _spans(visit: Visit, pauses: Sequence[Pause], what: str) -> list[Any]:
    return [
        (one.since, one.until, "cooling", f"{_range(visit, one.since, one.until)} {one.reason}")
        for one in pauses
        if one.what == what
    ]


def _range(visit: Visit, since: datetime, until: datetime | None) -> str:
    return f"{visit.when(since)} – {visit.when(until)}"


async def _walks(visit: Visit, now: datetime) -> list[Any]:
    async with visit.system.store.read() as reader:
        rows = await queries.list_runs_since(reader, now - DAY, MOST)
    return [
        (
            row.started_at,
            max(row.ended_at or now, row.started_at + MARK_FOR),
            "ok" if row.ended_at else "waiting",
            _say_walk(visit, row),
        )
        for row in rows
    ]


def _say_walk(visit: Visit, row: Any) -> str:
    found = visit.words("rentals.found", found=row.found, new=row.new_to_queue)
    return f"{_range(visit, row.started_at, row.ended_at)} {row.url} {found}"


async def _details(visit: Visit, now: datetime) -> list[Any]:
    queue = visit.system.store.queue
    found = [
        job for state in LOOKS for job in await queue.list(MOST, state=state, kind=tasks.DETAIL)
    ]
    return [*_marks(visit, found, now - DAY)]


def _marks(visit: Visit, found: Sequence[JobView], since: datetime) -> Iterator[Any]:
    for job in found:
        if job.ended_at is None or job.ended_at < since:
            continue
        state = visit.words.maybe("state", job.state)
        said = f"{visit.when(job.ended_at)} {state} {job.args.get('property_id', '')}"
        yield job.ended_at, job.ended_at + MARK_FOR, LOOKS[job.state], said
