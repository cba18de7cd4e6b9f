"""The ground of the fault tests of notifications: processes that tell people, and die."""

import asyncio
import os
import signal
from datetime import timedelta
from typing import Any

import structlog
from sqlalchemy import Engine, event

from mimawari.kernel.deliverer import Deliverer
from mimawari.kernel.rescue import rescue
from mimawari.kernel.watch import Watches
from mimawari.kernel.worker import Worker
from mimawari.notify import watch
from mimawari.settings import DEFAULTS
from tests.faults.hot_world import ShiftedClock
from tests.stores import open_store


def die_at(number: int) -> None:
    """Kill this process just before its so many-th statement."""
    left = [number]

    def look(*_: Any) -> None:
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(Engine, "before_cursor_execute", look)


async def tell_people(url: str, port: int, shift: timedelta, dies_at: int) -> None:
    """Fan out, gather and send what is there, or die meanwhile."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    clock = ShiftedClock(shift)
    settings = DEFAULTS.model_copy(update={"allow_hosts": (f"127.0.0.1:{port}",)})
    store = open_store(url, clock)
    if dies_at:
        die_at(dies_at)
    watches = Watches([watch], settings)
    await rescue(store, clock, watches)
    deliverer = Deliverer(store, clock, watches.open_destinations(store, clock))
    worker = Worker(store, clock, watches, name=str(os.getpid()))
    while True:
        await deliverer.tick()
        while await worker.turn() or worker.running or worker.unsaid:
            await asyncio.sleep(0.01)
        # What two did at the same moment may have to be done again a little later.
        if not (await store.outbox.counts())["pending"]:
            break
        await asyncio.sleep(0.05)
    await store.close()
