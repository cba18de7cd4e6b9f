"""What a task is given: its limits, its commit, the clock and the log."""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import Any

import structlog

from mimawari.errors import Blocked, JobError, StoreDown, Transient, Wait
from mimawari.kernel.job import Job, State
from mimawari.kernel.ports import Clock, Store, Tx
from mimawari.kernel.signal import ENDS
from mimawari.kernel.values import Grant
from mimawari.kernel.watch import Watches

NOT_FOUND = frozenset({404, 410})
PATIENCE = timedelta(seconds=20)
"""A wait up to this long is slept through; a longer one gives the job's place to another."""

OpenHttp = Callable[["Context"], Any]
"""Makes the way a job asks sites: under its limits, through its breakers."""

log = structlog.get_logger(component="worker")


class Context:
    """One job's view of the kernel."""

    __slots__ = (
        "_asked", "_passed", "_unused", "clock", "committed", "grants", "http", "is_unsettled",
        "not_found", "sent", "settings", "store", "watches"
    )  # fmt: skip

    def __init__(
        self, store: Store, clock: Clock, watches: Watches, http: OpenHttp | None = None
    ) -> None:
        self.store = store
        self.clock = clock
        self.committed = False
        self.is_unsettled = False
        self.not_found: Counter[str] = Counter()
        self.grants: list[Grant] = []
        self._unused: list[Grant] = []
        self.sent = 0
        """How many requests, each with leave of its own, may have reached a site."""
        self._asked: tuple[str, str] | None = None
        self._passed: set[str] = set()
        self.watches = watches
        self.settings = watches.settings
        self.http: Any = http(self) if http else None

    @property
    def caller(self) -> str:
        """Who asks, as the limiter was told last."""
        return self._asked[1] if self._asked else "nobody"

    @property
    def sites(self) -> frozenset[str]:
        """The sites that were asked, or may be: their breakers let this job through."""
        return frozenset(self._passed)

    async def limit(self, name: str, *, caller: str) -> Grant:
        """Wait for leave to ask a site once; a long wait sends the job back to the queue."""
        self._asked = (name, caller)
        grant = await self._acquire(name, caller)
        self._unused.append(grant)
        return grant

    async def try_limit(self, name: str, *, caller: str) -> Wait | None:
        """Take leave to ask a site once if there is any now; else say until when there is none."""
        verdict = await self.store.limiter.acquire(self.watches.limit(name), caller)
        if isinstance(verdict, Wait):
            return verdict
        self._asked = (name, caller)
        self.grants.append(verdict)
        # The next request is this one's, whatever else there is leave for.
        self._unused.insert(0, verdict)
        return None

    async def _acquire(self, name: str, caller: str) -> Grant:
        limit = self.watches.limit(name)
        while True:
            verdict = await self.store.limiter.acquire(limit, caller)
            if isinstance(verdict, Grant):
                self.grants.append(verdict)
                return verdict
            span = verdict.until - self.clock.now()
            if span > PATIENCE:
                raise verdict
            await self.clock.sleep(span)

    async def enter(self, site: str) -> None:
        """Pass a site's breaker, or raise until when to stay away."""
        if site not in self._passed:
            if wait := await self.store.breaker.check(site):
                raise wait
            self._passed.add(site)
            return
        view = await self.store.breaker.find(site)
        if view and view.state == "open" and view.until:
            # Somebody else was turned away while this job was on its way.
            raise Wait(view.until, view.reason or "the site turned us away", f"breaker {site}")

    async def barred(self, site: str) -> Wait | None:
        """Say until when to stay away from a site; whoever asks this does not try it."""
        view = await self.store.breaker.find(site)
        if view is None or view.until is None or view.until <= self.clock.now():
            return None
        return Wait(view.until, view.reason or "the site turned us away", f"breaker {site}")

    async def failed(self, site: str, error: JobError) -> None:
        """Count a failure against a site, for a job that goes on without what it asked for."""
        self._passed.discard(site)
        until = error.until if isinstance(error, Blocked | Transient) else None
        policy = self.watches.breaker(site)
        await self.store.breaker.failed(site, policy, str(error), until)

    def answered(self, site: str, status: int) -> None:
        """Count an answer of a site that says that there is no such page."""
        if status in NOT_FOUND:
            self.not_found[site] += 1

    async def use(self) -> Grant:
        """Give leave for one request: the one at hand, or the next of the same limit."""
        while self._unused:
            grant = self._unused.pop(0)
            if grant.is_valid(self.clock.mark()):
                return grant
        if self._asked is None:
            raise LookupError("a site is asked without a limit; call ctx.limit before")
        return await self._acquire(*self._asked)

    async def used(self, grant: Grant) -> None:
        """Say that the request of a grant is over."""
        self.sent += 1
        await self.store.limiter.settle(grant)
        self.grants.remove(grant)

    async def unused(self, grant: Grant) -> None:
        """Give back a grant whose request has certainly not reached the site."""
        await self.store.limiter.release(grant)
        self.grants.remove(grant)

    async def give_back(self) -> None:
        """Give back the leave at hand, if there is any: the request for it was not made."""
        if self._unused:
            await self.unused(self._unused.pop(0))

    async def peek(self, name: str) -> None:
        """Raise until when there is no leave under a limit, if that is long; take none."""
        wait = await self.store.limiter.peek(self.watches.limit(name))
        if wait is not None and wait.until - self.clock.now() > PATIENCE:
            raise wait

    async def hold(self, until: datetime, reason: str, *names: str) -> None:
        """Give nobody leave before a time: under the limits named, or the one asked last."""
        asked = (self._asked[0],) if self._asked else ()
        for name in names or asked:
            await self.store.limiter.hold(name, until, reason)

    @asynccontextmanager
    async def commit(self, job: Job, *, gone: str | None = None) -> AsyncIterator[Tx]:
        """Open the one transaction that ends the job: done, or gone for good for a reason."""
        state = State.DONE if gone is None else State.PERMANENT_FAIL
        async with self.store.commit(job, state, gone) as tx:
            yield tx
        self.committed = True
        self.store.signal.tell(ENDS)
        log.info(
            "job ended",
            what=job.kind,
            id=job.id,
            target=job.target,
            result=state,
            reason=gone,
            attempt=job.attempt,
        )

    async def settle(self) -> None:
        """Tell the limiter that every request of this job is over."""
        while self.grants:
            # One that cannot be told now counts for longer, which is the polite mistake.
            with suppress(StoreDown):
                await self.store.limiter.settle(self.grants[-1])
            self.grants.pop()
