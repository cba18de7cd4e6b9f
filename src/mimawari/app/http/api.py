"""The HTTP API: jobs, the schedule, and why something waits."""

from datetime import datetime
from pkgutil import resolve_name
from typing import Annotated, Any

from annotated_types import Ge, Le
from fastapi import APIRouter, Depends, FastAPI, Path, Query, Request, Security
from fastapi.security import APIKeyHeader
from pydantic import BaseModel, BeforeValidator, Field
from starlette.exceptions import HTTPException

from mimawari import __version__
from mimawari.app.http.addresses import Hosts
from mimawari.app.http.allowance import Allowance
from mimawari.app.http.api_ports import router as ports
from mimawari.app.http.api_sessions import router as sessions
from mimawari.app.http.edge import ApiLock, Doorkeeper, Edge, InternalLock, Lock, Owed
from mimawari.app.http.envelope import Described, errors, errors_as, install
from mimawari.app.http.guesses import Guesses
from mimawari.app.http.readiness import Readiness
from mimawari.app.ops import System
from mimawari.edges.rights import check_route
from mimawari.edges.routes import SystemOf
from mimawari.errors import NotFound
from mimawari.kernel.job import JobView, State
from mimawari.kernel.watch import Watch
from mimawari.kernel.why import Why, why
from mimawari.store.sql.rates import SqlRates
from mimawari.text import plain_digits

CALLS_A_MINUTE = 600
"""How often a monitor elsewhere may call, which is ten times as often as any needs to."""

_key = APIKeyHeader(name="X-API-Key", auto_error=False, description="One of the API keys.")
_internal_key = APIKeyHeader(
    name="X-Internal-API-Key", auto_error=False, description="A pod's token, or the internal key."
)
JobId = Annotated[str, Path(pattern="^[0-9a-f-]{36}$", description="A job's id.")]
Name = Annotated[str, Query(min_length=1, max_length=190, pattern=r"^[^\x00-\x1f]+$")]
Most = Annotated[
    int, Ge(1), Le(500), BeforeValidator(plain_digits), Query(description="How many at the most.")
]


class JobOut(BaseModel):
    """A job, live or ended."""

    id: str
    kind: str
    state: State
    args: dict[str, Any]
    dedupe_key: str | None
    target: str | None
    priority: int
    attempts: int
    next_at: datetime | None = Field(description="When it may run, or when its lease ends.")
    reason: str | None
    blocked_by: str | None
    worker: str | None
    enqueued_at: datetime
    ended_at: datetime | None
    page_bytes: int | None = Field(description="The size of the page kept with a dead letter.")

    @classmethod
    def of(cls, view: JobView) -> "JobOut":
        """Show a job."""
        return cls.model_validate(view, from_attributes=True)


class JobsOut(BaseModel):
    """A page of jobs, newest first."""

    jobs: list[JobOut]
    next: str | None = Field(description="Give this as `before` for the next page.")


class CountsOut(BaseModel):
    """How many jobs are in each state, and events on their way."""

    pending: int
    processing: int
    done: int
    failed: int
    permanent_fail: int
    events: dict[str, int]


class EntryOut(BaseModel):
    """A target on the schedule."""

    member: str
    kind: str
    next_at: datetime
    every_seconds: float
    reason: str | None


class EntriesOut(BaseModel):
    """A page of the schedule, by member."""

    entries: list[EntryOut]
    next: str | None = Field(description="Give this as `after` for the next page.")


class WhyOut(BaseModel):
    """Why something waits: for what, until when, blocked by what."""

    subject: str
    kind: str
    state: str
    next_at: datetime | None
    reason: str
    blocked_by: str | None
    job_id: str | None

    @classmethod
    def of(cls, answer: Why) -> "WhyOut":
        """Show an answer."""
        return cls.model_validate(answer, from_attributes=True)


class HealthOut(BaseModel):
    """That the process is alive, or ready."""

    status: str


jobs = APIRouter(prefix="/api", dependencies=[Security(_key)])
health = APIRouter()


@jobs.get("/jobs", responses=errors())
async def list_jobs(
    system: SystemOf,
    state: State | None = None,
    kind: Annotated[str | None, Query(max_length=64, pattern="^[A-Za-z0-9_.]+$")] = None,
    before: Annotated[str | None, Query(pattern="^[0-9a-f-]{36}$")] = None,
    limit: Most = 50,
) -> JobsOut:
    """List jobs, newest first."""
    views = await system.store.queue.list(limit, before=before, state=state, kind=kind)
    following = views[-1].id if len(views) == limit else None
    return JobsOut(jobs=[JobOut.of(view) for view in views], next=following)


@jobs.get("/jobs/{job_id}", responses=errors(404))
async def show_job(system: SystemOf, job_id: JobId) -> JobOut:
    """Show one job."""
    view = await system.store.queue.find(job_id)
    if view is None:
        raise NotFound(f"no job goes by the id {job_id}")
    return JobOut.of(view)


@jobs.post("/jobs/{job_id}/retry", responses=errors(404, 409))
async def retry_job(system: SystemOf, job_id: JobId) -> JobOut:
    """Bring a dead letter back with all its attempts."""
    view = await system.store.queue.find(job_id)
    if view is None:
        raise NotFound(f"no job goes by the id {job_id}")
    if not await system.store.queue.requeue(job_id):
        raise HTTPException(409, f"the job is {view.state}; only a failed one is brought back")
    return await show_job(system, job_id)


@jobs.get("/status", responses=errors())
async def status(system: SystemOf) -> CountsOut:
    """Count jobs and events by state."""
    counts = await system.store.queue.counts()
    events = await system.store.outbox.counts()
    return CountsOut(**{state.value: count for state, count in counts.items()}, events=dict(events))


@jobs.get("/schedule", responses=errors())
async def list_schedule(
    system: SystemOf,
    after: Annotated[str, Query(max_length=190, pattern=r"^[^\x00-\x1f]*$")] = "",
    limit: Most = 50,
) -> EntriesOut:
    """List the schedule by member."""
    entries = await system.store.schedule.list(limit, after)
    shown = [
        EntryOut(
            member=entry.member,
            kind=entry.kind,
            next_at=entry.next_at,
            every_seconds=entry.every.total_seconds(),
            reason=entry.reason,
        )
        for entry in entries
    ]
    return EntriesOut(entries=shown, next=shown[-1].member if len(shown) == limit else None)


@jobs.get("/why", responses=errors(404))
async def explain(system: SystemOf, name: Name) -> WhyOut:
    """Explain why a target or a job waits."""
    answer = await why(system.store, system.clock, system.watches, name)
    if answer is None:
        raise NotFound(f"neither a target nor a job goes by the name {name!r}")
    return WhyOut.of(answer)


@health.get("/healthz", responses={s: errors()[s] for s in (400, 408, 413)})
async def healthz() -> HealthOut:
    """Say that the process is alive."""
    return HealthOut(status="alive")


@health.get("/readyz", responses={s: errors()[s] for s in (400, 408, 413, 503)})
async def readyz(request: Request) -> HealthOut:
    """Say whether the store can be read and written to, and has space."""
    await request.app.state.readiness.check()
    return HealthOut(status="ready")


def make_app(system: System, api_keys: tuple[bytes, ...]) -> FastAPI:
    """Make the API with every watch's routes, behind its edge."""
    app = _bare_app(system)
    app.include_router(jobs, tags=["jobs"])
    app.include_router(sessions, tags=["sessions"], dependencies=[Security(_key)])
    for watch in system.watches.all:
        if watch.router:
            app.include_router(
                resolve_name(watch.router),
                tags=[watch.name],
                dependencies=[Security(_key)],
                responses=_errors_of(watch),
            )
    _guard(app, system, ApiLock(api_keys), hosts=Hosts(system.settings.public_url))
    return app


def make_internal_app(system: System, key: bytes) -> FastAPI:
    """Make the API by which this installation's own parts report, each by its own rights."""
    app = _bare_app(system)
    locked = [Security(_internal_key), Depends(check_route)]
    app.include_router(ports, tags=["ports"], dependencies=locked)
    for watch in system.watches.all:
        if watch.internal_router:
            app.include_router(
                resolve_name(watch.internal_router),
                tags=[watch.name],
                dependencies=locked,
                responses=_errors_of(watch) | {403: errors(403)[403]},
            )
    # Each pod is counted by itself, and reports every few seconds for each of its monitors.
    rate = max(system.settings.api_rate, system.settings.streams_per_pod * CALLS_A_MINUTE)
    _guard(app, system, InternalLock(key), rate)
    return app


def _errors_of(watch: Watch) -> dict[int | str, dict[str, Any]]:
    return errors_as(watch.manners.meanings) if watch.manners else errors(404, 409)


def _bare_app(system: System) -> FastAPI:
    app = Described(
        title="Mimawari",
        version=__version__,
        description="Watches public web sources and tells what changed.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.system = system
    app.state.readiness = Readiness(system.store)
    app.include_router(health, tags=["health"])
    return app


def _guard(
    app: FastAPI, system: System, lock: Lock, rate: int | None = None, hosts: Hosts | None = None
) -> None:
    """Put the edge before an app, with the manners of every watch."""
    install(app)
    rates, clock = SqlRates(system.store.database), system.clock
    owed = [
        Owed(watch.manners, Allowance(rates, clock, rate or watch.manners.reads_a_minute))
        for watch in system.watches.all
        if watch.manners is not None
    ]
    api_rate = system.settings.api_rate
    app.add_middleware(
        Edge,
        doorkeeper=Doorkeeper(lock, Guesses(rates, clock), api_rate),
        allowance=Allowance(rates, clock, rate or api_rate),
        reporter=system.reporter,
        owed=owed,
        hosts=hosts,
    )
