"""The only source of now and of sleep: real, scaled and virtual."""

import asyncio
import heapq
import itertools
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

# A step of the wall clock is followed at this rate, so that nothing bursts and nothing stalls.
SLEW = 0.05
# Corrections up to this size are what a time daemon does all day and are followed at once.
SMALL_STEP = 2.0
# A difference beyond this is no step of a clock that was right: it had not been set at all.
LARGEST_STEP = 2 * 3600.0


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment in true time: comparable within one boot, whatever is done to the wall clock."""

    wall: datetime
    boot: str
    ticks: float

    def elapsed_since(self, earlier: "Mark") -> timedelta:
        """Tell how long ago `earlier` was; over a reboot or another machine by the wall clock."""
        if self.boot == earlier.boot:
            return timedelta(seconds=max(0.0, self.ticks - earlier.ticks))
        return max(timedelta(0), self.wall - earlier.wall)


@cache
def boot_name() -> str:
    """Name this boot of this machine, so that ticks of two boots are never compared."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return f"process-{uuid.uuid4()}"


def boot_ticks() -> float:
    """Count the seconds since boot, sleep of the machine included where the system tells."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class RealClock:
    """The wall clock, except that it never jumps: a step is followed slowly.

    A process that starts after a step continues from a mark of another one of this boot, so that
    all of them agree.
    """

    def __init__(self, since: Mark | None = None) -> None:
        self._ticks = boot_ticks()
        self._now = time.time()
        if since is not None and since.boot == boot_name():
            steady = since.wall.timestamp() + self._ticks - since.ticks
            if abs(steady - self._now) <= LARGEST_STEP:
                self._now = steady

    def now(self) -> datetime:
        """Return the time, aware and in UTC."""
        ticks, wall = boot_ticks(), time.time()
        passed = max(0.0, ticks - self._ticks)
        steady = self._now + passed
        off = wall - steady
        if abs(off) > SMALL_STEP:
            most = passed * SLEW
            wall = steady + min(most, max(-most, off))
        self._ticks, self._now = ticks, wall
        return datetime.fromtimestamp(wall, UTC)

    def mark(self) -> Mark:
        """Return this moment in true time."""
        return Mark(self.now(), boot_name(), boot_ticks())

    def real_mark(self) -> Mark:
        """Return this moment in true time, as every process of this boot may continue from it."""
        return self.mark()

    async def sleep(self, span: timedelta) -> None:
        """Sleep for as long as said."""
        await asyncio.sleep(max(0.0, span.total_seconds()))


class ScaledClock:
    """A clock on which a second lasts `scale` seconds, counted from an anchor all share."""

    def __init__(self, scale: float, anchor: datetime, since: Mark | None = None) -> None:
        self._scale = scale
        self._anchor = anchor
        self._real = RealClock(since)

    def now(self) -> datetime:
        """Return the scaled time, aware and in UTC."""
        return self._anchor + (self._real.now() - self._anchor) * self._scale

    def mark(self) -> Mark:
        """Return this moment in true time, scaled."""
        real = self._real.mark()
        return Mark(self.now(), f"{real.boot}x{self._scale:g}", real.ticks * self._scale)

    def real_mark(self) -> Mark:
        """Return this moment in true time, not scaled."""
        return self._real.mark()

    async def sleep(self, span: timedelta) -> None:
        """Sleep for as long as said on this clock."""
        await self._real.sleep(span / self._scale)


class VirtualClock:
    """A clock that stands still until it is told to go on, so that days pass in no time."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start
        self._ticks = 0.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        """Return the time, aware and in UTC."""
        return self._now

    def mark(self) -> Mark:
        """Return this moment in true time."""
        return Mark(self._now, "virtual", self._ticks)

    async def sleep(self, span: timedelta) -> None:
        """Sleep until the clock has been moved on by as long as said."""
        if span <= timedelta(0):
            await asyncio.sleep(0)
            return
        wake = asyncio.get_running_loop().create_future()
        ticks = self._ticks + span.total_seconds()
        heapq.heappush(self._sleepers, (ticks, next(self._order), wake))
        await wake

    @property
    def sleeping(self) -> int:
        """How many sleep on this clock now."""
        return sum(not wake.done() for _, _, wake in self._sleepers)

    @property
    def wakes_at(self) -> datetime | None:
        """When the next of those who sleep wakes."""
        ticks = [ticks for ticks, _, wake in self._sleepers if not wake.done()]
        return self._now + timedelta(seconds=min(ticks) - self._ticks) if ticks else None

    async def advance(self, span: timedelta) -> None:
        """Let time pass, waking each sleeper at its moment and in order."""
        end = self._ticks + span.total_seconds()
        while self._sleepers and self._sleepers[0][0] <= end:
            ticks, _, wake = heapq.heappop(self._sleepers)
            self._move(ticks)
            if not wake.done():
                wake.set_result(None)
                await asyncio.sleep(0)
        self._move(end)
        await asyncio.sleep(0)

    def step(self, span: timedelta) -> None:
        """Turn the wall clock without any time passing."""
        self._now += span

    def _move(self, ticks: float) -> None:
        self._now += timedelta(seconds=ticks - self._ticks)
        self._ticks = ticks
