"""Whether this process can do its work, asked by anybody and looked up once a second at most."""

import asyncio

from mimawari.kernel.clock import RealClock
from mimawari.kernel.ports import Store

KEPT_SECONDS = 1.0


class Readiness:
    """The last look at the store, shared by all who ask meanwhile."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # Probes come in real time on any clock.
        self._clock = RealClock()
        self._looked_at = self._clock.mark()
        self._look: asyncio.Task[None] | None = None

    async def check(self) -> None:
        """Raise StoreDown unless the store can be read and written to."""
        if self._look is None or (self._look.done() and self._age() > KEPT_SECONDS):
            self._looked_at = self._clock.mark()
            self._look = asyncio.create_task(self._store.ping(), name="readiness")
        await asyncio.shield(self._look)

    def _age(self) -> float:
        return self._clock.mark().elapsed_since(self._looked_at).total_seconds()
