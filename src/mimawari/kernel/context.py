"""What a task is given: its limits, its commit, the clock and the log."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

import structlog

from mimawari.errors import StoreDown
from mimawari.kernel.job import Job
from mimawari.kernel.ports import Clock, Store, Tx
from mimawari.kernel.values import Grant
from mimawari.kernel.watch import Watches

PATIENCE = timedelta(seconds=20)
"""A wait up to this long is slept through; a longer one gives the job's place to another."""

log = structlog.get_logger(component="worker")


class Context:
    """One job's view of the kernel."""

    __slots__ = ("_watches", "clock", "committed", "grants", "http", "store")

    def __init__(self, store: Store, clock: Clock, watches: Watches, http: Any = None) -> None:
        self.store = store
        self.clock = clock
        self.http = http
        self.committed = False
        self.grants: list[Grant] = []
        self._watches = watches

    async def limit(self, name: str, *, caller: str) -> Grant:
        """Wait for leave to ask a site once; a long wait sends the job back to the queue."""
        limit = self._watches.limit(name)
        while True:
            verdict = await self.store.limiter.acquire(limit, caller)
            if isinstance(verdict, Grant):
                self.grants.append(verdict)
                return verdict
            span = verdict.until - self.clock.now()
            if span > PATIENCE:
                raise verdict
            await self.clock.sleep(span)

    @asynccontextmanager
    async def commit(self, job: Job) -> AsyncIterator[Tx]:
        """Open the one transaction that ends the job."""
        async with self.store.commit(job) as tx:
            yield tx
        self.committed = True
        log.info(
            "job ended",
            what=job.kind,
            id=job.id,
            target=job.target,
            result="done",
            attempt=job.attempt,
        )

    async def settle(self) -> None:
        """Tell the limiter that every request of this job is over."""
        while self.grants:
            # One that cannot be told now counts for longer, which is the polite mistake.
            with suppress(StoreDown):
                await self.store.limiter.settle(self.grants[-1])
            self.grants.pop()
