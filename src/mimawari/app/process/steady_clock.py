"""One time for all processes of a boot, also for those that start after a step of the clock.

A process that runs follows a step slowly. One that started afterwards went by the new time at
once: the two took each other's jobs for abandoned, and after a step back nothing was due until
the old time was reached again.
"""

import json
from datetime import datetime, timedelta

import structlog

from mimawari.edges.system import System
from mimawari.errors import StoreDown
from mimawari.kernel.clock import Mark, RealClock, ScaledClock, boot_name
from mimawari.kernel.ports import Store

KEPT_FOR = timedelta(days=1)
SAVE_EVERY = timedelta(seconds=20)

log = structlog.get_logger(component="clock")


def _key() -> str:
    return f"clock:{boot_name()}"


async def find_mark(store: Store) -> Mark | None:
    """Return a recent mark of this boot, if a process has saved one and the cache responds."""
    try:
        kept = await store.cache.get(_key())
    except StoreDown:
        return None
    try:
        found = json.loads(kept or b"{}")
        return Mark(datetime.fromisoformat(found["wall"]), boot_name(), float(found["ticks"]))
    except (ValueError, KeyError, TypeError):
        return None


async def save_mark(store: Store, clock: RealClock | ScaledClock) -> None:
    """Save the time of this process for those that start later."""
    mark = clock.real_mark()
    kept = json.dumps({"wall": mark.wall.isoformat(), "ticks": mark.ticks})
    await store.cache.set(_key(), kept.encode(), KEPT_FOR)


async def keep_marks(system: System) -> None:
    """Save the time again and again, until cancelled."""
    clock = system.clock
    if not isinstance(clock, RealClock | ScaledClock):
        return
    while True:
        try:
            await save_mark(system.store, clock)
        except StoreDown as error:
            log.warning("store down", result="retry", reason=str(error), next=str(SAVE_EVERY))
        # Not on a scaled clock, which would save far too often.
        await RealClock().sleep(SAVE_EVERY)
