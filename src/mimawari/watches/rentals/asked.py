"""What people ask of the watch: a list or a property now, as far as the limits let them."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from mimawari.edges.system import System
from mimawari.errors import BadInput, NotFound
from mimawari.kernel.job import ENDED, JobView, State
from mimawari.kernel.signal import ENDS
from mimawari.kernel.waiting import LOOK, wait_for_end
from mimawari.kernel.why import Why, why
from mimawari.sites.yahoo_realestate import parse_detail_url
from mimawari.watches.rentals import lists, reads, sync, tasks
from mimawari.watches.rentals.models import Run

SOON = timedelta(seconds=1)
"""What is due this soon is as good as due now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """That something is on its way, when it will run, and why not now."""

    job_id: str
    next_at: datetime | None
    reason: str
    blocked_by: str | None


async def ask_for_list(system: System, url: str, limit: int, caller: str) -> str:
    """Have a list walked over, and return the id of the walk: a new one, or the one under way."""
    async with system.store.edit() as tx:
        now = system.clock.now()
        found = await lists.add_list(tx, url, limit, None, system.settings, now)
        if found.gone_at is not None:
            raise NotFound(f"the site says that {found.url} is gone; it is never asked again")
        job = lists.walk_job(found, caller, limit)
        tx.put(job)
    live = await system.store.queue.find_live(lists.member_of(found.id))
    if live is None:
        return job.id
    return str(live.args.get("run_id") or live.id)


async def wait_for_run(system: System, run_id: str, until: datetime) -> Run | Later:
    """Return a walk once it is over, or how it stands when the time is; a failed one is told."""
    bell = system.store.signal.bell(ENDS)
    while True:
        async with system.store.read() as reader:
            run = await lists.find_run(reader, run_id)
        if run is not None and run.ended_at is not None:
            return run
        job = await system.store.queue.find(run.job_id if run else run_id)
        _check(job, "the list")
        now = system.clock.now()
        if now >= until or job is None or await _is_far(system, job, until):
            return await _later(system, job.id if job else run_id)
        await bell.wait(system.clock, min(until, now + LOOK))


async def _is_far(system: System, job: JobView, until: datetime) -> bool:
    """Say whether a job is known to stand still for longer than anybody waits."""
    if job.state in ENDED or job.state is State.PROCESSING:
        return False
    answer = await why(system.store, system.clock, system.watches, job.id)
    return answer is not None and answer.next_at is not None and answer.next_at > until


async def ask_for_detail(
    system: System, url: str, caller: str, until: datetime
) -> tuple[str, Later | None]:
    """Have a property read: return its id, and what it waits for unless it was read by then."""
    detail_url, property_id = parse_detail_url(url, system.settings.rentals_url)
    async with system.store.read() as reader:
        gone_at = await sync.find_gone_at(reader, property_id)
    if gone_at is not None:
        said = f"{gone_at.isoformat(timespec='seconds')}"
        raise NotFound(f"{detail_url} is gone since {said}; it is never asked again")
    job = tasks.detail_job(property_id, detail_url, caller, lists.AT_ONCE)
    await system.store.queue.put([job])
    live = await system.store.queue.hasten(job.dedupe_key or "", lists.AT_ONCE)
    job_id = live.id if live else job.id
    view = await _wait_unless_far(system, job_id, until)
    _check(view, "the property")
    if view is not None and view.state is State.DONE:
        return property_id, None
    return property_id, await _later(system, job_id)


async def _wait_unless_far(system: System, job_id: str, until: datetime) -> JobView | None:
    answer = await why(system.store, system.clock, system.watches, job_id)
    now = system.clock.now()
    at_once = answer is None or answer.next_at is None or answer.next_at <= now + SOON
    is_there = at_once and await reads.is_running(system)
    # Not longer than the site may take: a job that waits instead is told of at once.
    if not is_there:
        return await system.store.queue.find(job_id)
    return await wait_for_end(system.store, system.clock, job_id, until)


def _check(job: JobView | None, what: str) -> None:
    """Tell that a job failed, and why."""
    if job is None:
        return
    if job.state is State.PERMANENT_FAIL:
        raise NotFound(f"{what} is gone: {job.reason}; it is never asked again")
    if job.state is State.FAILED:
        raise BadInput(f"{what} could not be read: {job.reason}", code="not_read")


async def _later(system: System, job_id: str) -> Later:
    answer: Why | None = await why(system.store, system.clock, system.watches, job_id)
    reason = answer.reason if answer else "on its way"
    if not await reads.is_running(system):
        reason = "no worker is running; start one with `mimawari serve`"
    return Later(
        job_id=job_id,
        next_at=answer.next_at if answer else None,
        reason=reason,
        blocked_by=answer.blocked_by if answer else None,
    )
