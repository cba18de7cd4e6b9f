"""Incidents: what is not as it should be, from the one place where that is decided."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from mimawari.kernel.ports import Store
from mimawari.kernel.values import BreakerView, Streak

SITE = "site"
"""The kind of an incident that is no target's but a site's: it turns us away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Something that keeps failing: a target, jobs of a kind, or a site."""

    subject: str
    kind: str
    state: str
    failures: int
    reason: str
    until: datetime | None = None
    """Until when nothing is tried."""
    job_id: str | None = None
    last_at: datetime | None = None
    """When it failed last, where that is known."""


def name_of(subject: str, names: Mapping[str, str]) -> str:
    """Tell what people call the subject of an incident; a site by itself."""
    return names.get(subject, subject.removeprefix(f"{SITE}:"))


async def list_incidents(store: Store, after: int) -> list[Incident]:
    """List what is wrong: sites that turn us away, dead letters, and what failed so many times."""
    sites = [_of_site(view) for view in await store.breaker.list() if view.state != "closed"]
    streaks = await store.streaks.list()
    return sites + [_of(one) for one in streaks if one.dead or one.failures >= after]


def _of_site(view: BreakerView) -> Incident:
    return Incident(
        subject=f"{SITE}:{view.site}",
        kind=SITE,
        state=view.state,
        failures=view.failures,
        reason=view.reason or "",
        until=view.until,
    )


def _of(streak: Streak) -> Incident:
    return Incident(
        subject=streak.subject,
        kind=streak.kind,
        state="failed" if streak.dead else "retry",
        failures=streak.failures,
        reason=streak.reason,
        job_id=streak.job_id,
        last_at=streak.last_at,
    )
