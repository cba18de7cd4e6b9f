"""One Chromium with its driver: started, watched while pages are at work, ended without a trace."""

import asyncio
import contextlib
import os
import re
import shutil
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Self

import structlog
from playwright.async_api import Browser as PlaywrightBrowser
from playwright.async_api import (
    BrowserContext,
    Error,
    Page,
    Playwright,
    Request,
    Route,
    async_playwright,
)

from mimawari.errors import Transient
from mimawari.text import format_duration, one_line

START_FOR = timedelta(seconds=60)
"""How long a browser may take to start."""

CLOSE_FOR = timedelta(seconds=5)
"""How long anything may take to close before it is killed or replaced."""

FLAGS = (
    # Containers give /dev/shm too little room for a large page.
    "--disable-dev-shm-usage",
    "--disable-gpu",
    # Nothing may pass by the proxy, and nothing may be asked that no page asked for.
    "--disable-quic",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--no-first-run",
    # The switches above do not silence these two. Chromium itself refuses to dial this port.
    "--component-updater=url-source=http://127.0.0.1:9/",
    "--gaia-url=http://127.0.0.1:9/",
)
REFUSED_TYPES = frozenset({"image", "media", "font"})
PROXY_CODES = {
    "net::ERR_PROXY_CONNECTION_FAILED": "the proxy could not be reached",
    "net::ERR_TUNNEL_CONNECTION_FAILED": "the proxy refused the connection",
}
_NET_CODE = re.compile(r"net::ERR_[A-Z0-9_]+")
_SAID = re.compile(r"\[err\] (.+)")
_PROFILE = b"--user-data-dir="

log = structlog.get_logger(component="browser")


def reason_of(error: Error) -> str:
    """Say in our words what the driver's error means."""
    text = str(error)
    if code := _NET_CODE.search(text):
        meaning = PROXY_CODES.get(code[0], "the page could not be loaded")
        return f"{meaning} ({code[0]})"
    return f"the page could not be used: {one_line(text.partition('Call log:')[0], most=300)}"


def _reason_of_start(error: Error) -> str:
    text = str(error)
    said = _SAID.findall(text) or text.splitlines()[:1] or ["for no reason given"]
    return f"Chromium could not be started: {one_line(said[-1], most=300)}"


@dataclass(slots=True, eq=False)
class Tab:
    """A page at work, or one about to be opened, that can be ended from outside."""

    watchdog: asyncio.Timeout
    opening: asyncio.Task[BrowserContext]
    closing: asyncio.Task[None] | None = None
    page: Page | None = None
    is_watched: bool = False
    reason: str | None = None

    def end(self, reason: str) -> None:
        """Cancel the work now; the first reason is the one that counts."""
        if self.is_watched and self.reason is None and not self.watchdog.expired():
            self.reason = reason
            # Any time that is past will do: the watchdog then barks at once.
            self.watchdog.reschedule(0)


@dataclass(frozen=True, slots=True)
class Traces:
    """What a killed Chromium may leave on the machine, as far as it is surely its own."""

    group: int | None = None
    profile: Path | None = None
    socket: Path | None = None

    def kill(self) -> None:
        """Kill every process of it that still lives."""
        if self.group is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.group, signal.SIGKILL)

    def remove(self) -> None:
        """Remove every file of it that is still there."""
        if self.profile is not None:
            shutil.rmtree(self.profile, ignore_errors=True)
        if self.socket is not None:
            with contextlib.suppress(OSError):
                self.socket.unlink()
                self.socket.with_name("SingletonCookie").unlink()
                self.socket.parent.rmdir()


def find_traces(process_id: int) -> Traces:
    """Find what a Chromium may leave; nothing, unless the process is one of the driver's.

    In a container of its own a Chromium may go by a number that means another process here.
    """
    words: list[bytes] = []
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{process_id}/cmdline").read_bytes().split(b"\0")
    profiles = [word.removeprefix(_PROFILE) for word in words if word.startswith(_PROFILE)]
    profile = Path(os.fsdecode(profiles[-1])) if profiles else None
    if profile is None or not profile.name.startswith("playwright_"):
        return Traces()
    socket = None
    with contextlib.suppress(OSError):
        socket = (profile / "SingletonSocket").readlink()
    with contextlib.suppress(ProcessLookupError):
        return Traces(os.getpgid(process_id), profile, socket)
    return Traces(None, profile, socket)


def _is_wanted(request: Request, page: Page) -> bool:
    # A page's icon has no type of its own; it is known by what is accepted for it.
    accepted = request.headers.get("accept", "")
    if request.resource_type in REFUSED_TYPES or accepted.startswith("image/"):
        return False
    if not request.url.startswith(("http://", "https://")):
        # The files of this machine are no part of the web.
        return False
    try:
        return request.frame.page is page
    except Error:
        # The first request of a new window comes before the window does.
        return False


async def _sieve(route: Route, page: Page) -> None:
    # The page may be closed at any moment, and a request with it.
    with contextlib.suppress(Error):
        if _is_wanted(route.request, page):
            await route.continue_()
        else:
            await route.abort("blockedbyclient")


async def _shut(window: Page) -> None:
    with contextlib.suppress(Error):
        await window.close()


async def _stop(starting: asyncio.Task[Playwright]) -> None:
    await asyncio.wait({starting}, timeout=CLOSE_FOR.total_seconds())
    if not starting.done():
        starting.cancel()
    elif starting.exception() is None:
        with contextlib.suppress(TimeoutError, Error):
            async with asyncio.timeout(CLOSE_FOR.total_seconds()):
                await starting.result().stop()


class Chromium:
    """One running Chromium, its driver and the pages at work on it."""

    def __init__(
        self,
        generation: int,
        starting: asyncio.Task[Playwright],
        browser: PlaywrightBrowser,
        user_agent: str,
        traces: Traces,
    ) -> None:
        self.generation = generation
        self.pages = 0
        self._starting = starting
        self._browser = browser
        self._user_agent = user_agent
        self._traces = traces
        self._tabs: set[Tab] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._is_sick = False
        self._ending: asyncio.Task[None] | None = None
        browser.on("disconnected", self._lost)

    @classmethod
    async def start(
        cls, generation: int, *, executable: str, proxy: str | None, user_agent_suffix: str
    ) -> Self:
        """Start a Chromium, or raise Transient and leave nothing of it."""
        try:
            async with asyncio.timeout(START_FOR.total_seconds()):
                return await cls._start(generation, executable, proxy, user_agent_suffix)
        except TimeoutError as error:
            late = format_duration(START_FOR)
            raise Transient(f"Chromium did not start within {late}") from error
        except Error as error:
            raise Transient(_reason_of_start(error)) from error

    @classmethod
    async def _start(
        cls, generation: int, executable: str, proxy: str | None, user_agent_suffix: str
    ) -> Self:
        # A driver that is cancelled while it starts would be left running, so it never is.
        starting = asyncio.create_task(async_playwright().start())
        async with contextlib.AsyncExitStack() as undo:
            undo.push_async_callback(_stop, starting)
            await asyncio.wait({starting})
            if error := starting.exception():
                reason = one_line(str(error), most=300)
                raise Transient(f"the browser's driver did not start: {reason}") from error
            browser = await starting.result().chromium.launch(
                executable_path=executable,
                args=FLAGS,
                # Even loopback passes through the proxy: it is the one who may refuse it.
                proxy={"server": proxy, "bypass": "<-loopback>"} if proxy else None,
                # Chromium's sandbox does not work for root, who is meant to be in a container.
                chromium_sandbox=os.geteuid() != 0,
                # An interrupt at the terminal is ours to answer.
                handle_sigint=False,
                timeout=START_FOR.total_seconds() * 1000,
            )
            cdp = await browser.new_browser_cdp_session()
            version = await cdp.send("Browser.getVersion")
            processes = await cdp.send("SystemInfo.getProcessInfo")
            await cdp.detach()
            own = next(one["id"] for one in processes["processInfo"] if one["type"] == "browser")
            traces = find_traces(own)
            agent = f"{version['userAgent']} {user_agent_suffix}".strip()
            undo.pop_all()
            return cls(generation, starting, browser, agent, traces)

    @property
    def is_fit(self) -> bool:
        """Whether new pages may be opened on it."""
        return self._browser.is_connected() and not self._is_sick and self._ending is None

    def has(self, page: Page) -> bool:
        """Whether the page is at work here."""
        return any(tab.page is page for tab in self._tabs)

    @contextlib.asynccontextmanager
    async def page(self, task_for: timedelta) -> AsyncIterator[Page]:
        """Give a fresh page for so long, close it always, and raise no error of the driver's."""
        watchdog = asyncio.timeout(task_for.total_seconds())
        tab = Tab(watchdog, asyncio.create_task(self._open_context()))
        self._tabs.add(tab)
        self._idle.clear()
        try:
            async with watchdog:
                tab.is_watched = True
                yield await self._open_page(tab)
        except TimeoutError as error:
            if not watchdog.expired():
                raise
            late = f"the page took longer than {format_duration(task_for)}"
            raise self._failed(tab.reason or late) from error
        except Error as error:
            raise self._failed(tab.reason or reason_of(error)) from error
        finally:
            tab.is_watched = False
            tab.closing = asyncio.create_task(self._close(tab))
            await asyncio.shield(tab.closing)

    async def drain(self, drain_for: timedelta) -> int:
        """Wait for the pages at work, no longer than said; return how many are left."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(drain_for.total_seconds()):
                await self._idle.wait()
        return len(self._tabs)

    async def end(self, reason: str) -> None:
        """End the pages at work and leave no process and no folder."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(reason))
        await asyncio.shield(self._ending)

    async def _end(self, reason: str) -> None:
        for tab in self._tabs:
            tab.end(reason)
        if not self._is_sick:
            await self._close_browser()
        self._traces.kill()
        await _stop(self._starting)
        await asyncio.to_thread(self._traces.remove)

    async def _close_browser(self) -> None:
        with contextlib.suppress(TimeoutError, Error):
            async with asyncio.timeout(CLOSE_FOR.total_seconds()):
                await self._browser.close()

    async def _open_context(self) -> BrowserContext:
        return await self._browser.new_context(
            user_agent=self._user_agent,
            locale="ja-JP",
            timezone_id="Asia/Tokyo",
            viewport={"width": 1366, "height": 900},
            permissions=[],
            accept_downloads=False,
            service_workers="block",
        )

    async def _open_page(self, tab: Tab) -> Page:
        try:
            context = await asyncio.shield(tab.opening)
            page = await context.new_page()
            await context.route("**/*", lambda route: _sieve(route, page))
            await context.route_web_socket("**/*", lambda socket: socket.close())
        except Error:
            # A browser that opens no page is of no use to the next one either.
            self._is_sick = True
            raise
        # Dialogs are dismissed by the driver itself as long as nobody listens for them.
        context.on("page", _shut)
        page.on("crash", lambda _: tab.end("the page crashed"))
        tab.page = page
        return page

    async def _close(self, tab: Tab) -> None:
        try:
            async with asyncio.timeout(CLOSE_FOR.total_seconds()):
                await _close_context(tab.opening)
        except TimeoutError:
            self._is_sick = True
            log.warning(
                "page not closed",
                what="page",
                generation=self.generation,
                result="left to the browser's end",
                reason=f"closing took longer than {format_duration(CLOSE_FOR)}",
                next="a new browser",
            )
        finally:
            self._tabs.discard(tab)
            if not self._tabs:
                self._idle.set()

    def _lost(self, _browser: PlaywrightBrowser) -> None:
        if self._ending is None:
            log.warning(
                "browser lost",
                what="chromium",
                generation=self.generation,
                result=f"{len(self._tabs)} pages ended",
                reason="its process went away",
                next="a new browser",
            )
        for tab in self._tabs:
            tab.end("Chromium went away")

    def _failed(self, reason: str) -> Transient:
        log.warning(
            "page ended",
            what="page",
            generation=self.generation,
            result="transient",
            reason=reason,
            next="the job's own backoff",
        )
        return Transient(reason)


async def _close_context(opening: asyncio.Task[BrowserContext]) -> None:
    # What could not be opened, or went with its browser, needs no closing.
    with contextlib.suppress(Error):
        await (await opening).close()
