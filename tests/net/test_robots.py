"""What a robots.txt asks is kept, over restarts, and asked for seldom."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mimawari.errors import BadInput, Transient, Wait
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.values import Grant, Limit
from mimawari.net.robots import A_MINUTE, AGAIN_FOR, KEEP_FOR, Rules
from mimawari.sim.world import World
from tests.net.fetching import SITE, Ground, open_ground
from tests.sim.ground import Toy, serve


@pytest.fixture
def world(clock: VirtualClock) -> World:
    return World(clock, (Toy(),), 1)


@pytest.fixture
async def address(world: World) -> AsyncIterator[str]:
    async with serve(world) as http:
        yield str(http.base_url).rstrip("/")


def order(world: World, **more: Any) -> None:
    world.orders.add({"part": "*", "path": "/robots.txt", **more})


def asked(world: World) -> int:
    count: int = world.log.count({"part": "robots"})["count"]
    return count


async def fetch(ground: Ground, address: str, path: str = "/toy/page") -> int:
    return (await (await ground.fetcher()).fetch(SITE, f"{address}{path}")).status


NO = "User-agent: *\nDisallow: /toy/\n"


@pytest.mark.parametrize(
    ("text", "path", "allowed"),
    [
        ("", "/toy/page", True),
        (NO, "/toy/page", False),
        (NO, "/other", True),
        ("\ufeff" + NO, "/toy/page", False),
        (NO.replace("\n", "\r\n"), "/toy/page", False),
        ("User-agent: mimawari\nDisallow: /toy/page$\n", "/toy/page", False),
        ("User-agent: mimawari\nDisallow: /toy/page$\n", "/toy/page2", True),
        ("User-agent: Mimawari\nDisallow: /\n\nUser-agent: *\nAllow: /", "/toy/page", False),
        ("User-agent: mimawari\nAllow: /\n\nUser-agent: *\nDisallow: /", "/toy/page", True),
        ("User-agent: *\nDisallow: /*?q=\n", "/toy/page?q=1", False),
        ("User-agent: *\nDisallow: /\nAllow: /toy/page\n", "/toy/page", True),
        ("<html>not found</html>", "/toy/page", True),
        ("\x00\ud83d".encode("utf-8", "replace").decode(), "/toy/page", True),
    ],
)
def test_the_rules_are_read_as_the_standard_says(text: str, path: str, allowed: bool) -> None:
    assert Rules(text.encode()).allows(f"http://host{path}") == allowed


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("", 0), ("Crawl-delay: 7", 7), ("Crawl-delay: x", 0), ("Crawl-delay: 1000000", 3600)],
)
def test_a_pause_that_is_asked_for_is_bounded(text: str, seconds: int) -> None:
    assert Rules(f"User-agent: *\n{text}".encode()).delay_for == timedelta(seconds=seconds)


async def test_a_page_that_a_site_wants_unread_is_not_read(
    tmp_path: Path, clock: VirtualClock, world: World, address: str
) -> None:
    order(world, do="status", code=200, body=NO)
    async with open_ground(tmp_path, clock) as ground:
        with pytest.raises(BadInput, match="add toy to MIMAWARI_ROBOTS_IGNORE") as refused:
            await fetch(ground, address)
    assert refused.value.code == "robots"
    assert world.log.count({"part": "toy"})["count"] == 0


async def test_an_operator_who_has_leave_may_say_so(
    tmp_path: Path, clock: VirtualClock, world: World, address: str
) -> None:
    order(world, do="status", code=200, body=NO)
    async with open_ground(tmp_path, clock, robots_ignore=("toy",)) as ground:
        assert await fetch(ground, address) == 200
    assert asked(world) == 0


async def test_the_file_is_asked_for_once_a_day_also_over_restarts(
    tmp_path: Path, clock: VirtualClock, world: World, address: str
) -> None:
    for _ in range(3):
        async with open_ground(tmp_path, clock) as ground:
            for _ in range(3):
                await fetch(ground, address)
    assert asked(world) == 1
    await clock.advance(KEEP_FOR)
    async with open_ground(tmp_path, clock) as ground:
        await fetch(ground, address)
    assert asked(world) == 2


@pytest.mark.parametrize("code", [401, 403, 404, 410])
async def test_a_site_without_the_file_allows_everything(
    code: int, tmp_path: Path, clock: VirtualClock, world: World, address: str
) -> None:
    order(world, do="status", code=code, body=NO)
    async with open_ground(tmp_path, clock) as ground:
        assert await fetch(ground, address) == 200


@pytest.mark.parametrize(
    "trouble",
    [{"do": "status", "code": 500}, {"do": "status", "code": 429}, {"do": "reset"},
     {"do": "bomb", "kind": "plain", "size_mib": 16}],
    ids=str,
)  # fmt: skip
async def test_while_the_file_cannot_be_had_nothing_is_read_and_it_is_not_asked_for_often(
    trouble: dict[str, Any], tmp_path: Path, clock: VirtualClock, world: World, address: str
) -> None:
    order(world, **trouble)
    async with open_ground(tmp_path, clock) as ground:
        for _ in range(3):
            with pytest.raises(Transient, match=r"robots\.txt"):
                await fetch(ground, address)
        assert asked(world) == 1
        world.orders.clear()
        await clock.advance(AGAIN_FOR)
        assert await fetch(ground, address) == 200


async def test_those_who_need_it_at_once_ask_for_it_once(
    tmp_path: Path, clock: VirtualClock, world: World, address: str
) -> None:
    async with open_ground(tmp_path, clock) as ground:
        found = await asyncio.gather(*(fetch(ground, address) for _ in range(8)))
    assert found == [200] * 8
    assert asked(world) == 1


async def test_one_who_died_on_the_way_holds_up_the_next_for_a_moment_only(
    tmp_path: Path, clock: VirtualClock, world: World, address: str
) -> None:
    async with open_ground(tmp_path, clock) as ground:
        limit = Limit(f"robots {address}", A_MINUTE, timedelta(minutes=1))
        assert isinstance(await ground.store.limiter.acquire(limit, "died"), Grant)
        assert await woken(clock, fetch(ground, address)) == 200
    assert asked(world) == 1


async def woken(clock: VirtualClock, work: Coroutine[Any, Any, int]) -> int:
    """Let time pass whenever somebody sleeps."""
    working = asyncio.create_task(work)
    while not working.done():
        await clock.advance(timedelta(seconds=1) if clock.sleeping else timedelta(0))
    return await working


async def test_a_file_that_has_moved_is_followed(
    tmp_path: Path, clock: VirtualClock, world: World, address: str
) -> None:
    order(world, do="redirect", url=f"{address}/toy/page", times=1)
    async with open_ground(tmp_path, clock) as ground:
        assert await woken(clock, fetch(ground, address)) == 200
    assert world.log.count({"part": "toy"})["count"] == 2


async def test_a_pause_between_requests_is_kept(
    tmp_path: Path, clock: VirtualClock, world: World, address: str
) -> None:
    order(world, do="status", code=200, body="User-agent: *\nCrawl-delay: 45\n")
    async with open_ground(tmp_path, clock) as ground:
        await fetch(ground, address)
        with pytest.raises(Wait, match="45 s between requests") as wait:
            await fetch(ground, address)
        assert wait.value.until == clock.now() + timedelta(seconds=45)
        await clock.advance(timedelta(seconds=45))
        assert await fetch(ground, address) == 200
