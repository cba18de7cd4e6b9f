"""Keeps monitors, what they found and what is told of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from typing import Any

from sqlalchemy import delete, func, insert, select, update

from mimawari.ids import new_id
from mimawari.kernel.ports import Reader, Tx
from mimawari.watches.streams.events import write_payload
from mimawari.watches.streams.models import (
    ACTIVE,
    PICTURE,
    SOUND,
    Heard,
    Monitor,
    Notice,
    State,
    Status,
    Step,
    StreamStatus,
)
from mimawari.watches.streams.notifications import tell_people
from mimawari.watches.streams.state import parse_config, parse_state, write_config, write_state
from mimawari.watches.streams.tables import events, loudness, monitors, states, stats, turns

SCHEME = "stream-webhook"
PENDING, SENT, FAILED = "pending", "sent", "failed"
UNKNOWN, OK = "unknown", "ok"
ERROR = "error"
HEARD_FOR = timedelta(hours=6)
"""How long it is kept how loud a stream was."""


def new_monitor_id() -> str:
    """Name a monitor as its runner may be named too."""
    return f"mon-{new_id().replace('-', '')}"


async def take_turn(tx: Tx) -> None:
    """Hold off everybody else who adds a monitor until this transaction is over."""
    await tx.save(turns, [{"id": 1, "taken": 1}], change=("taken",))


async def is_taken(tx: Tx, stream_url: str) -> bool:
    """Say whether a stream is monitored."""
    query = select(monitors.c.id).where(monitors.c.active_url == stream_url)
    return (await tx.execute(query)).first() is not None


async def count_active(reader: Reader | Tx) -> int:
    """Count the monitors that are not over."""
    query = select(func.count()).select_from(monitors).where(monitors.c.status.in_(ACTIVE))
    count: int = (await reader.execute(query)).scalar_one()
    return count


async def list_made(reader: Reader | Tx, created_by: str, since: datetime) -> Sequence[datetime]:
    """List when somebody has added monitors since a time, earliest first."""
    mine = monitors.join(states, states.c.monitor_id == monitors.c.id)
    query = select(monitors.c.created_at).select_from(mine).order_by(monitors.c.created_at)
    query = query.where(states.c.created_by == created_by, monitors.c.created_at > since)
    return list((await reader.execute(query)).scalars())


async def add(tx: Tx, monitor: Monitor, created_by: str) -> None:
    """Keep a new monitor."""
    values = {
        "id": monitor.id,
        "stream_url": monitor.stream_url,
        "callback_url": monitor.callback_url,
        "config": write_config(monitor.config),
        "metadata": dict(monitor.metadata),
        "status": monitor.status,
        "created_at": monitor.created_at,
        "updated_at": monitor.created_at,
    }
    await tx.execute(insert(monitors).values(values))
    await tx.execute(insert(stats).values(monitor_id=monitor.id))
    standing = {
        "monitor_id": monitor.id,
        "created_by": created_by,
        "stream_status": StreamStatus.UNKNOWN,
        "video": UNKNOWN,
        "audio": UNKNOWN,
        "state": write_state(State()),
    }
    await tx.execute(insert(states).values(standing))


def make_monitor(row: Any) -> Monitor:
    """Make a monitor of its row."""
    return Monitor(
        id=row.id,
        stream_url=row.stream_url,
        callback_url=row.callback_url,
        config=parse_config(row.config),
        metadata=row.metadata or {},
        status=Status(row.status),
        created_at=row.created_at,
    )


async def find_active(reader: Reader | Tx, monitor_id: str) -> tuple[Monitor, State] | None:
    """Find a monitor that is not over, and what it goes on from."""
    both = monitors.join(states, states.c.monitor_id == monitors.c.id)
    query = select(monitors, states.c.state).select_from(both)
    query = query.where(monitors.c.id == monitor_id, monitors.c.status.in_(ACTIVE))
    row = (await reader.execute(query)).first()
    return (make_monitor(row), parse_state(row.state)) if row else None


def tell_health(state: State) -> tuple[str, str]:
    """Tell how picture and sound are: what is wrong and told, or that they are well."""
    if state.fault is not None and state.fault.is_told:
        return ERROR, ERROR
    if state.reading.sequence is None:
        return UNKNOWN, UNKNOWN
    video = next((str(sense) for sense in PICTURE if sense in state.told), OK)
    audio = next((str(sense) for sense in SOUND if sense in state.told), OK)
    return video, audio


async def keep_step(tx: Tx, monitor: Monitor, step: Step, now: datetime, zone: tzinfo) -> bool:
    """Keep what a check found, unless the monitor is over by now; say whether it was kept."""
    if not await set_status(tx, monitor.id, step.status, now):
        return False
    await keep_found(tx, monitor, step, now, zone)
    return True


async def keep_found(tx: Tx, monitor: Monitor, step: Step, now: datetime, zone: tzinfo) -> None:
    """Keep what a check found of a monitor that is not over, and tell of it."""
    video, audio = tell_health(step.state)
    values: dict[str, Any] = {
        "stream_status": step.stream_status,
        "video": video,
        "audio": audio,
        "title": step.state.source.title,
        "reason": step.reason,
        "state": write_state(step.state),
    }
    if step.is_end:
        values["ended_at"] = now
    await tx.execute(update(states).where(states.c.monitor_id == monitor.id).values(values))
    counted = {
        "total_segments": stats.c.total_segments + step.stats.segments,
        "blackout_events": stats.c.blackout_events + step.stats.blackouts,
        "silence_events": stats.c.silence_events + step.stats.silences,
        "last_check_at": now,
    }
    await tx.execute(update(stats).where(stats.c.monitor_id == monitor.id).values(counted))
    await _keep_heard(tx, monitor.id, step.heard)
    await tell(tx, monitor, step.notices, zone)


async def _keep_heard(tx: Tx, monitor_id: str, heard: Sequence[Heard]) -> None:
    """Keep how loud it was, and forget what was hours before."""
    if not heard:
        return
    rows = [{"monitor_id": monitor_id, "at": one.at, "lufs": one.lufs} for one in heard]
    await tx.save(loudness, rows, change=("lufs",))
    old = (loudness.c.monitor_id == monitor_id) & (loudness.c.at < heard[-1].at - HEARD_FOR)
    await tx.execute(delete(loudness).where(old))


async def set_status(tx: Tx, monitor_id: str, status: Status, now: datetime) -> bool:
    """Set how a monitor stands, unless it is over; say whether it was set."""
    mine = (monitors.c.id == monitor_id) & monitors.c.status.in_(ACTIVE)
    changed = update(monitors).where(mine).values(status=status, updated_at=now)
    return bool((await tx.execute(changed)).rowcount)


async def note(tx: Tx, monitor_id: str, reason: str) -> None:
    """Keep why a monitor that is not over does not run yet."""
    await tx.execute(update(states).where(states.c.monitor_id == monitor_id).values(reason=reason))


async def end(tx: Tx, monitor: Monitor, status: Status, reason: str, now: datetime) -> bool:
    """End a monitor that is not over; say whether it was not."""
    if not await set_status(tx, monitor.id, status, now):
        return False
    values = {"reason": reason, "ended_at": now}
    await tx.execute(update(states).where(states.c.monitor_id == monitor.id).values(values))
    return True


async def end_as(tx: Tx, monitor: Monitor, notice: Notice, reason: str, zone: tzinfo) -> bool:
    """End a monitor that stands as it was seen with an error, and tell of it."""
    mine = (monitors.c.id == monitor.id) & (monitors.c.status == monitor.status)
    changed = update(monitors).where(mine).values(status=Status.ERROR, updated_at=notice.at)
    if not (await tx.execute(changed)).rowcount:
        return False
    values = {"reason": reason, "ended_at": notice.at}
    await tx.execute(update(states).where(states.c.monitor_id == monitor.id).values(values))
    await tell(tx, replace(monitor, status=Status.ERROR), [notice], zone)
    return True


async def tell(tx: Tx, monitor: Monitor, notices: Sequence[Notice], zone: tzinfo) -> None:
    """Keep what is to be told, and send it."""
    for notice in notices:
        event_id = new_id()
        values = {
            "id": event_id,
            "monitor_id": monitor.id,
            "event_type": notice.type,
            "payload": write_payload(monitor, notice, zone),
            "webhook_status": PENDING,
            "created_at": notice.at,
        }
        await tx.execute(insert(events).values(values))
        body: Mapping[str, Any] = {"event_id": event_id, "monitor_id": monitor.id}
        tx.emit(f"streams:{monitor.id}", notice.type, body, destination=f"{SCHEME}:{monitor.id}")
        tell_people(tx, monitor, notice.type)
