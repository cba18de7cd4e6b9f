"""Crawling the simulated market: which pages are asked for, and what becomes of those that fail."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.job import JobView, State
from mimawari.kernel.rounds import Rounds
from mimawari.kernel.watch import Watches
from mimawari.net.http import Fetcher
from mimawari.net.ways import open_ways
from mimawari.sim.sites.mercari.items import FRANCHISES
from mimawari.sim.sites.mercari.site import MarketSite
from mimawari.sim.world import World
from mimawari.store.sql import SqlStore
from mimawari.watches.hot import franchises, messages, watch
from mimawari.watches.hot.models import Coverage, Crawl, Ip, Status
from tests.hot.crawling import add_ip, find_ip, settings_with
from tests.kernel.rounds import Remembered
from tests.ready import lay_tables

EVENING = datetime(2026, 6, 1, 12, tzinfo=UTC)
ADDRESS = "http://market.test"
BUSY, QUIET = FRANCHISES[0].keyword, FRANCHISES[-1].keyword


class Scene:
    """The hot watch at work on a simulated market, in virtual time."""

    def __init__(self, store: SqlStore, world: World, rounds: Rounds) -> None:
        self.store = store
        self.world = world
        self.rounds = rounds

    def order(self, **order: Any) -> None:
        """Have the market misbehave."""
        self.world.orders.add({"part": "market", **order})

    def searched(self) -> list[tuple[str, int]]:
        """List the sides and pages that the market was asked for, in order."""
        found = self.world.log.list({"part": "market"})["seen"]
        asked = [one["searched"] for one in found if one["searched"]]
        sides = ["on_sale" if "on_sale" in one["statuses"] else "sold" for one in asked]
        return list(zip(sides, (one["page"] for one in asked), strict=True))

    async def crawl(self, keyword: str, span: timedelta = timedelta(minutes=30)) -> Ip:
        """Watch a keyword for a while, without applying what is found."""
        ip = await add_ip(self.store, keyword, active=False)
        await self.store.queue.put([franchises.crawl_now(ip, self.rounds.watches.settings)])
        await self.rounds.pass_time(span)
        return ip

    async def job(self, kind: str) -> JobView:
        """Find the one job of a kind."""
        [view] = await self.store.queue.list(9, kind=kind)
        return view


class Hands:
    """Takes crawls out of the worker's hands, so that they can be looked at."""

    def __init__(self) -> None:
        tasks = tuple(task for task in watch.tasks if task.kind != "hot.apply")
        self.watch = type(watch)(
            name="hot", tasks=tasks, limits=watch.limits, breakers=watch.breakers
        )


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    clock = VirtualClock(EVENING)
    store = SqlStore(await lay_tables(tmp_path / "hot.db"), clock)
    world = World(clock, (MarketSite(clock, 7),), 7)
    settings = settings_with(
        mercari_api_url=ADDRESS,
        mercari_url="https://jp.mercari.com",
        hot_pages_on_sale=3,
        hot_pages_sold=3,
    )
    inside = httpx2.ASGITransport(app=world)
    async with open_ways(settings, store, clock, inside=inside) as ways:
        rounds = Rounds(
            store, clock, Watches([Hands().watch], settings), {"tell": Remembered()},
            partial(Fetcher, ways),
        )  # fmt: skip
        yield Scene(store, world, rounds)
    await store.close()


async def found(scene: Scene) -> Crawl:
    """Read the crawl that waits in the queue to be applied."""
    return messages.parse_crawl((await scene.job("hot.apply")).args)


async def test_pages_on_sale_come_before_those_sold_and_no_more_than_asked(scene: Scene) -> None:
    await scene.crawl(BUSY)
    assert scene.searched() == [
        ("on_sale", 0), ("on_sale", 1), ("on_sale", 2), ("sold", 0), ("sold", 1), ("sold", 2)
    ]  # fmt: skip
    crawl = await found(scene)
    assert crawl.coverage == Coverage(
        pages_asked=6, pages_read=6, capped_on_sale=True, capped_sold=True
    )
    assert len(crawl.items) > 700
    assert {item.status for item in crawl.items} == set(Status)
    assert all(item.item_url.startswith("https://jp.mercari.com/") for item in crawl.items)


async def test_a_crawl_stops_where_the_site_has_no_more(scene: Scene) -> None:
    await scene.crawl(QUIET)
    # This search names a second page that turns out to be empty.
    asked = [("on_sale", 0), ("on_sale", 1), ("sold", 0), ("sold", 1)]
    assert scene.searched() == asked
    crawl = await found(scene)
    assert crawl.coverage == Coverage(pages_asked=4, pages_read=4)
    assert 0 < len(crawl.items) < 120


async def test_a_page_that_fails_is_skipped_and_said(scene: Scene) -> None:
    scene.order(do="status", code=502, times=1)
    await scene.crawl(BUSY)
    crawl = await found(scene)
    assert (crawl.coverage.pages_asked, crawl.coverage.pages_read) == (6, 5)
    [error] = crawl.coverage.page_errors
    assert error.startswith("on_sale page 1: ")
    assert "502" in error
    assert crawl.error == ""


async def test_a_crawl_that_reads_no_page_is_tried_again_and_then_says_so(scene: Scene) -> None:
    scene.order(do="status", code=503)
    await scene.crawl(BUSY, timedelta(minutes=2))
    view = await scene.job("hot.crawl")
    assert (view.state, view.attempts) == (State.PENDING, 2)
    await scene.rounds.pass_time(timedelta(hours=1))
    crawl = await found(scene)
    assert crawl.error.startswith("none of 6 pages could be read: ")
    assert (crawl.items, crawl.retry_count) == ((), 3)
    assert (await scene.job("hot.crawl")).state is State.DONE


async def test_a_page_that_nobody_understands_is_kept_for_a_person(scene: Scene) -> None:
    scene.order(do="garbage")
    await scene.crawl(BUSY)
    view = await scene.job("hot.crawl")
    assert view.state is State.FAILED
    assert view.page_bytes


async def test_a_block_ends_the_crawl_and_the_site_is_left_alone(scene: Scene) -> None:
    scene.order(do="blocked")
    await scene.crawl(BUSY, timedelta(minutes=20))
    asked = len(scene.world.log.list({"part": "market"})["seen"])
    assert asked == 2
    view = await scene.job("hot.crawl")
    assert (view.state, view.reason) == (State.PENDING, "the site answered 403")
    assert view.next_at == EVENING + timedelta(minutes=31)
    scene.world.orders.clear()
    await scene.rounds.pass_time(timedelta(hours=1))
    assert (await found(scene)).coverage.pages_read == 6


async def test_an_ip_that_was_removed_is_not_crawled(scene: Scene) -> None:
    ip = await add_ip(scene.store, BUSY, active=False)
    await scene.store.queue.put([franchises.crawl_now(ip, scene.rounds.watches.settings)])
    async with scene.store.edit() as tx:
        await franchises.remove_ip(tx, ip.id)
    await scene.rounds.pass_time(timedelta(minutes=1))
    assert scene.searched() == []
    assert (await scene.job("hot.crawl")).state is State.DONE


async def test_a_crawl_is_one_page_each_three_seconds(scene: Scene) -> None:
    ip = await scene.crawl(BUSY)
    ticks = [one["ticks"] for one in scene.world.log.list({"part": "market"})["seen"]]
    spans = [later - earlier for earlier, later in pairwise(ticks)]
    assert min(spans) >= 3
    assert (await find_ip(scene.store, ip.id)).last_crawled_at is None


async def test_a_long_message_is_not_kept_once_it_was_applied(scene: Scene) -> None:
    await scene.crawl(BUSY)
    view = await scene.job("hot.apply")
    assert len(str(view.args)) > 100_000
    assert (await scene.job("hot.crawl")).args["keyword"] == BUSY
