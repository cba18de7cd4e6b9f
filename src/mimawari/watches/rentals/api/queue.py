"""Routes of the queue of details: how it stands, its limit, and cleaning up."""

from dataclasses import asdict

from fastapi import APIRouter

from mimawari.edges.routes import SystemOf
from mimawari.watches.rentals import cleanup
from mimawari.watches.rentals.queue_status import count_queue, find_gauge
from mimawari.watches.rentals.schemas.requests import CleanupIn
from mimawari.watches.rentals.schemas.responses import CleanupOut, GaugeOut, QueueOut

queue_router = APIRouter(prefix="/queue")


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
    return await find_gauge(system)
