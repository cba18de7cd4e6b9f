"""The worker: claims in batches, ends in batches, keeps its leases, and lets go cleanly.

One loop does it all by turns. While a turn's transaction is on its way more jobs end, and they
all go into the next one, so the busier it is the larger the batches.
"""

import asyncio
from collections import Counter
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TypeVar

import structlog

from mimawari.errors import (
    BadInput,
    Blocked,
    Invalid,
    JobError,
    LeaseLost,
    StoreDown,
    Transient,
    Wait,
)
from mimawari.kernel import control, outcome
from mimawari.kernel.context import Context, OpenHttp
from mimawari.kernel.deliverer import Notes
from mimawari.kernel.failing import Failing
from mimawari.kernel.job import SUSPECT_AFTER, End, Job, Lease, State, Want
from mimawari.kernel.loop import AGAIN, whole
from mimawari.kernel.ports import Clock, Reporter, Store
from mimawari.kernel.reporting import LOG, about_job
from mimawari.kernel.rescue import rescue
from mimawari.kernel.running import MOST_WAIT, Company, Running, RunningNotes
from mimawari.kernel.signal import ENDS, JOBS
from mimawari.kernel.values import Trouble
from mimawari.kernel.watch import WORKER, Watches

STOP_FOR = timedelta(seconds=20)
"""How long running jobs may go on after a stop was asked for; then they are given back."""


def alive_key(role: str) -> str:
    """Name what the cache holds while some worker of a role runs."""
    return f"{role}:alive"


ALIVE = alive_key(WORKER)
ALIVE_EVERY = timedelta(minutes=1)
ALIVE_FOR = 3 * ALIVE_EVERY

BREATH = timedelta(milliseconds=200)
LOOK_FOR_SUSPECTS = timedelta(seconds=1)

T = TypeVar("T")

log = structlog.get_logger(component="worker")


class Worker:
    """Runs jobs of the watches' kinds, of all or of those of one role."""

    def __init__(  # noqa: PLR0913 - made in one place, and everything by its name
        self,
        store: Store,
        clock: Clock,
        watches: Watches,
        *,
        name: str,
        role: str | None = None,
        http: OpenHttp | None = None,
        reporter: Reporter = LOG,
        notes: Notes | None = None,
        company: Company | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._watches = watches
        self._tasks = [task for task in watches.tasks.values() if role in {None, task.role}]
        self._alive = alive_key(role or WORKER)
        self._name = name
        self._http = http
        self._reporter = reporter
        self._noted = RunningNotes(notes)
        self._company = company or Company()
        self._running: set[Running] = set()
        self._ends: list[End] = []
        self._held: dict[str, datetime] = {}
        self._failing = Failing(store)
        self._bell = store.signal.bell(JOBS)
        self._stopping = False
        self._suspects_at = self._alive_at = clock.now()

    @property
    def running(self) -> int:
        """How many jobs are at work."""
        return len(self._running)

    @property
    def unsaid(self) -> int:
        """How many ends the store has not heard of yet."""
        return len(self._ends)

    async def run(self) -> None:
        """Work until cancelled; then let running jobs end, and give back the others."""
        kinds = sorted(task.kind for task in self._tasks)
        log.info("worker started", worker=self._name, kinds=kinds)
        if self._alive == ALIVE:
            self._watches.tell_started(WORKER)
        try:
            while True:
                await self._step()
        except asyncio.CancelledError:
            await self.stop()
            raise

    async def _step(self) -> None:
        try:
            began = self._clock.now()
            await self._say_alive(began)
            # A turn holds ends and jobs, which a worker that is cancelled must not lose.
            claimed = await whole(self.turn())
            await self._rest(began, claimed)
        except StoreDown as error:
            log.warning("store down", result="retry", reason=str(error), next=str(AGAIN))
            await self._bell.wait(self._clock, self._clock.now() + AGAIN)

    async def _say_alive(self, now: datetime) -> None:
        if now >= self._alive_at:
            await self._store.cache.set(self._alive, self._name.encode(), ALIVE_FOR)
            await self._failing.hear()
            self._alive_at = now + ALIVE_EVERY

    async def turn(self) -> int:
        """End what has ended, keep the leases, claim what there is room for, and start it."""
        now = self._clock.now()
        self._cancel_late(now)
        await self._renew(now)
        await self._failing.say()
        ends, self._ends = self._ends, []
        wants = self._wants(now)
        if any(want.suspects for want in wants):
            self._suspects_at = now + LOOK_FOR_SUSPECTS
        try:
            turn = await self._store.queue.turn(ends, wants, self._name)
        except Exception:
            self._ends = ends + self._ends
            raise
        if ends:
            self._store.signal.tell(ENDS)
        for job_id in turn.refused:
            log.warning("stale end refused", what="job", id=job_id, result="refused")
        for job in turn.jobs:
            self._start(job, now)
        return len(turn.jobs)

    async def _rest(self, began: datetime, claimed: int) -> None:
        """Sleep until a job ends here, one is put, or the next known time."""
        now = self._clock.now()
        until = min((self._alive_at, *self.times()))
        room = [want.kind for want in self._wants(now)]
        if room and not self._ends:
            due_at = await self._store.queue.next_at(room)
            # What was due before the turn began and is there still cannot be claimed.
            if due_at is not None and due_at <= began and not claimed:
                await rescue(self._store, self._clock, self._watches, self._reporter)
                due_at = now + BREATH
            until = min(until, due_at or until)
        if not self._ends:
            await self._bell.wait(self._clock, until)

    def times(self) -> list[datetime]:
        """List the times at which this worker must look again of its own accord."""
        leases = [run.renew_at for run in self._running if run.cancelled_for != "lease"]
        deadlines = [run.deadline for run in self._running if run.cancelled_for is None]
        return leases + deadlines + list(self._held.values())

    def _wants(self, now: datetime) -> list[Want]:
        if self._stopping or any(run.job.stops for run in self._running):
            # Nothing else runs beside what a process stood still over.
            return []
        self._held = {kind: until for kind, until in self._held.items() if until > now}
        busy = Counter(run.task.kind for run in self._running)
        tasks = [
            task
            for task in self._tasks
            if task.kind not in self._held and busy[task.kind] < task.concurrency
        ]
        # One suspect at a time, whatever its kind: two would share the blame for a crash. There
        # are hardly ever any, so they are looked for now and then only.
        suspected = any(run.job.crashes >= SUSPECT_AFTER for run in self._running)
        looks = now >= self._suspects_at and not suspected
        return [
            Want(
                kind=task.kind,
                most=task.concurrency - busy[task.kind],
                lease_for=task.lease_for,
                suspects=looks,
            )
            for task in tasks
        ]

    def _start(self, job: Job, now: datetime) -> None:
        task = self._watches.tasks[job.kind]
        for other in self._running:
            # Whoever is handed a job that is at work here had lost it and not noticed yet.
            if other.job.id == job.id and other.cancelled_for is None:
                self._cancel(other, "lease")
        may_wait = self._company.must_wait(job)
        deadline = now + (MOST_WAIT if may_wait else task.timeout_for)
        run = Running(job, task, now + task.lease_for / 3, deadline)
        self._running.add(run)
        run.work = asyncio.create_task(self._work(run))
        self._noted.claimed(run)

    async def _work(self, run: Running) -> None:
        end: End | None = None
        raised: Exception | None = None
        context = Context(self._store, self._clock, self._watches, self._http)
        try:
            async with self._company.joined(run.job):
                self._begin(run)
                end = await self._attempt(run, context)
        except asyncio.CancelledError:
            end = self._end_of_cancelled(run)
        except LeaseLost as error:
            log.warning(
                "lease lost", what=run.job.kind, id=run.job.id, target=run.job.target,
                reason=str(error),
            )  # fmt: skip
        except Exception as error:  # noqa: BLE001 - a task may raise anything; the worker lives
            raised = error
            end = await self._end_of_error(run, error, context)
        finally:
            if context.committed:
                # Its commit has ended it, whatever the task did afterwards.
                end = None
            self._running.discard(run)
            if run.job.crashes >= SUSPECT_AFTER:
                # Where there was one there may be more, and it is their turn now.
                self._suspects_at = self._clock.now()
            if end is not None:
                self._ends.append(end)
            if (end is not None or context.committed) and not context.is_unsettled:
                self._failing.note(run.job, end, raised)
            self._bell.ring()

    def _begin(self, run: Running) -> None:
        """Note that a job begins, and count its time from now on."""
        self._noted.begun(run)
        began = self._clock.now() + run.task.timeout_for
        if began < run.deadline:
            run.deadline = began
            self._bell.ring()

    async def _attempt(self, run: Running, context: Context) -> End | None:
        job, site = run.job, run.task.site
        if job.broken is not None:
            end = outcome.undecodable(job)
            self._tell(job, end, Invalid(job.broken))
            return end
        if site is not None:
            await control.heed(self._store, self._clock, self._watches, job.kind, site)
            await context.enter(site)
        try:
            await run.task.run(job, context)
        finally:
            await context.settle()
        for asked in context.sites:
            # What was under way when a hold began does not end it.
            if not await control.is_held(self._store, self._watches, asked):
                await self._store.breaker.worked(asked)
        if context.committed:
            return None
        return End(id=job.id, token=job.token, state=State.DONE)

    async def _end_of_error(self, run: Running, error: Exception, context: Context) -> End:
        job, task = run.job, run.task
        try:
            if isinstance(error, Invalid) and context.not_found:
                is_last = job.attempt >= task.attempts
                error = await control.judge_lone(context, error, is_last=is_last)
            if isinstance(error, Blocked):
                error.until = await self._blocked(error)
        except StoreDown as down:
            error = down
        now = self._clock.now()
        if isinstance(error, Blocked) and not error.asked:
            until = error.until or now + task.backoff_after(job.attempt)
            error = Wait(until, str(error), f"breaker {error.site}")
        end = outcome.end_of(job, task, error, now)
        if isinstance(error, Wait):
            self._held[task.kind] = error.until
        self._tell(job, end, error)
        return end

    async def _blocked(self, error: Blocked) -> datetime | None:
        """Count a refusal against its site and tell until when to stay away."""
        policy = self._watches.breaker(error.site)
        view = await self._store.breaker.failed(error.site, policy, str(error), error.until)
        return max(filter(None, (error.until, view.until)), default=None)

    def _tell(self, job: Job, end: End, error: Exception) -> None:
        waits = end.state == State.PENDING
        next_at = error.until if isinstance(error, Wait) else end.run_at
        is_bug = not isinstance(error, JobError | StoreDown | BadInput)
        facts = {
            "what": job.kind,
            "id": job.id,
            "target": job.target,
            "attempt": job.attempt,
            "result": "retry" if waits else end.state,
            "reason": end.reason,
            "next": next_at.isoformat() if next_at else None,
        }
        if is_bug or end.state == State.FAILED:
            trouble = Trouble(
                component="worker",
                message="job raised a bug" if is_bug else "job ended",
                what=job.kind,
                about=about_job(job),
                error=error,
                level="error" if is_bug else "warning",
                line=facts,
            )
            self._reporter.report(trouble)
        elif waits:
            log.info("job waits", **facts)
        else:
            log.warning("job ended", **facts)

    def _end_of_cancelled(self, run: Running) -> End | None:
        now = self._clock.now()
        if run.cancelled_for == "lease":
            return None
        if run.cancelled_for == "timeout":
            late = Transient(f"timed out after {run.task.timeout_for}")
            end = outcome.end_of(run.job, run.task, late, now)
            self._tell(run.job, end, late)
            return end
        return outcome.released(run.job, now)

    def _cancel_late(self, now: datetime) -> None:
        for run in self._running:
            if run.deadline <= now and run.cancelled_for is None:
                self._cancel(run, "timeout")

    @staticmethod
    def _cancel(run: Running, why: str) -> None:
        run.cancelled_for = why
        if run.work is not None:
            run.work.cancel()

    async def _renew(self, now: datetime) -> None:
        due = [run for run in self._running if run.renew_at <= now and run.cancelled_for != "lease"]
        leases = [
            Lease(id=run.job.id, token=run.job.token, until=now + run.task.lease_for) for run in due
        ]
        lost = await self._store.queue.extend(leases)
        for run in due:
            run.renew_at = now + run.task.lease_for / 3
            if run.job.id in lost and run.cancelled_for is None:
                self._cancel(run, "lease")

    async def stop(self) -> None:
        """Claim no more, let running jobs end for a while, then give the rest back."""
        self._stopping = True
        until = self._clock.now() + STOP_FOR
        while self._running and self._clock.now() < until:
            await self._last_turn()
            if self._running:
                await self._bell.wait(self._clock, min(until, self._clock.now() + AGAIN))
        works = [run.work for run in self._running if run.work is not None]
        for run in list(self._running):
            self._cancel(run, "stop")
        await asyncio.gather(*works, return_exceptions=True)
        await self._last_turn()
        # Where it cannot be said now, silence says it soon.
        with suppress(StoreDown):
            await self._store.cache.drop(self._alive)
        log.info("worker stopped", worker=self._name, given_back=len(works))

    async def _last_turn(self) -> None:
        try:
            await self.turn()
        except StoreDown as error:
            # What could not be said now is found again when its lease runs out.
            log.warning("store down", result="left to the leases", reason=str(error))
