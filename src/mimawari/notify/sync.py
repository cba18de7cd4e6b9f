"""Keeps events and who is to be told of them; never the network."""

import json
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, insert, select, update

from mimawari.ids import new_id
from mimawari.kernel.job import NewJob
from mimawari.kernel.ports import Tx
from mimawari.notify import rules
from mimawari.notify.models import How, Send, SendState, Target, Told
from mimawari.notify.queries import list_targets
from mimawari.notify.tables import events, lines, sends
from mimawari.settings import Settings

SCHEME = "notify"
GATHER = "notify.gather"
KIND = "notify.send"
LEAST_KEPT = timedelta(days=2)
"""However short events are kept, none goes before it was told."""


async def fan_out(tx: Tx, told: Told, settings: Settings, now: datetime) -> bool:
    """Put an event down for every target that is told of it, once; say whether it was new."""
    known = await tx.execute(select(events.c.id).where(events.c.id == told.id))
    if known.first() is not None:
        return False
    await _forget(tx, now - max(settings.keep_events, LEAST_KEPT))
    row = {
        "id": told.id,
        "kind": told.kind,
        "watches": json.dumps(told.watches),
        "body": json.dumps(dict(told.body), ensure_ascii=False),
        "at": told.at,
    }
    await tx.execute(insert(events).values(row))
    found = [one for one in await list_targets(tx) if one.setting.enabled]
    for target in found:
        if rules.is_chosen(target.setting, told):
            await _put_down(tx, target, told, settings, now)
    return True


async def _put_down(tx: Tx, target: Target, told: Told, settings: Settings, now: datetime) -> None:
    line = {"target_id": target.id, "event_id": told.id, "send_id": None}
    await tx.execute(insert(lines).values(line))
    if target.setting.how is How.AT_ONCE:
        await gather(tx, target.id, now)
        return
    tx.put(
        NewJob(
            kind=GATHER,
            args={"target_id": target.id},
            dedupe_key=f"{GATHER}:{target.id}",
            run_at=rules.due_at(target.setting, now, settings.zone),
            reason=f"told {target.setting.how}",
        )
    )


async def gather(tx: Tx, target_id: int, now: datetime) -> None:
    """Put all that waits for a target into one message, and send it."""
    send_id = new_id()
    waiting = (lines.c.target_id == target_id) & lines.c.send_id.is_(None)
    count = (await tx.execute(update(lines).where(waiting).values(send_id=send_id))).rowcount
    if not count:
        return
    row: dict[str, Any] = {
        "id": send_id,
        "target_id": target_id,
        "events": count,
        "state": SendState.PENDING,
        "attempts": 0,
        "created_at": now,
    }
    await tx.execute(insert(sends).values(row))
    place = f"{SCHEME}:{target_id}"
    tx.emit(place, KIND, {"send_id": send_id}, destination=place)


async def mark(tx: Tx, send: Send) -> None:
    """Keep how a message stands."""
    values = {
        "state": send.state,
        "attempts": send.attempts,
        "reason": send.reason,
        "report": send.report,
        "ended_at": send.ended_at,
    }
    await tx.execute(update(sends).where(sends.c.id == send.id).values(values))


async def _forget(tx: Tx, before: datetime) -> None:
    """Forget what was told long ago."""
    old = select(events.c.id).where(events.c.at < before)
    # A statement that deletes nothing would still lock where others insert.
    if (await tx.execute(old.limit(1))).first() is None:
        return
    await tx.execute(delete(lines).where(lines.c.event_id.in_(old)))
    await tx.execute(delete(events).where(events.c.at < before))
    over = sends.c.ended_at.is_not(None) & (sends.c.created_at < before)
    await tx.execute(delete(sends).where(over))
