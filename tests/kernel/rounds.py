"""Makes the whole kernel's rounds in virtual time: days pass in no time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Protocol

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.janitor import Janitor
from mimawari.kernel.rounds import Rounds as Kernel
from mimawari.kernel.values import Event
from mimawari.kernel.watch import Watch, Watches
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


class Rounds(Kernel):
    """The kernel's rounds with a destination that remembers, and a janitor beside them."""

    def __init__(self, store: SqlStore, clock: VirtualClock, *watches: Watch) -> None:
        self.destination = Remembered()
        super().__init__(store, clock, Watches(watches), {"test": self.destination})
        self.janitor = Janitor(store, clock, self.watches)


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
