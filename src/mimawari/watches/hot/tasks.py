"""Crawl, then apply: the rounds of the hot watch."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from mimawari.errors import Invalid, Transient
from mimawari.kernel.context import Context
from mimawari.kernel.job import Job, NewJob
from mimawari.kernel.ports import Tx
from mimawari.kernel.values import Note
from mimawari.kernel.watch import task
from mimawari.settings import Settings
from mimawari.sites import mercari
from mimawari.sites.mercari import Query, Side
from mimawari.text import one_line
from mimawari.watches.hot import alerts, franchises, messages, queries, rollups, rules, sync
from mimawari.watches.hot.models import Coverage, Crawl, Request, Seen, Status, Thresholds
from mimawari.watches.hot.rollups import Period
from mimawari.watches.hot.sync import Applied

LIMIT = franchises.KIND
ATTEMPTS = 4
WIDER = (Period.WEEK, Period.MONTH)
APPLY_FIRST = 50
"""The priority of what has been fetched already, before what is yet to be."""

log = structlog.get_logger(component="hot")


@dataclass(slots=True)
class _Found:
    """What a crawl has gathered so far."""

    items: dict[tuple[str, Status], Seen] = field(default_factory=dict)
    errors: list[Transient | Invalid] = field(default_factory=list)
    page_errors: list[str] = field(default_factory=list)
    asked: int = 0
    capped: dict[Side, bool] = field(default_factory=dict)

    def add(self, side: Side, result: mercari.Result, site_url: str) -> None:
        """Take in one page, or why there is none."""
        self.asked += 1
        self.capped[side] = result.capped
        if result.error is not None:
            self.errors.append(result.error)
            self.page_errors.append(f"{side} page {result.number}: {one_line(result.reason)}")
        for item in result.page.items if result.page else ():
            seen = make_seen(item, site_url)
            self.items.setdefault((seen.source_id, seen.status), seen)

    @property
    def coverage(self) -> Coverage:
        """How much of the market was seen."""
        return Coverage(
            pages_asked=self.asked,
            pages_read=self.asked - len(self.errors),
            capped_on_sale=self.capped.get(Side.ON_SALE, False),
            capped_sold=self.capped.get(Side.SOLD, False),
            page_errors=tuple(self.page_errors),
        )


def make_seen(item: mercari.Item, site_url: str) -> Seen:
    """Tell of an item what counting needs."""
    return Seen(
        source_id=item.id,
        title=item.title,
        price_yen=item.price_yen,
        status=Status.SOLD if item.status.is_sold else Status.AVAILABLE,
        image_url=item.image_url or "",
        item_url=site_url + item.path,
    )


def _timeout(settings: Settings) -> timedelta:
    return settings.janitor_timeout


@task(
    franchises.KIND,
    lease="2m",
    timeout_of=_timeout,
    attempts=ATTEMPTS,
    backoff="1m 5m 15m",
    site=mercari.NAME,
)
async def crawl(job: Job, ctx: Context) -> None:
    """Read the pages on sale, then those sold; a page that fails is skipped and said."""
    request = messages.parse_request(job.args, job.id, job.enqueued_at)
    async with ctx.store.read() as reader:
        ip = await franchises.find_ip(reader, request.ip_id)
    if ip is None:
        log.info("not crawled", what=job.target, result="done", reason="the IP was removed")
        return
    found = await _gather(ctx, request)
    error = _decide(found, last=job.attempt >= ATTEMPTS)
    result = Crawl(
        ip_id=request.ip_id,
        task_id=request.task_id,
        crawled_at=ctx.clock.now(),
        items=tuple(found.items.values()),
        coverage=found.coverage,
        error=error,
        retry_count=job.attempt - 1,
    )
    async with ctx.commit(job) as tx:
        tx.put(
            NewJob(
                kind="hot.apply",
                args=messages.write_crawl(result),
                target=job.target,
                priority=APPLY_FIRST,
            )
        )
    _tell(job, result)


async def _gather(ctx: Context, request: Request) -> _Found:
    found = _Found()
    await ctx.limit(LIMIT, caller="hot")
    market = mercari.open_market(ctx.settings, ctx.http, ctx.clock)
    sides = ((Side.ON_SALE, request.pages_on_sale), (Side.SOLD, request.pages_sold))
    for side, pages in sides:
        query = Query(keyword=request.keyword, side=side)
        async for result in mercari.walk(market, query, pages):
            found.add(side, result, ctx.settings.mercari_url)
    return found


def _decide(found: _Found, *, last: bool) -> str:
    """Return the error that the result carries; raise it where the job has another attempt."""
    if not found.errors or found.coverage.pages_read:
        return ""
    first = found.errors[0]
    # A page that nobody understands is kept for a person, and asking again would not help.
    if isinstance(first, Invalid) or not last:
        raise first
    return f"none of {found.asked} pages could be read: {one_line(str(first))}"


def _tell(job: Job, result: Crawl) -> None:
    coverage = result.coverage
    log.info(
        "crawled",
        what=job.target,
        result="failed" if result.error else "done",
        reason=result.error or "; ".join(coverage.page_errors) or None,
        items=len(result.items),
        pages=f"{coverage.pages_read}/{coverage.pages_asked}",
        capped=coverage.capped_on_sale or coverage.capped_sold,
        next="hot.apply",
    )


@task(
    "hot.apply",
    lease="2m",
    timeout_of=_timeout,
    attempts=ATTEMPTS,
    backoff="10s 1m 5m",
    concurrency=2,
)
async def apply(job: Job, ctx: Context) -> None:
    """Count what a crawl found, once, and set when the IP is crawled next."""
    result = messages.parse_crawl(job.args)
    now = ctx.clock.now()
    async with ctx.commit(job) as tx:
        applied = await take_in(tx, result, ctx.settings, now)
    await queries.drop_kept(ctx.store.cache, result.ip_id)
    if applied is not None:
        await ctx.store.cache.show(_notes(result, applied, ctx.settings))


async def take_in(tx: Tx, result: Crawl, settings: Settings, now: datetime) -> Applied | None:
    """Count a crawl, unless it was counted before, with all that follows from it."""
    applied = await sync.apply_crawl(tx, result, now)
    if applied is not None:
        await _follow(tx, result, applied, settings, now)
    return applied


def _notes(result: Crawl, applied: Applied, settings: Settings) -> list[Note]:
    """Write each item as it stands in the cache: a copy of what is counted in the tables."""
    shown_for = {
        Status.AVAILABLE: settings.hot_item_ttl_available,
        Status.SOLD: settings.hot_item_ttl_sold,
    }
    return [
        Note(
            f"hot:item:{result.ip_id}:{source_id}",
            {
                "status": state.status,
                "price": state.price_yen or 0,
                "first_seen": int(applied.first_seen.get(source_id, result.crawled_at).timestamp()),
                "last_seen": int(state.last_seen_at.timestamp()),
            },
            shown_for[state.status],
        )
        for source_id, state in applied.states.items()
    ]


async def _follow(
    tx: Tx, result: Crawl, applied: Applied, settings: Settings, now: datetime
) -> None:
    """Do what follows from a count: alerts, the weight, the next time, and sums of days gone by."""
    ip, weight = applied.ip, applied.ip.weight
    if applied.hour is not None:
        rollups.put_late(tx, ip.id, result.crawled_at, now, settings.zone)
    if not applied.is_latest:
        return
    if applied.hour is not None:
        usual = await sync.find_usual_yen(tx, ip.id, result.crawled_at)
        findings = rules.find_alerts(applied.hour, usual, thresholds(settings))
        await alerts.sync_alerts(tx, ip, findings, now)
        brought = rules.Brought(
            inflow=applied.inflow,
            outflow=applied.outflow,
            pages_on_sale=settings.hot_pages_on_sale,
            pages_sold=settings.hot_pages_sold,
        )
        weight = rules.RULES[settings.hot_rule](ip.weight, brought)
        await sync.save_weight(tx, ip.id, weight)
    entry = franchises.entry_of(ip, weight, settings, now)
    if ip.active:
        tx.place(entry)
    log.info(
        "applied",
        what=entry.member,
        result="failed" if result.error else "done",
        reason=result.error or (None if applied.hour else "first crawl: stored, not counted"),
        inflow=applied.inflow,
        outflow=applied.outflow,
        weight=weight,
        next=entry.next_at.isoformat() if ip.active else None,
    )


@task("hot.rollup", lease="2m", attempts=20, backoff="1m 5m 15m 1h")
async def rollup(job: Job, ctx: Context) -> None:
    """Have the days that are over summed up, and what is too old forgotten."""
    now, zone = ctx.clock.now(), ctx.settings.zone
    rolled = await ctx.store.cursor.find(rollups.MEMBER)
    async with ctx.store.read() as reader:
        spans = await rollups.list_days(reader, rolled, now, zone)
    async with ctx.commit(job) as tx:
        tx.put(*(rollups.fold_job(span) for span in spans), NewJob(kind="hot.forget"))
        if spans:
            tx.move(rollups.MEMBER, spans[-1].first.isoformat())
        if job.target is not None:
            tx.next_run(rollups.next_run(now, zone), "after midnight")


@task("hot.fold", lease="2m", attempts=20, backoff="1m 5m 15m 1h")
async def fold(job: Job, ctx: Context) -> None:
    """Sum up a period for a batch of IPs; after a day come the week and month it ends."""
    span = rollups.parse_span(job.args, ctx.settings.zone)
    only: int | None = job.args.get("ip_id")
    async with ctx.commit(job) as tx:
        ip_ids = [only] if only else await rollups.list_ids(tx, job.args.get("after", 0))
        await rollups.fold(tx, span, ip_ids)
        if not only and len(ip_ids) == rollups.BATCH:
            tx.put(rollups.fold_job(span, after=ip_ids[-1]))
        elif span.period is Period.DAY:
            wider = [rollups.span_of(each, span.first, span.zone) for each in WIDER]
            over = [each for each in wider if each.end_at <= ctx.clock.now()]
            tx.put(*(rollups.fold_job(each, ip_id=only) for each in over))


@task("hot.forget", lease="5m", attempts=20, backoff="1m 5m 15m 1h")
async def forget(job: Job, ctx: Context) -> None:
    """Forget what is too old, some IPs at a time."""
    async with ctx.commit(job) as tx:
        ip_ids = await rollups.list_ids(tx, job.args.get("after", 0))
        await rollups.forget(tx, ip_ids, ctx.settings, ctx.clock.now())
        if len(ip_ids) == rollups.BATCH:
            tx.put(NewJob(kind="hot.forget", args={"after": ip_ids[-1]}))


def thresholds(settings: Settings) -> Thresholds:
    """Tell from where on something is worth telling."""
    return Thresholds(
        outflow=settings.hot_alert_outflow,
        liquidity_low=settings.hot_alert_liquidity_low,
        liquidity_high=settings.hot_alert_liquidity_high,
        price_drop=settings.hot_alert_price_drop,
        samples=settings.hot_alert_samples,
    )
