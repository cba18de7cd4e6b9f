"""The deliverer: brings events out of the outbox to where they are awaited."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Protocol, runtime_checkable

import structlog

from mimawari.errors import JobError, StoreDown, Transient
from mimawari.kernel.exchange import Exchange, find_exchange
from mimawari.kernel.loop import LONGEST, tick_for_ever
from mimawari.kernel.ports import Clock, Reporter, Store
from mimawari.kernel.reporting import LOG
from mimawari.kernel.signal import OUTBOX
from mimawari.kernel.telling import SCHEME as TELL
from mimawari.kernel.values import Delivery, Event, Trouble
from mimawari.text import one_line, parse_durations

BATCH = 50
LEASE = timedelta(minutes=1)
STOP_FOR = timedelta(seconds=15)
"""How long deliveries that are on their way may go on after a stop was asked for."""
BACKOFF = parse_durations("1s 2s 4s 1m 5m 15m 1h 4h 12h")

log = structlog.get_logger(component="deliverer")


class Destination(Protocol):
    """Where events go: one scheme of addresses."""

    async def deliver(self, event: Event) -> Exchange | None:
        """Deliver or raise: Transient to be asked again, at its time if it has one, or give up.

        What was said to and fro is returned, or raised in a NotTaken, where there is such a thing.
        """
        ...


@runtime_checkable
class Resending(Protocol):
    """A destination to which a person may send once more what has ended."""

    async def resend(self, event: Event) -> Exchange:
        """Send an ended event once, under its own id, or raise NotTaken; it is not tried again."""
        ...


class LogDestination:
    """Writes events to the log, for those who collect it."""

    async def deliver(self, event: Event) -> None:
        """Write one line."""
        log.info("event", what=event.kind, id=event.id, lane=event.key, body=dict(event.body))


def in_the_log() -> "dict[str, Destination]":
    """Return what takes events that nobody else is there for: those told to people are logged."""
    log_lines = LogDestination()
    return {"log": log_lines, TELL: log_lines}


class Deliverer:
    """Delivers at least once, in order per key, with one id over all attempts."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        destinations: Mapping[str, Destination],
        *,
        backoff: tuple[timedelta, ...] = BACKOFF,
        reporter: Reporter = LOG,
    ) -> None:
        self._store = store
        self._clock = clock
        self._destinations = destinations
        self._backoff = backoff
        self._reporter = reporter
        self._bell = store.signal.bell(OUTBOX)
        self._carrying: set[asyncio.Task[None]] = set()
        self._ended: list[Delivery] = []

    async def run(self) -> None:
        """Deliver until cancelled; what is on its way then is let come to its end."""
        try:
            await tick_for_ever(self._turn, self._bell, self._clock, log)
        except asyncio.CancelledError:
            await self._stop()
            raise

    async def tick(self) -> datetime:
        """Deliver what is due and tell when to come again."""
        while True:
            until = await self._turn()
            if self._carrying:
                await asyncio.wait(self._carrying, return_when=asyncio.FIRST_COMPLETED)
            elif not self._ended:
                return until

    async def _turn(self) -> datetime:
        """Record what has ended, and start what is due beside what is slow."""
        await self._settle()
        room = BATCH - len(self._carrying)
        if room:
            for event in await self._store.outbox.take(self._clock.now(), room, LEASE):
                carrying = asyncio.create_task(self._carry(event))
                self._carrying.add(carrying)
                carrying.add_done_callback(self._carrying.discard)
        longest = self._clock.now() + LONGEST
        return min(longest, await self._store.outbox.next_at() or longest)

    async def _carry(self, event: Event) -> None:
        try:
            ended = await self._deliver(event)
            # Only now: while it was on its way, what had ended by then was taken to be recorded.
            self._ended.append(ended)
        finally:
            self._bell.ring()

    async def _settle(self) -> None:
        ended, self._ended = self._ended, []
        try:
            if ended:
                await self._store.outbox.settle(ended)
        except StoreDown:
            self._ended = ended + self._ended
            raise

    async def _stop(self) -> None:
        if self._carrying:
            await asyncio.wait(self._carrying, timeout=STOP_FOR.total_seconds())
        late = tuple(self._carrying)
        for carrying in late:
            carrying.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        # What cannot be recorded now is delivered again when its lease has run out.
        with suppress(StoreDown):
            await self._settle()

    async def _deliver(self, event: Event) -> Delivery:
        scheme = event.destination.partition(":")[0]
        destination = self._destinations.get(scheme)
        if destination is None:
            return self._failed(event, f"nothing delivers to {scheme!r}")
        try:
            exchange = await destination.deliver(event)
        except Transient as error:
            again = self._again(event, one_line(str(error)), error.until)
            return replace(again, exchange=find_exchange(error))
        except JobError as error:
            failed = self._failed(event, one_line(str(error)))
            return replace(failed, exchange=find_exchange(error))
        except Exception as error:  # noqa: BLE001 - one bad event must not stop the others
            self._report(event, error)
            return self._again(event, f"bug: {type(error).__name__}: {one_line(str(error))}")
        log.info("delivered", **_name(event), result="done", attempt=event.attempt)
        return Delivery(id=event.id, token=event.token, delivered=True, exchange=exchange)

    def _report(self, event: Event, error: Exception) -> None:
        trouble = Trouble(
            component="deliverer",
            message="delivery failed",
            what=event.kind,
            about={"id": event.id, "attempt": event.attempt},
            error=error,
            line=_name(event),
        )
        self._reporter.report(trouble)

    def _again(self, event: Event, reason: str, until: datetime | None = None) -> Delivery:
        if until is None and event.attempt > len(self._backoff):
            return self._failed(event, reason)
        retry_at = until or self._clock.now() + self._backoff[event.attempt - 1]
        log.warning(
            "delivery waits", **_name(event), result="retry", reason=reason,
            attempt=event.attempt, next=retry_at.isoformat(),
        )  # fmt: skip
        return Delivery(id=event.id, token=event.token, retry_at=retry_at, reason=reason)

    def _failed(self, event: Event, reason: str) -> Delivery:
        log.error("delivery given up", **_name(event), result="failed", reason=reason)
        return Delivery(id=event.id, token=event.token, reason=reason)


def _name(event: Event) -> dict[str, Any]:
    """Return what every line about an event has."""
    return {"what": event.kind, "id": event.id, "lane": event.key}
