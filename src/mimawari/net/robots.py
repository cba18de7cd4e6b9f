"""What a site's robots.txt asks of us: honoured, and remembered over restarts."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import httpx2
import structlog
from protego import Protego

from mimawari.errors import BadInput, JobError, Transient
from mimawari.kernel.context import PATIENCE
from mimawari.kernel.ports import Clock, Store
from mimawari.kernel.values import Grant, Limit
from mimawari.net.exchange import Ask, Reply, exchange, is_unsent
from mimawari.net.page import Site

AGENT = "mimawari"
MOST_READ = 500 * 1024
KEEP_FOR = timedelta(hours=24)
LONGEST_DELAY = timedelta(hours=1)
AGAIN_FOR = timedelta(minutes=10)
"""How long a file that could not be had is not asked for again."""
A_MINUTE = 60
HOPS = 5
FOUND, MISSED = b"+", b"-"

log = structlog.get_logger(component="robots")


def origin_of(url: httpx2.URL) -> str:
    """Return the scheme, host and port of an address, which share one robots.txt."""
    return f"{url.scheme}://{url.netloc.decode('ascii')}"


def key_of(origin: str) -> str:
    """Name an origin's robots.txt in the cache."""
    return f"robots {origin}"


def limit_of(origin: str) -> Limit:
    """Return how often an origin's robots.txt may be asked for."""
    return Limit(f"robots {origin}", A_MINUTE, timedelta(minutes=1))


class Rules:
    """One origin's wishes."""

    def __init__(self, body: bytes) -> None:
        # At least this much must be read, and no more need be.
        text = body[:MOST_READ].decode("utf-8-sig", "replace")
        self._rules = Protego.parse(text)

    def allows(self, url: str) -> bool:
        """Tell whether we may read a page."""
        return bool(self._rules.can_fetch(url, AGENT))

    @property
    def delay_for(self) -> timedelta:
        """The time the site wants between two requests."""
        seconds = self._rules.crawl_delay(AGENT) or 0.0
        return timedelta(seconds=min(max(seconds, 0.0), LONGEST_DELAY.total_seconds()))


@dataclass(slots=True)
class Robots:
    """Keeps every site's wishes, but those of sites that an operator has leave from."""

    store: Store
    clock: Clock
    transport: httpx2.AsyncBaseTransport
    user_agent: str
    ignored: Collection[str] = ()
    _kept: dict[str, tuple[Rules, datetime]] = field(default_factory=dict)
    _turns: dict[str, asyncio.Lock] = field(default_factory=dict)

    async def obey(self, site: Site, ask: Ask, caller: str) -> timedelta:
        """Refuse what the site's robots.txt asks us not to read; tell how long to pause after."""
        if site.name in self.ignored:
            return timedelta(0)
        rules = await self._find(ask.url, caller)
        if not rules.allows(str(ask.url)):
            raise BadInput(
                f"the robots.txt of {ask.url.host} asks us not to read {ask.url.path};"
                f" if you have leave to, add {site.name} to MIMAWARI_ROBOTS_IGNORE",
                code="robots",
            )
        return rules.delay_for

    async def _find(self, url: httpx2.URL, caller: str) -> Rules:
        """Find an origin's rules; those who need the same ones at once ask once."""
        origin = origin_of(url)
        async with self._turns.setdefault(origin, asyncio.Lock()):
            rules, until = self._kept.get(origin, (None, self.clock.now()))
            if rules is None or until <= self.clock.now():
                rules = Rules(await self._read(origin, caller))
                # Another process may have asked long ago, so it is looked at again rather sooner.
                self._kept[origin] = (rules, self.clock.now() + KEEP_FOR / 24)
            return rules

    async def _read(self, origin: str, caller: str) -> bytes:
        """Return the file as it is remembered, also by other processes, or ask for it."""
        key = key_of(origin)
        while (kept := await self.store.cache.get(key)) is None:
            leave = await self._leave(origin, caller)
            if leave is None:
                continue
            try:
                body = FOUND + await self._fetch(httpx2.URL(f"{origin}/robots.txt"), leave, caller)
            except Transient as error:
                await self.store.cache.set(key, MISSED + str(error).encode(), AGAIN_FOR)
                raise
            await self.store.cache.set(key, body, KEEP_FOR)
        if kept.startswith(MISSED):
            raise Transient(kept[1:].decode("utf-8", "replace"))
        return kept[1:]

    async def _leave(self, origin: str, caller: str) -> Grant | None:
        """Take leave for one request; None after a short wait, in which another may have asked."""
        leave = await self.store.limiter.acquire(limit_of(origin), caller)
        if isinstance(leave, Grant):
            return leave
        span = leave.until - self.clock.now()
        if span > PATIENCE:
            raise leave
        await self.clock.sleep(span)
        return None

    async def _fetch(self, url: httpx2.URL, leave: Grant, caller: str) -> bytes:
        """Ask for the file; none there allows everything, none to be had allows nothing."""
        ask = Ask("GET", url, {"User-Agent": self.user_agent, "Accept-Encoding": "gzip"})
        hop: Grant | None = leave
        for _ in range(HOPS + 1):
            while hop is None:
                hop = await self._leave(str(url.join("/")).rstrip("/"), caller)
            reply = await self._ask(hop, ask, caller)
            if not reply.headers.get("location") or not 300 <= reply.status < 400:  # noqa: PLR2004
                return _body_of(reply, url.host)
            ask, hop = Ask("GET", _join(ask.url, reply.headers["location"]), ask.headers), None
        return b""

    async def _ask(self, leave: Grant, ask: Ask, caller: str) -> Reply:
        limiter = self.store.limiter
        unsent = False
        try:
            reply = await exchange(self.transport, ask, Site(name="robots"))
        except (JobError, BadInput) as error:
            unsent = is_unsent(error)
            if isinstance(error, BadInput):
                raise
            raise Transient(f"the robots.txt of {ask.url.host} cannot be read: {error}") from error
        finally:
            await (limiter.release if unsent else limiter.settle)(leave)
        log.info(
            "asked", who=caller, what=f"GET {ask.url}", status=reply.status,
            result="ok", next=f"again in {KEEP_FOR}",
        )  # fmt: skip
        return reply


def _join(url: httpx2.URL, location: str) -> httpx2.URL:
    try:
        return url.join(location)
    except (httpx2.InvalidURL, UnicodeError) as error:
        raise Transient(f"the robots.txt of {url.host} points to no address") from error


def _body_of(reply: Reply, host: str) -> bytes:
    if reply.status >= 500 or reply.status == 429:  # noqa: PLR2004 - RFC 9309, 2.3.1.4
        raise Transient(f"the robots.txt of {host} cannot be read: it answered {reply.status}")
    return reply.body if 200 <= reply.status < 300 else b""  # noqa: PLR2004 - 2.3.1.3: none is all
