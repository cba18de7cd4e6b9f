"""Bells: how one who sleeps until a time is woken when something earlier comes."""

import asyncio
from collections import defaultdict
from datetime import datetime
from weakref import WeakSet

from mimawari.kernel.ports import Clock

JOBS = "jobs"
SCHEDULE = "schedule"
OUTBOX = "outbox"
ENDS = "ends"
"""Rung in the process where a job ends; who waits in another one looks now and then."""
TOPICS = (JOBS, SCHEDULE, OUTBOX)


class Bell:
    """One sleeper's bell; a ring while nobody waits is kept for the next wait."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Wake the sleeper, now or at its next wait."""
        self._rung.set()

    async def wait(self, clock: Clock, until: datetime) -> bool:
        """Wait for a ring or a time, whichever is first; say whether it was a ring."""
        if not self._rung.is_set():
            await self._wait(clock, until)
        rung = self._rung.is_set()
        self._rung.clear()
        return rung

    async def _wait(self, clock: Clock, until: datetime) -> None:
        span = until - clock.now()
        sleepers = {
            asyncio.ensure_future(self._rung.wait()),
            asyncio.ensure_future(clock.sleep(span)),
        }
        try:
            await asyncio.wait(sleepers, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for sleeper in sleepers:
                sleeper.cancel()


class LocalSignal:
    """Rings the bells of this process."""

    def __init__(self) -> None:
        self._bells: defaultdict[str, WeakSet[Bell]] = defaultdict(WeakSet)

    def bell(self, *topics: str) -> Bell:
        """Return a bell that rings for these topics."""
        bell = Bell()
        for topic in topics:
            self._bells[topic].add(bell)
        return bell

    def tell(self, topic: str) -> None:
        """Ring every bell of a topic."""
        for bell in tuple(self._bells[topic]):
            bell.ring()
