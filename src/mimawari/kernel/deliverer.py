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
from mimawari.kernel.values import Delivery, Event, Standing, Trouble
from mimawari.text import one_line, parse_durations

BATCH = 50
LEASE = timedelta(minutes=1)
STOP_FOR = timedelta(seconds=15)
"""How long deliveries that are on their way may go on after a stop was asked for."""
STOOD_STILL = (
    "the process stood still twice while it was delivering this, the second time with nothing else"
    " in hand; the stacks are in the log"
)
BACKOFF = parse_durations("1s 2s 4s 1m 5m 15m 1h 4h 12h")

_DELIVERED = "delivered "

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


@runtime_checkable
class GivingUp(Protocol):
    """A destination that keeps what became of its events, also of those never delivered."""

    async def give_up(self, event: Event, reason: str) -> None:
        """Record that an event is not delivered, and why."""
        ...


class Notes(Protocol):
    """Where a process notes what the next one is to know if this one stands still."""

    @property
    def id(self) -> str:
        """The name under which this process has events in hand."""
        ...

    def put(self, text: str) -> int:
        """Note something, without any wait, and return its place."""
        ...

    def free(self, slot: int) -> None:
        """Forget what was noted in a place."""
        ...


def write_delivered(delivery: Delivery) -> str:
    """Note that an event was delivered, until the store has recorded it."""
    return f"{_DELIVERED}{delivery.id} {delivery.token}"


def read_delivered(note: str) -> Delivery | None:
    """Read such a note; None if it is another one."""
    event_id, _, token = note.removeprefix(_DELIVERED).partition(" ")
    if not note.startswith(_DELIVERED) or not token.isdecimal():
        return None
    return Delivery(id=event_id, token=int(token), delivered=True)


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
        notes: Notes | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._notes = notes
        self._owner = notes.id if notes else None
        self._places: dict[str, int] = {}
        self._is_alone = False
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
        now = self._clock.now()
        longest = now + LONGEST
        if self._is_alone and self._carrying:
            return longest
        self._is_alone = await self._store.outbox.has_suspects(now)
        if self._is_alone and self._carrying:
            # What is on its way comes to its end first, and wakes us then.
            return longest
        for event in await self._take(now):
            carrying = asyncio.create_task(self._carry(event))
            self._carrying.add(carrying)
            carrying.add_done_callback(self._carrying.discard)
        return min(longest, await self._store.outbox.next_at() or longest)

    async def _take(self, now: datetime) -> list[Event]:
        """Take what is due: a suspect alone, anything else together."""
        room = BATCH - len(self._carrying)
        if self._is_alone:
            return await self._store.outbox.take_suspect(now, LEASE, self._owner)
        return await self._store.outbox.take(now, room, LEASE, self._owner) if room else []

    async def _carry(self, event: Event) -> None:
        try:
            ended = await self._deliver(event)
            # Only now: while it was on its way, what had ended by then was taken to be recorded.
            self._ended.append(ended)
            if ended.delivered and self._notes is not None:
                self._places[ended.id] = self._notes.put(write_delivered(ended))
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
        for one in ended:
            if self._notes is not None:
                self._notes.free(self._places.pop(one.id, 0))

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
            if event.standing is Standing.SET_ASIDE:
                if isinstance(destination, GivingUp):
                    await destination.give_up(event, STOOD_STILL)
                return self._failed(event, STOOD_STILL)
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
