"""Makes the kernel's rounds in virtual time: days pass in no time."""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.context import OpenHttp
from mimawari.kernel.deliverer import Deliverer, Destination
from mimawari.kernel.job import LIVE
from mimawari.kernel.ports import Store
from mimawari.kernel.scheduler import Scheduler
from mimawari.kernel.watch import Watches
from mimawari.kernel.worker import Worker

BLINK_SECONDS = 0.0005
"""How long to wait for what takes real time: a file, a process, a page."""


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
            at_work = self.worker.running
            claimed = await self.worker.turn()
            while self.worker.running > self.clock.sleeping:  # noqa: ASYNC110 - nobody rings
                await asyncio.sleep(BLINK_SECONDS)
            # A job that has ended here may have left another one behind.
            if not claimed and not self.worker.unsaid and self.worker.running == at_work:
                return

    async def pass_time(self, span: timedelta, *, step: timedelta = timedelta(hours=1)) -> None:
        """Let time pass, doing at each moment what is due then."""
        end = self.clock.now() + span
        while True:
            await self._do_all_due()
            await self.deliverer.tick()
            times = [end, self.clock.now() + step, *await self._next_times()]
            next_at = min(at for at in times if at > self.clock.now())
            if await self._come_to(next_at) and next_at >= end:
                return

    async def _do_all_due(self) -> None:
        """Run what is due now; a job may have made its own target due again at once."""
        is_again = True
        while is_again:
            await self.scheduler.tick()
            is_held = await self._is_due()
            await self.work()
            is_again = not is_held and await self._is_due()

    async def _is_due(self) -> bool:
        next_at = await self.store.schedule.next_at()
        return next_at is not None and next_at <= self.clock.now()

    async def _come_to(self, next_at: datetime) -> bool:
        """Let time pass, with what wakes meanwhile; say whether no job's end came before."""
        at_work = self.worker.running
        while (wakes_at := self.clock.wakes_at) is not None and wakes_at < next_at:
            await self.clock.advance(wakes_at - self.clock.now())
            await self.work()
            if self.worker.running != at_work:
                return False
        await self.clock.advance(next_at - self.clock.now())
        return True

    async def settle(self) -> None:
        """Run what is live to its end, however long it takes, and take on nothing new."""
        while True:
            await self.work()
            await self.deliverer.tick()
            counts = await self.store.queue.counts()
            if not any(counts[state] for state in LIVE):
                return
            now = self.clock.now()
            await self._come_to(min(at for at in await self._next_times() if at > now))

    async def _next_times(self) -> list[datetime]:
        found = [
            await self.store.queue.next_at(self.watches.tasks),
            await self.store.schedule.next_at(),
            await self.store.outbox.next_at(),
        ]
        return self.worker.times() + [at for at in found if at is not None]
