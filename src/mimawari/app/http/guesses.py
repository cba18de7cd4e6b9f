"""Limits on guessing keys, counted over all processes."""

from datetime import datetime, timedelta

from mimawari.kernel.ports import Clock
from mimawari.store.sql.rates import SqlRates

MOST_KNOWN = 10_000
"""Bounds memory; the number is arbitrary."""


class Guesses:
    """Counts attempts to use unknown keys, over all processes."""

    def __init__(self, rates: SqlRates, clock: Clock) -> None:
        self._rates = rates
        self._clock = clock
        self._until: dict[str, datetime] = {}

    def now(self) -> datetime:
        """Return the time that `take` speaks of."""
        return self._clock.now()

    async def take(self, who: str, most: int, per: timedelta) -> datetime | None:
        """Count an attempt; None if it may be made, else when the next one may."""
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
