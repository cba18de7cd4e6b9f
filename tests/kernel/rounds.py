"""Makes the whole kernel's rounds in virtual time: days pass in no time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Protocol

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.deliverer import Deliverer
from mimawari.kernel.janitor import Janitor
from mimawari.kernel.scheduler import Scheduler
from mimawari.kernel.values import Event
from mimawari.kernel.watch import Watch, Watches
from mimawari.kernel.worker import Worker
from mimawari.store.sql import SqlStore


class Remembered:
    """A destination that remembers what it was given, and fails when told to."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.errors: list[Exception] = []

    async def deliver(self, event: Event) -> None:
        """Take an event, or raise the next error."""
        self.events.append(event)
        if self.errors:
            raise self.errors.pop(0)


class Rounds:
    """A scheduler, a worker, a janitor and a deliverer that step when the clock is moved."""

    def __init__(self, store: SqlStore, clock: VirtualClock, *watches: Watch) -> None:
        self.clock = clock
        self.store = store
        self.watches = Watches(watches)
        self.worker = Worker(store, clock, self.watches, name="tester")
        self.scheduler = Scheduler(store, clock, self.watches)
        self.janitor = Janitor(store, clock, self.watches)
        self.destination = Remembered()
        self.deliverer = Deliverer(store, clock, {"test": self.destination})

    async def work(self) -> None:
        """Run every job that is due now to its end, or to its next sleep."""
        while True:
            claimed = await self.worker.turn()
            while self.worker.running > self.clock.sleeping:
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


class Part(Protocol):
    """A part of the system that runs until it is cancelled."""

    async def run(self) -> None:
        """Run for ever."""
        ...


@asynccontextmanager
async def running(part: Part) -> AsyncIterator[asyncio.Task[None]]:
    """Run a part for as long as the block lasts."""
    run = asyncio.create_task(part.run())
    try:
        yield run
    finally:
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)


async def asleep(clock: VirtualClock) -> None:
    """Wait until somebody sleeps on the clock."""
    async with asyncio.timeout(10):
        while not clock.sleeping:
            await clock.advance(timedelta(0))
