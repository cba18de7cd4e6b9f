"""What tests of the browser stand on: a little site that remembers, and a look at processes."""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page

from mimawari.kernel.clock import VirtualClock
from mimawari.net.browser import Browser
from tests.servers.processes import table

PATIENCE = timedelta(seconds=60)
"""How long a test waits for what must come; a loaded machine is slow, and nothing is timed."""

PROGRAM = """
import asyncio
from mimawari.kernel.clock import RealClock
from mimawari.net.browser import Browser

async def work(page):
    print("begun", flush=True)
    await asyncio.Event().wait()

asyncio.run(Browser(RealClock()).use(work))
"""
"""A program that opens a page and never ends."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as the site saw it; a proxy sees the whole address as its path."""

    method: str
    path: str
    headers: dict[str, str]


@dataclass(slots=True)
class LittleSite:
    """A site, or a proxy that answers for all sites, on a free port of this machine."""

    port: int = 0
    pages: dict[str, str] = field(default_factory=dict)
    """What is answered to a path; any other path gets a plain page."""
    asked: list[Asked] = field(default_factory=list)
    released: set[str] = field(default_factory=set)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def url(self, path: str) -> str:
        """Return the whole address of a path."""
        return f"http://127.0.0.1:{self.port}{path}"

    def paths(self) -> list[str]:
        """List the paths that were asked for, in order."""
        return [one.path for one in self.asked]

    async def wait_for(self, *paths: str) -> None:
        """Wait until each path was asked for."""
        async with asyncio.timeout(PATIENCE.total_seconds()), self._changed:
            await self._changed.wait_for(lambda: set(paths) <= set(self.paths()))

    async def release(self, *paths: str) -> None:
        """Answer what waits on these paths; only paths under /slow wait."""
        async with self._changed:
            self.released.update(paths)
            self._changed.notify_all()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request and close the connection."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line, *rest = head.split("\r\n")
            method, path, _ = line.split(" ")
            headers = dict(one.lower().split(": ", 1) for one in rest if ": " in one)
            async with self._changed:
                self.asked.append(Asked(method, path, headers))
                self._changed.notify_all()
                if path.startswith("/slow"):
                    await self._changed.wait_for(lambda: path in self.released)
            writer.write(self._reply(method, path))
            await writer.drain()
        writer.close()

    def _reply(self, method: str, path: str) -> bytes:
        if path == "/reset":
            return b""
        status = "403 Forbidden" if method == "CONNECT" else "200 OK"
        body = self.pages.get(path, f"<title>{path}</title>").encode()
        kind = {".js": "text/javascript", ".css": "text/css"}.get(Path(path).suffix, "text/html")
        extra = "Content-Disposition: attachment\r\n" if path == "/download" else ""
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\n{extra}"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + body


@contextlib.asynccontextmanager
async def little_site() -> AsyncIterator[LittleSite]:
    """Open a site that is gone afterwards, whoever still waits for it."""
    site = LittleSite()
    server = await asyncio.start_server(site.answer, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()


def living() -> set[int]:
    """List the processes that run; those that only wait for their parents' notice do not."""
    return {pid for pid, (state, _) in table().items() if state not in "ZX"}


async def wait_until_gone(pids: Iterable[int]) -> None:
    """Wait until none of the processes lives."""
    left = set(pids)
    async with asyncio.timeout(PATIENCE.total_seconds()):
        while left := left & living():
            await asyncio.sleep(0.02)


@dataclass(frozen=True, slots=True)
class Traces:
    """What the browsers of one test leave on the machine, known by their temporary folder."""

    folder: Path

    def drivers(self) -> list[int]:
        """List the drivers that run."""
        return [pid for pid in self._started() if b"run-driver" in _read(pid, "cmdline")]

    def chromiums(self) -> list[int]:
        """List the main process of each Chromium that runs."""
        flag = b"--remote-debugging-pipe"
        found = [pid for pid in self._started() if flag in _read(pid, "cmdline")]
        # What a Chromium forks goes by its parent's command line until it has one of its own.
        parents = table()
        return [pid for pid in found if pid in parents and parents[pid][1] not in found]

    def processes(self) -> list[int]:
        """List all processes of these browsers, also those that have lost their parents."""
        started = self._started()
        groups = {_group(pid) for pid in started} - {os.getpgrp(), None}
        return [pid for pid in living() if pid in started or _group(pid) in groups]

    def files(self) -> list[str]:
        """Name what is in the temporary folder."""
        return sorted(one.name for one in self.folder.iterdir())

    def _started(self) -> list[int]:
        mark = f"TMPDIR={self.folder}".encode()
        own = os.getpid()
        return [pid for pid in living() - {own} if mark in _read(pid, "environ").split(b"\0")]


def _read(pid: int, name: str) -> bytes:
    # A process may end between the listing and the reading.
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_bytes()
    return b""


def _group(pid: int) -> int | None:
    with contextlib.suppress(ProcessLookupError):
        return os.getpgid(pid)
    return None


@contextlib.contextmanager
def traces() -> Iterator[Traces]:
    """Let browsers that start now have a temporary folder of their own."""
    # A short path: Chromium keeps a socket in it.
    with tempfile.TemporaryDirectory(prefix="mw") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", folder)
        yield Traces(Path(folder))


@contextlib.asynccontextmanager
async def fresh_browser(**options: Any) -> AsyncIterator[tuple[Browser, Traces]]:
    """Give a browser of the test's own, which must leave nothing, whatever was done to it."""
    with traces() as left:
        async with Browser(VirtualClock(), **options) as browser:
            yield browser, left
            known = left.processes()
        await wait_until_gone(known)
        assert left.processes() == []
        assert left.files() == []


async def read_title(page: Page) -> str:
    """Return the page's title, which is empty on a fresh page."""
    return await page.title()


async def go_to(address: str, page: Page) -> str:
    """Go to an address and return the title of what is there."""
    await page.goto(address)
    return await page.title()


async def wait_for_ever(page: Page) -> None:
    """Do nothing, and never end."""
    await asyncio.Event().wait()


class Held:
    """Work that says when it has begun, and never ends by itself."""

    def __init__(self) -> None:
        self.page: Page | None = None
        self.has_begun = asyncio.Event()

    async def __call__(self, page: Page) -> None:
        """Begin, and never end."""
        self.page = page
        self.has_begun.set()
        await wait_for_ever(page)


async def hold(browser: Browser) -> tuple[Held, asyncio.Task[None]]:
    """Begin work that never ends by itself, and return when it has begun."""
    held = Held()
    task = asyncio.create_task(browser.use(held))
    begun = asyncio.create_task(held.has_begun.wait())
    await asyncio.wait({task, begun}, return_when=asyncio.FIRST_COMPLETED)
    assert held.has_begun.is_set()
    return held, task
