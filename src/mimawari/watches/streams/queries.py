"""What the edges of the streams watch read."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, func, select

from mimawari.kernel.naming import Naming
from mimawari.kernel.ports import Reader
from mimawari.watches.streams.models import ACTIVE, Heard, Monitor, State, Status
from mimawari.watches.streams.state import parse_state
from mimawari.watches.streams.sync import make_monitor
from mimawari.watches.streams.tables import events, loudness, monitors, states, stats

NAMING = (
    Naming(
        member="streams:(mon-[0-9a-f]+)(?::told)?",
        parse_id=str,
        names=select(
            monitors.c.id, func.coalesce(states.c.title, monitors.c.stream_url).label("name")
        ).join(states, states.c.monitor_id == monitors.c.id),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """Something that was told and is not over: what, and since when."""

    what: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A monitor as people see it."""

    monitor: Monitor
    stream_status: str
    video: str
    audio: str
    title: str | None
    reason: str | None
    ended_at: datetime | None
    segments: int
    blackouts: int
    silences: int
    last_check_at: datetime | None
    release_at: datetime | None
    alerts: tuple[Open, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """An event as people see it: what was told, and what became of the telling."""

    id: str
    monitor_id: str
    event_type: str
    payload: Any
    status: str
    attempts: int
    last_error: str | None
    created_at: datetime
    sent_at: datetime | None


_ALL = monitors.join(states, states.c.monitor_id == monitors.c.id).join(
    stats, stats.c.monitor_id == monitors.c.id
)


def _query() -> Select[Any]:
    standing = [column for column in states.c if column.name != "monitor_id"]
    counted = [column for column in stats.c if column.name != "monitor_id"]
    return select(monitors, *standing, *counted).select_from(_ALL)


def _view(row: Row[Any]) -> View:
    state = parse_state(row.state)
    return View(
        monitor=make_monitor(row),
        stream_status=row.stream_status,
        video=row.video,
        audio=row.audio,
        title=row.title,
        reason=row.reason,
        ended_at=row.ended_at,
        segments=row.total_segments,
        blackouts=row.blackout_events,
        silences=row.silence_events,
        last_check_at=row.last_check_at,
        release_at=state.source.release_at,
        alerts=_alerts(state) if row.status in ACTIVE else (),
    )


def _alerts(state: State) -> tuple[Open, ...]:
    found = [Open(what=str(one), since=told.started_at) for one, told in state.told.items()]
    if state.fault is not None and state.fault.is_told:
        found.append(Open(what=state.fault.what, since=state.fault.since))
    return tuple(sorted(found, key=lambda one: one.since))


async def find_view(reader: Reader, monitor_id: str) -> View | None:
    """Find a monitor, whether it is over or not."""
    row = (await reader.execute(_query().where(monitors.c.id == monitor_id))).first()
    return _view(row) if row else None


async def list_beginning(reader: Reader, prefix: str, most: int) -> Sequence[str]:
    """List the ids that begin with something, first ones first."""
    # Ids have no letter that stands behind a tilde, and a bound needs no escaping.
    begins = (monitors.c.id >= prefix) & (monitors.c.id < f"{prefix}~")
    query = select(monitors.c.id).where(begins).order_by(monitors.c.id).limit(most)
    return list((await reader.execute(query)).scalars())


async def list_views(
    reader: Reader, status: Status | Sequence[Status] | None, most: int, offset: int
) -> tuple[Sequence[View], int]:
    """List monitors, all or those of one or some states, newest first, and count all of them."""
    page, total = _query(), select(func.count()).select_from(monitors)
    if status is not None:
        chosen = monitors.c.status.in_([status] if isinstance(status, Status) else status)
        page, total = page.where(chosen), total.where(chosen)
    rows = await reader.execute(page.order_by(monitors.c.id.desc()).limit(most).offset(offset))
    views = [_view(row) for row in rows]
    count: int = (await reader.execute(total)).scalar_one()
    return views, count


async def list_events(
    reader: Reader, monitor_id: str | None, most: int, offset: int
) -> tuple[Sequence[Sending], int]:
    """List what was told of a monitor or of all, newest first, and count all of it."""
    page, total = select(events), select(func.count()).select_from(events)
    if monitor_id is not None:
        page = page.where(events.c.monitor_id == monitor_id)
        total = total.where(events.c.monitor_id == monitor_id)
    page = page.order_by(events.c.created_at.desc(), events.c.id.desc())
    rows = await reader.execute(page.limit(most).offset(offset))
    found = [_sending(row) for row in rows]
    count: int = (await reader.execute(total)).scalar_one()
    return found, count


async def list_heard(reader: Reader, monitor_id: str) -> Sequence[Heard]:
    """List how loud a monitor's last hours were, earliest first; there are no more than kept."""
    query = select(loudness.c.at, loudness.c.lufs).where(loudness.c.monitor_id == monitor_id)
    rows = await reader.execute(query.order_by(loudness.c.at))
    return [Heard(at=row.at, lufs=row.lufs) for row in rows]


def _sending(row: Row[Any]) -> Sending:
    return Sending(
        id=str(row.id),
        monitor_id=row.monitor_id,
        event_type=row.event_type,
        payload=row.payload,
        status=row.webhook_status,
        attempts=row.webhook_attempts,
        last_error=row.webhook_last_error,
        created_at=row.created_at,
        sent_at=row.sent_at,
    )
