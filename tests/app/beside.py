"""A clock for those who wait beside a worker in virtual time, and a way to let both go on."""

import asyncio
from collections.abc import Coroutine
from datetime import datetime, timedelta
from typing import Any, TypeVar

from mimawari.kernel.clock import Mark, VirtualClock
from mimawari.kernel.rounds import BLINK_SECONDS, Rounds
from tests.app.ground import PATIENCE_SECONDS

T = TypeVar("T")
SECOND = timedelta(seconds=1)


class Beside:
    """The same time for those who wait beside a worker, so that it is known when they do."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._ends: list[datetime] = []

    @property
    def sleeping(self) -> int:
        """How many sleep; nobody does as long as one whose time has come does not know it yet."""
        is_due = any(end <= self._clock.now() for end in self._ends)
        return 0 if is_due else len(self._ends)

    def now(self) -> datetime:
        """Return the time."""
        return self._clock.now()

    def mark(self) -> Mark:
        """Return this moment in true time."""
        return self._clock.mark()

    async def sleep(self, span: timedelta) -> None:
        """Sleep until the clock has been moved on by as long as said."""
        until = self._clock.now() + span
        self._ends.append(until)
        try:
            while self._clock.now() < until:
                await asyncio.sleep(BLINK_SECONDS)
        finally:
            self._ends.remove(until)

    async def answer(self, asking: Coroutine[Any, Any, T], rounds: Rounds) -> T:
        """Let a worker work and time pass until something that is asked for is answered."""
        task = asyncio.create_task(asking)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self._settle(task)
            while not task.done():
                await rounds.work()
                await self._settle(task)
                if not task.done():
                    await rounds.pass_time(SECOND)
                    await self._settle(task)
        return await task

    async def _settle(self, task: "asyncio.Task[T]") -> None:
        """Wait until a request is answered, or has heard what there was to hear and waits."""
        for _ in range(10):
            await asyncio.sleep(0)
        while not (task.done() or self.sleeping):
            await asyncio.sleep(BLINK_SECONDS)
