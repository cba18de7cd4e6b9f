"""The rounds of the books watch: pages of volumes, and digests of what is new."""

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import structlog

from mimawari.errors import BadInput, Gone, Invalid, JobError, Transient, Wait
from mimawari.kernel.context import Context
from mimawari.kernel.job import AT_ONCE, Job, NewJob
from mimawari.kernel.watch import task
from mimawari.sites import google_books
from mimawari.sites.google_books import Query, QuotaUsedUp, VolumesPage
from mimawari.text import one_line
from mimawari.watches.books import collecting, jobs, log_lines, mailing, quota, rules
from mimawari.watches.books.collecting import Step
from mimawari.watches.books.jobs import MAIL, PAGE
from mimawari.watches.books.models import Run, StopReason
from mimawari.watches.books.quota import Call

ATTEMPTS = 6
SITE_ZONE = ZoneInfo("America/Los_Angeles")
"""Where the site counts its days."""
DAY = timedelta(days=1)
MIDNIGHT_FOR = timedelta(seconds=30)
"""How long before a day's end no call is made any more."""
NO_KEY = "no API key is set, and without one nobody has any calls; set MIMAWARI_BOOKS_KEY"

log = structlog.get_logger(component="books")


@task(
    PAGE, lease="2m", timeout="5m", attempts=ATTEMPTS, backoff="2s 10s 1m 5m 15m",
    site=google_books.SITE.name, concurrency=2,
)  # fmt: skip
async def collect_page(job: Job, ctx: Context) -> None:
    """Read the next page of a job's volumes and keep it, with where to go on."""
    now = ctx.clock.now()
    async with ctx.store.read() as reader:
        step = await collecting.find_step(reader, job, now)
    if step is None or not step.job.enabled:
        await _give_up(job, ctx)
        return
    if step.cursor and step.cursor.is_exhausted and not _may_look_again(step, ctx):
        log.warning(log_lines.skip_line(step.job), what=job.target, result="skipped")
        return
    if rules.page_size(step.job.max_per_run, step.reading.collected) < 1:
        # Somebody wants less of it since the run began.
        await _end_at_limit(job, ctx)
        return
    await ctx.limit(PAGE, caller="books")
    # The limit may have let time pass.
    now = ctx.clock.now()
    next_day = quota.next_day(now, ctx.settings)
    if next_day - now < MIDNIGHT_FOR:
        reason = "the day is about to end: a call might arrive on the next, and count there"
        raise Wait(next_day, reason, "quota")
    call = await quota.reserve(ctx.store, ctx.settings, now)
    if call is None:
        await _end_by_quota(job, ctx, step, next_day)
        return
    page = await _fetch(job, ctx, step, call)
    if page is not None:
        await _keep(job, ctx, step, page, call)


def _may_look_again(step: Step, ctx: Context) -> bool:
    again_after = ctx.settings.books_recheck_after
    return again_after is not None and (
        jobs.due_at(step.job, step.cursor, step.run.started_at, ctx.settings) <= step.run.started_at
    )


async def _fetch(job: Job, ctx: Context, step: Step, call: Call) -> VolumesPage | None:
    """Ask for a page; None where the site has no more calls for us today."""
    sent_before = ctx.sent
    try:
        found = await google_books.fetch_volumes(
            ctx.http,
            ctx.settings.google_books_url,
            _query(step),
            ctx.settings.books_key.get_secret_value() or None,
        )
        _check(found)
    except Wait:
        async with ctx.store.edit() as tx:
            await (quota.settle if ctx.sent > sent_before else quota.release)(tx, call)
        raise
    except QuotaUsedUp as error:
        until = max(error.until or ctx.clock.now(), _site_day_after(ctx.clock.now()))
        if ctx.settings.books_key:
            await ctx.hold(until, "the day's calls are used up, says the site")
        await _end_by_quota(job, ctx, step, until, call)
        return None
    except (JobError, BadInput) as error:
        await _count_failed(job, ctx, call, error, was_sent=ctx.sent > sent_before)
        raise
    return found


def _query(step: Step) -> Query:
    reading, job = step.reading, step.job
    return Query(
        q=job.q,
        start_index=reading.start_index,
        max_results=rules.page_size(job.max_per_run, reading.collected),
        print_type=job.print_type,
        lang_restrict=job.lang_restrict,
    )


def _check(page: VolumesPage) -> None:
    """Refuse a reply that tells neither volumes nor how many there are: it proves nothing."""
    if page.total_items is None and not page.volumes and not page.refused:
        raise Transient("the reply has neither volumes nor their number")


def _site_day_after(now: datetime) -> datetime:
    """Tell when the site begins to count anew."""
    tomorrow = now.astimezone(SITE_ZONE).date() + DAY
    return datetime.combine(tomorrow, time(), SITE_ZONE).astimezone(UTC)


async def _keep(job: Job, ctx: Context, step: Step, page: VolumesPage, call: Call) -> None:
    now = ctx.clock.now()
    async with ctx.commit(job) as tx:
        calls_left = await collecting.count_call(tx, call, ctx.settings, now)
        held = await collecting.hold_step(tx, job, now)
        if held is None:
            tx.put(_following(step))
            return
        if held.is_same_as != step.is_same_as:
            # The page is of a search that nobody wants any more.
            tx.put(_following(held))
            log.info("searched anew", what=job.target, result="done", reason="the job was changed")
            return
        run = await collecting.keep_page(tx, held, page, calls_left, now)
        if run.ended_at is None:
            tx.put(_following(held))
        else:
            next_at = _next_at(held, run, ctx)
            await collecting.end_run(tx, held, run, next_at, ctx.settings)
    returned = collecting.returned_by(page)
    log.info(
        log_lines.page_line(step.job, step.reading, returned), what=job.target, result="done",
        new_books=run.new_books - step.run.new_books, refused=len(page.refused),
    )  # fmt: skip
    if run.ended_at is not None:
        _tell_stop(step, run)


def _following(step: Step) -> NewJob:
    return jobs.page_job(
        step.job.name, run_id=step.run.id, is_dry=step.run.is_dry, priority=AT_ONCE
    )


def _next_at(step: Step, run: Run, ctx: Context) -> datetime:
    now = ctx.clock.now()
    if run.stop_reason is StopReason.QUOTA:
        return quota.next_day(now, ctx.settings)
    again_after = ctx.settings.books_recheck_after
    if run.stop_reason is StopReason.EXHAUSTED and again_after is not None:
        return now + again_after
    return max(now, run.started_at + step.job.every_for)


async def _give_up(job: Job, ctx: Context) -> None:
    """End a run whose job was removed or disabled, so that no digest of others waits for it."""
    now = ctx.clock.now()
    async with ctx.commit(job) as tx:
        held = await collecting.hold_step(tx, job, now)
        if held is not None and held.run.pages:
            await collecting.save_run(tx, replace(held.run, ended_at=now, words=log_lines.GIVEN_UP))
        if job.args.get("run") and not job.args.get("dry"):
            tx.put(jobs.mail_job(str(job.args["run"])))
    log.info("not searched", what=job.target, result="done", reason="removed or disabled")


async def _end_at_limit(job: Job, ctx: Context) -> None:
    """End a run that has collected as much as it may, without another page."""
    now = ctx.clock.now()
    async with ctx.commit(job) as tx:
        held = await collecting.hold_step(tx, job, now)
        if held is None:
            return
        run = await collecting.stop(tx, held, StopReason.MAX_PER_RUN, None, now)
        await collecting.end_run(tx, held, run, _next_at(held, run, ctx), ctx.settings)
    _tell_stop(held, run)


async def _end_by_quota(
    job: Job, ctx: Context, step: Step, next_at: datetime, call: Call | None = None
) -> None:
    """End a run because no calls are left: of ours, or after a call by the site's own count."""
    now = ctx.clock.now()
    async with ctx.commit(job) as tx:
        if call is not None:
            await quota.settle(tx, call)
        held = await collecting.hold_step(tx, job, now)
        if held is None:
            return
        why = "by the site's own count" if ctx.settings.books_key else NO_KEY
        run = await collecting.stop(tx, held, StopReason.QUOTA, why if call else None, now)
        await collecting.end_run(tx, held, run, next_at, ctx.settings)
    _tell_stop(step, run)


async def _count_failed(
    job: Job, ctx: Context, call: Call, error: Exception, *, was_sent: bool
) -> None:
    """Count a call that failed if it was made, and end the run if it is not tried again."""
    now = ctx.clock.now()
    is_last = job.attempt >= ATTEMPTS or isinstance(error, Invalid | Gone | BadInput)
    async with ctx.store.edit() as tx:
        await (quota.settle if was_sent else quota.release)(tx, call)
        held = await collecting.hold_step(tx, job, now) if is_last else None
        if held is None:
            return
        why = one_line(str(error), most=200)
        run = await collecting.stop(tx, held, StopReason.ERROR, why, now)
        await collecting.end_run(tx, held, run, _next_at(held, run, ctx), ctx.settings)
    _tell_stop(held, run)


def _tell_stop(step: Step, run: Run) -> None:
    is_bad = run.stop_reason in {StopReason.EXHAUSTED, StopReason.ERROR}
    tell = log.warning if is_bad else log.info
    tell(
        log_lines.stop_line(step.job, run.words or ""), what=jobs.member_of(step.job.name),
        result=run.stop_reason, pages=run.pages, collected=run.collected, new_books=run.new_books,
    )  # fmt: skip


@task(MAIL, lease="2m", attempts=20, backoff="10s 1m 5m 15m")
async def mail_digest(job: Job, ctx: Context) -> None:
    """Put the books that nobody was told of into a digest for each list of recipients."""
    now = ctx.clock.now()
    reason = mailing.why_not(ctx.settings)
    if reason is not None:
        log.info("not mailed", what=MAIL, result="done", reason=reason)
        return
    async with ctx.commit(job) as tx:
        if await mailing.is_under_way(tx, now):
            log.info("not mailed yet", what=MAIL, result="done", reason="another run is under way")
            return
        made = await mailing.put_digests(tx, ctx.settings, now)
    if made:
        words = f"digests written: {len(made)}, of {sum(made)} books"
        log.info(words, what=MAIL, result="done", digests=len(made), books=sum(made))
