"""Brings what is told of monitors to those who asked for them, as signed webhooks."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import httpx2
import structlog
from sqlalchemy import Row, select, update

from mimawari.errors import Gone, Transient
from mimawari.kernel.exchange import Exchange
from mimawari.kernel.ports import Clock, Store, Tx
from mimawari.kernel.values import Event
from mimawari.net.dial import Dialer, transport
from mimawari.net.guard import Guard
from mimawari.net.webhook import Hook, post
from mimawari.settings import Settings
from mimawari.text import one_line
from mimawari.watches.streams import sync
from mimawari.watches.streams.models import Status
from mimawari.watches.streams.runners import stop_in
from mimawari.watches.streams.sync import FAILED, PENDING, SENT
from mimawari.watches.streams.tables import events, monitors

AGAIN_AFTER = tuple(timedelta(seconds=seconds) for seconds in (1, 2, 4))
"""How long after each attempt that failed the next one is made; then there is none."""
_ORDER = ("event_type", "monitor_id", "stream_url", "timestamp", "data", "metadata")

log = structlog.get_logger(component="webhook")


def open_way(settings: Settings) -> httpx2.AsyncBaseTransport:
    """Open the way to receivers, which the guard watches over."""
    return transport(Dialer(Guard.of(settings)))


def find_key(settings: Settings) -> bytes:
    """Find what webhooks are signed with."""
    key = settings.webhook_key.get_secret_value()
    if not key:
        raise Transient("no key to sign with is set any more; set WEBHOOK_SIGNING_KEY")
    return key.encode(errors="surrogateescape")


def write_body(payload: Mapping[str, Any]) -> bytes:
    """Write what is sent, in its order, which not every engine keeps."""
    ordered = {name: payload[name] for name in _ORDER if name in payload}
    return json.dumps(ordered, ensure_ascii=False, separators=(",", ":")).encode()


class WebhookDestination:
    """Posts each event in order, four times at the most; a receiver that takes none ends all."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: Settings,
        way: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._way = way

    async def deliver(self, event: Event) -> Exchange | None:
        """Post an event once, unless that was done or given up before."""
        row = await self._find(str(event.body.get("event_id")))
        if row is None or row.webhook_status == SENT:
            return None
        if row.webhook_status != PENDING:
            raise Gone(row.webhook_last_error or "its monitor has ended")
        if self._way is None:
            self._way = open_way(self._settings)
        try:
            said = await self._post(row, self._way)
        except Transient as error:
            await self._failed(row, event.attempt, error)
            raise
        await self._sent(row.id, event.attempt)
        return said

    async def resend(self, event: Event) -> Exchange:
        """Post an ended event once more; a monitor does not end over what a person tries."""
        row = await self._find(str(event.body.get("event_id")))
        if row is None:
            raise Gone("nothing is kept of this event any more")
        attempt = row.webhook_attempts + 1
        way = self._way or open_way(self._settings)
        try:
            said = await self._post(row, way)
        except Transient as error:
            values = {"webhook_attempts": attempt, "webhook_last_error": one_line(str(error))}
            async with self._store.edit() as tx:
                await _mark(tx, row.id, values)
            raise
        finally:
            if way is not self._way:
                await way.aclose()
        await self._sent(row.id, attempt)
        return said

    async def give_up(self, event: Event, reason: str) -> None:
        """Record that an event is not sent; its monitor goes on with the next one."""
        row = await self._find(str(event.body.get("event_id")))
        if row is not None and row.webhook_status == PENDING:
            values = {"webhook_status": FAILED, "webhook_last_error": one_line(reason)}
            async with self._store.edit() as tx:
                await _mark(tx, row.id, {**values, "webhook_attempts": event.attempt})

    async def _sent(self, event_id: str, attempt: int) -> None:
        sent = {"webhook_status": SENT, "webhook_attempts": attempt}
        async with self._store.edit() as tx:
            await _mark(tx, event_id, {**sent, "sent_at": self._clock.now()})

    async def _find(self, event_id: str) -> Row[Any] | None:
        both = events.join(monitors, monitors.c.id == events.c.monitor_id)
        query = select(events, monitors.c.callback_url).select_from(both)
        async with self._store.read() as reader:
            found: Row[Any] | None = (
                await reader.execute(query.where(events.c.id == event_id))
            ).first()
        return found

    async def _post(self, row: Row[Any], way: httpx2.AsyncBaseTransport) -> Exchange:
        hook = Hook(url=row.callback_url, body=write_body(row.payload), event_id=str(row.id))
        return await post(way, hook, find_key(self._settings), self._clock)

    async def _failed(self, row: Row[Any], attempt: int, error: Transient) -> None:
        """Say when to try again; after the last time end the monitor with all it has to tell."""
        now, reason = self._clock.now(), one_line(str(error))
        is_last = attempt > len(AGAIN_AFTER)
        async with self._store.edit() as tx:
            values = {"webhook_attempts": attempt, "webhook_last_error": reason}
            await _mark(tx, row.id, {**values, **({"webhook_status": FAILED} if is_last else {})})
            if is_last:
                await self._give_up(tx, row, reason)
        if is_last:
            raise Gone(f"given up after {attempt} attempts: {reason}") from error
        error.until = now + AGAIN_AFTER[attempt - 1]

    async def _give_up(self, tx: Tx, row: Row[Any], reason: str) -> None:
        waiting = (events.c.monitor_id == row.monitor_id) & (events.c.webhook_status == PENDING)
        values = {"webhook_status": FAILED, "webhook_last_error": f"not sent: {reason}"}
        await tx.execute(update(events).where(waiting).values(values))
        found = await sync.find_active(tx, row.monitor_id)
        if found is None:
            return
        words = f"the callback failed for good: {reason}"
        if await sync.end(tx, found[0], Status.ERROR, words, self._clock.now()):
            await stop_in(tx, row.monitor_id, self._settings)
            log.error(
                "monitor ended", monitor_id=row.monitor_id, what=row.event_type,
                result=Status.ERROR, reason=words,
            )  # fmt: skip


async def _mark(tx: Tx, event_id: str, values: dict[str, Any]) -> None:
    await tx.execute(update(events).where(events.c.id == event_id).values(values))
