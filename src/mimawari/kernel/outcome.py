"""The error decides a job's future: the one table that says how."""

from datetime import datetime, timedelta

from mimawari.errors import BadInput, Blocked, Gone, Invalid, StoreDown, Transient, Wait
from mimawari.kernel.job import End, Job, State
from mimawari.kernel.watch import Task
from mimawari.text import one_line

CRASHES = 3
"""However few attempts a kind has, a job outlives this many deaths of its process less one."""

STORE_AGAIN = timedelta(seconds=5)
STOOD_STILL = (
    "its process stood still twice and was ended, the second time with no other job in hand; the"
    " stacks are in the log"
)


def end_of(job: Job, task: Task, error: BaseException, now: datetime) -> End:
    """Decide what becomes of a job whose task raised an error."""
    reason = one_line(str(error)) or type(error).__name__
    match error:
        case Wait():
            # The worker takes up no job of the kind before that time.
            at = job.enqueued_at if task.in_order else error.until
            return _back(job, at, error.reason, blocked_by=error.blocked_by, attempt_used=False)
        case StoreDown():
            return _back(job, now + STORE_AGAIN, reason, blocked_by="store", attempt_used=False)
        case Gone() | BadInput():
            state = State.PERMANENT_FAIL if isinstance(error, Gone) else State.FAILED
            return _ended(job, state, reason)
        case Invalid():
            return _ended(job, State.FAILED, f"page not understood: {reason}", page=error.page)
        case Blocked() | Transient():
            return _later(job, task, max(now, error.until or now), reason, now)
        case _:
            return _later(job, task, now, f"bug: {type(error).__name__}: {reason}", now)


def end_of_crash(job: Job, task: Task | None, now: datetime) -> End:
    """Decide what becomes of a job whose lease ran out because its process died or hung."""
    if task is None:
        return unknown(job)
    if job.attempt >= max(task.attempts, CRASHES):
        return _ended(job, State.FAILED, f"its process died {job.crashes + 1} times")
    return End(
        id=job.id, token=job.token, state=State.PENDING, run_at=now, crashed=True,
        reason="its process died",
    )  # fmt: skip


def end_of_stop(job: Job, now: datetime, *, alone: bool) -> End:
    """Decide what becomes of a job that was in hand when the guard ended its process.

    It is tried once more, alone; if the process stands still over it again, it is set aside.
    """
    if alone and job.stops:
        return _ended(job, State.FAILED, STOOD_STILL)
    return End(
        id=job.id, token=job.token, state=State.PENDING, run_at=now,
        reason="its process stood still",
    )  # fmt: skip


def unknown(job: Job) -> End:
    """Bury a job that no watch knows."""
    return _ended(job, State.FAILED, f"unknown kind {job.kind!r}")


def undecodable(job: Job) -> End:
    """Bury a job whose arguments cannot be read."""
    return _ended(job, State.FAILED, job.broken or "undecodable")


def released(job: Job, now: datetime) -> End:
    """Give a job back unharmed because its worker stops."""
    return _back(job, now, "its worker stopped", blocked_by=None, attempt_used=False)


def _later(job: Job, task: Task, not_before: datetime, reason: str, now: datetime) -> End:
    if job.attempt >= task.attempts:
        return _ended(job, State.FAILED, f"{reason} (attempt {job.attempt} of {task.attempts})")
    run_at = max(not_before, now + task.backoff_after(job.attempt))
    return _back(job, run_at, reason, blocked_by=None, attempt_used=True)


def _back(
    job: Job, run_at: datetime, reason: str, *, blocked_by: str | None, attempt_used: bool
) -> End:
    return End(
        id=job.id, token=job.token, state=State.PENDING, run_at=run_at, reason=reason,
        blocked_by=blocked_by, attempt_used=attempt_used,
    )  # fmt: skip


def _ended(job: Job, state: State, reason: str, page: bytes | None = None) -> End:
    return End(id=job.id, token=job.token, state=state, reason=reason, page=page)
