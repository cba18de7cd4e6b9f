"""What people ask of the watch: a list or a property now, as far as the limits let them."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from sqlalchemy.exc import IntegrityError

from mimawari.edges.system import System
from mimawari.errors import BadInput, NotFound
from mimawari.kernel.job import AT_ONCE, JobView, State
from mimawari.kernel.ports import Tx
from mimawari.kernel.waiting import wait_for_end
from mimawari.kernel.why import Why, why
from mimawari.sites.yahoo_realestate import parse_detail_url
from mimawari.watches.rentals import lists, reads, sync, tasks
from mimawari.watches.rentals.models import RentalList, Run

T = TypeVar("T")

TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """That something is on its way, when it will run, and why not now."""

    job_id: str
    next_at: datetime | None
    reason: str
    blocked_by: str | None


async def _once(work: Callable[[], Awaitable[T | None]]) -> T:
    """Do what others may ask for at the same moment, until it is clear what became of it."""
    for _ in range(TRIES):
        # Somebody else has kept the same thing just now, so that the next try finds it.
        with suppress(IntegrityError):
            done = await work()
            if done is not None:
                return done
    raise BadInput("others ask for the same at this moment; ask again", code="busy")


async def _keep(
    tx: Tx, system: System, url: str, limit: int, every_for: timedelta | None
) -> RentalList:
    found = await lists.add_list(tx, url, limit, every_for, system.settings, system.clock.now())
    if found.gone_at is not None:
        raise NotFound(f"the site says that {found.url} is gone; it is never asked again")
    return found


async def ask_for_list(system: System, url: str, limit: int, caller: str) -> str:
    """Have a list walked over, and return the id of the walk: a new one, or the one under way."""

    async def work() -> str | None:
        async with system.store.edit() as tx:
            found = await _keep(tx, system, url, limit, None)
            job = lists.walk_job(lists.walk_of(found, caller, limit))
            tx.put(job)
        if await system.store.queue.find(job.id) is not None:
            return job.id
        live = await system.store.queue.hasten(lists.member_of(found.id), AT_ONCE)
        return None if live is None else str(live.args.get("run_id") or live.id)

    return await _once(work)


async def save_search(system: System, url: str, limit: int, every_for: timedelta) -> RentalList:
    """Have a list walked over now and again; one that is saved already is changed."""

    async def work() -> RentalList:
        async with system.store.edit() as tx:
            return await _keep(tx, system, url, limit, every_for)

    return await _once(work)


async def forget_search(system: System, list_id: int) -> bool:
    """Forget a saved search, not what it found; say whether there was one."""
    async with system.store.edit() as tx:
        found = await lists.find_list(tx, list_id)
        if found is None or found.every_for is None:
            return False
        return await lists.remove_list(tx, list_id)


async def wait_for_run(system: System, run_id: str, until: datetime) -> Run | Later:
    """Return a walk once it is over, or how it stands when the time is; a failed one is told."""
    job_id = run_id
    while True:
        job = await _wait(system, job_id, until)
        async with system.store.read() as reader:
            run = await lists.find_run(reader, run_id)
        if run is not None and run.ended_at is not None:
            return run
        if run is not None and run.job_id != job_id:
            job_id = run.job_id
            continue
        if run is None and (job is None or job.kind != lists.KIND or job.args.get("run_id")):
            raise NotFound(f"no walk over a list goes by the id {run_id}")
        _check(job, "the list")
        if job is None or job.state is State.DONE:
            raise NotFound(f"the walk {run_id} was given up with its list; ask for the list again")
        return await _later(system, job.id)


async def _wait(system: System, job_id: str, until: datetime) -> JobView | None:
    """Wait for a job's end, unless it is known to stand still for longer than anybody waits."""

    async def is_vain(job: JobView) -> bool:
        answer = await why(system.store, system.clock, system.watches, job.id)
        if answer is None or answer.state != State.PENDING:
            return False
        is_far = answer.next_at is not None and answer.next_at > until
        return is_far or not await reads.is_running(system)

    return await wait_for_end(system.store, system.clock, job_id, until, is_vain)


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

    async def work() -> str | None:
        job = tasks.detail_job(property_id, detail_url, caller, AT_ONCE)
        if await system.store.queue.put([job]):
            return job.id
        live = await system.store.queue.hasten(tasks.key_of(property_id), AT_ONCE)
        return None if live is None else live.id

    job_id = await _once(work)
    view = await _wait(system, job_id, until)
    _check(view, "the property")
    if view is not None and view.state is State.DONE:
        return property_id, None
    return property_id, await _later(system, job_id)


async def find_waiting(system: System, property_id: str) -> Later | None:
    """Tell what a property that is in the queue waits for; None if it is not there."""
    live = await system.store.queue.find_live(tasks.key_of(property_id))
    return None if live is None else await _later(system, live.id)


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
