"""Mercari's pages are walked over in a real Chromium, on pages that draw what is in sight only."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

import pytest
import uvicorn
from playwright.async_api import Browser, Page, async_playwright
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from mimawari.errors import Gone, Invalid
from mimawari.net.browser import find_executable
from mimawari.net.page import Site
from mimawari.sites.mercari import BrowserMarket, Query, Side, Status, walk

QUERY = Query(keyword="あの花")
P = ParamSpec("P")
T = TypeVar("T")

# Every cell is there, those in view are filled a little later, and emptied when they leave it.
SKELETONS = """
const list = document.querySelector('ul');
for (const _ of cells) list.insertAdjacentHTML('beforeend', bone);
const seen = new IntersectionObserver(changes => changes.forEach(({target, isIntersecting}) => {
  const at = [...list.children].indexOf(target);
  if (!isIntersecting) target.innerHTML = '';
  else if (cells[at]) setTimeout(() => { target.innerHTML = cells[at]; }, 30);
}), {rootMargin: '-60px 0px -60px 0px'});
for (const cell of list.children) seen.observe(cell);
"""
# Only the cells around the view are there at all, and the same few are used again and again.
RECYCLED = """
const list = document.querySelector('ul'), rows = Math.ceil(cells.length / 4);
list.style.cssText = `display:block;position:relative;height:${rows * 220}px`;
const draw = () => {
  const first = Math.max(0, Math.floor((scrollY - list.offsetTop) / 220) - 1) * 4;
  list.innerHTML = cells.slice(first, first + 24).map((cell, at) => {
    const place = first + at, top = Math.floor(place / 4) * 220, left = place % 4 * 210;
    return bone.replace('<li', `<li style="position:absolute;top:${top}px;left:${left}px"`)
      .replace('></li>', `>${cell}</li>`);
  }).join('');
};
addEventListener('scroll', () => setTimeout(draw, 20));
draw();
"""
AT_ONCE = """
const list = document.querySelector('ul');
list.innerHTML = cells.map(cell => bone.replace('><', `>${cell}<`)).join('');
"""


def old(item_id: str, price: int, *, mark: str = "") -> str:
    return f"""<a href="/item/{item_id}" data-testid="thumbnail-link">
      <div class="merItemThumbnail" aria-label="品 {item_id}の画像 {mark}{price:,}円">x</div></a>"""


def new(item_id: str, price: int) -> str:
    return f"""<a href="/item/{item_id}" data-testid="thumbnail-link">
      <img alt="品 {item_id}のサムネイル" src="/thumb/{item_id}.jpg">
      <span data-testid="item-tile-price"><span>¥</span><span>{price:,}</span></span></a>"""


def ids(count: int) -> list[str]:
    return [f"m{number:011}" for number in range(count)]


def both(count: int) -> list[str]:
    """Draw the insides of cells, of both layouts in turn."""
    return [(old, new)[at % 2](name, 300 + at) for at, name in enumerate(ids(count))]


def drawn(cells: list[str], script: str = SKELETONS, *, after: str = "", delay: int = 0) -> str:
    """Make a page whose list is drawn by a script."""
    return f"""<!doctype html><meta charset="utf-8"><style>html {{ scroll-behavior: smooth }}
      ul {{ display: grid; grid-template-columns: repeat(4, 200px); gap: 20px; padding: 0 }}
      li {{ width: 200px; height: 200px; list-style: none; overflow: hidden }}</style>
      <header style="height: 150px">あの花 の検索結果</header>
      <div id="item-grid" data-testid="search-item-grid"><ul></ul></div>{after}
      <footer style="height: 900px">メルカリ</footer><script>
      const cells = {json.dumps(cells)}, bone = '<li data-testid="item-cell"></li>';
      setTimeout(() => {{ {script} }}, {delay});</script>"""


def next_button(inside: str, style: str = "") -> str:
    return f'<div data-testid="pagination-next-button" style="{style}">{inside}</div>'


@dataclass
class Shop:
    """A little server of such pages, which keeps what it was asked for."""

    pages: dict[str, str] = field(default_factory=dict)
    asked: list[Request] = field(default_factory=list)
    url: str = ""

    async def answer(self, request: Request) -> Response:
        if request.url.path == "/favicon.ico" or request.url.path.startswith("/thumb/"):
            return Response(status_code=404)
        self.asked.append(request)
        token = request.query_params.get("page_token", "")
        return HTMLResponse(self.pages[token or request.url.path])


class Window:
    """Opens pages in a real browser; in a hurry, time passes quickly in them."""

    def __init__(self, browser: Browser, *, is_hurried: bool = False) -> None:
        self._browser = browser
        self._is_hurried = is_hurried

    async def render(self, site: Site, url: str, walk: Callable[[Page], Awaitable[T]]) -> T:
        assert site.name == "mercari"
        async with await self._browser.new_page(viewport={"width": 1200, "height": 700}) as page:
            if self._is_hurried:
                await page.clock.install()
            await page.goto(url)
            work = asyncio.ensure_future(walk(page))
            while self._is_hurried and not work.done():
                await page.clock.fast_forward(1000)
            return await work


class Desk:
    """Reads pages on the spot."""

    async def read(self, parse: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return parse(*args, **kwargs)


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        chromium = playwright.chromium
        browser = await chromium.launch(
            executable_path=find_executable(None), args=["--no-sandbox"]
        )
        yield browser
        await browser.close()


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    shop = Shop()
    app = Starlette(routes=[Route("/{path:path}", shop.answer)])
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    shop.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    yield shop
    server.should_exit = True
    await task


@pytest.fixture
def market(browser: Browser, shop: Shop) -> BrowserMarket:
    return BrowserMarket(Window(browser), shop.url + "/", Desk())


@pytest.fixture
def hurried(browser: Browser, shop: Shop) -> BrowserMarket:
    return BrowserMarket(Window(browser, is_hurried=True), shop.url, Desk())


@pytest.mark.parametrize(
    "script", [SKELETONS, RECYCLED, AT_ONCE], ids=["bones", "recycled", "once"]
)
@pytest.mark.parametrize("count", [1, 120])
async def test_a_list_is_read_whole_however_it_is_drawn(
    shop: Shop, market: BrowserMarket, script: str, count: int
) -> None:
    shop.pages["/search"] = drawn(both(count), script)
    page = await market.search_page(QUERY)
    assert page.refused == ()
    assert [item.id for item in page.items] == ids(count)
    assert [item.price_yen for item in page.items] == list(range(300, 300 + count))
    assert page.next_token == ""


async def test_a_list_that_comes_late_is_waited_for(shop: Shop, market: BrowserMarket) -> None:
    shop.pages["/search"] = drawn([new("m00000000001", 300), old("m00000000002", 5)], delay=700)
    page = await market.search_page(QUERY)
    assert [item.id for item in page.items] == ["m00000000001", "m00000000002"]
    assert page.items[0].image_url == f"{shop.url}/thumb/m00000000001.jpg"


@pytest.mark.parametrize(
    "words",
    [
        '<div class="merEmptyState"></div>',
        '<p data-testid="item-grid-empty-state"></p>',
        "<p>出品された商品がありません</p>",
    ],
)
async def test_a_search_without_results_is_an_empty_page(
    shop: Shop, market: BrowserMarket, words: str
) -> None:
    script = f"document.querySelector('#item-grid').innerHTML = {json.dumps(words)};"
    after = '<ul><li data-testid="item-cell">おすすめ</li></ul>'
    shop.pages["/search"] = drawn([], script, delay=300, after=after)
    page = await market.search_page(QUERY)
    assert page.is_empty
    assert page.next_token == ""


@pytest.mark.parametrize("cells", [0, 30])
async def test_a_page_that_never_draws_anything_is_not_understood_and_kept(
    shop: Shop, hurried: BrowserMarket, cells: int
) -> None:
    shop.pages["/search"] = drawn([""] * cells)
    with pytest.raises(Invalid, match="neither") as caught:
        await hurried.search_page(QUERY)
    assert "の検索結果" in (caught.value.page or b"").decode()


async def test_a_cell_that_is_never_drawn_is_told_of(shop: Shop, market: BrowserMarket) -> None:
    cells = both(10)
    cells[5] = ""
    shop.pages["/search"] = drawn(cells)
    page = await market.search_page(QUERY)
    assert [item.id for item in page.items] == [name for name in ids(10) if name != ids(10)[5]]
    assert [why.reason for why in page.refused] == ["it was never drawn"]


async def test_the_same_item_in_many_cells_is_one(shop: Shop, market: BrowserMarket) -> None:
    shop.pages["/search"] = drawn([*both(9), *both(9), old("m00000000003", 7)])
    page = await market.search_page(QUERY)
    assert [item.id for item in page.items] == ids(9)
    assert page.refused == ()


async def test_what_is_recommended_below_the_list_is_not_in_it(
    shop: Shop, market: BrowserMarket
) -> None:
    other = f'<ul><li data-testid="item-cell">{old("m99999999999", 1)}</li></ul>'
    shop.pages["/search"] = drawn(both(10), after=other, delay=200)
    page = await market.search_page(QUERY)
    assert [item.id for item in page.items] == ids(10)


@pytest.mark.parametrize(
    ("button", "token"),
    [
        (next_button('<a href="/search?keyword=x&amp;page_token=v1%3A7">次へ</a>'), "v1:7"),
        (next_button("<button>次へ</button>"), "v1:4"),
        (next_button("<button disabled>次へ</button>"), ""),
        (next_button('<a href="/search?page_token=v1%3A7">次へ</a>', "display:none"), ""),
        ("", ""),
    ],
)
async def test_the_next_page_is_the_one_that_the_button_leads_to(
    shop: Shop, market: BrowserMarket, button: str, token: str
) -> None:
    shop.pages["v1:3"] = drawn(both(5), after=button)
    page = await market.search_page(QUERY, "v1:3")
    assert len(page.items) == 5
    assert page.next_token == token


async def test_a_walk_over_pages_ends_where_there_is_no_button(
    shop: Shop, market: BrowserMarket
) -> None:
    more = next_button('<a href="/search?page_token=v1%3A1">次へ</a>')
    shop.pages["/search"] = drawn(both(20), after=more)
    shop.pages["v1:1"] = drawn([old("m00000000099", 5, mark="売り切れ ")])
    found = [result async for result in walk(market, QUERY, 5)]
    pages = [result.page for result in found if result.page]
    assert [len(page.items) for page in pages] == [20, 1]
    assert pages[1].items[0].status is Status.SOLD_OUT
    assert not found[-1].capped


async def test_all_that_a_query_asks_for_is_in_the_address(
    shop: Shop, market: BrowserMarket
) -> None:
    shop.pages["v1:1"] = drawn(both(1))
    query = Query(
        keyword="a&b=c \ud800#",
        side=Side.SOLD,
        exclude="x",
        category_id=859,
        price_min_yen=300,
        price_max_yen=5000,
        condition_ids=(1, 2),
    )
    await market.search_page(query, "v1:1")
    (request,) = shop.asked
    assert dict(request.query_params) == {
        "keyword": "a&b=c \ufffd#",
        "exclude_keyword": "x",
        "status": "sold_out|trading",
        "sort": "created_time",
        "order": "desc",
        "category_id": "859",
        "price_min": "300",
        "price_max": "5000",
        "item_condition_id": "1,2",
        "page_token": "v1:1",
    }
    assert "status=sold_out%7Ctrading" in str(request.url)
    assert "page_token=v1%3A1" in str(request.url)


async def test_a_plain_query_asks_for_no_more_than_it_must(
    shop: Shop, market: BrowserMarket
) -> None:
    shop.pages["/search"] = drawn(both(1))
    await market.search_page(Query(keyword="a"))
    (request,) = shop.asked
    assert request.url.query == "keyword=a&status=on_sale&sort=created_time&order=desc"


def item_page(button: str) -> str:
    """Make an item's own page that is drawn late."""
    shown = f"""<div id="item-info"><h1>めんま フィギュア</h1>
      <div data-testid="price"><span>¥</span> <span>4,800</span></div>
      <div data-testid="checkout-button">{button}</div></div>"""
    return f"""<!doctype html><meta charset="utf-8"><main></main><script>
      setTimeout(() => {{ document.querySelector('main').innerHTML = {json.dumps(shown)}; }}, 300);
      </script>"""


async def test_an_items_own_page_is_read_when_it_is_drawn(
    shop: Shop, market: BrowserMarket
) -> None:
    shop.pages["/item/m12345678901"] = item_page("<button>購入手続きへ</button>")
    shop.pages["/item/m12345678902"] = item_page("<button disabled>売り切れました</button>")
    there = (await market.item("m12345678901")).item
    sold = (await market.item("m12345678902")).item
    assert (there.title, there.price_yen, there.status) == (
        "めんま フィギュア",
        4800,
        Status.ON_SALE,
    )
    assert (sold.id, sold.status, sold.updated_at) == ("m12345678902", Status.SOLD_OUT, None)


async def test_a_product_is_looked_for_where_products_are(
    shop: Shop, market: BrowserMarket
) -> None:
    path = "/shops/product/2JNzBk7RTShAhskwbF99Yt"
    shop.pages[path] = item_page("<button>購入手続きへ</button>").replace("price", "product-price")
    assert (await market.item("2JNzBk7RTShAhskwbF99Yt")).item.path == path


async def test_an_item_that_the_page_says_is_gone_is_gone(
    shop: Shop, market: BrowserMarket
) -> None:
    shop.pages["/item/m12345678901"] = "<meta charset=utf-8><h1>ページが見つかりませんでした</h1>"
    with pytest.raises(Gone):
        await market.item("m12345678901")


async def test_an_items_page_that_is_never_drawn_is_not_understood(
    shop: Shop, hurried: BrowserMarket
) -> None:
    shop.pages["/item/m12345678901"] = "<meta charset=utf-8><h1>メルカリ</h1>"
    with pytest.raises(Invalid, match="lacks"):
        await hurried.item("m12345678901")


@pytest.mark.parametrize("item_id", ["", "x", "../search", "m12345678901?x"])
async def test_an_id_of_no_known_shape_is_never_looked_for(
    shop: Shop, market: BrowserMarket, item_id: str
) -> None:
    with pytest.raises(Invalid, match="no id"):
        await market.item(item_id)
    assert shop.asked == []
