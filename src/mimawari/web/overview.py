"""The overview: what is wrong, what comes next and why, a tile a watch, what was told last."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from starlette.responses import Response

from mimawari.columns import begins_with
from mimawari.kernel.incidents import Incident, list_incidents, name_of
from mimawari.kernel.why import Why, why
from mimawari.store.sql.tables import outbox, schedule
from mimawari.watches.streams.models import ACTIVE
from mimawari.watches.streams.queries import Open, list_views
from mimawari.web.naming import find_names
from mimawari.web.tiles import list_tiles
from mimawari.web.visit import Visit

SOON = 8
LAST = 8
MOST = 20
OURS = "notify:"
"""What is on the schedule for ourselves, and is nobody's target."""
LOOKED_AT = 200
"""How many monitors are looked at for what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """Something that is not as it should be, as a visitor reads it."""

    what: str
    state: str
    reason: str
    link: str
    until: datetime | None = None


async def show(visit: Visit) -> Response:
    """Show how everything stands."""
    counts = await visit.system.store.queue.counts()
    soon, events = await _list_soon(visit), await _list_events(visit)
    members = [*(one.subject for one in soon), *(event.key for event in events)]
    return visit.page(
        "overview.html",
        incidents=await _list_wrong(visit),
        soon=soon,
        events=events,
        names=await find_names(visit, members),
        watched=[watch.name for watch in visit.system.watches.all],
        counts={state.value: count for state, count in counts.items()},
        tiles=await list_tiles(visit),
    )


async def _list_wrong(visit: Visit) -> list[Wrong]:
    after = visit.system.settings.incident_after
    found = (await list_incidents(visit.system.store, after))[:MOST]
    names = await find_names(visit, [one.subject for one in found])
    return [_say(visit, one, names) for one in found] + await _list_alerted(visit)


def _say(visit: Visit, one: Incident, names: Mapping[str, str]) -> Wrong:
    times = visit.words("overview.failures", n=one.failures)
    return Wrong(
        what=name_of(one.subject, names),
        state=one.state,
        reason=f"{times} {visit.reason(one.reason)}",
        link=f"/queue/{one.job_id}" if one.job_id else "/queue",
        until=one.until,
    )


async def _list_alerted(visit: Visit) -> list[Wrong]:
    """List the streams of which something is wrong now."""
    async with visit.system.store.read() as reader:
        views, _ = await list_views(reader, ACTIVE, LOOKED_AT, 0)
    return [
        Wrong(
            what=view.title or view.monitor.stream_url,
            state="failed",
            reason=_say_alert(visit, alert),
            link=f"/streams/{view.monitor.id}",
        )
        for view in views
        for alert in view.alerts
    ][:LAST]


def _say_alert(visit: Visit, alert: Open) -> str:
    what = visit.words.maybe("monitor", alert.what)
    return visit.words("overview.alerted", what=what, since=visit.ago(alert.since))


async def _list_soon(visit: Visit) -> list[Why]:
    """List what runs next, with what else stands in its way."""
    system = visit.system
    watched = ~begins_with(schedule.c.member, OURS)
    query = select(schedule.c.member).where(watched).order_by(schedule.c.next_at).limit(SOON)
    async with system.store.read() as reader:
        members = list((await reader.execute(query)).scalars())
    answers = [await why(system.store, system.clock, system.watches, one) for one in members]
    return [answer for answer in answers if answer is not None]


async def _list_events(visit: Visit) -> list[Any]:
    shown = ("id", "kind", "key", "destination", "state", "created_at")
    query = select(*(outbox.c[name] for name in shown)).order_by(outbox.c.id.desc()).limit(LAST)
    async with visit.system.store.read() as reader:
        return list((await reader.execute(query)).all())


PAGES = (("/", show, ("GET",)),)
