"""What the simulated market's pages promise: the browser draws what the API gives, in two ways."""

import asyncio
import re
from collections.abc import AsyncIterator
from html import unescape
from urllib.parse import quote, urlencode
from xml.etree import ElementTree as ET

import httpx2
import pytest
from playwright.async_api import Browser, Page, async_playwright
from selectolax.lexbor import LexborHTMLParser

from mimawari.kernel.clock import VirtualClock
from mimawari.net.browser import find_executable
from mimawari.sim.sites.mercari.items import FRANCHISES
from mimawari.sim.sites.mercari.lives import Item, Kind, Status
from mimawari.sim.sites.mercari.market import Market
from mimawari.sim.sites.mercari.site import MarketSite
from mimawari.sim.world import World
from tests.sim.ground import serve
from tests.sim.market_ground import BUSIEST, LAYOUTS, find, href_of


@pytest.fixture(scope="module")
async def http(site: MarketSite) -> AsyncIterator[httpx2.AsyncClient]:
    async with serve(World(VirtualClock(), (site,), 1)) as http:
        yield http


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=find_executable(None), args=["--no-sandbox"]
        )
        yield browser
        await browser.close()


@pytest.fixture
async def page(browser: Browser, http: httpx2.AsyncClient) -> AsyncIterator[Page]:
    page = await browser.new_page(
        viewport={"width": 1280, "height": 800}, base_url=str(http.base_url)
    )
    yield page
    await page.close()


def one(market: Market, kind: Kind, status: Status) -> Item:
    return next(
        item
        for item in market.items().values()
        if item.goods.kind is kind and item.status is status
    )


@pytest.mark.parametrize("layout", LAYOUTS)
async def test_plain_http_gets_a_page_without_items(http: httpx2.AsyncClient, layout: str) -> None:
    reply = await http.get(f"/search?keyword={quote(BUSIEST)}&layout={layout}")
    tree = LexborHTMLParser(reply.text)
    assert reply.status_code == 200
    assert tree.css_first("[data-testid=search-item-grid]") is not None
    assert tree.css("[data-testid=thumbnail-link]") == []
    assert tree.css(".merEmptyState, [data-testid=item-grid-empty-state]") == []
    assert "/item/m" not in reply.text


async def test_both_layouts_are_served_side_by_side_and_fall_the_same_for_the_same_seed() -> None:
    falls = []
    for seed in (1, 1, 2):
        clock = VirtualClock()
        async with serve(World(clock, (MarketSite(clock, seed),), seed)) as http:
            pages = [(await http.get("/search?keyword=x")).text for _ in range(30)]
        falls.append([re.findall(r"layout=(old|new)", unescape(text))[0] for text in pages])
    assert falls[0] == falls[1] != falls[2]
    assert all(10 < fall.count("old") < 25 for fall in falls)


@pytest.mark.parametrize(
    "query",
    [
        "page_token=v1:x",
        "page_token=" + "9" * 5000,
        "price_min=abc&price_max=-5",
        "category_id=x,,5121",
        "status=nothing|",
        "sort=<b>&order=sideways",
        "layout=third",
        "look=%00",
        "keyword=%00%FF%ED%A0%80",
        "&&==&%",
    ],
)
async def test_an_odd_address_gets_a_page_all_the_same(
    http: httpx2.AsyncClient, query: str
) -> None:
    for path in ("/search", "/_cells"):
        assert (await http.get(f"{path}?{query}")).status_code == 200


async def test_what_was_searched_for_is_text_on_the_page_and_no_more(
    http: httpx2.AsyncClient,
) -> None:
    hostile = '"><script>alert(1)</script>${x}$heading'
    text = (await http.get(f"/search?{urlencode({'keyword': hostile})}")).text
    assert "<script>alert" not in text
    box = LexborHTMLParser(text).css_first("input[name=keyword]")
    assert box is not None
    assert box.attributes["value"] == hostile


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (Kind.ORDINARY, Status.ON_SALE),
        (Kind.ORDINARY, Status.TRADING),
        (Kind.ORDINARY, Status.SOLD_OUT),
        (Kind.ORDINARY, Status.STOP),
        (Kind.AUCTION, Status.ON_SALE),
        (Kind.NO_PRICE, Status.ON_SALE),
        (Kind.SHOPS, Status.ON_SALE),
        (Kind.SHOPS, Status.SOLD_OUT),
    ],
)
async def test_an_items_page_tells_its_title_its_price_and_whether_it_can_be_bought(
    http: httpx2.AsyncClient, site: MarketSite, kind: Kind, status: Status
) -> None:
    item = one(site.market, kind, status)
    reply = await http.get(href_of(item.goods))
    tree = LexborHTMLParser(reply.text)
    title, price, button = (
        tree.css_first(selector)
        for selector in ("h1", "[data-testid=price]", "[data-testid=checkout-button]")
    )
    assert title is not None
    assert price is not None
    assert button is not None
    assert title.text() == item.goods.title
    assert price.text() == f"¥{item.price_yen:,}"
    words = {Status.ON_SALE: "購入手続きへ", Status.STOP: "現在公開停止中です"}
    assert button.text() == words.get(status, "売り切れました")
    assert ("disabled" in button.attributes) is (status is not Status.ON_SALE)


async def test_a_hostile_title_stays_a_title_on_its_own_page(
    http: httpx2.AsyncClient, site: MarketSite
) -> None:
    for sign in ("<script>", '"', "${x}", "\u202e", "とても長い題名"):
        item = next(
            item
            for item in site.market.items().values()
            if sign in item.goods.title and item.status is Status.ON_SALE
        )
        tree = LexborHTMLParser((await http.get(href_of(item.goods))).text)
        title = tree.css_first("h1")
        assert title is not None
        assert title.text() == item.goods.title
        assert tree.css("script") == []


async def test_an_unknown_or_removed_item_is_not_found(
    http: httpx2.AsyncClient, site: MarketSite
) -> None:
    removed = one(site.market, Kind.ORDINARY, Status.REMOVED).goods.id
    ordinary = one(site.market, Kind.ORDINARY, Status.ON_SALE).goods.id
    shops = one(site.market, Kind.SHOPS, Status.ON_SALE).goods.id
    for path in (
        f"/item/{removed}",
        f"/item/{shops}",
        f"/shops/product/{ordinary}",
        "/item/m00000000000",
        "/item/",
        "/item/%00",
        "/shops/product/x/y",
    ):
        reply = await http.get(path)
        assert reply.status_code == 404, path
        assert "該当する商品は削除されています" in reply.text


async def test_every_picture_is_drawn_here(http: httpx2.AsyncClient, site: MarketSite) -> None:
    item = one(site.market, Kind.ORDINARY, Status.ON_SALE)
    for path in (
        f"/_image/thumb/item/webp/{item.goods.id}_1.jpg?5",
        "/_image/icon.svg",
        "/_image/m0_1.jpg",
        "/_image/%00",
    ):
        reply = await http.get(path)
        assert (reply.status_code, reply.headers["content-type"]) == (200, "image/svg+xml")
        assert ET.fromstring(reply.content).tag.endswith("svg")


async def test_a_page_cannot_be_posted_to(http: httpx2.AsyncClient) -> None:
    for path in ("/search", "/item/m1", "/_cells"):
        assert (await http.post(path)).status_code == 405


async def test_a_refusal_has_the_marks_of_one(http: httpx2.AsyncClient) -> None:
    await http.post("/_control", json={"part": "market", "do": "blocked", "times": 1})
    reply = await http.get("/search")
    assert (reply.status_code, reply.headers["server"]) == (403, "cloudflare")
    assert "Attention Required! | Cloudflare" in reply.text
    assert '<span class="cf-error-code">1020</span>' in reply.text


async def walk(page: Page) -> tuple[list[str], int]:
    """Scroll to the end, collecting links; give them and the most that were filled at once."""
    found: dict[str, None] = {}
    most = 0
    while True:
        hrefs = await page.eval_on_selector_all(
            "li[data-testid=item-cell] a[data-testid=thumbnail-link]",
            "links => links.map(link => link.getAttribute('href'))",
        )
        most = max(most, len(hrefs))
        is_new = bool(hrefs) and not set(hrefs) <= found.keys()
        found.update(dict.fromkeys(hrefs))
        at_end = await page.evaluate(
            "scrollY + innerHeight >= document.documentElement.scrollHeight - 2"
        )
        # What is in view fills after a moment; only then does the walk go on.
        waiting = await page.evaluate(UNFILLED)
        if not waiting and not is_new:
            if at_end:
                return list(found), most
            await page.evaluate("scrollBy(0, 250)")


UNFILLED = """() => [...document.querySelectorAll("li[data-testid=item-cell]")].some(cell => {
  const box = cell.getBoundingClientRect();
  const inView = box.top < innerHeight - 100 && box.bottom > 84;
  return inView && !cell.querySelector("a");
})"""


@pytest.mark.parametrize("layout", LAYOUTS)
async def test_a_walker_that_scrolls_collects_exactly_the_page(
    page: Page, site: MarketSite, layout: str
) -> None:
    outside: list[str] = []
    page.on(
        "request",
        lambda request: None if "//127.0.0.1" in request.url else outside.append(request.url),
    )
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    # One page is full and the other is not, which is all that the second layout adds.
    keyword = FRANCHISES[0 if layout == "old" else -4].keyword
    query = {"keyword": keyword, "status": "sold_out|trading", "sort": "created_time"}
    await page.goto(f"/search?{urlencode({**query, 'layout': layout})}")
    await page.wait_for_selector("li[data-testid=item-cell] a[data-testid=thumbnail-link]")
    items = find(site.market, **query)
    assert await page.locator("li[data-testid=item-cell]").count() == len(items)
    async with asyncio.timeout(300):
        found, most = await walk(page)
    assert set(found) == {href_of(item.goods) for item in items}
    assert len(items) > 20
    assert most <= 16
    await page.evaluate("scrollTo(0, 0)")
    last = page.locator("li[data-testid=item-cell]").last
    await last.locator("a").wait_for(state="detached")
    assert await last.locator(".merSkeleton").count() == 3
    assert (outside, errors) == ([], [])


async def test_the_next_button_leads_to_the_next_page(page: Page, site: MarketSite) -> None:
    query = {"keyword": BUSIEST, "status": "on_sale", "sort": "created_time"}
    await page.goto(f"/search?{urlencode({**query, 'layout': 'new'})}")
    await page.locator("[data-testid=pagination-next-button] a").click()
    await page.wait_for_url("**page_token=v1%3A1**")
    cell = page.locator("a[data-testid=thumbnail-link]").first
    await cell.wait_for()
    assert await cell.get_attribute("href") == href_of(
        find(site.market, **query, page_token="v1:1")[0].goods
    )


@pytest.mark.parametrize(
    ("layout", "sign"),
    [("old", ".merEmptyState"), ("new", "[data-testid=item-grid-empty-state]")],
)
async def test_a_browser_sees_that_nothing_was_found(page: Page, layout: str, sign: str) -> None:
    await page.goto(f"/search?keyword=zzzzzz&layout={layout}")
    await page.wait_for_selector(sign)
    assert await page.locator("[data-testid=item-cell]").count() == 0


async def test_a_changed_layout_is_drawn_with_other_names_throughout(
    page: Page, http: httpx2.AsyncClient
) -> None:
    order = {"part": "market", "path": "/search", "do": "changed_layout"}
    placed = (await http.post("/_control", json=order)).json()
    try:
        for layout in LAYOUTS:
            await page.goto(f"/search?keyword={quote(BUSIEST)}&layout={layout}")
            await page.wait_for_selector("[data-testid=thumbnail-link-v2]")
            for name in ("item-cell", "thumbnail-link", "pagination-next-button"):
                assert await page.locator(f"[data-testid={name}]").count() == 0
                assert await page.locator(f"[data-testid={name}-v2]").count() > 0
            assert await page.locator(".merItemThumbnail").count() == 0
    finally:
        await http.delete(f"/_control/{placed['id']}")


async def test_what_a_page_loads_is_not_counted_as_a_request_to_the_market(
    page: Page, http: httpx2.AsyncClient
) -> None:
    async def count(part: str) -> int:
        counted: int = (await http.get(f"/_seen/count?part={part}")).json()["count"]
        return counted

    before = await count("market"), await count("market:page")
    await page.goto(f"/search?keyword={quote(BUSIEST)}")
    await page.wait_for_selector("a[data-testid=thumbnail-link]")
    assert await count("market") == before[0] + 1
    assert await count("market:page") > before[1] + 2
