"""The rounds of the rentals watch: lists, details, the daily enqueue and the clean-up."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta

from sqlalchemy import select

from mimawari.errors import BadInput, Blocked, Gone, Wait
from mimawari.kernel.context import Context
from mimawari.kernel.control import commit_gone, confirm_gone
from mimawari.kernel.job import LIVE, NORMAL, Job, NewJob
from mimawari.kernel.ports import Reader, Tx
from mimawari.kernel.watch import task
from mimawari.sites import yahoo_realestate
from mimawari.sites.yahoo_realestate import SITE
from mimawari.watches.rentals import cleanup, lists, log_lines, rules, sync
from mimawari.watches.rentals.sync import Look
from mimawari.watches.rentals.tables import properties, queue

DETAIL = cleanup.KIND
LIST = lists.KIND
CLEANUP = "rentals.cleanup"
PREFIX = "rentals:"
"""A detail's target is this and the property's id, as the view of the queue reads it."""
RESTED = "rentals:rested"
"""The cursor that counts details since the last preventive pause."""

AGAIN_FOR = timedelta(hours=1)
PAUSE_MINUTES = 5
FRESH_FOR = timedelta(hours=12)
MOST_DAILY = 100


def key_of(property_id: str) -> str:
    """Name a property's place in the queue; it has one at a time."""
    return f"{DETAIL}:{property_id}"


def detail_job(
    property_id: str, url: str, caller: str = "worker", priority: int = NORMAL
) -> NewJob:
    """Ask for a property's own page; of several askers the first counts."""
    return NewJob(
        kind=DETAIL,
        args={"property_id": property_id, "url": url, "caller": caller},
        dedupe_key=key_of(property_id),
        target=f"{PREFIX}{property_id}",
        priority=priority,
    )


@asynccontextmanager
async def heeding(job: Job, ctx: Context, *, asked: bool) -> AsyncIterator[None]:
    """Where the site turns us away, leave it alone for a while, and this page for longer."""
    try:
        yield
    except Blocked as error:
        now = ctx.clock.now()
        pause = timedelta(minutes=PAUSE_MINUTES)
        await ctx.hold(now + pause, "the site turned us away", DETAIL, LIST)
        error.until = max(error.until or now, now + AGAIN_FOR)
        error.asked = asked
        log_lines.blocked(job, error, error.until, PAUSE_MINUTES)
        raise


async def _knock(job: Job, ctx: Context) -> None:
    """After a block ask for a light page first, to see that the site answers us again."""
    view = await ctx.store.breaker.find(SITE.name)
    if view is None or not view.failures:
        return
    async with heeding(job, ctx, asked=False):
        await ctx.limit(LIST, caller="health check")
        await fetch_front(ctx)


async def fetch_front(ctx: Context) -> None:
    """Ask for the light page that is always there; where it is not, the site is no site now."""
    try:
        await ctx.http.fetch(SITE, f"{ctx.settings.rentals_url}/rent/")
    except Gone as error:
        raise Blocked(SITE.name, f"its front page is not there: {error}", asked=False) from error


@task(LIST, lease="2m", timeout="10m", attempts=5, backoff="5m 15m 1h 4h 12h", site=SITE.name)
async def scrape_list(job: Job, ctx: Context) -> None:
    """Keep the rooms of one page of a list, enqueue the new ones, and go on to the next page."""
    walk = lists.parse_walk(job.args)
    await _knock(job, ctx)
    await ctx.limit(LIST, caller=walk.caller)
    try:
        async with heeding(job, ctx, asked=True):
            found = await yahoo_realestate.fetch_list(
                ctx.http, walk.url, site_url=ctx.settings.rentals_url
            )
    except Gone as error:
        async with commit_gone(ctx, job, SITE.name, reason=str(error)) as page:
            page.undo |= await lists.mark_gone(page.tx, walk.list_id, ctx.clock.now())
        return
    look = Look(job_id=job.id, at=ctx.clock.now(), zone=ctx.settings.zone)
    seen = [rules.seen_on_list(room) for room in found.rooms[: walk.left]]
    urls = {one.property_id: one.url for one in seen}
    async with ctx.commit(job) as tx:
        if await lists.find_list(tx, walk.list_id) is None:
            return
        kept = await sync.keep_seen(tx, seen, look)
        tx.put(*(detail_job(key, urls[key]) for key in kept.new))
        goes_on = lists.following(walk, found, walk.run_id or job.id)
        more = None if goes_on is None else lists.walk_job(goes_on)
        if more is not None:
            tx.put(more)
        await lists.keep_page(tx, walk, found, kept, more.id if more else None, look)
    log_lines.enqueued(len(kept.new), walk.list_id)


@task(
    DETAIL, lease="2m", timeout="10m", attempts=5, backoff="5m 15m 1h 4h 12h", site=SITE.name,
    in_order=True,
)  # fmt: skip
async def scrape_detail(job: Job, ctx: Context) -> None:
    """Read one property's own page under the limit of all, and keep what it says."""
    property_id, url, caller = _parse(job)
    look = Look(job_id=job.id, at=ctx.clock.now(), zone=ctx.settings.zone)
    async with ctx.store.read() as reader:
        gone_at = await sync.find_gone_at(reader, property_id)
    if gone_at is not None:
        log_lines.processing(job, url, caller)
        reason = f"gone since {gone_at.isoformat(timespec='seconds')}; never asked again"
        await _end_as_gone(job, ctx, look, reason, asked=False)
        return
    await _acquire(job, ctx, caller)
    # Only now is it its turn: one that waits is given back, and comes here again.
    log_lines.processing(job, url, caller)
    log_lines.acquired(job, url, caller)
    asked_at = ctx.clock.now()
    try:
        async with heeding(job, ctx, asked=True):
            found = await yahoo_realestate.fetch_detail(
                ctx.http, url, site_url=ctx.settings.rentals_url
            )
    except Gone as error:
        now = ctx.clock.now()
        await _end_as_gone(job, ctx, replace(look, at=now), str(error), asked=True)
        return
    rested = await _rest(ctx)
    look = Look(job_id=job.id, at=ctx.clock.now(), zone=ctx.settings.zone)
    async with ctx.commit(job) as tx:
        await confirm_gone(tx, ctx, SITE.name, asked_at)
        # Under the id that was asked for, also where the site leads to another spelling of it.
        seen = replace(rules.seen_on_page(found), property_id=property_id, url=url)
        await sync.keep_seen(tx, [seen], look)
        tx.move(RESTED, rested)
        tx.place_new(lists.daily_entry(ctx.settings, look.at))
    log_lines.completed(job, property_id, caller)


def _parse(job: Job) -> tuple[str, str, str]:
    try:
        return job.args["property_id"], job.args["url"], job.args["caller"]
    except KeyError as error:
        raise BadInput(f"these arguments are no detail: {error} is missing") from error


async def _acquire(job: Job, ctx: Context, caller: str) -> None:
    """Wait for leave to read a detail; the site is tried first where it had turned us away."""
    try:
        await ctx.peek(DETAIL)
        await _knock(job, ctx)
        await ctx.limit(DETAIL, caller=caller)
    except Wait as wait:
        log_lines.waiting(caller, wait, ctx.clock.now())
        raise


async def _end_as_gone(job: Job, ctx: Context, look: Look, reason: str, *, asked: bool) -> None:
    property_id, url, _ = _parse(job)
    async with commit_gone(ctx, job, SITE.name, reason=reason, asked=asked) as page:
        page.undo |= await sync.end_gone(page.tx, property_id, url, look)
    log_lines.gone(job, property_id, reason)


async def _rest(ctx: Context) -> str:
    """Count a detail, and hold all of us where a preventive pause is due."""
    after = ctx.settings.rentals_rest_after
    count = int(await ctx.store.cursor.find(RESTED) or 0) + 1
    if not after or count < after:
        return str(count)
    until = ctx.clock.now() + ctx.settings.rentals_rest_for
    await ctx.hold(until, f"preventive pause after {count} details", DETAIL, LIST)
    return "0"


@task(lists.DAILY_KIND, lease="2m", attempts=20, backoff="1m 5m 15m 1h")
async def enqueue_daily(job: Job, ctx: Context) -> None:
    """Enqueue the known properties that were read longest ago."""
    now = ctx.clock.now()
    errors = 0
    async with ctx.commit(job) as tx:
        chosen, existing, done = await choose(tx, now)
        for key, url in list(chosen):
            try:
                page_url, _ = yahoo_realestate.parse_detail_url(url, ctx.settings.rentals_url)
            except BadInput as error:
                errors += 1
                chosen.remove((key, url))
                log_lines.not_enqueued(key, url, str(error))
            else:
                tx.put(detail_job(key, page_url))
        tx.put(NewJob(kind=CLEANUP, dedupe_key=CLEANUP))
        if job.target is not None:
            at = rules.next_daily(now, ctx.settings.zone)
            tx.next_run(at, f"daily at {rules.DAILY_AT:%H:%M}")
    log_lines.daily(len(chosen), existing, done, errors)


async def choose(reader: Reader | Tx, now: datetime) -> tuple[list[tuple[str, str]], int, int]:
    """Choose what to read again: not what is on its way, was just read, or is gone for good."""
    live = select(queue.c.property_id).where(queue.c.status.in_(LIVE))
    waiting = set((await reader.execute(live)).scalars())
    known = select(properties.c.property_id, properties.c.url, properties.c.detail_at)
    known = known.where(properties.c.gone_at.is_(None))
    # Those never read come first on every engine, however it sorts what is missing.
    oldest = (properties.c.detail_at.is_not(None), properties.c.detail_at, properties.c.property_id)
    rows = (await reader.execute(known.order_by(*oldest))).all()
    existing = [row for row in rows if row.property_id in waiting]
    rest = [row for row in rows if row.property_id not in waiting]
    old = [row for row in rest if row.detail_at is None or row.detail_at <= now - FRESH_FOR]
    chosen = [(row.property_id, row.url) for row in old[:MOST_DAILY]]
    return chosen, len(existing), len(rest) - len(old)


@task(CLEANUP, lease="5m", attempts=20, backoff="1m 5m 15m 1h")
async def clean_up(job: Job, ctx: Context) -> None:
    """Archive details that were read, and forget those that failed, once they are old."""
    cleared = await cleanup.clear(ctx.store, ctx.settings, ctx.clock.now())
    log_lines.cleaned(cleared.archived, cleared.failed, cleared.permanent_fail)
    async with ctx.commit(job):
        pass
