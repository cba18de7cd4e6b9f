"""The calls of a day: reserved before each, and counted in the commit that keeps what it brought.

A process that dies in between leaves its call reserved, which counts as made: the site may have
seen it.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any

from sqlalchemy import select, update

from mimawari.kernel.ports import Reader, Store, Tx
from mimawari.settings import Settings
from mimawari.watches.books.tables import usage

PROVIDER = "google_books"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call that is on its way, and the day that it counts for."""

    day: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The calls of a day: over, on their way or lost with their process, and how many there are."""

    day: str
    calls: int
    reserved: int
    limit: int

    @property
    def left(self) -> int:
        """How many more may be made."""
        return max(0, self.limit - self.calls - self.reserved)


def _of(day: str) -> Any:
    return (usage.c.provider == PROVIDER) & (usage.c.day == day)


def _day(now: datetime, settings: Settings) -> str:
    return now.astimezone(settings.zone).date().isoformat()


def next_day(now: datetime, settings: Settings) -> datetime:
    """Tell when the next day begins, and with it new calls."""
    tomorrow = now.astimezone(settings.zone).date() + timedelta(days=1)
    return datetime.combine(tomorrow, time(), settings.zone).astimezone(UTC)


async def reserve(store: Store, settings: Settings, now: datetime) -> Call | None:
    """Reserve one call of today over all processes; None if all are used up."""
    day = _day(now, settings)
    mine = {"provider": PROVIDER, "day": day, "calls": 0, "reserved": 0}
    is_left = usage.c.calls + usage.c.reserved < settings.books_calls
    taken = update(usage).where(_of(day), is_left).values(reserved=usage.c.reserved + 1)
    async with store.edit() as tx:
        # Where the day is there already, this changes nothing.
        await tx.save(usage, [mine], change=("day",))
        done = await tx.execute(taken)
    return Call(day=day) if done.rowcount else None


async def settle(tx: Tx, call: Call) -> None:
    """Count a call that is over."""
    counts = {"calls": usage.c.calls + 1, "reserved": usage.c.reserved - 1}
    await tx.execute(update(usage).where(_of(call.day)).values(counts))


async def release(tx: Tx, call: Call) -> None:
    """Give back a call that was never made."""
    await tx.execute(update(usage).where(_of(call.day)).values(reserved=usage.c.reserved - 1))


async def find_usage(reader: Reader | Tx, settings: Settings, now: datetime) -> Usage:
    """Tell how many of today's calls are used."""
    day = _day(now, settings)
    row = (await reader.execute(select(usage).where(_of(day)))).first()
    calls, reserved = (row.calls, row.reserved) if row else (0, 0)
    return Usage(day=day, calls=calls, reserved=reserved, limit=settings.books_calls)
