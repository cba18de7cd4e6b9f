"""Makes the kernel's rounds in virtual time: days pass in no time."""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.context import OpenHttp
from mimawari.kernel.deliverer import Deliverer, Destination
from mimawari.kernel.ports import Store
from mimawari.kernel.scheduler import Scheduler
from mimawari.kernel.watch import Watches
from mimawari.kernel.worker import Worker


class Rounds:
    """A scheduler, a worker and a deliverer that step when the clock is moved."""

    def __init__(
        self,
        store: Store,
        clock: VirtualClock,
        watches: Watches,
        destinations: Mapping[str, Destination],
        http: OpenHttp | None = None,
    ) -> None:
        self.clock = clock
        self.store = store
        self.watches = watches
        self.worker = Worker(store, clock, watches, name="rounds", http=http)
        self.scheduler = Scheduler(store, clock, watches)
        self.deliverer = Deliverer(store, clock, destinations)

    async def work(self) -> None:
        """Run every job that is due now to its end, or to its next sleep."""
        while True:
            claimed = await self.worker.turn()
            while self.worker.running > self.clock.sleeping:  # noqa: ASYNC110 - nobody rings
                await asyncio.sleep(0)
            if not claimed and not self.worker.unsaid:
                return

    async def pass_time(self, span: timedelta, *, step: timedelta = timedelta(hours=1)) -> None:
        """Let time pass, doing at each moment what is due then."""
        end = self.clock.now() + span
        while True:
            await self.scheduler.tick()
            await self.work()
            await self.deliverer.tick()
            times = [end, self.clock.now() + step, *await self._next_times()]
            next_at = min(at for at in times if at > self.clock.now())
            if next_at >= end:
                await self.clock.advance(end - self.clock.now())
                return
            await self.clock.advance(next_at - self.clock.now())

    async def _next_times(self) -> list[datetime]:
        found = [
            await self.store.queue.next_at(self.watches.tasks),
            await self.store.schedule.next_at(),
            await self.store.outbox.next_at(),
        ]
        return self.worker.times() + [at for at in found if at is not None]
