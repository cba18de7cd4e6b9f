"""How the ways to a site stand: what keeps everybody from asking it, and until when."""

from datetime import datetime

from pydantic import BaseModel

from mimawari.edges.system import System


class WaitOut(BaseModel):
    """Something that nobody passes before a time."""

    name: str
    state: str
    until: datetime | None
    reason: str | None


async def find_breaker(system: System, site: str) -> WaitOut:
    """Tell how the breaker of a site stands."""
    view = await system.store.breaker.find(site)
    if view is None:
        return WaitOut(name=site, state="closed", until=None, reason=None)
    return WaitOut(name=site, state=view.state, until=view.until, reason=view.reason)


async def find_limit(system: System, name: str) -> WaitOut:
    """Tell whether a limit gives leave now, and if not, when and why."""
    wait = await system.store.limiter.peek(system.watches.limit(name))
    if wait is None:
        return WaitOut(name=name, state="free", until=None, reason=None)
    return WaitOut(name=name, state="waiting", until=wait.until, reason=wait.reason)
