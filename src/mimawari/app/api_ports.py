"""Routes by which processes without a database keep the limits, breakers and manners of all."""

from base64 import b64encode
from datetime import datetime, timedelta
from typing import Annotated

from annotated_types import Ge, Le
from fastapi import APIRouter
from pydantic import AwareDatetime, Base64Bytes, BaseModel, ConfigDict, Field

from mimawari.app.envelope import errors
from mimawari.edges.routes import SystemOf
from mimawari.edges.system import System
from mimawari.errors import Wait
from mimawari.kernel.clock import Mark
from mimawari.kernel.values import BreakerView, Grant, Limit

LONGEST = timedelta(days=366)
Name = Annotated[str, Field(min_length=1, max_length=190, pattern=r"^[^\x00-\x1f]+$")]
Reason = Annotated[str, Field(max_length=1000)]
Span = Annotated[timedelta, Ge(timedelta(0)), Le(LONGEST)]

router = APIRouter(prefix="/internal/v1", responses=errors())


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid")


class LimitIn(_In):
    """A limit, and who asks for leave under it."""

    name: Name
    count: Annotated[int, Ge(1), Le(1_000_000)]
    per: Annotated[timedelta, Ge(timedelta(milliseconds=1)), Le(LONGEST)]
    apart: Span | None = None
    caller: Annotated[str, Field(min_length=1, max_length=64)]


class WaitOut(BaseModel):
    """Until when there is no leave, and why."""

    until: datetime
    reason: str
    blocked_by: str

    @classmethod
    def of(cls, wait: Wait) -> "WaitOut":
        """Show a wait."""
        return cls(until=wait.until, reason=wait.reason, blocked_by=wait.blocked_by)


class LeaveOut(BaseModel):
    """Leave for one request, or what to wait for."""

    grant_id: str | None = None
    valid_for: float | None = Field(default=None, description="Seconds.")
    wait: WaitOut | None = None


class SettledIn(_In):
    """A request that is over."""

    name: Name
    grant_id: Annotated[str, Field(pattern="^[0-9a-f-]{36}$")]


class HoldIn(_In):
    """Before when nobody has leave under a limit."""

    name: Name
    until: AwareDatetime
    reason: Reason


class SiteIn(_In):
    """A site."""

    site: Name


class FailureIn(SiteIn):
    """A refusal of a site."""

    reason: Reason
    until: AwareDatetime | None = None


class BreakerOut(BaseModel):
    """A breaker; none means that nothing is known against its site."""

    state: str | None = None
    failures: int = 0
    until: datetime | None = None
    reason: str | None = None

    @classmethod
    def of(cls, view: BreakerView | None) -> "BreakerOut":
        """Show a breaker."""
        if view is None:
            return cls()
        return cls(state=view.state, failures=view.failures, until=view.until, reason=view.reason)


class KeyIn(_In):
    """The key of something remembered."""

    key: Name


class ValueIn(KeyIn):
    """Something to remember for a while."""

    value: Base64Bytes
    ttl: Span


class ValueOut(BaseModel):
    """What is remembered, in base64."""

    value: str | None = None


class DoneOut(BaseModel):
    """That it was heard."""

    ok: bool = True


@router.post("/limits/acquire")
async def acquire(system: SystemOf, given: LimitIn) -> LeaveOut:
    """Give leave for one request now, or say until when and why there is none."""
    verdict = await system.store.limiter.acquire(_limit(system, given), given.caller)
    if isinstance(verdict, Wait):
        return LeaveOut(wait=WaitOut.of(verdict))
    return LeaveOut(grant_id=verdict.id, valid_for=verdict.valid_for.total_seconds())


def _limit(system: System, given: LimitIn) -> Limit:
    """Take our own word for how much may be asked, where there is one."""
    known = {limit.name: limit for limit in system.watches.limits}
    return known.get(given.name) or Limit(given.name, given.count, given.per, given.apart)


@router.post("/limits/settle")
async def settle(system: SystemOf, given: SettledIn) -> DoneOut:
    """Take note that the request of a leave is over."""
    await system.store.limiter.settle(_grant(system, given))
    return DoneOut()


@router.post("/limits/release")
async def release(system: SystemOf, given: SettledIn) -> DoneOut:
    """Take back leave for a request that was certainly not sent."""
    await system.store.limiter.release(_grant(system, given))
    return DoneOut()


def _grant(system: System, given: SettledIn) -> Grant:
    nothing = Mark(system.clock.now(), "", 0.0)
    return Grant(given.name, given.grant_id, nothing, timedelta(0))


@router.post("/limits/hold")
async def hold(system: SystemOf, given: HoldIn) -> DoneOut:
    """Give no leave before a time."""
    await system.store.limiter.hold(given.name, given.until, given.reason)
    return DoneOut()


@router.post("/breakers/check")
async def check(system: SystemOf, given: SiteIn) -> LeaveOut:
    """Say until when to stay away from a site; after that time let exactly one try."""
    wait = await system.store.breaker.check(given.site)
    return LeaveOut(wait=WaitOut.of(wait) if wait else None)


@router.post("/breakers/failed")
async def failed(system: SystemOf, given: FailureIn) -> BreakerOut:
    """Count a refusal of a site."""
    policy = system.watches.breaker(given.site)
    view = await system.store.breaker.failed(given.site, policy, given.reason, given.until)
    return BreakerOut.of(view)


@router.post("/breakers/worked")
async def worked(system: SystemOf, given: SiteIn) -> DoneOut:
    """Forget the failures of a site."""
    await system.store.breaker.worked(given.site)
    return DoneOut()


@router.post("/breakers/find")
async def find(system: SystemOf, given: SiteIn) -> BreakerOut:
    """Tell how the breaker of a site stands."""
    return BreakerOut.of(await system.store.breaker.find(given.site))


@router.post("/cache/get")
async def recall(system: SystemOf, given: KeyIn) -> ValueOut:
    """Tell what is remembered."""
    value = await system.store.cache.get(given.key)
    return ValueOut(value=None if value is None else b64encode(value).decode())


@router.post("/cache/set")
async def remember(system: SystemOf, given: ValueIn) -> DoneOut:
    """Remember something for a while."""
    await system.store.cache.set(given.key, given.value, given.ttl)
    return DoneOut()
