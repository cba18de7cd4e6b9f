"""Walks over Mercari's pages in a browser, where a list draws only what is in sight."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar
from urllib.parse import urlencode

from mimawari.errors import Invalid
from mimawari.net.page import Site
from mimawari.sites.contract import Refused
from mimawari.sites.mercari import page as rendered
from mimawari.sites.mercari.models import (
    NAME,
    Detail,
    Query,
    SearchPage,
    Side,
    following,
    kind_of,
    path_of,
)
from mimawari.text import clean, one_line

if TYPE_CHECKING:
    from playwright.async_api import Page

SITE = Site(name=NAME, deadline_for=timedelta(seconds=90))

DRAWN_WITHIN_MS = 20_000
FILLED_WITHIN_MS = 2_000
PATIENCE = 5
MOST_STEPS = 150
MOST_CELLS = 300
MOST_CELL_CHARACTERS = 20_000
MOST_CHARACTERS = 4_000_000
_STATUSES = {Side.ON_SALE: "on_sale", Side.SOLD: "sold_out|trading"}

_SETTLED = (
    f"{rendered.NO_ITEMS}, :is({rendered.CELLS}) {rendered.LINK},"
    f" body:not(:has({rendered.GRID})) {rendered.CELL} {rendered.LINK}"
)
_SETTLED_ITEM = f"body:has(h1):has({rendered.PRICE}):has({rendered.BUTTON})"

# Waits in the page until one of the selectors or words is there, or the time is over.
_WAIT = """async ({selectors, words, limit}) => {
  const until = performance.now() + limit;
  const isThere = () => document.querySelector(selectors)
    || words.some(word => document.body?.innerText.includes(word));
  while (!isThere() && performance.now() < until) {
    await new Promise(done => setTimeout(done, 50));
  }
}"""

# Scrolls by less than a screen, waits until the cells well in sight are drawn, and tells of all.
_STEP = """async ({grid, inGrid, cell, link, limit, mostCells, mostCharacters, scrolls}) => {
  const down = Math.max(100, window.innerHeight * 0.7);
  if (scrolls) window.scrollBy({top: down, behavior: 'instant'});
  const selector = document.querySelector(grid) ? inGrid : cell;
  const cells = () => [...document.querySelectorAll(selector)].slice(0, mostCells);
  const patience = () => {
    const near = cells().filter(one => {
      const box = one.getBoundingClientRect();
      const middle = (box.top + box.bottom) / 2 / window.innerHeight;
      return middle > 0.1 && middle < 0.9;
    });
    if (!near.length) return limit / 8;
    return near.every(one => one.querySelector(link)) ? 0 : limit;
  };
  const since = performance.now();
  // A page hears that it was scrolled with its next frame, which a busy machine draws late.
  await new Promise(done => { requestAnimationFrame(done); setTimeout(done, limit / 4); });
  do {
    await new Promise(done => setTimeout(done, 50));
  } while (performance.now() - since < patience());
  const all = cells();
  const drawn = [];
  all.forEach((one, place) => {
    const found = one.querySelector(link);
    if (found && one.outerHTML.length <= mostCharacters) {
      drawn.push([place, found.getAttribute('href') || '', one.outerHTML]);
    }
  });
  const end = document.documentElement.scrollHeight - 2;
  return {cells: all.length, drawn, isEnd: window.scrollY + window.innerHeight >= end};
}"""

_NEXT = """({next}) => {
  const button = document.querySelector(next);
  const isShown = button && button.getClientRects().length
    && !button.matches('[disabled], [aria-disabled=true]')
    && !button.querySelector('[disabled], [aria-disabled=true]');
  if (!isShown) return null;
  return (button.closest('a') || button.querySelector('a'))?.getAttribute('href') || '';
}"""

P = ParamSpec("P")
T = TypeVar("T")


class Screen(Protocol):
    """A browser that opens a page, guarded and within the site's deadline."""

    async def render(self, site: Site, url: str, walk: Callable[["Page"], Awaitable[T]]) -> T:
        """Open the page, let it be walked over, and close it; return what the walk found."""
        ...


class Reader(Protocol):
    """A place where pages are read, so that a page without an end holds up nobody."""

    async def read(self, parse: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what the parser returns, or raise what it raises."""
        ...


@dataclass(slots=True)
class _Sight:
    """What has been seen of a list so far."""

    cells: int = 0
    places: set[int] = field(default_factory=set)
    drawn: dict[str, str] = field(default_factory=dict)
    idle: int = 0

    def take(self, snapshot: Any, page: bytes) -> bool:
        """Add what a step saw; tell whether there may be more to see."""
        try:
            cells, is_end = int(snapshot["cells"]), bool(snapshot["isEnd"])
            drawn = [(int(place), str(href), str(html)) for place, href, html in snapshot["drawn"]]
        except (TypeError, ValueError, KeyError, OverflowError) as error:
            raise Invalid("the page does not let itself be read", page=page) from error
        known = len(self.drawn)
        self.cells = cells
        for place, href, html in drawn:
            self.places.add(place)
            self.drawn[href] = html
        if sum(map(len, self.drawn.values())) > MOST_CHARACTERS:
            raise Invalid(f"the list holds more than {MOST_CHARACTERS} characters", page=page)
        self.idle = 0 if len(self.drawn) > known else self.idle + 1
        is_whole = is_end and self.idle > 0 and len(self.places) >= cells
        return not is_whole and self.idle < PATIENCE


class BrowserMarket:
    """Mercari as a visitor sees it: slower than its API, and without sellers and times."""

    def __init__(self, browser: Screen, url: str, reader: Reader) -> None:
        self._browser = browser
        self._url = url.rstrip("/")
        self._reader = reader

    async def search_page(self, query: Query, token: str = "") -> SearchPage:
        """Fetch one page of a search, whole; the empty token asks for the first."""
        url = f"{self._url}/search?{_asked(query, token)}"
        return await self._browser.render(SITE, url, lambda page: self._list(page, token))

    async def item(self, item_id: str) -> Detail:
        """Fetch an item's own page; one that is no more raises Gone.

        The page does not tell when the item was changed, so a time of sale cannot be had from it.
        """
        kind = kind_of(item_id)
        if kind is None:
            raise Invalid(f"{one_line(item_id, most=60)!r} is no id of an item")
        url = self._url + path_of(item_id, kind)
        return await self._browser.render(SITE, url, lambda page: self._item(page, item_id))

    async def _list(self, page: "Page", token: str) -> SearchPage:
        html = await _drawn(page, _SETTLED, (rendered.NO_ITEMS_WORDS,))
        first = await self._reader.read(rendered.parse_rendered, html, self._url)
        if first.is_empty:
            return first
        sight = await _look_through(page, html)
        cells = "".join(sight.drawn.values())
        whole = await self._reader.read(rendered.parse_rendered, cells, self._url)
        left = sight.cells - len(sight.places)
        undrawn = [Refused(f"cell {place}", "it was never drawn") for place in range(1, left + 1)]
        refused = (*whole.refused, *undrawn)
        rendered.CONTRACT.check(whole.items, refused, html)
        return replace(whole, refused=refused, next_token=await _next_token(page, token))

    async def _item(self, page: "Page", item_id: str) -> Detail:
        html = await _drawn(page, _SETTLED_ITEM, rendered.GONE_WORDS)
        return await self._reader.read(rendered.parse_rendered_item, html, item_id)


def _asked(query: Query, token: str) -> str:
    wanted = {
        "keyword": clean(query.keyword),
        "exclude_keyword": clean(query.exclude),
        "category_id": query.category_id,
        "item_condition_id": ",".join(map(str, query.condition_ids)),
        "price_min": query.price_min_yen,
        "price_max": query.price_max_yen,
        "status": _STATUSES[query.side],
        "sort": "created_time",
        "order": "desc",
        "page_token": clean(token),
    }
    return urlencode({name: value for name, value in wanted.items() if value not in (None, "")})


async def _look_through(page: "Page", html: bytes) -> _Sight:
    """Scroll to the end of the list, keeping each cell as it was when it was in sight."""
    sight = _Sight()
    asked: dict[str, Any] = {
        "grid": rendered.GRID,
        "inGrid": rendered.CELLS,
        "cell": rendered.CELL,
        "link": rendered.LINK,
        "limit": FILLED_WITHIN_MS,
        "mostCells": MOST_CELLS,
        "mostCharacters": MOST_CELL_CHARACTERS,
    }
    for step in range(MOST_STEPS):
        if not sight.take(await page.evaluate(_STEP, {**asked, "scrolls": step > 0}), html):
            break
    return sight


async def _next_token(page: "Page", token: str) -> str:
    href = await page.evaluate(_NEXT, {"next": rendered.NEXT})
    if not isinstance(href, str):
        return ""
    return rendered.page_token(href) or following(token) or ""


async def _drawn(page: "Page", selectors: str, words: tuple[str, ...]) -> bytes:
    """Return the page once there is something to read, or as it is when the time is over."""
    asked = {"selectors": selectors, "words": list(words), "limit": DRAWN_WITHIN_MS}
    await page.evaluate(_WAIT, asked)
    return (await page.content()).encode("utf-8", "replace")
