"""Waits for a job's end on behalf of somebody who asked for it."""

from datetime import datetime, timedelta

from mimawari.kernel.job import ENDED, JobView
from mimawari.kernel.ports import Clock, Store
from mimawari.kernel.signal import ENDS

LOOK = timedelta(seconds=1)
"""How often to look for an end that came about in another process."""


async def wait_for_end(store: Store, clock: Clock, job_id: str, until: datetime) -> JobView | None:
    """Return a job once it has ended, or as it stands when the time is over; None if unknown."""
    bell = store.signal.bell(ENDS)
    while True:
        view = await store.queue.find(job_id)
        now = clock.now()
        if view is None or view.state in ENDED or now >= until:
            return view
        await bell.wait(clock, min(until, now + LOOK))
