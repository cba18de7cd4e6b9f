"""The loop of those who tick at the times they ask for, and work that is never cut short."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, NoReturn, TypeVar

from mimawari.errors import StoreDown
from mimawari.kernel.ports import Clock
from mimawari.kernel.signals import Bell

LONGEST = timedelta(minutes=5)
"""Nobody sleeps longer than this, whatever was missed."""

AGAIN = timedelta(seconds=1)

T = TypeVar("T")


async def whole(work: Awaitable[T]) -> T:
    """Let work come to its end even when who waits for it is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


async def tick_for_ever(
    tick: Callable[[], Awaitable[datetime]], bell: Bell, clock: Clock, log: Any
) -> NoReturn:
    """Tick, sleep until the time it returned or a ring, and outlive a store that is down."""
    while True:
        try:
            until = await tick()
        except StoreDown as error:
            log.warning("store down", result="retry", reason=str(error), next=str(AGAIN))
            until = clock.now() + AGAIN
        await bell.wait(clock, until)
