"""Pages that are drawn by scripts: a few places on one Chromium, replaced without losing a page."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

import structlog

from mimawari import __version__
from mimawari.errors import BadInput, MimawariError, Transient
from mimawari.installation import install_advice
from mimawari.kernel.loop import whole
from mimawari.kernel.ports import Clock
from mimawari.text import format_duration

if TYPE_CHECKING:
    from playwright.async_api import Page

    from mimawari.net.chromium import Chromium

NAMES = ("chromium", "chromium-browser", "google-chrome")
"""What Chromium goes by on the systems we know."""

CLOSED = "the browser is closed"

T = TypeVar("T")

log = structlog.get_logger(component="browser")


def find_executable(executable: str | None) -> str:
    """Find the Chromium to start: the one that was named, or the system's own."""
    for name in NAMES if executable is None else (executable,):
        if found := shutil.which(name):
            return found
    missing = "no Chromium was found" if executable is None else f"no Chromium at {executable}"
    raise BadInput(f"{missing}; install the Debian package chromium", code="no_browser")


def _chromium() -> "type[Chromium]":
    try:
        from mimawari.net.chromium import Chromium  # noqa: PLC0415 - an extra that may be missing
    except ModuleNotFoundError as error:
        advice = install_advice("browser")
        raise BadInput(f"Playwright is missing; {advice}", code="no_browser") from error
    return Chromium


class Browser:
    """Places for pages; each page is fresh, watched, and closed whatever happens.

    Chromium is started when the first page is asked for.
    """

    def __init__(  # noqa: PLR0913 - each is a setting of its own, with a default
        self,
        clock: Clock,
        *,
        executable: str | None = None,
        proxy: str | None = None,
        workers: int = 2,
        task_for: timedelta = timedelta(seconds=60),
        drain_for: timedelta = timedelta(seconds=60),
        pages_each: int = 200,
        user_agent_suffix: str = f"mimawari/{__version__}",
    ) -> None:
        if not (user_agent_suffix.isascii() and user_agent_suffix.isprintable()):
            raise BadInput("the name we give ourselves must be printable ASCII on one line")
        self._clock = clock
        self._executable = executable
        self._proxy = proxy
        self._task_for = task_for
        self._drain_for = drain_for
        self._pages_each = pages_each
        self._user_agent_suffix = user_agent_suffix
        self._places = asyncio.Semaphore(workers)
        self._current: Chromium | None = None
        self._old: set[Chromium] = set()
        self._drains: set[asyncio.Task[None]] = set()
        self._renewal: asyncio.Task[Chromium] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._is_closed = False
        self._generation = 0

    async def __aenter__(self) -> Self:
        """Return the browser; it is closed at the end."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the browser."""
        await self.close()

    @property
    def generation(self) -> int:
        """The number of the Chromium on which new work begins; none was started yet at 0."""
        return self._generation

    def generation_of(self, page: "Page") -> int | None:
        """Tell which Chromium a page is at work on."""
        for one in (self._current, *self._old):
            if one is not None and one.has(page):
                return one.generation
        return None

    async def use(
        self, work: "Callable[[Page], Awaitable[T]]", *, task_for: timedelta | None = None
    ) -> T:
        """Run the work on a fresh page; raise Transient for all that a browser may do wrong.

        The time given is for the page and the work, not for the wait for a place.
        """
        limit = self._task_for if task_for is None else task_for
        async with self._places:
            while True:
                chromium = await self._ready()
                try:
                    async with chromium.page(limit) as page:
                        # From here to the work's first step nobody else runs, so no work begins
                        # on a Chromium that has been replaced.
                        if chromium is self._current:
                            chromium.pages += 1
                            return await work(page)
                finally:
                    self._look_at(chromium)

    async def renew(self, reason: str) -> bool:
        """Let a new Chromium take over, and say whether it did; the old one stays if it cannot."""
        try:
            await asyncio.shield(self._renewing(reason))
        except MimawariError:
            return False
        return True

    async def close(self) -> None:
        """End every page and every Chromium; no process and no folder of theirs is left."""
        self._is_closed = True
        if self._ending is None:
            self._ending = asyncio.create_task(self._end_all())
        # What was begun is brought to its end, or Chromium would outlive us.
        await whole(self._ending)

    async def _end_all(self) -> None:
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.wait({self._renewal})
        if self._current is not None:
            self._old.add(self._current)
            self._current = None
        await asyncio.gather(*(one.end(CLOSED) for one in self._old))
        for drain in self._drains:
            drain.cancel()
        log.info("browser closed", what="chromium", generation=self._generation, result="done")

    async def _ready(self) -> "Chromium":
        if self._is_closed:
            raise Transient(CLOSED)
        if self._current is not None and self._current.is_fit:
            return self._current
        reason = "the first page" if self._current is None else "the old one failed"
        return await asyncio.shield(self._renewing(reason))

    def _look_at(self, chromium: "Chromium") -> None:
        """Replace a Chromium that failed or has had its share of pages."""
        if self._is_closed or chromium is not self._current:
            return
        if not chromium.is_fit:
            self._renewing("the old one failed")
        elif chromium.pages >= self._pages_each:
            self._renewing(f"{chromium.pages} pages were opened")

    def _renewing(self, reason: str) -> "asyncio.Task[Chromium]":
        """Return the one renewal that is on its way."""
        if self._is_closed:
            raise Transient(CLOSED)
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(self._renew(reason))
            # The log has its error already, should nobody wait for it.
            self._renewal.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._renewal

    async def _renew(self, reason: str) -> "Chromium":
        began = self._clock.mark()
        try:
            new = await self._start()
        except asyncio.CancelledError:
            # Only a close ends a start, and those who wait for it are not cancelled themselves.
            raise Transient(CLOSED) from None
        except (Transient, BadInput) as error:
            self._stay(error)
            raise
        took = format_duration(self._clock.mark().elapsed_since(began))
        old, self._current, self._generation = self._current, new, new.generation
        log.info(
            "browser started",
            what="chromium",
            generation=new.generation,
            result="in use",
            reason=reason,
            took_for=took,
            next="the old one is drained" if old else f"{self._pages_each} pages",
        )
        if old is not None:
            self._old.add(old)
            drain = asyncio.create_task(self._drain(old))
            self._drains.add(drain)
            drain.add_done_callback(self._drains.discard)
        return new

    async def _start(self) -> "Chromium":
        chromium = await asyncio.to_thread(_chromium)
        return await chromium.start(
            self._generation + 1,
            executable=find_executable(self._executable),
            proxy=self._proxy,
            user_agent_suffix=self._user_agent_suffix,
        )

    def _stay(self, error: MimawariError) -> None:
        """Go on with what there is, until as many pages have passed again."""
        stays = self._current is not None and self._current.is_fit
        if self._current is not None:
            self._current.pages = 0
        log.warning(
            "browser not started",
            what="chromium",
            generation=self._generation,
            result="the old one stays" if stays else "none in use",
            reason=str(error),
            next="tried again later",
        )

    async def _drain(self, old: "Chromium") -> None:
        began = self._clock.mark()
        left = await old.drain(self._drain_for)
        await old.end("the browser was replaced before the page was done")
        self._old.discard(old)
        log.info(
            "browser drained",
            what="chromium",
            generation=old.generation,
            result="done" if not left else f"{left} pages ended",
            reason="a new one took over",
            took_for=format_duration(self._clock.mark().elapsed_since(began)),
        )
