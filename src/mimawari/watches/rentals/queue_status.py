"""How the queue of details and its limit stand, for the edges."""

from mimawari.edges import site_status
from mimawari.edges.request_job import is_running
from mimawari.edges.system import System
from mimawari.sites.yahoo_realestate import SITE
from mimawari.watches.rentals import queries, tasks
from mimawari.watches.rentals.schemas.responses import GaugeOut, QueueOut


async def count_queue(system: System) -> QueueOut:
    """Tell how the queue stands."""
    counts = await queries.count_queue(system)
    return QueueOut.of(counts, is_running=await is_running(system))


async def find_gauge(system: System) -> GaugeOut:
    """Tell how many details of this hour are used up, when the next one may be read, and why."""
    limit = system.watches.limit(tasks.DETAIL)
    wait = await system.store.limiter.peek(limit)
    return GaugeOut(
        details_per_hour=limit.count,
        used=await system.store.limiter.used(limit),
        is_free=wait is None,
        next_at=None if wait is None else wait.until,
        reason=None if wait is None else wait.reason,
        breaker=await site_status.find_breaker(system, SITE.name),
    )
