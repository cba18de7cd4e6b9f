"""What people ask of the watch: changes, crawls now, and how far they have come."""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from mimawari.edges.request_job import Later, ask_for, check, find_later, is_vain
from mimawari.edges.system import System
from mimawari.errors import BadInput
from mimawari.kernel.job import AT_ONCE, State
from mimawari.kernel.signal import ENDS
from mimawari.kernel.waiting import LOOK
from mimawari.kernel.why import Why, why
from mimawari.watches.prices import daily_sales, products, queries
from mimawari.watches.prices.models import Product, Setting
from mimawari.watches.prices.queries import Run

WAIT_FOR = timedelta(minutes=10)
"""How long a person waits for crawls."""
REMOVED = "the product was removed, or is searched for otherwise, since the crawl began; ask again"
LOOKED_AT = 10
"""So many crawls are looked at in one step; those asked for first go first."""

Change = Callable[[Product], tuple[str, Setting]]
"""Tells the name and the setting that a product is to have."""


class Stage(StrEnum):
    """How a crawl stands that somebody asked for."""

    DONE = "done"
    FAILED = "failed"
    WAITING = "waiting"
    RUNNING = "running"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A crawl that somebody asked for."""

    product_id: int
    name: str
    job_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How such a crawl stands, and once it is done what it brought."""

    asked: Asked
    stage: Stage
    run: Run | None = None
    pages_read: int | None = None
    next_at: datetime | None = None
    reason: str | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes."""
        return self.stage in {Stage.DONE, Stage.FAILED}


async def change_product(system: System, product_id: int, change: Change) -> Product:
    """Change a product, and crawl it at once if it is enabled and its setting is another now."""
    async with system.store.edit() as tx:
        # Held from here on, so that of two changes at once neither undoes the other.
        await daily_sales.hold(tx, product_id)
        known = await queries.find_known(tx, product_id)
        name, setting = change(known)
        if (name, setting) == (known.name, known.setting):
            return known
        await products.change_product(tx, product_id, name, setting, system.clock.now())
        if setting.enabled and setting != known.setting:
            tx.put(products.list_job(product_id, priority=AT_ONCE))
        return await queries.find_known(tx, product_id)


async def choose(system: System, product_id: int | None) -> list[Product]:
    """Choose what to crawl: the product that is named, or all that are enabled."""
    async with system.store.read() as reader:
        if product_id is not None:
            return [await queries.find_known(reader, product_id)]
        return [one async for one in products.walk_enabled(reader)]


async def ask_for_crawl(system: System, product_id: int) -> str:
    """Have a product crawled now, and return the job's id: a new one, or the one under way."""
    return await ask_for(system, products.list_job(product_id, priority=AT_ONCE))


async def ask_for_crawls(system: System, product_id: int | None) -> list[Asked]:
    """Have the product that is named, or all that are enabled, crawled now."""
    return [
        Asked(product_id=one.id, name=one.name, job_id=await ask_for_crawl(system, one.id))
        for one in await choose(system, product_id)
    ]


async def count_pages(system: System, job_id: str) -> int:
    """Count the pages that a crawl under way has read so far."""
    kept = await system.store.cache.get(products.pages_key(job_id))
    return 0 if kept is None else int(kept)


async def find_standing(system: System, asked: Asked) -> Standing:
    """Tell how a crawl stands, without waiting for it; that it failed is no error here."""
    job = await system.store.queue.find(asked.job_id)
    try:
        check(job, "the list")
    except BadInput as error:
        return Standing(asked=asked, stage=Stage.FAILED, reason=str(error))
    async with system.store.read() as reader:
        run = await queries.find_run(reader, asked.job_id)
    if run is not None:
        return Standing(asked=asked, stage=Stage.DONE, run=run, pages_read=run.pages_read)
    if job is None or job.state is State.DONE:
        return Standing(asked=asked, stage=Stage.FAILED, reason=REMOVED)
    found = await find_later(system, asked.job_id)
    is_at_work = job.state is State.PROCESSING
    return Standing(
        asked=asked,
        stage=Stage.RUNNING if is_at_work else Stage.WAITING,
        pages_read=await count_pages(system, asked.job_id) if is_at_work else None,
        next_at=found.next_at,
        reason=found.reason,
    )


async def follow(
    system: System, asked: Sequence[Asked], until: datetime
) -> AsyncGenerator[Standing]:
    """Yield each crawl once it is over, and each second how many pages those at work have read.

    One that waits is yielded whenever it waits for something else.
    Ends when the time is, or when all others are known to stand still for longer than that.
    """
    bell = system.store.signal.bell(ENDS)
    left, told = list(asked), dict.fromkeys((one.job_id for one in asked), 0)
    reasons: dict[str, str | None] = {}
    tell_at = system.clock.now()
    while left and (now := system.clock.now()) < until:
        is_time, before = now >= tell_at, len(left)
        tell_at = now + LOOK if is_time else tell_at
        for one in left[:LOOKED_AT]:
            found = await find_standing(system, one)
            pages = found.pages_read or 0
            is_given_up = await _is_given_up(system, found, until)
            if found.is_over or is_given_up:
                left.remove(one)
            is_news = found.stage is Stage.WAITING and reasons.get(one.job_id) != found.reason
            if is_news and not is_given_up:
                reasons[one.job_id] = found.reason
                yield found
            if found.is_over or (is_time and pages > told[one.job_id]):
                told[one.job_id] = pages
                yield found
        if len(left) == before:
            await bell.wait(system.clock, min(until, now + LOOK))


async def _is_given_up(system: System, found: Standing, until: datetime) -> bool:
    return found.stage is Stage.WAITING and await is_vain(system, found.next_at, until)


async def find_waiting(system: System, product_id: int) -> Later | None:
    """Tell how a product's crawl in the queue stands; None if there is none."""
    live = await system.store.queue.find_live(products.key_of(product_id))
    return None if live is None else await find_later(system, live.id)


async def find_next(system: System, product: Product) -> Later | Why | None:
    """Tell when a product is crawled next, and why then; None if it is not by itself."""
    waiting = await find_waiting(system, product.id)
    if waiting is not None or not product.setting.enabled:
        return waiting
    return await why(system.store, system.clock, system.watches, products.MEMBER)
