"""Limits on guessing keys, counted over all processes."""

import asyncio
from datetime import datetime, timedelta

from mimawari.errors import StoreDown
from mimawari.kernel.ports import Clock
from mimawari.store.sql.rates import SqlRates

MOST_KNOWN = 10_000
"""Bounds memory; the number is arbitrary."""
STORE_SECONDS = 0.25
"""How long a request waits to be counted by the store, which others may hold."""


class Guesses:
    """Counts attempts to use unknown keys, over all processes."""

    def __init__(self, rates: SqlRates, clock: Clock) -> None:
        self._rates = rates
        self._clock = clock
        self._until: dict[str, datetime] = {}
        self._here: dict[str, datetime] = {}
        self._counting: set[asyncio.Task[datetime | None]] = set()

    def now(self) -> datetime:
        """Return the time that `take` speaks of."""
        return self._clock.now()

    async def take(self, who: str, most: int, per: timedelta) -> datetime | None:
        """Count an attempt; None if it may be made, else when the next one may."""
        self._take_here(who, per / most, per)
        return await self._take(who, most, per)

    async def take_soon(self, who: str, most: int, per: timedelta) -> datetime | None:
        """Count an attempt as `take` does, but let no caller wait for a store that cannot count.

        There the attempts at this process decide, those that `take` counted included.
        """
        here = self._take_here(who, per / most, per)
        counting = asyncio.create_task(self._take(who, most, per))
        self._counting.add(counting)
        counting.add_done_callback(self._end)
        try:
            async with asyncio.timeout(STORE_SECONDS):
                return await asyncio.shield(counting)
        except (StoreDown, TimeoutError):
            return here

    async def _take(self, who: str, most: int, per: timedelta) -> datetime | None:
        now = self._clock.now()
        until = self._until.get(who)
        # Further attempts until then do not reach the database.
        if until is not None and until > now:
            return until
        until = await self._rates.take(who, per / most, per)
        if len(self._until) > MOST_KNOWN:
            self._until.clear()
        if until is None:
            self._until.pop(who, None)
        else:
            self._until[who] = until
        return until

    def _end(self, counting: "asyncio.Task[datetime | None]") -> None:
        self._counting.discard(counting)
        if not counting.cancelled():
            # Whoever asked may have gone on long since.
            counting.exception()

    def _take_here(self, who: str, cost: timedelta, per: timedelta) -> datetime | None:
        """Count an attempt in memory, by the rule of the store."""
        now = self._clock.now()
        if len(self._here) > MOST_KNOWN:
            self._here.clear()
        used_until = max(self._here.get(who, now), now) + cost
        if used_until > now + per:
            return used_until - per
        self._here[who] = used_until
        return None
