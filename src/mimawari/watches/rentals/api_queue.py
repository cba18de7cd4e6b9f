"""Routes of the queue of details: how it stands, its limit, and cleaning up."""

from dataclasses import asdict

from fastapi import APIRouter

from mimawari.edges import standing
from mimawari.edges.system import System, SystemOf
from mimawari.sites.yahoo_realestate import SITE
from mimawari.watches.rentals import cleanup, reads, tasks
from mimawari.watches.rentals.api_models import CleanupOut, GaugeOut, QueueOut
from mimawari.watches.rentals.asking import CleanupIn

queue_router = APIRouter(prefix="/queue")


async def count_queue(system: System) -> QueueOut:
    """Tell how the queue stands."""
    counts = await reads.count_queue(system)
    return QueueOut.of(counts, is_running=await reads.is_running(system))


@queue_router.get("/stats")
async def show_stats(system: SystemOf) -> QueueOut:
    """Count the details in the queue by their state, and say whether a worker is running."""
    return await count_queue(system)


@queue_router.post("/cleanup")
async def clean_up(system: SystemOf, asked: CleanupIn) -> CleanupOut:
    """Archive details that were read, and forget those that failed, once they are old."""
    work = cleanup.count_due if asked.dry_run else cleanup.clear
    cleared = await work(system.store, system.settings, system.clock.now())
    return CleanupOut(dry_run=asked.dry_run, **asdict(cleared))


@queue_router.get("/limiter")
async def show_limiter(system: SystemOf) -> GaugeOut:
    """Tell how many details of this hour are used up, when the next one may be read, and why."""
    limit = system.watches.limit(tasks.DETAIL)
    wait = await system.store.limiter.peek(limit)
    return GaugeOut(
        details_per_hour=limit.count,
        used=await system.store.limiter.used(limit),
        is_free=wait is None,
        next_at=None if wait is None else wait.until,
        reason=None if wait is None else wait.reason,
        breaker=await standing.find_breaker(system, SITE.name),
    )
