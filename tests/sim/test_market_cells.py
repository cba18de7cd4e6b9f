"""What a search of the simulated market is drawn from: cells that tell the truth in two ways."""

import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import httpx2
import pytest
from selectolax.lexbor import LexborHTMLParser, LexborNode

from mimawari.kernel.clock import VirtualClock
from mimawari.sim.sites.mercari.items import FRANCHISES
from mimawari.sim.sites.mercari.lives import Kind, Status
from mimawari.sim.sites.mercari.site import MarketSite
from mimawari.sim.world import World
from tests.sim.ground import Prover, serve
from tests.sim.market_ground import BUSIEST, LAYOUTS, find, href_of

SOLD_SIGN = {"old": "[data-testid=thumbnail-sticker]", "new": "[data-testid=item-tile-sticker]"}


@pytest.fixture(scope="module")
async def http(site: MarketSite) -> AsyncIterator[httpx2.AsyncClient]:
    async with serve(World(VirtualClock(), (site,), 1)) as http:
        yield http


def read_old(cell: LexborNode) -> tuple[str, str, int, bool]:
    """Read a cell of the old layout, by its label alone."""
    link = cell.css_first("a[data-testid=thumbnail-link]")
    thumbnail = cell.css_first(".merItemThumbnail")
    assert link is not None
    assert thumbnail is not None
    label = thumbnail.attributes["aria-label"] or ""
    read = re.fullmatch(r"(.*)の画像( 売り切れ)? ([0-9,]+)円", label, re.DOTALL)
    assert read is not None
    assert (read[2] is not None) is (cell.css_first(SOLD_SIGN["old"]) is not None)
    href = link.attributes["href"] or ""
    return href, read[1], int(read[3].replace(",", "")), read[2] is not None


def read_new(cell: LexborNode) -> tuple[str, str, int, bool]:
    """Read a cell of the new layout, by its name or else by its picture."""
    link = cell.css_first("a[data-testid=thumbnail-link]")
    price = cell.css_first("[data-testid=item-tile-price]")
    picture = cell.css_first("img")
    assert link is not None
    assert price is not None
    assert picture is not None
    sticker = cell.css_first(SOLD_SIGN["new"])
    alt = (picture.attributes["alt"] or "").removesuffix(" 売り切れ" if sticker else "")
    assert alt.endswith("のサムネイル")
    name = cell.css_first("[data-testid=thumbnail-item-name]")
    title = alt.removesuffix("のサムネイル") if name is None else name.text()
    amount = int(re.sub(r"[^0-9]", "", price.text()))
    assert sticker is None or sticker.text() == "SOLD"
    return link.attributes["href"] or "", title, amount, sticker is not None


READ = {"old": read_old, "new": read_new}


async def cells_of(http: httpx2.AsyncClient, **query: str) -> dict[str, Any]:
    reply = await http.get(f"/_cells?{urlencode(query)}")
    assert reply.status_code == 200
    found: dict[str, Any] = reply.json()
    return found


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("status", ["on_sale", "sold_out|trading", ""])
@pytest.mark.parametrize("token", ["", "v1:1", "v1:2"])
async def test_the_cells_are_the_truth_in_its_order(
    http: httpx2.AsyncClient, site: MarketSite, layout: str, status: str, token: str
) -> None:
    query = {
        "keyword": BUSIEST,
        "status": status,
        "sort": "created_time",
        "order": "desc",
        "page_token": token,
    }
    cells = (await cells_of(http, layout=layout, **query))["cells"]
    items = find(site.market, **query)
    assert len(items) > 60
    for cell, item in zip(cells, items, strict=True):
        tree = LexborHTMLParser(f"<ul><li>{cell}</li></ul>")
        inside = tree.css_first("li")
        assert inside is not None
        href, title, price_yen, is_sold = READ[layout](inside)
        assert href == href_of(item.goods)
        assert title == item.goods.title
        assert price_yen == item.price_yen
        assert is_sold is (item.status is not Status.ON_SALE)


async def test_the_cells_are_what_the_api_gives_for_the_same_query(
    http: httpx2.AsyncClient, site: MarketSite
) -> None:
    prover = Prover(http.base_url.netloc.decode(), VirtualClock().now())
    path = "/v2/entities:search"
    for token in ("", "v1:1", "v1:2", "v1:3"):
        condition = {
            "keyword": BUSIEST,
            "status": ["STATUS_SOLD_OUT", "STATUS_TRADING"],
            "sort": "SORT_CREATED_TIME",
            "order": "ORDER_DESC",
            "priceMin": 500,
            "priceMax": 9000,
            "categoryId": [5120],
            "excludeKeyword": "限定",
        }
        body = {"pageSize": 120, "pageToken": token, "searchCondition": condition}
        reply = await http.post(path, json=body, headers=prover.headers("POST", path))
        drawn = await cells_of(
            http,
            keyword=BUSIEST,
            status="sold_out|trading",
            sort="created_time",
            order="desc",
            price_min="500",
            price_max="9000",
            category_id="5120",
            exclude_keyword="限定",
            page_token=token,
            layout="old",
        )
        ids = [re.findall(r' id="([^"]+)"', cell)[0] for cell in drawn["cells"]]
        assert ids == [entry["id"] for entry in reply.json()["items"]]


async def test_hostile_titles_are_among_the_cells_and_harm_no_reader(
    http: httpx2.AsyncClient,
) -> None:
    for layout in LAYOUTS:
        found = []
        for number in range(30):
            token = f"v1:{number}"
            cells = (await cells_of(http, layout=layout, sort="score", page_token=token))["cells"]
            for cell in cells:
                assert "<script" not in cell
                tree = LexborHTMLParser(f"<ul><li>{cell}</li></ul>").css_first("li")
                assert tree is not None
                found.append(READ[layout](tree)[1])
        for sign in ("の画像", "500円OFF", '"', "<b>", "🎉", "\uff11", "のサムネイル 売り切れ"):
            assert any(sign in title for title in found), (layout, sign)


async def test_the_new_layout_sometimes_leaves_the_name_out_and_shows_bids(
    http: httpx2.AsyncClient, site: MarketSite
) -> None:
    query = {"keyword": BUSIEST, "status": "on_sale", "sort": "created_time"}
    nameless = bids = 0
    for number in range(4):
        token = f"v1:{number}"
        cells = (await cells_of(http, layout="new", page_token=token, **query))["cells"]
        for cell, item in zip(cells, find(site.market, page_token=token, **query), strict=True):
            nameless += "thumbnail-item-name" not in cell
            price = LexborHTMLParser(cell).css_first("[data-testid=item-tile-price]")
            assert price is not None
            is_auction = item.goods.kind is Kind.AUCTION
            words = f"現在 ¥{item.price_yen:,}" if is_auction else f"¥{item.price_yen:,}"
            assert price.text() == words
            bids += is_auction
    assert 5 < nameless < 100
    assert bids > 3


async def test_there_is_a_next_button_while_there_is_a_next_page(
    http: httpx2.AsyncClient, site: MarketSite
) -> None:
    query = {"keyword": FRANCHISES[2].keyword, "status": "on_sale", "sort": "created_time"}
    token, seen = "", 0
    for _ in range(20):
        reply = await cells_of(http, page_token=token, **query)
        seen += len(reply["cells"])
        tree = LexborHTMLParser(reply["pager"])
        button = tree.css_first("[data-testid=pagination-next-button] a")
        if button is None:
            break
        href = httpx2.URL(button.attributes["href"] or "")
        assert href.path == "/search"
        assert dict(href.params) == {**query, "page_token": href.params["page_token"]}
        token = href.params["page_token"]
    assert seen == len(
        site.market.truth({"view": "items", "keyword": query["keyword"], "side": "on_sale"})[
            "items"
        ]
    )


@pytest.mark.parametrize(
    ("layout", "sign"),
    [("old", ".merEmptyState"), ("new", "[data-testid=item-grid-empty-state]")],
)
async def test_finding_nothing_is_said_and_not_left_blank(
    http: httpx2.AsyncClient, layout: str, sign: str
) -> None:
    reply = await cells_of(http, keyword="そのような物はない", layout=layout)
    assert (reply["cells"], reply["pager"]) == ([], "")
    assert LexborHTMLParser(reply["empty"]).css_first(sign) is not None
    assert "出品された商品がありません" in reply["empty"]
