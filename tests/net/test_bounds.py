"""Bombs, drips and replies without an end: memory stays, and each ends by its deadline."""

import asyncio
import gzip
import json
import sys
import zlib
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from mimawari.errors import Invalid, Transient
from mimawari.kernel.clock import VirtualClock
from mimawari.net.page import MOST_BYTES, Site
from mimawari.sim.world import World
from tests.net.fetching import SITE, Ground, open_ground
from tests.sim.ground import Toy, serve

ROOT = Path(__file__).parents[2]
MOST_GROWN = 48


@pytest.fixture
def world(clock: VirtualClock) -> World:
    return World(clock, (Toy(),), 1)


async def measured(url: str, seconds: float) -> dict[str, Any]:
    """Fetch a page in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.net.bounded", url, str(seconds), stdout=PIPE, cwd=ROOT
    )
    out, _ = await process.communicate()
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.mark.parametrize(
    ("order", "outcome", "reason"),
    [
        ({"do": "bomb", "kind": "gzip", "size_mib": 2048}, "Invalid", "larger"),
        ({"do": "bomb", "kind": "br", "size_mib": 100}, "Invalid", "'br'"),
        ({"do": "bomb", "kind": "stacked", "size_mib": 2048}, "Invalid", "gzip"),
        ({"do": "bomb", "kind": "plain", "size_mib": 100}, "Invalid", "larger"),
        ({"do": "endless"}, "Invalid", "larger"),
    ],
    ids=lambda value: value.get("kind", value["do"]) if isinstance(value, dict) else "",
)
async def test_a_bomb_is_refused_before_it_fills_the_memory(
    order: dict[str, Any], outcome: str, reason: str, world: World
) -> None:
    world.orders.add({"part": "toy", "path": "/toy/page/bad", **order})
    async with serve(world) as http:
        found = await measured(f"{http.base_url}/toy/page", 60)
    assert found["outcome"] == outcome, found
    assert reason in found["reason"]
    assert found["grew"] <= MOST_GROWN


@pytest.mark.parametrize("order", [{"do": "drip"}, {"do": "slow", "delay_s": 3600}], ids=str)
async def test_a_reply_that_takes_for_ever_ends_by_its_deadline(
    order: dict[str, Any], world: World
) -> None:
    world.orders.add({"part": "toy", "path": "/toy/page/bad", **order})
    async with serve(world) as http:
        found = await measured(f"{http.base_url}/toy/page", 2)
    assert found["outcome"] == "Timeout"
    assert "longer than 2 s" in found["reason"]
    assert found["grew"] <= MOST_GROWN
    assert found["took"] < 60


@pytest.fixture
async def ground(tmp_path: Path, clock: VirtualClock) -> AsyncIterator[Ground]:
    async with open_ground(tmp_path, clock, robots_ignore=("toy",)) as opened:
        yield opened


def reply(headers: dict[str, str], body: bytes) -> Any:
    """Make an app that always answers the same."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": raw})
        await send({"type": "http.response.body", "body": body})

    return app


TEXT = "見回り".encode() * 1000


def zipped(body: bytes) -> bytes:
    """Zip a body, the same each time."""
    return gzip.compress(body, mtime=0)


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", zipped(TEXT)),
        ("GZIP", zipped(TEXT)),
        ("x-gzip", zipped(TEXT)),
        ("gzip", zipped(TEXT[:900]) + zipped(TEXT[900:])),
        ("identity", TEXT),
    ],
)
async def test_what_is_zipped_once_is_read(coding: str, body: bytes, ground: Ground) -> None:
    async with serve(reply({"content-encoding": coding}, body)) as http:
        page = await (await ground.fetcher()).fetch(SITE, f"{http.base_url}/")
    assert page.body == TEXT


@pytest.mark.parametrize(
    ("coding", "body", "error"),
    [
        ("br", b"x", Invalid),
        ("zstd", b"x", Invalid),
        ("deflate", zlib.compress(TEXT), Invalid),
        ("gzip, gzip", zipped(zipped(TEXT)), Invalid),
        ("gzip, br", b"x", Invalid),
        ("gzip", TEXT, Transient),
        ("gzip", zipped(TEXT)[:-9], Transient),
        ("gzip", zipped(TEXT) + b"tail", Transient),
        ("\xe9", TEXT, Invalid),
    ],
)
async def test_other_codings_and_broken_ones_are_refused(
    coding: str, body: bytes, error: type[Exception], ground: Ground
) -> None:
    async with serve(reply({"content-encoding": coding}, body)) as http:
        with pytest.raises(error):
            await (await ground.fetcher()).fetch(SITE, f"{http.base_url}/")


@pytest.mark.parametrize("is_zipped", [False, True])
@pytest.mark.parametrize("more", [0, 1])
async def test_a_reply_may_be_as_large_as_its_bound_and_no_larger(
    more: int, is_zipped: bool, ground: Ground
) -> None:
    site = Site(name="toy", most_bytes=100_000)
    body = b"x" * (site.most_bytes + more)
    headers = {"content-encoding": "gzip"} if is_zipped else {}
    async with serve(reply(headers, zipped(body) if is_zipped else body)) as http:
        fetcher = await ground.fetcher()
        if more:
            with pytest.raises(Invalid, match="larger than 100000 bytes"):
                await fetcher.fetch(site, f"{http.base_url}/")
        else:
            assert (await fetcher.fetch(site, f"{http.base_url}/")).body == body


async def test_a_reply_that_announces_too_much_is_not_read(ground: Ground) -> None:
    headers = {"content-length": str(MOST_BYTES + 1)}
    async with serve(reply(headers, b"x" * (MOST_BYTES + 1))) as http:
        with pytest.raises(Invalid, match="larger") as raised:
            await (await ground.fetcher()).fetch(SITE, f"{http.base_url}/")
    assert raised.value.page == b""
