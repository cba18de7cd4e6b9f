"""Pages of the queue: how many jobs stand how, why each waits, and one job with its dead letter."""

from dataclasses import dataclass
from datetime import datetime

from starlette.responses import Response

from mimawari.errors import BadInput, NotFound
from mimawari.kernel.job import JobView, State
from mimawari.kernel.values import BreakerView, Limit
from mimawari.kernel.why import Why, why
from mimawari.text import clean
from mimawari.web.naming import find_names
from mimawari.web.visit import Visit
from mimawari.web.written import MOST_ROWS, make_file, write_json

A_PAGE = 30
_COLUMNS = (
    "id", "kind", "state", "target", "attempts", "enqueued_at", "next_at", "ended_at",
    "reason", "blocked_by", "worker",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A job in the list, and what it waits for."""

    job: JobView
    at: datetime | None
    """When it runs, or when it ended."""
    reason: str
    blocked_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """A limit: how much of it is used up, and until when and why it gives no leave."""

    limit: Limit
    used: int
    until: datetime | None
    reason: str | None


async def show(visit: Visit) -> Response:
    """Show how many jobs stand how, and a page of them."""
    queue = visit.system.store.queue
    kinds = sorted({*visit.system.watches.tasks, *await queue.kinds()})
    kind = visit.choice("kind", "", *kinds) or None
    name = visit.choice("state", "", *State)
    state = State(name) if name else None
    before = visit.text("before") or None
    if visit.text("format") == "csv":
        jobs = await queue.list(MOST_ROWS, state=state, kind=kind)
        rows = [[getattr(job, column) for column in _COLUMNS] for job in jobs]
        return make_file("jobs", _COLUMNS, rows)
    jobs = await queue.list(A_PAGE + 1, before=before, state=state, kind=kind)
    counts = await queue.counts(kind)
    return visit.page(
        "queue/list.html",
        jobs=[await _explain(visit, job) for job in jobs[:A_PAGE]],
        names=await find_names(visit, [job.target or "" for job in jobs]),
        following=jobs[A_PAGE - 1].id if len(jobs) > A_PAGE else None,
        counts={state.value: count for state, count in counts.items()},
        kinds=kinds,
        kind=kind or "",
        state=name,
        before=before,
        breakers=await _list_breakers(visit),
        limits=await _list_limits(visit),
    )


async def _explain(visit: Visit, job: JobView) -> Listed:
    """Tell of a job that waits what for; of any other what became of it."""
    found = await _why(visit, job) if job.state is State.PENDING else None
    if found is None:
        at = job.ended_at or job.enqueued_at
        at_work = f"{job.worker} is at work on it" if job.state is State.PROCESSING else ""
        reason = job.reason or at_work
        return Listed(job=job, at=at, reason=reason, blocked_by=job.blocked_by)
    return Listed(job=job, at=found.next_at, reason=found.reason, blocked_by=found.blocked_by)


async def _why(visit: Visit, job: JobView) -> Why | None:
    system = visit.system
    return await why(system.store, system.clock, system.watches, job.id)


async def _list_breakers(visit: Visit) -> list[BreakerView]:
    return await visit.system.store.breaker.list()


async def _list_limits(visit: Visit) -> list[Leave]:
    limiter = visit.system.store.limiter
    found = []
    for limit in visit.system.watches.limits:
        wait = await limiter.peek(limit)
        found.append(
            Leave(
                limit=limit,
                used=await limiter.used(limit),
                until=wait.until if wait else None,
                reason=wait.reason if wait else None,
            )
        )
    return found


async def _find(visit: Visit) -> JobView:
    job_id = clean(visit.request.path_params["job_id"])
    job = await visit.system.store.queue.find(job_id)
    if job is None:
        raise NotFound(visit.words("queue.no_job", id=job_id[:60]))
    return job


async def show_one(visit: Visit) -> Response:
    """Show one job whole."""
    job = await _find(visit)
    return visit.page(
        "queue/one.html",
        job=job,
        answer=await _why(visit, job),
        name=(await find_names(visit, [job.target or ""])).get(job.target or ""),
        args=write_json(job.args),
        task=visit.system.watches.tasks.get(job.kind),
        is_dead=job.state is State.FAILED,
    )


async def send_page(visit: Visit) -> Response:
    """Send the page that was kept with a dead letter, to be saved and never shown."""
    job = await _find(visit)
    page = await visit.system.store.queue.page(job.id)
    if page is None:
        raise NotFound(visit.words("queue.no_page"))
    headers = {"Content-Disposition": f'attachment; filename="{job.id}.txt"'}
    return Response(page, media_type="text/plain; charset=utf-8", headers=headers)


async def retry(visit: Visit) -> Response:
    """Bring a dead letter back with all its attempts."""
    job = await _find(visit)
    if not await visit.system.store.queue.requeue(job.id):
        raise BadInput(visit.words("queue.not_dead"))
    return visit.go(f"/queue/{job.id}")


PAGES = (
    ("/queue", show, ("GET",)),
    ("/queue/{job_id}", show_one, ("GET",)),
    ("/queue/{job_id}/page", send_page, ("GET",)),
    ("/queue/{job_id}/retry", retry, ("POST",)),
)
