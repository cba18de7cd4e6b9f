"""Pages of what is told outside: the events of the outbox, and what became of each."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, select
from starlette.responses import Response

from mimawari.errors import BadInput, NotFound
from mimawari.kernel.deliverer import Resending
from mimawari.kernel.resending import resend
from mimawari.kernel.values import Event
from mimawari.store.sql.arguments import load
from mimawari.store.sql.tables import outbox
from mimawari.text import clean
from mimawari.web.exchanges import list_attempts
from mimawari.web.naming import find_names
from mimawari.web.visit import Visit
from mimawari.web.written import MOST_ROWS, hide_secrets, make_file, write_json

A_PAGE = 30
ENDED = ("delivered", "failed")
STATES = ("pending", *ENDED)
_SHOWN = ("id", "kind", "key", "destination", "state", "attempts", "reason")
_TIMES = ("created_at", "ended_at")
_COLUMNS = (*_SHOWN, *_TIMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """An event on its way, arrived or given up."""

    id: str
    kind: str
    key: str
    destination: str
    state: str
    attempts: int
    reason: str | None
    created_at: datetime
    ended_at: datetime | None


def _make_sent(row: Row[Any]) -> Sent:
    values = {name: getattr(row, name) for name in _COLUMNS}
    return Sent(**{**values, "destination": hide_secrets(row.destination)})


async def show(visit: Visit) -> Response:
    """Show how many events stand how, and a page of them, newest first."""
    state = visit.choice("state", "", *STATES)
    before = visit.text("before")
    if visit.text("format") == "csv":
        found = await _list(visit, state, "", MOST_ROWS)
        rows = [[getattr(one, name) for name in _COLUMNS] for one in found]
        return make_file("deliveries", _COLUMNS, rows)
    found = await _list(visit, state, before, A_PAGE + 1)
    return visit.page(
        "deliveries/list.html",
        events=found[:A_PAGE],
        names=await find_names(visit, [one.key for one in found]),
        following=found[A_PAGE - 1].id if len(found) > A_PAGE else None,
        before=before,
        state=state,
        counts=await visit.system.store.outbox.counts(),
    )


async def _list(visit: Visit, state: str, before: str, most: int) -> list[Sent]:
    query = select(*(outbox.c[name] for name in _COLUMNS)).order_by(outbox.c.id.desc())
    if state:
        query = query.where(outbox.c.state == state)
    if before:
        query = query.where(outbox.c.id < before)
    async with visit.system.store.read() as reader:
        return [_make_sent(row) for row in await reader.execute(query.limit(most))]


async def _find(visit: Visit) -> Row[Any]:
    event_id = clean(visit.request.path_params["event_id"])
    query = select(outbox).where(outbox.c.id == event_id)
    async with visit.system.store.read() as reader:
        row: Row[Any] | None = (await reader.execute(query)).first()
    if row is None:
        raise NotFound(visit.words("deliveries.no_event", id=event_id[:60]))
    return row


def _find_resending(visit: Visit, row: Row[Any]) -> Resending | None:
    """Find where an event may be sent once more: it has ended, and its receiver lets us."""
    system = visit.system
    if row.state not in ENDED:
        return None
    opened = system.watches.open_destinations(system.store, system.clock)
    destination = opened.get(row.destination.partition(":")[0])
    return destination if isinstance(destination, Resending) else None


async def send_again(visit: Visit) -> Response:
    """Make one more attempt of an event that has ended, and show how it went."""
    row = await _find(visit)
    destination = _find_resending(visit, row)
    if destination is None:
        raise BadInput(visit.words("deliveries.not_again"))
    body, _ = load(row.body)
    event = Event(
        id=row.id, key=row.key, kind=row.kind, body=body, destination=row.destination,
        attempt=row.attempts + 1, token=0, created_at=row.created_at,
    )  # fmt: skip
    await resend(visit.system.store, destination, event)
    return visit.go(f"/deliveries/{row.id}#attempts")


async def show_one(visit: Visit) -> Response:
    """Show one event, what it says, and how each attempt to deliver it went."""
    row = await _find(visit)
    body = _parse(row.body)
    return visit.page(
        "deliveries/one.html",
        event=_make_sent(row),
        name=(await find_names(visit, [row.key])).get(row.key),
        body=write_json(body),
        attempts=await list_attempts(visit, row.id),
        can_resend=_find_resending(visit, row) is not None,
        monitor_id=_monitor_of(row.key, body),
    )


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _monitor_of(key: str, body: Any) -> str | None:
    """Name the monitor that an event is of, whose page shows what was sent."""
    is_ours = key.startswith("streams:") and isinstance(body, dict)
    return str(body["monitor_id"]) if is_ours and "monitor_id" in body else None


PAGES = (
    ("/deliveries", show, ("GET",)),
    ("/deliveries/{event_id}", show_one, ("GET",)),
    ("/deliveries/{event_id}/resend", send_again, ("POST",)),
)
