"""The sites' clients in the simulated world, over real sockets: what they read is what is so."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mimawari.errors import Blocked, Gone, Invalid, Transient
from mimawari.kernel.clock import VirtualClock
from mimawari.net.http import Fetcher
from mimawari.settings import Settings
from mimawari.sim.sites.google_books.site import Books
from mimawari.sim.sites.mercari.items import FRANCHISES
from mimawari.sim.sites.mercari.site import MarketSite
from mimawari.sim.sites.yahoo_realestate.names import AREAS
from mimawari.sim.sites.yahoo_realestate.site import Rentals
from mimawari.sim.world import World
from mimawari.sites import google_books, mercari, yahoo_realestate
from mimawari.sites.mercari import Market, Query, Side
from tests.net.fetching import open_ground
from tests.sim.ground import serve

AN_EVENING = datetime(2026, 6, 1, 12, tzinfo=UTC)
PAGES = 50
SEED = 7


@dataclass(slots=True)
class Scene:
    """A world, its address, and a fetcher to ask it with."""

    world: World
    address: str
    http: Fetcher
    clock: VirtualClock
    settings: Settings

    def market(self) -> Market:
        """Open the market in the mode of the settings."""
        return mercari.open_market(self.settings, self.http, self.clock)

    def truth(self, part: str, **query: str) -> Any:
        """Ask what is really so."""
        return self.world.parts[part].truth(query)

    def seen(self, part: str) -> int:
        """Count what a part was asked, less what its pages load by themselves."""
        count: int = self.world.log.count({"part": part})["count"]
        return count


@cache
def the_market() -> MarketSite:
    """Make the market once: it takes a while to be filled, and its evening never ends."""
    return MarketSite(VirtualClock(AN_EVENING), SEED)


@cache
def the_others() -> tuple[Rentals, Books]:
    """Make the other sites once as well, for those who do not move their time."""
    return lively(VirtualClock(AN_EVENING))


def lively(clock: VirtualClock) -> tuple[Rentals, Books]:
    """Make the sites whose time passes."""
    return Rentals(clock, SEED), Books(clock, SEED, spells=False)


@asynccontextmanager
async def open_scene(
    folder: Path, layout: str = "", *, is_still: bool = True, **given: Any
) -> AsyncIterator[Scene]:
    """Serve a world of an evening in June, with one layout of its pages if it is said which."""
    clock = VirtualClock(AN_EVENING)
    others = the_others() if is_still else lively(clock)
    world = World(clock, (the_market(), *others), SEED)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if layout and scope["type"] == "http" and scope["path"] == "/search":
            scope["query_string"] += f"&layout={layout}".encode()
        await world(scope, receive, send)

    async with serve(app) as http:
        address = str(http.base_url).rstrip("/")
        async with open_ground(folder, clock, **given) as ground:
            settings = Settings(mercari_url=address, mercari_api_url=address, **given)
            yield Scene(world, address, await ground.fetcher(), clock, settings)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with open_scene(tmp_path) as opened:
        yield opened


@pytest.fixture
async def passing(tmp_path: Path) -> AsyncIterator[Scene]:
    """A scene in which time may pass."""
    async with open_scene(tmp_path, is_still=False) as opened:
        yield opened


def facts(item: mercari.Item) -> tuple[Any, ...]:
    """Tell what any way of reading an item must agree on."""
    return item.id, item.kind, item.title, item.price_yen or 9999999, item.status.is_sold


async def everything(market: Market, query: Query) -> list[mercari.Item]:
    """Walk over all pages of a search."""
    found: list[mercari.Item] = []
    async for result in mercari.walk(market, query, PAGES):
        assert result.page is not None, result.reason
        assert result.page.refused == ()
        found += result.page.items
    return found


def true_facts(scene: Scene, query: Query) -> list[tuple[Any, ...]]:
    items = scene.truth("market", view="items", keyword=query.keyword, side=query.side)["items"]
    return [
        (
            item["id"],
            "shops" if item["kind"] == "shops" else "ordinary",
            item["title"],
            item["price_yen"] or 9999999,
            item["status"] != "on_sale",
        )
        for item in items
    ]


BUSY, QUIET = FRANCHISES[0].keyword, FRANCHISES[-1].keyword


@pytest.mark.parametrize("side", list(Side))
@pytest.mark.parametrize("keyword", [BUSY, QUIET])
async def test_the_markets_api_gives_every_item_once(
    keyword: str, side: Side, scene: Scene
) -> None:
    query = Query(keyword=keyword, side=side)
    found = await everything(scene.market(), query)
    assert sorted(map(facts, found)) == sorted(true_facts(scene, query))
    assert len(found) > 10
    asked = scene.seen("market")
    assert len(found) / 120 <= asked <= len(found) / 90 + 2
    searched = [one["searched"] for one in scene.world.log.list({"part": "market"})["seen"]]
    assert [(one["keyword"], one["page"]) for one in searched] == [
        (keyword, n) for n in range(asked)
    ]


async def test_an_item_of_each_kind_is_read_from_its_own_page(scene: Scene) -> None:
    items = scene.truth("market", view="items")["items"]
    of_kind = {(item["kind"], item["status"]): item for item in items}
    assert {kind for kind, _ in of_kind} >= {"ordinary", "shops", "auction"}
    for item in of_kind.values():
        detail = await scene.market().item(item["id"])
        assert (detail.item.id, detail.item.title) == (item["id"], item["title"])
        assert detail.item.status.is_sold == (item["status"] != "on_sale")


async def test_an_item_that_is_no_more_is_gone(scene: Scene) -> None:
    with pytest.raises(Gone):
        await scene.market().item("m00000000001")


async def test_a_page_that_fails_is_skipped_and_said(scene: Scene) -> None:
    query = Query(keyword=BUSY, side=Side.SOLD)
    market = scene.market()
    whole = await everything(market, query)
    results = []
    async for result in mercari.walk(market, query, PAGES):
        results.append(result)
        scene.world.orders.clear()
        if len(results) == 1:
            scene.world.orders.add({"part": "market", "do": "status", "code": 502, "times": 1})
    assert [bool(result.page) for result in results[:3]] == [True, False, True]
    assert "502" in results[1].reason
    kept = [item for result in results if result.page for item in result.page.items]
    assert set(kept) < set(whole)


@pytest.mark.parametrize(
    ("order", "error"),
    [
        ({"do": "blocked"}, Blocked),
        ({"do": "challenge"}, Blocked),
        ({"do": "rate_limited"}, Blocked),
        ({"do": "gone"}, Gone),
        ({"do": "changed_layout"}, Invalid),
        ({"do": "garbage"}, Invalid),
        ({"do": "nested", "kind": "json"}, Invalid),
        ({"do": "article"}, Invalid),
        ({"do": "empty"}, (Invalid, Transient)),
        ({"do": "status", "code": 500}, Transient),
    ],
    ids=str,
)
@pytest.mark.parametrize("part", ["market", "rentals", "books"])
async def test_what_goes_wrong_is_told_apart_and_never_taken_for_nothing(
    part: str, order: dict[str, Any], error: Any, scene: Scene
) -> None:
    scene.world.orders.add({"part": part, **order})
    with pytest.raises(error) as raised:
        await ask(scene, part)
    if type(raised.value) is Invalid and order["do"] != "empty":
        assert raised.value.page


async def ask(scene: Scene, part: str) -> None:
    """Ask a part for something that is there."""
    match part:
        case "market":
            item = scene.truth("market", view="items")["items"][0]
            await scene.market().item(item["id"])
        case "rentals":
            url = f"{scene.address}/rent/search/{AREAS[0].path}/"
            await yahoo_realestate.fetch_list(scene.http, url, site_url=scene.address)
        case _:
            query = google_books.Query(q="subject:fiction")
            await google_books.fetch_volumes(scene.http, scene.address, query, key="k")


async def rooms_of(scene: Scene, area: str) -> list[yahoo_realestate.Room]:
    """Walk over all pages of an area's list."""
    url: str | None = f"{scene.address}/rent/search/{area}/"
    found: list[yahoo_realestate.Room] = []
    while url is not None:
        page = await yahoo_realestate.fetch_list(scene.http, url, site_url=scene.address)
        assert page.refused == ()
        found += page.rooms
        url = page.next_url
    return found


@pytest.mark.parametrize("days", [0, 20])
async def test_rentals_are_read_as_they_are(days: int, passing: Scene) -> None:
    await passing.clock.advance(timedelta(days=days))
    area = AREAS[0].path
    listed = await rooms_of(passing, area)
    true = {room["id"]: room for room in passing.truth("rentals", area=area)["rooms"]}
    assert {room.property_id for room in listed} == set(true)
    for room in listed:
        assert room.rent_yen == true[room.property_id]["rent_yen"]
    for room in listed[:6]:
        detail = await yahoo_realestate.fetch_detail(
            passing.http, room.detail_url, site_url=passing.address
        )
        assert detail.rent_yen == true[room.property_id]["rent_yen"]


async def test_books_are_read_page_by_page_to_the_end(passing: Scene) -> None:
    query = "inauthor:" + passing.truth("books", q="subject:fiction")["books"][0]["authors"][0]
    true = [book["id"] for book in passing.truth("books", q=query)["books"]]
    found: list[str] = []
    while True:
        asked = google_books.Query(q=query, start_index=len(found), max_results=10)
        page = await google_books.fetch_volumes(passing.http, passing.address, asked, key="k")
        if not page.volumes:
            break
        found += [volume.id for volume in page.volumes]
        await passing.clock.advance(timedelta(seconds=5))
    assert found == true
    assert found


@pytest.mark.parametrize("layout", ["old", "new"])
async def test_a_real_browser_sees_what_the_api_gives_and_what_is_true(
    layout: str, tmp_path: Path
) -> None:
    async with open_scene(tmp_path, layout, mercari_mode="browser") as scene:
        by_api = mercari.ApiMarket(scene.http, scene.address, scene.clock)
        # The first page of one side and a later one of the other: drawing one takes seconds.
        for side, token in zip(Side, ("", "v1:1"), strict=True):
            query = Query(keyword=BUSY, side=side)
            drawn = await scene.market().search_page(query, token)
            told = await by_api.search_page(query, token)
            assert list(map(facts, drawn.items)) == list(map(facts, told.items))
            assert (drawn.next_token, drawn.refused) == (told.next_token, ())
            assert set(map(facts, drawn.items)) <= set(true_facts(scene, query))
            assert len(drawn.items) > 60
