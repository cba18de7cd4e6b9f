"""The page of one property: its facts, how its rent went, what changed, and to read it again."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from markupsafe import Markup
from starlette.responses import Response

from mimawari.edges import pagination
from mimawari.edges.request_job import is_running
from mimawari.errors import NotFound
from mimawari.watches.rentals import actions, queries
from mimawari.watches.rentals.api.properties import changes_listing
from mimawari.watches.rentals.models import Status
from mimawari.watches.rentals.queue_status import find_gauge
from mimawari.watches.rentals.schemas.requests import ChangesAsked
from mimawari.watches.rentals.schemas.responses import PropertyOut
from mimawari.web import draw
from mimawari.web.draw import Frame, Point, Series
from mimawari.web.rentals_changes import say_ways, tell
from mimawari.web.visit import Visit, write_yen

MOST_SNAPSHOTS = 500
MOST_CHANGES = 200
MANY_DAYS = timedelta(days=5)
CALLER = "web"
NICE = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """When a property may be read, and why not now."""

    is_asked: bool
    """It is in the queue."""
    at: datetime | None
    reason: str | None


async def show(visit: Visit) -> Response:
    """Show one property."""
    row = await _find(visit)
    shown = PropertyOut.of(row)
    given = ChangesAsked(property_id=row.property_id, limit=MOST_CHANGES)
    changes, more = await pagination.find_page(changes_listing(visit.system, given), given.page)
    async with visit.system.store.read() as reader:
        snapshots = await queries.list_snapshots(reader, row.property_id, MOST_SNAPSHOTS)
        count = await queries.count_snapshots(reader, row.property_id)
    ways = [way.model_dump() for way in shown.stations]
    return visit.page(
        "rentals/property.html",
        one=shown,
        ways=say_ways(visit, ways),
        snapshots=count,
        drawn=len(snapshots),
        chart=_draw_rents(visit, snapshots, shown),
        changes=[tell(visit, change) for change in changes],
        has_more=more,
        turn=await _find_turn(visit, shown),
    )


async def _find(visit: Visit) -> Any:
    property_id = visit.request.path_params["property_id"]
    async with visit.system.store.read() as reader:
        row = await queries.find_property(reader, property_id)
    if row is None:
        raise NotFound(visit.words("rentals.no_property"))
    return row


async def _find_turn(visit: Visit, one: PropertyOut) -> Turn:
    """Tell when a property may be read: as its job says, else as limit and breaker do."""
    waiting = await actions.find_waiting(visit.system, one.property_id)
    if waiting is not None:
        return Turn(is_asked=True, at=waiting.next_at, reason=visit.reason(waiting.reason))
    gauge = await find_gauge(visit.system)
    waits = [(gauge.next_at, gauge.reason), (gauge.breaker.until, gauge.breaker.reason)]
    now = visit.system.clock.now()
    later = [(at, reason) for at, reason in waits if at is not None and at > now]
    if later:
        at, reason = max(later, key=lambda wait: wait[0])
        return Turn(is_asked=False, at=at, reason=visit.reason(reason))
    reason = None if await is_running(visit.system) else visit.words("rentals.no_worker")
    return Turn(is_asked=False, at=None, reason=reason)


async def read_again(visit: Visit) -> Response:
    """Have a property read in its turn, and lead back to where that is shown."""
    row = await _find(visit)
    now = visit.system.clock.now()
    await actions.ask_for_detail(visit.system, row.url, CALLER, now)
    return visit.go(f"/rentals/{row.property_id}#again")


def _draw_rents(visit: Visit, snapshots: Sequence[Any], one: PropertyOut) -> Markup | None:
    points = list_points(snapshots, one)
    rents = [rent for _, rent in points if rent is not None]
    if not rents:
        return None
    low, high = frame_of(min(rents), max(rents))
    frame = Frame(start=points[0][0], end=visit.system.clock.now(), top=high, bottom=low)
    series = Series(label=visit.words("rentals_kind.rent"), points=points)
    # Within a few days one date would stand at several places.
    form = "%Y-%m-%d" if frame.end - frame.start >= MANY_DAYS else "%m-%d %H:%M"
    return draw.chart(
        visit.words("rentals.steps"),
        [series],
        frame,
        write_yen,
        lambda at: visit.when(at, form),
    )


def list_points(snapshots: Sequence[Any], one: PropertyOut) -> list[Point]:
    """List the rents, oldest first; while it was not offered, or its rent not told, is a gap."""
    points: list[Point] = [
        (shot.at, shot.rent_yen if shot.status == Status.ACTIVE else None)
        for shot in reversed(snapshots)
    ]
    # Between snapshots it was seen as it was; so it cost the same when it was seen last.
    if points and points[-1][1] is not None and one.last_seen_at > points[-1][0]:
        points.append((one.last_seen_at, points[-1][1]))
    return points


def frame_of(low: float, high: float) -> tuple[float, float]:
    """Choose round values below and above, near enough that small steps are seen."""
    span = max(high - low, high * 0.05, 1.0) / 2
    size = 10.0 ** math.floor(math.log10(span))
    step = next(size * part for part in NICE if size * part >= span)
    bottom = max(math.floor(low / step) * step - step, 0.0)
    return bottom, bottom + 4 * step


PAGES = (
    ("/rentals/{property_id}", show, ("GET",)),
    ("/rentals/{property_id}/read", read_again, ("POST",)),
)
