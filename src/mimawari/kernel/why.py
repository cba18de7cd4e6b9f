"""Why does it wait? For any target or job: for what, until when, blocked by what."""

from dataclasses import dataclass, replace
from datetime import datetime

from mimawari.kernel.job import JobView, State
from mimawari.kernel.ports import Clock, Store
from mimawari.kernel.watch import Watches


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """The answer, for one target or job."""

    subject: str
    kind: str
    state: str
    next_at: datetime | None
    reason: str
    blocked_by: str | None = None
    job_id: str | None = None


async def why(store: Store, clock: Clock, watches: Watches, name: str) -> Why | None:
    """Explain a target by its member, or a job by its id or key; None if there is neither."""
    job = await store.queue.find_live(name) or await store.queue.find(name)
    if job is not None:
        return await _why_job(store, clock, watches, job, name)
    entry = await store.schedule.find(name)
    if entry is None:
        return None
    answer = Why(
        subject=name,
        kind=entry.kind,
        state="scheduled",
        next_at=entry.next_at,
        reason=entry.reason or "interval",
    )
    return await _with_blockers(store, clock, watches, answer)


async def _why_job(store: Store, clock: Clock, watches: Watches, job: JobView, subject: str) -> Why:
    answer = Why(
        subject=subject,
        kind=job.kind,
        state=job.state,
        # Of one that is at work it is the end of its lease, which nothing waits for.
        next_at=None if job.state == State.PROCESSING else job.next_at,
        reason=job.reason or _reason_of(job, clock.now()),
        blocked_by=job.blocked_by,
        job_id=job.id,
    )
    if job.state == State.PENDING and job.next_at is not None and job.next_at <= clock.now():
        # What it waited for is over; only a worker is missing, unless something new stands here.
        answer = replace(answer, reason=_reason_of(job, clock.now()), blocked_by=None)
    if job.state != State.PENDING:
        return answer
    if job.kind not in watches.tasks:
        return replace(answer, reason=f"no watch here runs {job.kind!r}", blocked_by="kind")
    return await _with_blockers(store, clock, watches, answer)


def _reason_of(job: JobView, now: datetime) -> str:
    match job.state:
        case State.PENDING if job.next_at is not None and job.next_at > now:
            return "its time has not come"
        case State.PENDING:
            return "waits for a free worker"
        case State.PROCESSING:
            return f"{job.worker} is at work on it"
        case _:
            return f"ended: {job.state}"


async def _with_blockers(store: Store, clock: Clock, watches: Watches, answer: Why) -> Why:
    """Add what else stands in the way: the latest of schedule, limiter and breaker counts."""
    waits = [await store.limiter.peek(limit) for limit in watches.limits_of(answer.kind)]
    task = watches.tasks.get(answer.kind)
    view = await store.breaker.find(task.site) if task and task.site else None
    blockers = [(wait.until, wait.reason, wait.blocked_by) for wait in waits if wait is not None]
    if view is not None and view.until is not None and view.until > clock.now():
        blockers.append((view.until, view.reason or "open", f"breaker {view.site}"))
    for until, reason, blocked_by in sorted(blockers):
        if answer.next_at is None or until > answer.next_at:
            answer = replace(answer, next_at=until, reason=reason, blocked_by=blocked_by)
    return answer
