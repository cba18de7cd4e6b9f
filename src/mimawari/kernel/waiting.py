"""Waits for a job's end on behalf of somebody who asked for it."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from mimawari.kernel.job import ENDED, JobView
from mimawari.kernel.ports import Clock, Store
from mimawari.kernel.signal import ENDS

LOOK = timedelta(seconds=1)
"""How often to look for an end that came about in another process."""

IsVain = Callable[[JobView], Awaitable[bool]]
"""Says of a live job that nobody need wait for it."""


async def wait_for_end(
    store: Store, clock: Clock, job_id: str, until: datetime, is_vain: IsVain
) -> JobView | None:
    """Return a job once it has ended, or as it stands when waiting is over or in vain."""
    bell = store.signal.bell(ENDS)
    while True:
        view = await store.queue.find(job_id)
        now = clock.now()
        if view is None or view.state in ENDED or now >= until or await is_vain(view):
            return view
        await bell.wait(clock, min(until, now + LOOK))
