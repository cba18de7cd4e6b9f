"""The port of the outbox: events on their way out."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from mimawari.kernel.values import Delivery, Event, NewEvent, Released


class Outbox(Protocol):
    """Events on their way out: at least once, in order per key."""

    async def put(self, events: Sequence[NewEvent]) -> None:
        """Accept events for good."""

    async def take(
        self, now: datetime, most: int, lease_for: timedelta, owner: str | None = None
    ) -> list[Event]:
        """Take the first undelivered event of each key whose time has come, but no suspects."""

    async def has_suspects(self, now: datetime) -> bool:
        """Tell whether events whose time has come are to be taken alone."""

    async def take_suspect(
        self, now: datetime, lease_for: timedelta, owner: str | None = None
    ) -> list[Event]:
        """Take one suspected event whose time has come, if there is any."""

    async def release(self, owner: str, *, suspect: bool) -> list[Released]:
        """Give back what a process had in hand that its guard ended, due at once.

        If they are suspect, each is tried once more, alone; one that was alone is set aside.
        """

    async def settle(self, deliveries: Sequence[Delivery]) -> frozenset[str]:
        """Record how attempts ended and return the ids that counted; a stale token is refused."""

    async def record(self, delivery: Delivery) -> bool:
        """Record a person's own attempt of an event that has ended; say whether it had.

        One that arrived is delivered from now on; one that did not stays as it was.
        """

    async def next_at(self) -> datetime | None:
        """Tell when the next event may be taken."""

    async def counts(self) -> Mapping[str, int]:
        """Count the events by state: pending, delivered, failed."""

    async def purge(self, before: datetime) -> int:
        """Forget events that ended before a time; say how many."""
