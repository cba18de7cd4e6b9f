"""Decides whether 404s in a row from one site mean that items are gone or that the site fails.

A 404 takes effect at once, and its effects are undone if it turns out that the site answers 404 to
everything. What people are told waits until an item's page was read, or until the control request
was answered: a request for something that must be there.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import structlog

from mimawari.errors import Blocked, Gone, Invalid, JobError, Transient, Wait
from mimawari.kernel.job import AT_ONCE, Job, NewJob
from mimawari.kernel.not_found import NotFound, NotFoundRun, RunState
from mimawari.kernel.ports import Clock, Reader, Store, Tx

if TYPE_CHECKING:
    from mimawari.kernel.context import Context
    from mimawari.kernel.watch import Run, Watches

MOST_IN_A_ROW = 5
"""After so many 404s in a row from one site the next request is the control request."""
SHOWN_WITHIN = timedelta(hours=1)
"""An item that a list showed within this time is expected to be there."""
HOLD_FOR, LONGEST_HOLD = timedelta(minutes=30), timedelta(hours=2)
AGAIN_FOR = timedelta(seconds=5)
"""How long other jobs wait at least while the control request is under way."""
TRIAL_FOR = timedelta(minutes=10)

log = structlog.get_logger(component="control")


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """How a watch makes the control request of a site, and what it does with the answer."""

    site: str
    kind: str
    """The kind of the jobs that make the request."""
    settle_after: timedelta
    """How long fewer 404s than five may wait for another answer of the site."""
    detail_limit: str
    list_limit: str
    find_shown: Callable[[Reader, datetime], Awaitable[Any]]
    """Find an item that a list showed since a time; None if there is none."""
    fetch_item: Callable[["Context", Job, Any], Awaitable[None]]
    fetch_list: Callable[["Context", Job, int], Awaitable[Sequence[Any]]]
    """Fetch a list and return the items that it shows; the number chooses among the lists."""
    confirm: Callable[[Tx, "Context", Sequence[NotFound]], Awaitable[None]]
    """Tell people that items are gone."""
    restore: Callable[[Tx, Sequence[NotFound]], Awaitable[None]]
    """Undo what was concluded from 404s."""


@dataclass(slots=True)
class GonePage:
    """The commit of a job whose page was 404, and what undoes its effects."""

    tx: Tx
    undo: dict[str, Any]


def control_job(control: Control, run_at: datetime | None = None) -> NewJob:
    """Return the job that makes the control request."""
    return NewJob(kind=control.kind, dedupe_key=control.kind, priority=AT_ONCE, run_at=run_at)


def next_hold(holds: int) -> timedelta:
    """Return how long a site is left alone after so many holds in a row."""
    return min(HOLD_FOR * (1 << min(holds, 10)), LONGEST_HOLD)


@asynccontextmanager
async def commit_gone(
    ctx: "Context", job: Job, site: str, *, reason: str | None, asked: bool = True
) -> AsyncIterator[GonePage]:
    """Open the commit of a job whose page was 404; raise Wait if its site is on hold.

    Without a reason the job ends as done. One that was not `asked` for, because it was known to
    be gone, counts for nothing and shares the fate of what it was known by.
    """
    control = ctx.watches.control(site)
    async with ctx.commit(job, gone=reason) as tx:
        run = await tx.not_found.lock(site)
        page = GonePage(tx, {})
        if control is not None and run.state is RunState.HELD:
            raise await _wait(ctx.store, ctx.clock, ctx.watches, control)
        yield page
        if control is None or not (asked or run.answers):
            return
        now = ctx.clock.now()
        item = NotFound(
            site=site, job_id=job.id, kind=job.kind, target=job.target, at=now, undo=page.undo
        )
        await tx.not_found.add(item)
        await _count(tx, control, run, int(asked), now)
    ctx.is_unsettled = True


async def _count(tx: Tx, control: Control, run: NotFoundRun, more: int, now: datetime) -> bool:
    """Count 404s; return whether they call for the control request now."""
    run = replace(run, answers=run.answers + more, began_at=run.began_at or now)
    is_due = run.answers >= MOST_IN_A_ROW
    if is_due and run.state is RunState.COUNTING:
        run = replace(run, state=RunState.CONTROL)
        await tx.not_found.hasten(control.kind)
    await tx.not_found.save(run)
    tx.put(control_job(control, None if is_due else now + control.settle_after))
    return is_due


async def confirm_gone(tx: Tx, ctx: "Context", site: str, asked_at: datetime) -> None:
    """Settle the 404s that came before the request for a page that was read after all.

    Call this first in the commit of an item's page, before anything else is locked.
    """
    control = ctx.watches.control(site)
    known = await tx.not_found.find(site)
    if control is None or known is None or not known.answers:
        return
    run = await tx.not_found.lock(site)
    if run.state is RunState.HELD:
        return
    items = await tx.not_found.list(site, asked_at)
    left = len(await tx.not_found.list(site)) - len(items)
    began_at = run.began_at if left else None
    state = run.state if left >= MOST_IN_A_ROW else RunState.COUNTING
    await tx.not_found.save(replace(run, state=state, answers=left, began_at=began_at))
    await _confirm(tx, ctx, control, items)


async def _confirm(tx: Tx, ctx: "Context", control: Control, items: Sequence[NotFound]) -> None:
    if not items:
        return
    await control.confirm(tx, ctx, items)
    await tx.not_found.drop(items, end_streaks=True)


async def heed(store: Store, clock: Clock, watches: "Watches", kind: str, site: str) -> None:
    """Raise Wait for any job but the control job while a site's 404s are in question."""
    control = watches.control(site)
    if control is None or kind == control.kind:
        return
    run = await store.not_found.find(site)
    if run is None or run.state is RunState.COUNTING:
        return
    wait = await _wait(store, clock, watches, control)
    # Without its job nobody would ask again, however it was lost.
    await store.queue.put([control_job(control, wait.until if run.holds else None)])
    raise wait


async def _wait(store: Store, clock: Clock, watches: "Watches", control: Control) -> Wait:
    """Return until when jobs wait for the control request, or for the hold to be over."""
    times = [clock.now() + AGAIN_FOR]
    view = await store.breaker.find(control.site)
    # A trial is soon over, however long it may take at the most.
    if view is not None and view.until is not None and view.state == "open":
        times.append(view.until)
    if limited := await store.limiter.peek(watches.limit(control.detail_limit)):
        times.append(limited.until)
    reason = view.reason if view is not None and view.state != "closed" else None
    said = reason or "many pages in a row were 404; a page that must be there is asked for first"
    return Wait(max(times), said, f"breaker {control.site}")


async def is_held(store: Store, watches: "Watches", site: str) -> bool:
    """Return whether a site is on hold for its 404s."""
    if watches.control(site) is None:
        return False
    run = await store.not_found.find(site)
    return run is not None and run.state is RunState.HELD


async def judge_lone(ctx: "Context", error: JobError, *, is_last: bool) -> JobError:
    """Count the 404s of a page that can never be gone; return what becomes of its job.

    While they are few the job is retried; its last attempt ends as the error says.
    """
    for site, count in ctx.not_found.items():
        control = ctx.watches.control(site)
        if control is None or not isinstance(error, Invalid):
            continue
        async with ctx.store.edit() as tx:
            run = await tx.not_found.lock(site)
            is_in_question = run.state is not RunState.COUNTING
            if run.state is not RunState.HELD:
                is_in_question |= await _count(tx, control, run, count, ctx.clock.now())
        if is_in_question:
            return await _wait(ctx.store, ctx.clock, ctx.watches, control)
        return error if is_last else Transient(str(error))
    return error


def make_check(control: Control) -> "Run":
    """Return what the control job of a site runs."""

    async def run(job: Job, ctx: "Context") -> None:
        await _Check(job, ctx, control).run()

    return run


@dataclass(frozen=True, slots=True)
class _Check:
    """One attempt to find out whether a site's 404s are true."""

    job: Job
    ctx: "Context"
    control: Control

    async def run(self) -> None:
        """Make the control request, and settle the run by its answer."""
        run = await self.ctx.store.not_found.find(self.control.site)
        if run is None or (run.state is RunState.COUNTING and not run.answers):
            return
        due_at = (run.began_at or self.ctx.clock.now()) + self.control.settle_after
        if run.answers < MOST_IN_A_ROW and run.state is RunState.COUNTING:
            if due_at > self.ctx.clock.now():
                raise Wait(due_at, "another answer of the site may come first", "404s")
            run = await self._change(state=RunState.CONTROL)
        if await self._answers(run):
            await self._settle()
        else:
            await self._hold()

    async def _change(self, **values: Any) -> NotFoundRun:
        async with self.ctx.store.edit() as tx:
            run = replace(await tx.not_found.lock(self.control.site), **values)
            await tx.not_found.save(run)
        return run

    async def _answers(self, run: NotFoundRun) -> bool:
        """Ask for an item that was shown lately, else for a list and for an item that it shows.

        An item that is 404 may have gone since it was shown, so the list is asked before a site
        is held for the first time. Few 404s are not worth the leave for an item's page: there
        the list's answer decides.
        """
        ctx, control = self.ctx, self.control
        if run.answers < MOST_IN_A_ROW and run.state is not RunState.HELD:
            return await self._fetch_list(run) is not None
        if not run.item_asked:
            async with ctx.store.read() as reader:
                since = ctx.clock.now() - SHOWN_WITHIN
                shown = await control.find_shown(reader, since)
            if shown is not None:
                is_there = await self._is_there(shown)
                if is_there or run.state is RunState.HELD:
                    return is_there
                await self._change(item_asked=True)
                return await self._list_answers(run)
        await ctx.peek(control.detail_limit)
        return await self._list_answers(run)

    async def _list_answers(self, run: NotFoundRun) -> bool:
        found = await self._fetch_list(run)
        if found is None:
            return False
        return await self._is_there(found[0]) if found else True

    async def _fetch_list(self, run: NotFoundRun) -> Sequence[Any] | None:
        await self.ctx.limit(self.control.list_limit, caller="control")
        return await self._ask(lambda: self.control.fetch_list(self.ctx, self.job, run.holds))

    async def _is_there(self, item: Any) -> bool:
        await self.ctx.limit(self.control.detail_limit, caller="control")

        async def ask() -> Sequence[Any]:
            await self.control.fetch_item(self.ctx, self.job, item)
            return ()

        return await self._ask(ask) is not None

    async def _ask(self, ask: Callable[[], Awaitable[Sequence[Any]]]) -> Sequence[Any] | None:
        """Return what a page shows; None if it is 404. One that is not understood is there."""
        before = self.ctx.not_found[self.control.site]
        try:
            return await ask()
        except Gone:
            self.ctx.not_found[self.control.site] = before + 1
            return None
        except Invalid:
            return None if self.ctx.not_found[self.control.site] > before else ()
        except Blocked as error:
            error.asked = False
            raise

    async def _settle(self) -> None:
        """End the run: its items are gone."""
        control, site = self.control, self.control.site
        async with self.ctx.commit(self.job) as tx:
            run = await tx.not_found.lock(site)
            items = await tx.not_found.list(site)
            await tx.not_found.save(NotFoundRun(site=site))
            await _confirm(tx, self.ctx, control, items)
            if run.state is RunState.HELD:
                await tx.not_found.release(site)
        log.info("404s settled", what=site, result="gone", items=len(items), next="go on")

    async def _hold(self) -> None:
        """Leave the site alone for a while, and undo what was concluded from its 404s."""
        control, site = self.control, self.control.site
        now = self.ctx.clock.now()
        async with self.ctx.commit(self.job) as tx:
            run = await tx.not_found.lock(site)
            run = replace(run, answers=run.answers + self.ctx.not_found[site])
            until = now + next_hold(run.holds)
            reason = "the site answers 404 to everything, also to what must be there"
            items = await tx.not_found.list(site)
            await control.restore(tx, items)
            await tx.not_found.requeue(items, reason, f"breaker {site}")
            await tx.not_found.drop(items, end_streaks=False)
            await tx.not_found.hold(run, until, reason)
            held = replace(run, state=RunState.HELD, holds=run.holds + 1, item_asked=False)
            await tx.not_found.save(held)
            tx.put(control_job(control, until))
        log.warning(
            "404s are the site's trouble",
            what=site,
            result="hold",
            reason=reason,
            restored=len(items),
            next=until.isoformat(),
        )
