"""Thousands of silent and dripping connections cost others nothing, and do not stay."""

import asyncio
import resource
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest

from tests.app.terminal import Terminal
from tests.faults.world import FULL

SILENT, DRIPPING = (10_000, 300) if FULL else (1_500, 60)
AT_ONCE = 500
PAGE_SECONDS = 1.0
GONE_SECONDS = 60.0 if FULL else 1.0
"""The short form looks only at what a full listener does; the long one at all deadlines."""
HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@dataclass
class Flood:
    """Connections that send no whole request, and those of them that were closed."""

    port: int
    opened: list[asyncio.StreamWriter] = field(default_factory=list)
    closed: int = 0
    tasks: list["asyncio.Task[None]"] = field(default_factory=list)

    async def open(self, *, drips: bool) -> None:
        """Open one connection and note when it is closed."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.opened.append(writer)
        self.tasks.append(asyncio.create_task(self._watch(reader)))
        if drips:
            self.tasks.append(asyncio.create_task(_drip(writer)))

    async def _watch(self, reader: asyncio.StreamReader) -> None:
        with suppress(OSError):
            await reader.read()
        self.closed += 1


async def _drip(writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        writer.write(HALF)
        while True:
            writer.write(b"X")
            await writer.drain()
            await asyncio.sleep(0.5)


@pytest.fixture
def many_files() -> Iterator[None]:
    """Let this process hold as many connections as the flood has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = SILENT + DRIPPING + 1000
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"a process may open {hard} files here, and this takes {wanted}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@asynccontextmanager
async def flooding(port: int) -> AsyncIterator[Flood]:
    """Open all connections of a flood, and abort what is left of them."""
    flood = Flood(port)
    for start in range(0, SILENT + DRIPPING, AT_ONCE):
        numbers = range(start, min(start + AT_ONCE, SILENT + DRIPPING))
        await asyncio.gather(*(flood.open(drips=number < DRIPPING) for number in numbers))
    try:
        yield flood
    finally:
        for writer in flood.opened:
            writer.transport.abort()
        for one in flood.tasks:
            one.cancel()
        await asyncio.gather(*flood.tasks, return_exceptions=True)


@pytest.mark.usefixtures("many_files")
async def test_pages_answer_within_a_second_during_a_flood_and_what_was_not_complete_is_closed(
    tmp_path: Path,
) -> None:
    terminal = Terminal(tmp_path / "data")
    with terminal.serve("--role", "api") as serving:
        address = await asyncio.to_thread(lambda: serving.facts()["API"])
        async with flooding(int(address.rpartition(":")[2])) as flood:
            took = []
            ends_at = time.monotonic() + GONE_SECONDS
            while time.monotonic() < ends_at and flood.closed < len(flood.opened):
                began = time.monotonic()
                async with httpx2.AsyncClient(base_url=address) as browser:
                    assert (await browser.get("/login")).status_code == 200
                took.append(time.monotonic() - began)
                await asyncio.sleep(0.2)
            assert max(took) < PAGE_SECONDS
            assert flood.closed == len(flood.opened) if FULL else flood.closed > AT_ONCE
