"""The deliverer: brings events out of the outbox to where they are awaited."""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Protocol

import structlog

from mimawari.errors import JobError, Transient
from mimawari.kernel.loop import LONGEST, tick_for_ever
from mimawari.kernel.ports import Clock, Reporter, Store
from mimawari.kernel.reporting import LOG
from mimawari.kernel.signal import OUTBOX
from mimawari.kernel.values import Delivery, Event, Trouble
from mimawari.text import one_line, parse_durations

BATCH = 50
LEASE = timedelta(minutes=1)
BACKOFF = parse_durations("1s 2s 4s 1m 5m 15m 1h 4h 12h")

log = structlog.get_logger(component="deliverer")


class Destination(Protocol):
    """Where events go: one scheme of addresses."""

    async def deliver(self, event: Event) -> None:
        """Deliver or raise: Transient to be asked again, any other JobError to give up."""
        ...


class LogDestination:
    """Writes events to the log, for those who collect it."""

    async def deliver(self, event: Event) -> None:
        """Write one line."""
        log.info("event", what=event.kind, id=event.id, lane=event.key, body=dict(event.body))


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

    async def run(self) -> None:
        """Deliver until cancelled."""
        await tick_for_ever(self.tick, self._bell, self._clock, log)

    async def tick(self) -> datetime:
        """Deliver what is due and tell when to come again."""
        while events := await self._store.outbox.take(self._clock.now(), BATCH, LEASE):
            deliveries = await asyncio.gather(*(self._deliver(event) for event in events))
            await self._store.outbox.settle(deliveries)
        longest = self._clock.now() + LONGEST
        return min(longest, await self._store.outbox.next_at() or longest)

    async def _deliver(self, event: Event) -> Delivery:
        scheme = event.destination.partition(":")[0]
        destination = self._destinations.get(scheme)
        if destination is None:
            return self._failed(event, f"nothing delivers to {scheme!r}")
        try:
            await destination.deliver(event)
        except Transient as error:
            return self._again(event, one_line(str(error)))
        except JobError as error:
            return self._failed(event, one_line(str(error)))
        except Exception as error:  # noqa: BLE001 - one bad event must not stop the others
            self._report(event, error)
            return self._again(event, f"bug: {type(error).__name__}: {one_line(str(error))}")
        log.info("delivered", what=event.kind, id=event.id, result="done", attempt=event.attempt)
        return Delivery(id=event.id, token=event.token, delivered=True)

    def _report(self, event: Event, error: Exception) -> None:
        trouble = Trouble(
            component="deliverer",
            message="delivery failed",
            what=event.kind,
            about={"id": event.id, "attempt": event.attempt},
            error=error,
            line={"what": event.kind, "id": event.id},
        )
        self._reporter.report(trouble)

    def _again(self, event: Event, reason: str) -> Delivery:
        if event.attempt > len(self._backoff):
            return self._failed(event, reason)
        retry_at = self._clock.now() + self._backoff[event.attempt - 1]
        log.warning(
            "delivery waits", what=event.kind, id=event.id, result="retry", reason=reason,
            attempt=event.attempt, next=retry_at.isoformat(),
        )  # fmt: skip
        return Delivery(id=event.id, token=event.token, retry_at=retry_at, reason=reason)

    def _failed(self, event: Event, reason: str) -> Delivery:
        log.error("delivery given up", what=event.kind, id=event.id, result="failed", reason=reason)
        return Delivery(id=event.id, token=event.token, reason=reason)
