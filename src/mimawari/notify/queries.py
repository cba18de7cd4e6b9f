"""Looks at what is kept of notifications; changes nothing."""

import json
from collections.abc import Collection
from datetime import timedelta
from typing import Any

from sqlalchemy import select

from mimawari.errors import NotFound
from mimawari.kernel.ports import Reader, Tx
from mimawari.notify import rules
from mimawari.notify.models import How, Send, SendState, Setting, Target, Told
from mimawari.notify.tables import events, lines, sends, targets

LOOKED_BACK = 500
"""So many events are looked through for the last one of a target's choice."""


def make_target(row: Any) -> Target:
    """Make a target of its row."""
    setting = Setting(
        url=row.url,
        watches=tuple(json.loads(row.watches)),
        kinds=tuple(json.loads(row.kinds)),
        how=How(row.how),
        span=timedelta(microseconds=row.span_us),
        daily_at=row.daily_at,
        language=row.language,
        enabled=bool(row.enabled),
    )
    return Target(id=row.id, name=row.name, setting=setting, changed_at=row.changed_at)


async def list_targets(reader: Reader | Tx) -> list[Target]:
    """List all targets by name."""
    query = select(targets).order_by(targets.c.name)
    return [make_target(row) for row in await reader.execute(query)]


async def find_target(reader: Reader | Tx, target_id: int) -> Target:
    """Find a target by its id, or say that there is none."""
    row = (await reader.execute(select(targets).where(targets.c.id == target_id))).first()
    if row is None:
        raise NotFound(f"no notification target goes by the id {target_id}")
    return make_target(row)


async def find_named(reader: Reader | Tx, name: str) -> Target | None:
    """Find a target by its name."""
    row = (await reader.execute(select(targets).where(targets.c.name == name))).first()
    return None if row is None else make_target(row)


async def list_sends(
    reader: Reader | Tx, target_id: int, most: int, before: str | None = None
) -> list[Send]:
    """List a target's messages, the newest first, a page at a time."""
    query = select(sends).where(sends.c.target_id == target_id).order_by(sends.c.id.desc())
    if before is not None:
        query = query.where(sends.c.id < before)
    return [_make_send(row) for row in await reader.execute(query.limit(most))]


async def find_last_sends(reader: Reader | Tx, ids: Collection[int]) -> dict[int, Send]:
    """Find the last message of each of some targets."""
    found = [(one, await list_sends(reader, one, 1)) for one in ids]
    return {target_id: some[0] for target_id, some in found if some}


async def find_send(reader: Reader | Tx, send_id: str) -> Send | None:
    """Find a message by its id."""
    row = (await reader.execute(select(sends).where(sends.c.id == send_id))).first()
    return None if row is None else _make_send(row)


def _make_send(row: Any) -> Send:
    return Send(**{**row._asdict(), "state": SendState(row.state)})


async def list_told(reader: Reader | Tx, send_id: str) -> list[Told]:
    """List the events of a message."""
    query = (
        select(events)
        .join(lines, lines.c.event_id == events.c.id)
        .where(lines.c.send_id == send_id)
        .order_by(events.c.at, events.c.id)
    )
    return [_make_told(row) for row in await reader.execute(query)]


async def find_last(reader: Reader | Tx, setting: Setting) -> Told | None:
    """Find the last event that a target of such a setting is told of."""
    query = select(events).order_by(events.c.at.desc(), events.c.id.desc()).limit(LOOKED_BACK)
    found = [_make_told(row) for row in await reader.execute(query)]
    return next((told for told in found if rules.is_chosen(setting, told)), None)


def _make_told(row: Any) -> Told:
    given = {"watches": tuple(json.loads(row.watches)), "body": json.loads(row.body)}
    return Told(id=row.id, kind=row.kind, at=row.at, **given)
