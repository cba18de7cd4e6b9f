"""The fetcher: every request passes the breaker, robots.txt, the limiter and the guard."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

import httpx2

from mimawari.errors import BadInput, Invalid, JobError, StoreDown, Transient
from mimawari.kernel.context import Context
from mimawari.net.exchange import Ask, Reply, Timeout, exchange, is_unsent
from mimawari.net.page import Known, Outcome, Page, Site, Verdict
from mimawari.net.proxies import ProxyUrl
from mimawari.net.verdict import judge, may_hold_challenge, parse_retry_after
from mimawari.net.ways import Line, Ways
from mimawari.text import one_line

if TYPE_CHECKING:
    from playwright.async_api import Page as Tab

T = TypeVar("T")

HOPS = 5
MOVED = frozenset({301, 302, 303, 307, 308})
SEE_OTHER = frozenset({301, 302, 303})
HEADERS = {"Accept-Encoding": "gzip", "Accept-Language": "ja,en;q=0.8"}


class Fetcher:
    """Asks sites on behalf of one job."""

    def __init__(self, ways: Ways, context: Context) -> None:
        self.read = ways.reader.read
        self.look = ways.viewer.read
        self.gate = ways.gate.address
        self._ways = ways
        self._context = context

    @property
    def dialed(self) -> int:
        """How many connections those have opened who dial by themselves, through the gate."""
        return self._ways.gate.dialed

    async def fetch(
        self,
        site: Site,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        known: Known | None = None,
    ) -> Page:
        """Return the page, or raise the error that says what became of the request."""
        ours = {"User-Agent": self._ways.user_agent, **HEADERS, **_conditions(known)}
        ask = Ask(method, _parse_url(url), {**ours, **(headers or {})}, body)
        for _ in range(HOPS + 1):
            page = await self._ask(site, ask)
            if page.status not in MOVED:
                return page
            ask = _follow(ask, page)
        raise Transient(f"{url} redirects more than {HOPS} times")

    async def take(self, site: Site, url: str, *, headers: Mapping[str, str] | None = None) -> Page:
        """Return one of the files that one leave covers, whatever its status.

        A player's playlist and segments belong together: who has leave for one look at a stream
        may take what is new in it. The guard, the deadline and the size hold for each of them.
        """
        if not self._context.grants:
            raise LookupError("a file is taken without a limit; call ctx.limit before")
        ours = {"User-Agent": self._ways.user_agent, **HEADERS}
        ask = Ask("GET", _parse_url(url), {**ours, **(headers or {})})
        for _ in range(HOPS + 1):
            page = await self._take(site, ask)
            if page.status not in MOVED or "location" not in page.headers:
                return page
            ask = _follow(ask, page)
        raise Transient(f"{ask.url.host} redirects more than {HOPS} times")

    async def _take(self, site: Site, ask: Ask) -> Page:
        egress = self._ways.egress
        proxy = egress.current
        try:
            reply = await exchange(self._ways.transport, ask, site)
        except Transient as error:
            await egress.failed("timeout" if isinstance(error, Timeout) else "network", proxy)
            raise
        egress.worked(proxy)
        return _page(ask, reply, self._ways.clock.now())

    async def render(self, site: Site, url: str, walk: "Callable[[Tab], Awaitable[T]]") -> T:
        """Open a page in the browser and return what a walk over it finds."""
        browser = self._ways.browser
        if browser is None:
            raise BadInput("pages are drawn only with MIMAWARI_MERCARI_MODE=browser")

        async def visit(tab: "Tab") -> tuple[Page, Verdict, list[T]]:
            page = await _opened(tab, ask, self._ways.clock.now())
            verdict = await self._judge(site, page)
            refused = verdict.error(site.name) is not None
            return page, verdict, [] if refused else [await walk(tab)]

        ask = Ask("GET", _parse_url(url))
        async with self._asking(site, ask) as (line, proxy):
            page, verdict, found = await browser.use(visit, task_for=site.deadline_for)
        self._context.answered(site.name, page.status)
        line.judged(page, verdict)
        await self._heed(site, page, verdict, proxy)
        return found[0]

    async def _ask(self, site: Site, ask: Ask) -> Page:
        """Ask once, and decide what the reply is unless it points elsewhere."""
        async with self._asking(site, ask) as (line, proxy):
            reply = await exchange(self._ways.transport, ask, site)
            page = _page(ask, reply, self._ways.clock.now())
        if page.status in MOVED and "location" in page.headers:
            line.moved(page)
            return page
        verdict = await self._judge(site, page)
        self._context.answered(site.name, page.status)
        line.judged(page, verdict)
        await self._heed(site, page, verdict, proxy)
        return replace(page, outcome=verdict.outcome)

    @asynccontextmanager
    async def _asking(self, site: Site, ask: Ask) -> AsyncIterator[tuple[Line, ProxyUrl | None]]:
        """Hold leave for one request, of whatever kind, and settle it in the end."""
        ways, job = self._ways, self._context
        try:
            await job.enter(site.name)
            pause_for = await ways.robots.obey(site, ask, job.caller)
        except (JobError, BadInput):
            with suppress(StoreDown):
                await job.give_back()
            raise
        grant = await job.use()
        proxy = ways.egress.current
        line = Line(ways.clock, job.caller, site, ask)
        unsent = False
        try:
            yield line, proxy
        except (JobError, BadInput) as error:
            unsent = is_unsent(error)
            line.failed(error)
            if isinstance(error, Transient):
                late = isinstance(error, Timeout)
                await ways.egress.failed("timeout" if late else "network", proxy)
            raise
        finally:
            # What cannot be told now counts for longer, which is the polite mistake.
            with suppress(StoreDown):
                await (job.unused(grant) if unsent else job.used(grant))
                if pause_for and not unsent:
                    pause = f"robots.txt asks for {pause_for.total_seconds():g} s between requests"
                    await job.hold(ways.clock.now() + pause_for, pause)

    async def _judge(self, site: Site, page: Page) -> Verdict:
        now = self._ways.clock.now()
        verdict = site.judge(page) if site.judge else None
        if verdict is None and may_hold_challenge(page):
            verdict = await self.read(judge, page)
        verdict = verdict or judge(page)
        until = verdict.until or parse_retry_after(page.headers.get("retry-after"), now)
        return replace(verdict, until=until)

    async def _heed(self, site: Site, page: Page, verdict: Verdict, proxy: ProxyUrl | None) -> None:
        """Do as a verdict says: hold, change the proxy, and raise unless there is a page."""
        egress = self._ways.egress
        if verdict.outcome in {Outcome.BLOCKED, Outcome.RATE_LIMITED}:
            await egress.failed("blocked", proxy)
        else:
            egress.worked(proxy)
        error = verdict.error(site.name, page.body)
        if error is None:
            return
        if verdict.until is not None:
            await self._context.hold(verdict.until, verdict.reason)
        raise error


async def _opened(tab: "Tab", ask: Ask, now: datetime) -> Page:
    response = await tab.goto(str(ask.url), wait_until="domcontentloaded")
    if response is None:
        raise Transient(f"{ask.url.host} gave no page")
    return Page(
        url=tab.url,
        status=response.status,
        headers=await response.all_headers(),
        body=(await tab.content()).encode("utf-8", "replace"),
        fetched_at=now,
    )


def _parse_url(url: str) -> httpx2.URL:
    try:
        parsed = httpx2.URL(url)
    except (httpx2.InvalidURL, UnicodeError) as error:
        raise BadInput(f"{one_line(url, most=200)!r} is no address: {error}") from error
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise BadInput(f"{one_line(url, most=200)!r} is no address; write it like https://host/…")
    return parsed


def _conditions(known: Known | None) -> dict[str, str]:
    if known is None:
        return {}
    told = {"If-None-Match": known.etag, "If-Modified-Since": known.last_modified}
    return {name: value for name, value in told.items() if value and value.isascii()}


def _follow(ask: Ask, page: Page) -> Ask:
    """Ask where a reply points, telling another origin nothing but who we are."""
    try:
        url = _parse_url(str(ask.url.join(page.headers["location"])))
    except (httpx2.InvalidURL, UnicodeError, BadInput) as error:
        raise Invalid(f"{ask.url.host} points to no address of a page", page=page.body) from error
    drops_body = page.status in SEE_OTHER and ask.method != "HEAD"
    same = (url.scheme, url.host, url.port) == (ask.url.scheme, ask.url.host, ask.url.port)
    told = {"User-Agent", "Accept", *HEADERS}
    headers = {
        name: value
        for name, value in ask.headers.items()
        if (same or name in told) and not (drops_body and name.lower() == "content-type")
    }
    method = "GET" if drops_body else ask.method
    return Ask(method, url, headers, None if drops_body else ask.body)


def _page(ask: Ask, reply: Reply, now: datetime) -> Page:
    known = Known(reply.headers.get("etag"), reply.headers.get("last-modified"))
    return Page(
        url=str(ask.url),
        status=reply.status,
        headers=reply.headers,
        body=reply.body,
        fetched_at=now,
        known=known,
    )
