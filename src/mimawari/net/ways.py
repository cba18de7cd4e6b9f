"""The ways out that all fetchers of a process share, opened from the settings."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import structlog

from mimawari import __version__
from mimawari.errors import BadInput, Transient
from mimawari.kernel.ports import Clock, Store
from mimawari.net.browser import Browser
from mimawari.net.dial import Dialer, transport
from mimawari.net.exchange import Ask
from mimawari.net.gate import Gate
from mimawari.net.guard import Guard
from mimawari.net.page import Outcome, Page, Site, Verdict
from mimawari.net.proxies import Egress, connect_probe
from mimawari.net.reader import Reader
from mimawari.net.robots import Robots
from mimawari.settings import Settings
from mimawari.text import one_line

PROBE = "example.com"
"""A host that is always there, to see whether a proxy leads anywhere."""

log = structlog.get_logger(component="fetch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """The way out, and the manners on it."""

    clock: Clock
    transport: httpx2.AsyncBaseTransport
    user_agent: str
    robots: Robots
    reader: Reader
    viewer: Reader
    """Looks into media, which must not hold up the reading of pages."""
    egress: Egress
    gate: Gate
    browser: Browser | None


class Line:
    """The log line of one request: who, what, result, reason, next."""

    def __init__(self, clock: Clock, caller: str, site: Site, ask: Ask) -> None:
        self._clock = clock
        self._since = clock.mark()
        self._facts = {
            "who": caller,
            "what": f"{ask.method} {one_line(str(ask.url))}",
            "site": site.name,
        }

    def _write(self, result: str, reason: str, **more: Any) -> None:
        took = self._clock.mark().elapsed_since(self._since)
        log.info(
            "asked", **self._facts, result=result, reason=reason or None, **more,
            took_ms=round(took.total_seconds() * 1000),
        )  # fmt: skip

    def moved(self, page: Page) -> None:
        """Say where a reply points."""
        self._write("moved", "", status=page.status, next=one_line(page.headers["location"]))

    def judged(self, page: Page, verdict: Verdict) -> None:
        """Say what a reply is."""
        until = verdict.until.isoformat() if verdict.until else None
        facts = {"status": page.status, "bytes": len(page.body), "next": until}
        self._write(verdict.outcome, verdict.reason, **facts)

    def failed(self, error: Exception) -> None:
        """Say why there is no reply."""
        match error:
            case BadInput():
                result = "not sent"
            case Transient():
                result = Outcome.TRANSIENT
            case _:
                result = Outcome.DRIFT
        self._write(result, one_line(str(error)))


def user_agent(contact: str) -> str:
    """Name us, and whom to tell if we are a nuisance."""
    return f"mimawari/{__version__}" + (f" (+{contact})" if contact else "")


@asynccontextmanager
async def open_ways(
    settings: Settings,
    store: Store,
    clock: Clock,
    *,
    inside: httpx2.AsyncBaseTransport | None = None,
) -> AsyncIterator[Ways]:
    """Open every way out; `inside` leads to a simulated world in this process instead."""
    egress = Egress(settings.proxies, clock, connect_probe(PROBE))
    dialer = Dialer(Guard.of(settings), egress)
    name = user_agent(settings.contact)
    async with AsyncExitStack() as stack:
        way = await stack.enter_async_context(inside or transport(dialer))
        reader, viewer = Reader(), Reader()
        stack.push_async_callback(reader.close)
        stack.push_async_callback(viewer.close)
        # For those who dial by themselves: the browser, and libraries that resolve videos.
        gate = await stack.enter_async_context(Gate(dialer))
        browser = None
        if settings.mercari_mode == "browser":
            executable = settings.chromium or None
            browser = await stack.enter_async_context(
                Browser(clock, executable=executable, proxy=gate.address, user_agent_suffix=name)
            )
        yield Ways(
            clock=clock,
            transport=way,
            user_agent=name,
            robots=Robots(store, clock, way, name, settings.robots_ignore),
            reader=reader,
            viewer=viewer,
            egress=egress,
            gate=gate,
            browser=browser,
        )
