"""Each client's requests a minute, over all API processes.

A read is counted in memory and merged with the other processes' counts every second, so that a
count never makes a read wait for the store. A write is counted in the store before it begins.
"""

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from mimawari.errors import StoreDown
from mimawari.kernel.clock import RealClock
from mimawari.kernel.ports import Clock
from mimawari.store.sql.rates import SqlRates

PER = timedelta(minutes=1)
MERGE_EVERY = timedelta(seconds=1)
MOST_CLIENTS = 10_000
BATCH = 500

log = structlog.get_logger(component="api")


@dataclass(slots=True)
class _Use:
    """What one client has used up, as far as this process knows."""

    until: datetime
    unmerged: int = 0
    """How many of its reads the store was not given yet."""


class Allowance:
    """The requests a minute of some routes, for each client."""

    def __init__(self, rates: SqlRates, clock: Clock, per_minute: int) -> None:
        self._rates = rates
        self._clock = clock
        # How often counts are merged is a matter of real time on any clock.
        self._pace = RealClock()
        self._cost = PER / per_minute
        self._uses: dict[str, _Use] = {}
        self._merging: asyncio.Task[None] | None = None

    def now(self) -> datetime:
        """Return the time on the clock that counts."""
        return self._clock.now()

    def use_for_read(self, client: str) -> datetime | None:
        """Count one read; return None if it may pass, else when the next one may."""
        now = self._clock.now()
        if len(self._uses) >= MOST_CLIENTS and client not in self._uses:
            self._forget(now)
        use = self._uses.setdefault(client, _Use(now))
        used_until = max(use.until, now) + self._cost
        if used_until > now + PER:
            return used_until - PER
        use.until = used_until
        use.unmerged += 1
        if self._merging is None:
            self._merging = asyncio.create_task(self._merge_until_done(), name="allowance")
        return None

    async def use_for_write(self, client: str) -> datetime | None:
        """Count one write over all processes; return None if it may pass, else when it may."""
        use = self._uses.get(client)
        if use is not None and use.unmerged:
            await self._merge([client])
        return await self._rates.take(client, self._cost, PER)

    async def _merge_until_done(self) -> None:
        """Merge every second for as long as there is something to merge."""
        try:
            while clients := [name for name, use in self._uses.items() if use.unmerged]:
                await self._pace.sleep(MERGE_EVERY)
                for start in range(0, len(clients), BATCH):
                    await self._merge(clients[start : start + BATCH])
        except StoreDown as error:
            # What was counted here stays counted here; the next read tries again.
            log.warning("counts not merged", result="retry", reason=str(error), next="next read")
        finally:
            self._merging = None
            self._forget(self._clock.now())

    async def _merge(self, clients: list[str]) -> None:
        # Kept at hand, as a client may be forgotten meanwhile.
        uses = {name: self._uses[name] for name in clients if name in self._uses}
        given = {name: use.unmerged for name, use in uses.items()}
        for use in uses.values():
            use.unmerged = 0
        try:
            costs = {name: self._cost * count for name, count in given.items()}
            merged = await self._rates.add(costs, PER)
        except BaseException:
            for name, use in uses.items():
                use.unmerged += given[name]
            raise
        for name, until in merged.items():
            # What was read meanwhile comes on top.
            uses[name].until = until + self._cost * uses[name].unmerged

    def _forget(self, now: datetime) -> None:
        """Forget who has used up nothing; if that is nobody, all that the store knows too."""
        for name, use in [*self._uses.items()]:
            if not use.unmerged and use.until <= now:
                del self._uses[name]
        if len(self._uses) >= MOST_CLIENTS:
            self._uses.clear()
