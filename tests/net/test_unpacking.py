"""Whatever a reply is packed in, unpacking it is bounded in size and in time, by slices."""

import ast
import asyncio
import gzip
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

import mimawari
from mimawari.errors import Invalid, JobError
from mimawari.net.dial import Dialer, transport
from mimawari.net.exchange import Ask, Reply, exchange
from mimawari.net.guard import Guard
from mimawari.net.page import Site

MIB = 1024 * 1024
EMPTY = gzip.compress(b"")
SITE = Site(name="toy", most_bytes=8 * MIB)
UNPACKERS = {"zlib", "gzip", "bz2", "lzma", "zipfile", "tarfile", "brotli", "zstandard", "snappy"}


@asynccontextmanager
async def answering(body: bytes) -> AsyncIterator[str]:
    """Answer every connection with a body packed by gzip."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


async def fetch(body: bytes) -> Reply:
    async with answering(body) as url:
        way = transport(Dialer(Guard(["127.0.0.1"])))
        try:
            return await exchange(way, Ask("GET", httpx2.URL(url)), SITE)
        finally:
            await way.aclose()


async def longest_turn(body: bytes) -> float:
    """Return the most CPU seconds that the loop spent at a stretch while a body was read."""
    longest, since = 0.0, time.thread_time()

    async def turn() -> None:
        nonlocal longest, since
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            longest, since = max(longest, now - since), now

    turning = asyncio.create_task(turn())
    try:
        await fetch(body)
    except JobError:
        pass
    finally:
        turning.cancel()
    return longest


async def test_empty_parts_without_end_are_refused() -> None:
    with pytest.raises(Invalid, match="more than 1000 gzip parts"):
        await fetch(EMPTY * (MIB // len(EMPTY)))


async def test_packed_bytes_count_against_the_size_though_they_unpack_to_nothing() -> None:
    # A header's own name may be as long as one likes, and unpacks to nothing.
    named = b"\x1f\x8b\x08\x08" + b"\0" * 6 + b"x" * (9 * MIB) + b"\0" + EMPTY[10:]
    with pytest.raises(Invalid, match="larger"):
        await fetch(named)


async def test_a_file_of_several_parts_is_read_whole() -> None:
    parts = [b"a" * 70_000, b"", b"b" * 10, b""]
    assert (await fetch(b"".join(map(gzip.compress, parts)))).body == b"".join(parts)


@pytest.mark.parametrize(
    "body",
    [
        EMPTY * (MIB // len(EMPTY)),
        gzip.compress(b"\0" * (64 * MIB)),
        gzip.compress(bytes(range(256)) * (24 * 1024)),
        gzip.compress(b"x" * 4000) * 900,
    ],
    ids=["empty parts", "bomb", "large", "many parts"],
)
async def test_no_reply_keeps_the_loop_from_others_for_long(body: bytes) -> None:
    assert await longest_turn(body) < 0.15


def test_nothing_else_unpacks() -> None:
    root = Path(mimawari.__file__).parent
    found = set()
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.split(".")[0] in UNPACKERS for name in names):
                found.add(path.relative_to(root).parts[0] + "/" + path.name)
    # What the simulated world packs it does not unpack.
    assert {one for one in found if not one.startswith("sim/")} == {"net/exchange.py"}
