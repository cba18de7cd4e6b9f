"""What people ask of the watch: a list or a property now, as far as the limits let them."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TypeVar

from sqlalchemy.exc import IntegrityError

from mimawari.edges.request_job import TRIES, Later, ask_for, check, find_later, wait
from mimawari.edges.system import System
from mimawari.errors import BadInput, NotFound
from mimawari.kernel.job import AT_ONCE, State
from mimawari.kernel.ports import Tx
from mimawari.sites.yahoo_realestate import parse_detail_url
from mimawari.watches.rentals import lists, sync, tasks
from mimawari.watches.rentals.models import RentalList, Run

T = TypeVar("T")


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
        job = await wait(system, job_id, until)
        async with system.store.read() as reader:
            run = await lists.find_run(reader, run_id)
        if run is not None and run.ended_at is not None:
            return run
        if run is not None and run.job_id != job_id:
            job_id = run.job_id
            continue
        if run is None and (job is None or job.kind != lists.KIND or job.args.get("run_id")):
            raise NotFound(f"no walk over a list goes by the id {run_id}")
        check(job, "the list")
        if job is None or job.state is State.DONE:
            raise NotFound(f"the walk {run_id} was given up with its list; ask for the list again")
        return await find_later(system, job.id)


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
    job = tasks.detail_job(property_id, detail_url, caller, AT_ONCE)
    job_id = await ask_for(system, job)
    view = await wait(system, job_id, until)
    check(view, "the property")
    if view is not None and view.state is State.DONE:
        return property_id, None
    return property_id, await find_later(system, job_id)


async def find_waiting(system: System, property_id: str) -> Later | None:
    """Tell what a property that is in the queue waits for; None if it is not there."""
    live = await system.store.queue.find_live(tasks.key_of(property_id))
    return None if live is None else await find_later(system, live.id)
