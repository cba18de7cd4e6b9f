"""What was sent to a receiver and what it answered, as pages show it: without secrets."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select

from mimawari.kernel.exchange import Exchange
from mimawari.store.sql.tables import attempts
from mimawari.web.visit import Visit
from mimawari.web.written import hide_secrets, write_json

PICTURE = "data:image/jpeg;base64,"
MOST_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """An exchange as a page shows it."""

    address: str
    headers: Mapping[str, str]
    body: str
    status: int | None
    answer: str | None
    took: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt to deliver an event, newest first on its page."""

    number: int
    at: datetime
    result: str
    reason: str | None
    said: Shown | None


def show_exchange(said: Exchange) -> Shown:
    """Write an exchange for people."""
    took = None if said.took_for is None else f"{said.took_for / timedelta(milliseconds=1):,.0f} ms"
    return Shown(
        address=hide_secrets(said.address),
        headers=said.headers,
        body=write_body(said.body),
        status=said.status,
        answer=said.answer,
        took=took,
    )


def write_body(text: str) -> str:
    """Write what was sent over lines; what was cut off is left as it is."""
    try:
        return write_json(without_picture(json.loads(text)))
    except (ValueError, RecursionError):
        return text


def find_picture(payload: Any) -> str | None:
    """Return the picture that an alert carries, as an address of it."""
    facts = payload.get("data") if isinstance(payload, dict) else None
    found = facts.get("snapshot") if isinstance(facts, dict) else None
    return found if isinstance(found, str) and found.startswith(PICTURE) else None


def without_picture(payload: Any) -> Any:
    """Return what was sent, with a word in place of a picture, which nobody reads."""
    if find_picture(payload) is None:
        return payload
    return {**payload, "data": {**payload["data"], "snapshot": f"{PICTURE}…"}}


def dump_exchange(said: Exchange) -> dict[str, Any]:
    """Write an exchange as plain values, to be loaded again."""
    took_us = None if said.took_for is None else said.took_for // timedelta(microseconds=1)
    return {**asdict(said), "took_for": took_us}


def load_exchange(kept: Mapping[str, Any]) -> Exchange:
    """Load an exchange of its plain values."""
    took_us = kept["took_for"]
    took_for = None if took_us is None else timedelta(microseconds=took_us)
    return Exchange(**{**kept, "took_for": took_for})


async def list_attempts(visit: Visit, event_id: str) -> list[Attempt]:
    """List the last attempts to deliver an event, newest first."""
    mine = select(attempts).where(attempts.c.event_id == event_id)
    query = mine.order_by(attempts.c.id.desc()).limit(MOST_SHOWN)
    async with visit.system.store.read() as reader:
        rows = (await reader.execute(query)).all()
    return [
        Attempt(number=row.number, at=row.at, result=row.result, reason=row.reason, said=_said(row))
        for row in rows
    ]


def _said(row: Any) -> Shown | None:
    if row.request is None:
        return None
    answered = {"status": row.status, "answer": row.answer, "took_for": row.took_us}
    return show_exchange(load_exchange({**json.loads(row.request), **answered}))
