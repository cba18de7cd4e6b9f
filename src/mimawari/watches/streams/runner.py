"""Who runs monitors: the port, and the runner that runs them as jobs of this installation."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from mimawari.kernel.job import LIVE, JobView, State
from mimawari.kernel.ports import Clock, Store, Tx
from mimawari.kernel.values import Entry
from mimawari.kernel.waiting import wait_for_end
from mimawari.watches.streams.models import Monitor
from mimawari.watches.streams.outside import CHECK

PREFIX = "streams:"
BATCH = 500
MISSING = "mark_as_error_missing_pod"


def member_of(monitor_id: str) -> str:
    """Name a monitor on the schedule, and as the target of its checks."""
    return f"{PREFIX}{monitor_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What is found where a monitor should run, as whoever asked for it is told."""

    state: Mapping[str, Any]
    action: str
    words: str
    details: str


class Runner(Protocol):
    """Runs monitors."""

    async def wait_gone(self, monitor_id: str, until: datetime) -> bool:
        """Wait until nothing of a monitor runs any more; say whether that came about in time."""
        ...

    async def list(self) -> frozenset[str]:
        """List the ids of the monitors that run."""
        ...

    async def remove(self, monitor_id: str) -> None:
        """Make sure that nothing of a monitor runs, whether it did or not."""
        ...

    async def observe(self, monitor_id: str) -> Observed | None:
        """Tell what is there of a monitor that does not run; None if it does or soon will."""
        ...


def place(tx: Tx, monitor: Monitor) -> None:
    """Put a monitor that was just made on the schedule, at once."""
    tx.place(
        Entry(
            member=member_of(monitor.id),
            kind=CHECK,
            next_at=monitor.created_at,
            every=timedelta(seconds=monitor.config.check_interval_sec),
            args={"monitor_id": monitor.id},
            reason="just added",
        )
    )


class JobRunner:
    """Runs each check as a job, many streams a process, in whichever process is free."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def wait_gone(self, monitor_id: str, until: datetime) -> bool:
        """Wait until no check of a monitor is under way; one that has not begun finds it ended."""
        job = await self._store.queue.find_live(member_of(monitor_id))
        if job is None:
            return True

        async def is_idle(view: JobView) -> bool:
            return view.state is State.PENDING

        ended = await wait_for_end(self._store, self._clock, job.id, until, is_idle)
        return ended is None or ended.state is not State.PROCESSING

    async def list(self) -> frozenset[str]:
        """List the ids of the monitors that are on the schedule or under way."""
        found: set[str] = set()
        after = PREFIX
        while True:
            entries = await self._store.schedule.list(BATCH, after)
            ours = [entry.member for entry in entries if entry.member.startswith(PREFIX)]
            found.update(ours)
            if len(ours) < BATCH:
                break
            after = ours[-1]
        for state in LIVE:
            jobs = await self._store.queue.list(BATCH, kind=CHECK, state=state)
            found.update(job.target for job in jobs if job.target)
        return frozenset(member.removeprefix(PREFIX) for member in found)

    async def remove(self, monitor_id: str) -> None:
        """Take a monitor off the schedule; a check that is under way changes nothing."""
        await self._store.schedule.remove(member_of(monitor_id))

    async def observe(self, monitor_id: str) -> Observed | None:
        """Tell that nothing is there: what is on the schedule runs."""
        del monitor_id
        return Observed(
            state={"pod_exists": False},
            action=MISSING,
            words="nothing ran it any more",
            details="nothing runs this monitor, as a start has found",
        )
