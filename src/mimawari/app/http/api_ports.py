"""Routes by which processes without a database keep the limits, breakers and manners of all."""

from base64 import b64encode
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any

from annotated_types import Ge, Le
from fastapi import APIRouter, Depends
from pydantic import AwareDatetime, Base64Bytes, BaseModel, BeforeValidator, ConfigDict, Field

from mimawari.app.http.envelope import errors
from mimawari.edges.request_fields import checking
from mimawari.edges.rights import POD, CallerOf, open_to
from mimawari.edges.routes import SystemOf
from mimawari.edges.system import System
from mimawari.errors import Forbidden, Wait
from mimawari.kernel.clock import Mark
from mimawari.kernel.rights import PodRights
from mimawari.kernel.values import BreakerView, Grant, Limit

LONGEST = timedelta(days=1)
"""The longest hold and the longest life of a cached value that a pod may set."""
Name = Annotated[str, Field(min_length=1, max_length=190, pattern=r"^[^\x00-\x1f]+$")]
Reason = Annotated[str, Field(max_length=1000)]
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}.*$"
_check_time = checking(_TIME, "write a time like 2026-01-31T15:00:00Z, with its zone")


def _read_time(value: Any) -> Any:
    """Refuse numbers, which would be taken for seconds since 1970."""
    return value if isinstance(value, datetime) else _check_time(str(value))


Time = Annotated[AwareDatetime, BeforeValidator(_read_time)]
Seconds = Annotated[float, Field(strict=True, description="Seconds.")]
Span = Annotated[Seconds, Ge(0), Le(LONGEST.total_seconds())]

router = APIRouter(prefix="/internal/v1", responses=errors(403))


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid")


class LimitIn(_In):
    """A limit, and who asks for leave under it."""

    name: Name
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
    valid_for: Seconds | None = None
    wait: WaitOut | None = None


class SettledIn(_In):
    """A request that is over."""

    name: Name
    grant_id: Annotated[str, Field(pattern="^[0-9a-f-]{36}$")]


class HoldIn(_In):
    """Before when nobody has leave under a limit."""

    name: Name
    until: Time
    reason: Reason


class SiteIn(_In):
    """A site."""

    site: Name


class FailureIn(SiteIn):
    """A refusal of a site."""

    reason: Reason
    until: Time | None = None


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


@dataclass(frozen=True, slots=True)
class Allowed:
    """The limits, breakers and cache keys that the calling pod may use."""

    rights: tuple[PodRights, ...]

    def limit(self, name: str) -> Limit:
        """Return a limit as this installation has it."""
        for limit in (limit for one in self.rights for limit in one.limits):
            if limit.name == name:
                return limit
        raise Forbidden(f"a pod does not use the limit {name!r}")

    def site(self, name: str) -> str:
        """Return the name of a site whose breaker the pod may use."""
        if not any(name in one.sites for one in self.rights):
            raise Forbidden(f"a pod does not use the breaker of {name!r}")
        return name

    def key(self, name: str) -> str:
        """Return a key of the cache that the pod may use."""
        if not any(name in one.cached for one in self.rights):
            raise Forbidden(f"a pod does not use the key {name!r} of the cache")
        return name


async def find_allowed(system: SystemOf, caller: CallerOf) -> Allowed:
    """Return what the calling pod may use; raise Forbidden if it has no active monitor."""
    async with system.store.read() as reader:
        rights = tuple(
            [one for one in system.watches.pod_rights
             if caller.pod is not None and await one.is_at_work(reader, caller.pod)]
        )  # fmt: skip
    if not rights:
        raise Forbidden("this pod has nothing to do any more, and so it has no rights")
    return Allowed(rights)


AllowedOf = Annotated[Allowed, Depends(find_allowed)]


@router.post("/limits/acquire")
@open_to(POD)
async def acquire(system: SystemOf, allowed: AllowedOf, given: LimitIn) -> LeaveOut:
    """Give leave for one request now, or say until when and why there is none."""
    verdict = await system.store.limiter.acquire(allowed.limit(given.name), given.caller)
    if isinstance(verdict, Wait):
        return LeaveOut(wait=WaitOut.of(verdict))
    return LeaveOut(grant_id=verdict.id, valid_for=verdict.valid_for.total_seconds())


@router.post("/limits/settle")
@open_to(POD)
async def settle(system: SystemOf, allowed: AllowedOf, given: SettledIn) -> DoneOut:
    """Take note that the request of a leave is over."""
    await system.store.limiter.settle(_grant(system, allowed, given))
    return DoneOut()


@router.post("/limits/release")
@open_to(POD)
async def release(system: SystemOf, allowed: AllowedOf, given: SettledIn) -> DoneOut:
    """Take back leave for a request that was certainly not sent."""
    await system.store.limiter.release(_grant(system, allowed, given))
    return DoneOut()


def _grant(system: System, allowed: Allowed, given: SettledIn) -> Grant:
    name, nothing = allowed.limit(given.name).name, Mark(system.clock.now(), "", 0.0)
    return Grant(name, given.grant_id, nothing, timedelta(0))


@router.post("/limits/hold")
@open_to(POD)
async def hold(system: SystemOf, allowed: AllowedOf, given: HoldIn) -> DoneOut:
    """Give no leave before a time, which is a day ahead at the most."""
    until = _bound(system, given.until)
    await system.store.limiter.hold(allowed.limit(given.name).name, until, given.reason)
    return DoneOut()


def _bound(system: System, until: datetime) -> datetime:
    return min(until, system.clock.now() + LONGEST)


@router.post("/breakers/check")
@open_to(POD)
async def check(system: SystemOf, allowed: AllowedOf, given: SiteIn) -> LeaveOut:
    """Say until when to stay away from a site; after that time let exactly one try."""
    wait = await system.store.breaker.check(allowed.site(given.site))
    return LeaveOut(wait=WaitOut.of(wait) if wait else None)


@router.post("/breakers/failed")
@open_to(POD)
async def failed(system: SystemOf, allowed: AllowedOf, given: FailureIn) -> BreakerOut:
    """Count a refusal of a site, which is left alone for a day at the most."""
    site = allowed.site(given.site)
    policy = system.watches.breaker(site)
    until = _bound(system, given.until) if given.until else None
    view = await system.store.breaker.failed(site, policy, given.reason, until)
    return BreakerOut.of(view)


@router.post("/breakers/worked")
@open_to(POD)
async def worked(system: SystemOf, allowed: AllowedOf, given: SiteIn) -> DoneOut:
    """Forget the failures of a site."""
    await system.store.breaker.worked(allowed.site(given.site))
    return DoneOut()


@router.post("/breakers/find")
@open_to(POD)
async def find(system: SystemOf, allowed: AllowedOf, given: SiteIn) -> BreakerOut:
    """Tell how the breaker of a site stands."""
    return BreakerOut.of(await system.store.breaker.find(allowed.site(given.site)))


@router.post("/cache/get")
@open_to(POD)
async def recall(system: SystemOf, allowed: AllowedOf, given: KeyIn) -> ValueOut:
    """Tell what is remembered."""
    value = await system.store.cache.get(allowed.key(given.key))
    return ValueOut(value=None if value is None else b64encode(value).decode())


@router.post("/cache/set")
@open_to(POD)
async def remember(system: SystemOf, allowed: AllowedOf, given: ValueIn) -> DoneOut:
    """Remember something for a while."""
    lifetime = timedelta(seconds=given.ttl)
    await system.store.cache.set(allowed.key(given.key), given.value, lifetime)
    return DoneOut()
