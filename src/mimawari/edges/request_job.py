"""What people ask for now: put before others, waited for as long as it makes sense."""

from dataclasses import dataclass, replace
from datetime import datetime

from mimawari.edges.system import System
from mimawari.errors import BadInput, NotFound
from mimawari.kernel.job import AT_ONCE, JobView, NewJob, State
from mimawari.kernel.waiting import wait_for_end
from mimawari.kernel.watch import WORKER
from mimawari.kernel.why import why
from mimawari.kernel.worker import alive_key

TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """That something is on its way, when it will run, and why not now."""

    job_id: str
    next_at: datetime | None
    reason: str
    blocked_by: str | None


async def ask_for(system: System, job: NewJob) -> str:
    """Put a job before others, and return its id, or that of the one that is there already."""
    for _ in range(TRIES):
        if await system.store.queue.put([job]):
            return job.id
        # The one that was in its place may have ended by now, which makes room.
        live = await system.store.queue.hasten(str(job.dedupe_key), AT_ONCE)
        if live is not None:
            return live.id
    raise BadInput("others ask for the same at this moment; ask again", code="busy")


async def is_running(system: System, role: str = WORKER) -> bool:
    """Say whether a worker of a role is running, in whatever process."""
    return await system.store.cache.get(alive_key(role)) is not None


async def wait(system: System, job_id: str, until: datetime) -> JobView | None:
    """Wait for a job's end, unless it is known to stand still for longer than anybody waits."""

    async def need_not(job: JobView) -> bool:
        answer = await why(system.store, system.clock, system.watches, job.id)
        if answer is None or answer.state != State.PENDING:
            return False
        return await is_vain(system, answer.next_at, until)

    return await wait_for_end(system.store, system.clock, job_id, until, need_not)


async def is_vain(system: System, next_at: datetime | None, until: datetime) -> bool:
    """Say of what waits that nobody need wait for it: its time is far off, or nobody works."""
    return (next_at is not None and next_at > until) or not await is_running(system)


def check(job: JobView | None, what: str) -> None:
    """Tell that a job failed, and why."""
    if job is None:
        return
    if job.state is State.PERMANENT_FAIL:
        raise NotFound(f"{what} is gone: {job.reason}; it is never asked again")
    if job.state is State.FAILED:
        raise BadInput(f"{what} could not be read: {job.reason}", code="not_read")


async def find_later(system: System, job_id: str) -> Later:
    """Tell when a job runs, and why not now."""
    found = await find_own(system, job_id)
    if await is_running(system):
        return found
    return replace(found, reason="no worker is running; start one with `mimawari serve`")


async def find_own(system: System, job_id: str) -> Later:
    """Tell when a job runs, and why not now, to whoever runs a worker."""
    answer = await why(system.store, system.clock, system.watches, job_id)
    return Later(
        job_id=job_id,
        next_at=answer.next_at if answer else None,
        reason=answer.reason if answer else "on its way",
        blocked_by=answer.blocked_by if answer else None,
    )
