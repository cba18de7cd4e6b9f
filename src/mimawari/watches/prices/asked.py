"""What people ask of the watch: crawls now, and how far they have come."""

from datetime import datetime

from mimawari.edges.asked import Later, ask_for, check, find_later, wait
from mimawari.edges.system import System
from mimawari.errors import NotFound
from mimawari.kernel.job import AT_ONCE, State
from mimawari.watches.prices import products, reads
from mimawari.watches.prices.models import Product
from mimawari.watches.prices.reads import Run

PAGE = 500


async def choose(system: System, product_id: int | None) -> list[Product]:
    """Choose what to crawl: the product that is named, or all that are enabled."""
    async with system.store.read() as reader:
        if product_id is not None:
            return [await reads.find_known(reader, product_id)]
        chosen: list[Product] = []
        after = 0
        while some := await products.list_products(reader, PAGE, after, enabled=True):
            chosen += some
            after = some[-1].id
    return chosen


async def ask_for_crawl(system: System, product_id: int) -> str:
    """Have a product crawled now, and return the job's id: a new one, or the one under way."""
    return await ask_for(system, products.list_job(product_id, priority=AT_ONCE))


async def wait_for_crawl(system: System, job_id: str, until: datetime) -> Run | Later:
    """Return a crawl once it is over, or how it stands when the time is; a failed one is told."""
    job = await wait(system, job_id, until)
    check(job, "the list")
    async with system.store.read() as reader:
        run = await reads.find_run(reader, job_id)
    if run is not None:
        return run
    if job is None or job.state is State.DONE:
        raise NotFound("the product was removed while it was crawled")
    return await find_later(system, job_id)


async def count_pages(system: System, job_id: str) -> int:
    """Count the pages that a crawl under way has read so far."""
    kept = await system.store.cache.get(products.pages_key(job_id))
    return 0 if kept is None else int(kept)
