"""What a site's robots.txt asks of us: honoured, and remembered over restarts."""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import httpx2
import structlog
from protego import Protego

from mimawari.errors import BadInput, JobError, Transient, Wait
from mimawari.kernel.ports import Clock, Store
from mimawari.kernel.values import Limit
from mimawari.net.exchange import Ask, Reply, exchange
from mimawari.net.page import Site

AGENT = "mimawari"
MOST_READ = 500 * 1024
KEEP_FOR = timedelta(hours=24)
LONGEST_DELAY = timedelta(hours=1)
LIMIT = 6
HOPS = 5

log = structlog.get_logger(component="robots")


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
        origin = f"{url.scheme}://{url.netloc.decode('ascii')}"
        now = self.clock.now()
        if origin in self._kept and self._kept[origin][1] > now:
            return self._kept[origin][0]
        key = f"robots {origin}"
        body = await self.store.cache.get(key)
        if body is None:
            body = await self._fetch(httpx2.URL(f"{origin}/robots.txt"), caller)
            await self.store.cache.set(key, body, KEEP_FOR)
        rules = Rules(body)
        # Another process may have asked long ago, so it is looked at again rather sooner.
        self._kept[origin] = (rules, now + KEEP_FOR / 24)
        return rules

    async def _fetch(self, url: httpx2.URL, caller: str) -> bytes:
        """Ask for the file; none there allows everything, none to be had allows nothing."""
        limit = Limit(f"robots {url.netloc.decode('ascii')}", LIMIT, timedelta(hours=1))
        ask = Ask("GET", url, {"User-Agent": self.user_agent, "Accept-Encoding": "gzip"})
        for _ in range(HOPS + 1):
            reply = await self._ask(limit, ask, caller)
            if not reply.headers.get("location") or not 300 <= reply.status < 400:  # noqa: PLR2004
                return _body_of(reply, url.host)
            ask = Ask("GET", _join(ask.url, reply.headers["location"]), ask.headers)
        return b""

    async def _ask(self, limit: Limit, ask: Ask, caller: str) -> Reply:
        leave = await self.store.limiter.acquire(limit, caller)
        if isinstance(leave, Wait):
            raise leave
        try:
            reply = await exchange(self.transport, ask, Site(name="robots"))
        except JobError as error:
            raise Transient(f"the robots.txt of {ask.url.host} cannot be read: {error}") from error
        finally:
            await self.store.limiter.settle(leave)
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
