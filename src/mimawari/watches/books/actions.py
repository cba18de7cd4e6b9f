"""Runs what is due while somebody waits for it, in this process or wherever a worker is."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from mimawari.edges.request_job import Later, ask_for, find_own
from mimawari.edges.system import System
from mimawari.kernel.deliverer import Deliverer, in_the_log
from mimawari.kernel.job import AT_ONCE, State
from mimawari.kernel.signal import ENDS, OUTBOX
from mimawari.kernel.waiting import LOOK
from mimawari.kernel.watch import Watches
from mimawari.kernel.worker import Worker
from mimawari.net.http import Fetcher
from mimawari.net.ways import open_ways
from mimawari.watches.books import collecting, jobs, log_lines, mailing
from mimawari.watches.books.cursors import list_cursors
from mimawari.watches.books.mailing import Mail, MailState
from mimawari.watches.books.models import BookJob, Run

WAIT_FOR = timedelta(minutes=10)
"""How long to wait for all runs together, whatever they do."""
PAUSE_FOR = timedelta(minutes=1)
"""A run that pauses for longer is not waited for: after errors, pauses add up to 21 minutes."""
MAIL_FOR = timedelta(seconds=30)
"""How long to wait until a mail server has taken the digests; a failed one is tried again later."""
SOON = timedelta(seconds=5)
UNSENT = (MailState.PENDING, MailState.ENDING)

Tell = Callable[["Standing"], None]
"""Is told whenever a run has come further."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How the run of a job stands that somebody waits for."""

    job: BookJob
    run_id: str
    run: Run | None = None
    later: Later | None = None
    waits_for: str | None = None
    """Why nothing happens for a while."""
    failed: str | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes."""
        return self.failed is not None or (self.run is not None and self.run.ended_at is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """Which jobs are to run now, and which would but for being exhausted."""

    jobs: tuple[BookJob, ...]
    exhausted: tuple[BookJob, ...]


async def find_due(system: System, *, is_forced: bool) -> Due:
    """Tell which jobs are due, or with force all that are enabled."""
    now, again_after = system.clock.now(), system.settings.books_recheck_after
    async with system.store.read() as reader:
        enabled = [job for job in await jobs.list_jobs(reader) if job.enabled]
        ended = {
            (one.job_name, one.query_set_hash)
            for one in await list_cursors(reader)
            if one.is_exhausted
        }
    entries = {job.name: await system.store.schedule.find(jobs.member_of(job.name))
               for job in enabled}  # fmt: skip
    due, exhausted = [], []
    for job in enabled:
        entry = entries[job.name]
        is_due = entry is not None and entry.next_at <= now
        if (job.name, job.query_set_hash) not in ended:
            # One that is not on the schedule though it should be was never placed there.
            due += [job] if is_forced or is_due or entry is None else []
        elif again_after is not None and is_due:
            due.append(job)
        else:
            exhausted.append(job)
    return Due(jobs=tuple(due), exhausted=tuple(exhausted))


async def start(system: System, due: Sequence[BookJob], *, is_dry: bool) -> list[Standing]:
    """Ask for a run of each job, or take the one that is under way."""
    found = []
    for job in due:
        new = jobs.page_job(job.name, is_dry=is_dry, priority=AT_ONCE)
        job_id = await ask_for(system, new)
        view = await system.store.queue.find(job_id)
        run_id = str(view.args.get("run") or job_id) if view else job_id
        found.append(Standing(job=job, run_id=run_id))
    return found


@asynccontextmanager
async def at_work(system: System) -> AsyncIterator[None]:
    """Let this process do the work of the books watch, and deliver, for a while."""
    store, clock, settings = system.store, system.clock, system.settings
    mine = Watches([one for one in system.watches.all if one.name == "books"], settings)
    # All destinations: events of other watches may be taken too.
    destinations = {**in_the_log(), **system.watches.open_destinations(store, clock)}
    async with open_ways(settings, store, clock) as ways:
        worker = Worker(store, clock, mine, name="run-due", http=partial(Fetcher, ways))
        deliverer = Deliverer(store, clock, destinations)
        parts = [asyncio.create_task(worker.run()), asyncio.create_task(deliverer.run())]
        try:
            yield
        finally:
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, return_exceptions=True)


async def follow(system: System, started: Sequence[Standing], tell: Tell) -> list[Standing]:
    """Wait until runs are over or pause for longer than a minute, ten minutes at the most."""
    until = system.clock.now() + WAIT_FOR
    bell = system.store.signal.bell(ENDS)
    left = {one.run_id: one for one in started}
    over: dict[str, Standing] = {}
    while left and system.clock.now() < until:
        for one in list(left.values()):
            found = await _find_standing(system, one)
            left[one.run_id] = found
            if (found.run, found.waits_for) != (one.run, one.waits_for):
                tell(found)
            next_at = found.later.next_at if found.later else None
            longest = min(until, system.clock.now() + PAUSE_FOR)
            is_vain = next_at is not None and next_at > longest
            if found.is_over or is_vain:
                over[one.run_id] = left.pop(one.run_id)
        if left:
            await bell.wait(system.clock, min(until, system.clock.now() + LOOK))
    return [over.get(one.run_id) or left[one.run_id] for one in started]


async def _find_standing(system: System, one: Standing) -> Standing:
    live = await system.store.queue.find_live(jobs.member_of(one.job.name))
    async with system.store.read() as reader:
        run = await collecting.find_run(reader, one.run_id)
    found = replace(one, run=run, later=None, waits_for=None)
    if found.is_over:
        return found
    if live is not None:
        # The worker is this process, also before it has said that it is there.
        later = await find_own(system, live.id)
        soon = system.clock.now() + SOON
        waits_for = later.reason if later.next_at and later.next_at > soon else None
        return replace(found, later=later, waits_for=waits_for)
    first = await system.store.queue.find(one.run_id)
    reason = first.reason if first and first.state is State.FAILED else None
    return replace(found, failed=reason or "the job was removed, disabled or is exhausted")


async def wait_for_mail(system: System, ended: Sequence[Standing], since: datetime) -> list[Mail]:
    """Wait a little until the digests after some runs are sent, and tell how they stand."""
    until = system.clock.now() + MAIL_FOR
    bell = system.store.signal.bell(ENDS, OUTBOX)
    while True:
        keys = [jobs.mail_key(one.run_id) for one in ended]
        is_asked = any([await system.store.queue.find_live(key) for key in keys])
        async with system.store.read() as reader:
            found = [one for one in await mailing.list_mails(reader, 50) if one.created_at >= since]
        is_waiting = any(one.state in UNSENT and not one.reason for one in found)
        if system.clock.now() >= until or not (is_waiting or is_asked):
            return found
        await bell.wait(system.clock, min(until, system.clock.now() + LOOK))


def skip_lines(due: Due) -> list[str]:
    """Tell which jobs are not searched for, because there is nothing more."""
    return [log_lines.skip_line(job) for job in due.exhausted]
