"""Pages of the streams watch: the wall of monitors, one monitor, and a form to add one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select
from starlette.responses import Response

from mimawari.errors import BadInput
from mimawari.store.sql.tables import jobs, schedule
from mimawari.text import clean
from mimawari.watches.streams import actions, queries
from mimawari.watches.streams.actions import Client
from mimawari.watches.streams.models import ACTIVE, Status
from mimawari.watches.streams.queries import Sending, View
from mimawari.watches.streams.rules import due_at
from mimawari.watches.streams.runner import member_of
from mimawari.watches.streams.state import write_config
from mimawari.web.exchanges import find_picture, without_picture
from mimawari.web.streams_form import GROUPS, QUALITIES, fill, parse_monitor
from mimawari.web.streams_lanes import draw_lanes, draw_loudness
from mimawari.web.streams_test import find_tested, try_receiver
from mimawari.web.visit import Visit
from mimawari.web.written import MOST_ROWS, hide_secrets, make_file, write_json

ON_WALL, OVER, EVENTS = 60, 20, 25
DRAWN = 500
"""How many events lanes are drawn from at the most."""
ENDED = tuple(status for status in Status if status not in ACTIVE)
_WELL = {"ok", "unknown"}
_COLUMNS = ("created_at", "event_type", "status", "attempts", "last_error", "sent_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """When a stream is to begin, how far off that is, and from when on it is late."""

    due_at: datetime
    seconds: int
    """How many have passed since then; below nothing while it is still to come."""
    tolerance_for: timedelta | None
    """After how long somebody is told; None where nobody asked for that."""

    @property
    def is_late(self) -> bool:
        """Whether it should have begun."""
        return self.seconds > 0

    @property
    def clock(self) -> str:
        """How far off it is, as on a clock."""
        minutes, seconds = divmod(abs(self.seconds), 60)
        hours, minutes = divmod(minutes, 60)
        sign = "+" if self.seconds >= 0 else "-"
        return f"{sign}{hours:d}:{minutes:02d}:{seconds:02d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A monitor on the wall."""

    view: View
    next_at: datetime | None
    reason: str
    is_looking: bool
    start: Start | None

    @property
    def is_bad(self) -> bool:
        """Whether something is wrong with it now."""
        return not {self.view.video, self.view.audio} <= _WELL

    @property
    def name(self) -> str:
        """What people call it."""
        return self.view.title or self.view.monitor.stream_url


async def show(visit: Visit) -> Response:
    """Show all monitors that are not over, those in alert first, and a page of those that are."""
    if visit.text("format") == "csv":
        return await _download_over(visit)
    wall, offset = visit.number("wall", 0), visit.number("offset", 0)
    async with visit.system.store.read() as reader:
        views, active = await queries.list_views(reader, ACTIVE, ON_WALL, wall)
        over, total = await queries.list_views(reader, ENDED, OVER, offset)
    return visit.page(
        "streams/wall.html",
        cards=sorted(await _make_cards(visit, views), key=lambda card: not card.is_bad),
        active=active,
        on_wall=ON_WALL,
        wall=wall,
        over=over,
        total=total,
        limit=OVER,
        offset=offset,
        can_sign=bool(visit.system.settings.webhook_key.get_secret_value()),
    )


async def _download_over(visit: Visit) -> Response:
    async with visit.system.store.read() as reader:
        over, _ = await queries.list_views(reader, ENDED, MOST_ROWS, 0)
    columns = ("id", "stream_url", "status", "created_at")
    more = ("title", "ended_at", "reason", "blackouts", "silences")
    rows = [
        [
            *(getattr(view.monitor, name) for name in columns),
            *(getattr(view, name) for name in more),
        ]
        for view in over
    ]
    return make_file("monitors", (*columns, *more), rows)


async def _make_cards(visit: Visit, views: Sequence[View]) -> list[Card]:
    members = [member_of(view.monitor.id) for view in views]
    places = select(schedule.c.member, schedule.c.next_at, schedule.c.reason)
    live = select(jobs.c.dedupe_key, jobs.c.state, jobs.c.due_at, jobs.c.reason)
    async with visit.system.store.read() as reader:
        rows = await reader.execute(places.where(schedule.c.member.in_(members)))
        placed = {row.member: row for row in rows}
        rows = await reader.execute(live.where(jobs.c.dedupe_key.in_(members)))
        checked = {row.dedupe_key: row for row in rows}
    now = visit.system.clock.now()
    return [
        _make_card(view, placed.get(member), checked.get(member), now)
        for view, member in zip(views, members, strict=True)
    ]


def _make_card(view: View, placed: Any, checked: Any, now: datetime) -> Card:
    next_at, reason = (placed.next_at, placed.reason or "") if placed else (None, "")
    is_looking = checked is not None and checked.state == "processing"
    if checked is not None and not is_looking:
        next_at, reason = checked.due_at, checked.reason or reason
    return Card(
        view=view,
        next_at=next_at,
        reason=reason,
        is_looking=is_looking,
        start=find_start(view, now),
    )


def find_start(view: View, now: datetime) -> Start | None:
    """Tell how a monitor that waits stands to its time; None where it does not wait for one."""
    config = view.monitor.config
    due = due_at(config, view.release_at)
    if due is None or view.monitor.status not in {Status.INITIALIZING, Status.WAITING}:
        return None
    is_told = config.scheduled_start_time is not None
    tolerance = timedelta(seconds=config.start_delay_tolerance_sec)
    return Start(
        due_at=due,
        seconds=round((now - due).total_seconds()),
        tolerance_for=tolerance if is_told else None,
    )


async def show_one(visit: Visit) -> Response:
    """Show one monitor: its facts, its lanes, and what was told of it."""
    view = await actions.find(visit.system, clean(visit.request.path_params["monitor_id"]))
    if visit.text("format") == "csv":
        return await _download(visit, view)
    offset = visit.number("offset", 0)
    monitor_id = view.monitor.id
    async with visit.system.store.read() as reader:
        told, total = await queries.list_events(reader, monitor_id, EVENTS, offset)
        drawn, _ = await queries.list_events(reader, monitor_id, DRAWN, 0)
        heard = await queries.list_heard(reader, monitor_id)
    (card,) = await _make_cards(visit, [view])
    return visit.page(
        "streams/one.html",
        card=card,
        view=view,
        callback=hide_secrets(view.monitor.callback_url),
        config=write_json(write_config(view.monitor.config)),
        metadata=write_json(view.monitor.metadata) if view.monitor.metadata else None,
        is_active=view.monitor.status in ACTIVE,
        lanes=draw_lanes(visit, view, drawn[::-1]),
        loudness=draw_loudness(visit, view, heard),
        heard=len(heard),
        events=[(event, *_show_payload(event)) for event in told],
        tested=await find_tested(visit),
        total=total,
        drawn=len(drawn),
        limit=EVENTS,
        offset=offset,
    )


def _show_payload(event: Sending) -> tuple[str, str | None]:
    """Write what was sent, and find the picture in it."""
    return write_json(without_picture(event.payload)), find_picture(event.payload)


async def _download(visit: Visit, view: View) -> Response:
    async with visit.system.store.read() as reader:
        told, _ = await queries.list_events(reader, view.monitor.id, MOST_ROWS, 0)
    rows = [[getattr(event, name) for name in _COLUMNS] for event in told]
    return make_file(f"events-{view.monitor.id}", _COLUMNS, rows)


async def add(visit: Visit) -> Response:
    """Ask for a stream to monitor; when it is sent, monitor it."""
    problem = None
    typed = visit.form if visit.request.method == "POST" else None
    if typed is not None:
        try:
            given = parse_monitor(typed, visit.zone, visit.words)
            client = Client(name="pages", is_counted=False)
            monitor = await actions.add(visit.system, given, client)
        except BadInput as error:
            problem = visit.problem(error)
        else:
            return visit.go(f"/streams/{monitor.id}")
    return visit.page(
        "streams/add.html",
        422 if problem else 200,
        problem=problem,
        filled=fill(typed),
        groups=GROUPS,
        qualities=QUALITIES,
        platforms=visit.system.settings.streams_platforms,
        can_sign=bool(visit.system.settings.webhook_key.get_secret_value()),
    )


async def stop(visit: Visit) -> Response:
    """Stop a monitor."""
    view = await actions.stop(visit.system, clean(visit.request.path_params["monitor_id"]))
    return visit.go(f"/streams/{view.monitor.id}")


PAGES = (
    ("/streams", show, ("GET",)),
    ("/streams/new", add, ("GET", "POST")),
    ("/streams/{monitor_id}", show_one, ("GET",)),
    ("/streams/{monitor_id}/stop", stop, ("POST",)),
    ("/streams/{monitor_id}/test", try_receiver, ("POST",)),
)
