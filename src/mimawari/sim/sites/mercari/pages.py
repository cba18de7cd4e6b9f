"""The simulated market's pages: lists that the browser draws, and items that the server does."""

import re
from collections.abc import Mapping
from html import escape
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from mimawari.sim.chance import chance_of
from mimawari.sim.faults import LOOK, TEMPLATES, change_layout, read_template
from mimawari.sim.sites.mercari.api import Refused, cut, parse_token
from mimawari.sim.sites.mercari.cells import DRAW, EMPTY, draw_picture
from mimawari.sim.sites.mercari.items import CATEGORIES, FRANCHISES
from mimawari.sim.sites.mercari.lives import Item, Kind, Status
from mimawari.sim.sites.mercari.market import SHOWN, Market, Wanted
from mimawari.sim.sites.mercari.replies import CONDITIONS, DESCRIPTION, image_path, shop_of
from mimawari.text import clean, one_line

SEARCH, CELLS, IMAGE = "/search", "/_cells", "/_image/"
ITEM, PRODUCT = "/item/", "/shops/product/"
FILES = {"/_market.css": "text/css", "/_market.js": "text/javascript"}
SIDES = {"すべて": "", "販売中": "on_sale", "売り切れ": "sold_out|trading"}
BUTTONS = {
    Status.ON_SALE: ("購入手続きへ", ""),
    Status.TRADING: ("売り切れました", " disabled"),
    Status.SOLD_OUT: ("売り切れました", " disabled"),
    Status.STOP: ("現在公開停止中です", " disabled"),
}
_PICTURE = re.compile(r"/_image/(?:.*/)?([0-9A-Za-z]+)_[0-9]+\.jpg")


class Pages:
    """Answers the requests of people, and of the browsers that draw their pages."""

    def __init__(self, market: Market, seed: int) -> None:
        self._market = market
        self._seed = seed
        self._served = 0

    def owns(self, path: str) -> bool:
        """Say whether a path is one of the pages, or something that a page loads."""
        return path in {SEARCH, CELLS} or path in FILES or path.startswith((ITEM, PRODUCT, IMAGE))

    async def answer(self, request: Request) -> Response:
        """Answer one request."""
        path = request.url.path
        if path == SEARCH:
            return self._search(request.query_params)
        if path == CELLS:
            return self._cells(request.query_params)
        if path in FILES:
            text = (TEMPLATES / path.removeprefix("/_")).read_text(encoding="utf-8")
            return Response(text, media_type=FILES[path])
        if path.startswith(IMAGE):
            return self._picture(path)
        is_shop = path.startswith(PRODUCT)
        item = self._market.find(path.removeprefix(PRODUCT if is_shop else ITEM))
        if item is None or is_shop is not (item.goods.kind is Kind.SHOPS):
            return HTMLResponse(read_template("market_missing.html").template, 404)
        return HTMLResponse(_item_page(item))

    def _search(self, query: Mapping[str, str]) -> Response:
        """Send the page around a list; what is in the list comes when the browser asks."""
        self._served += 1
        layout = query.get("layout", "")
        if layout not in DRAW:
            layout = chance_of(self._seed, "layout", self._served).choice(tuple(DRAW))
        keyword = one_line(query.get("keyword", ""), most=100)
        page = read_template("market_search.html").substitute(
            heading=escape(f"{keyword} の検索結果" if keyword else "新着の商品"),
            keyword=escape(clean(query.get("keyword", ""))),
            cells=escape(f"{CELLS}?{urlencode({**query, 'layout': layout})}"),
            sides=_links(query, "status", SIDES),
            franchises=_links(query, "keyword", {one.name: one.keyword for one in FRANCHISES}),
        )
        return HTMLResponse(page)

    def _cells(self, query: Mapping[str, str]) -> Response:
        layout = query.get("layout", "")
        if layout not in DRAW:
            layout = "new"
        wanted, number = parse_query(query)
        leaf = cut(self._market.search(wanted), wanted.keyword, number)
        asked = {name: value for name, value in query.items() if name not in {"look", "layout"}}
        pager = _button(asked, "前へ", "prev", number - 1) if number else ""
        pager += _button(asked, "次へ", "next", number + 1) if leaf.has_more else ""
        parts = {"pager": pager, "empty": EMPTY[layout]}
        cells = [DRAW[layout](item) for item in leaf.items]
        if query.get("look") == LOOK:
            cells = [change_layout(cell) for cell in cells]
            parts = {name: change_layout(part) for name, part in parts.items()}
        return JSONResponse({"cells": cells, **parts})

    def _picture(self, path: str) -> Response:
        match = _PICTURE.fullmatch(path)
        item = self._market.items().get(match[1]) if match else None
        return Response(draw_picture(item), media_type="image/svg+xml")


def parse_query(query: Mapping[str, str]) -> tuple[Wanted, int]:
    """Read a page's address as a browser's user may have typed it; what is odd is left out."""
    names = {str(status): status for status in SHOWN}
    asked = query.get("status", "").split("|")
    try:
        number = parse_token(query.get("page_token", ""))
    except Refused:
        number = 0
    wanted = Wanted(
        keyword=clean(query.get("keyword", "")),
        exclude=clean(query.get("exclude_keyword", "")),
        statuses=frozenset(names[name] for name in asked if name in names) or SHOWN,
        least_yen=_whole(query.get("price_min", "")),
        most_yen=_whole(query.get("price_max", "")),
        categories=_wholes(query.get("category_id", "")),
        conditions=_wholes(query.get("item_condition_id", "")),
        sort=query.get("sort", "score"),
        descending=query.get("order") != "asc",
    )
    return wanted, number


def _whole(text: str) -> int:
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else 0


def _wholes(text: str) -> frozenset[int]:
    return frozenset(filter(None, map(_whole, text.split(","))))


def _links(query: Mapping[str, str], name: str, values: Mapping[str, str]) -> str:
    kept = {key: value for key, value in query.items() if key not in {name, "page_token"}}
    lines = []
    for text, value in values.items():
        here = ' class="here"' if query.get(name, "") == value else ""
        address = escape(f"{SEARCH}?{urlencode({**kept, name: value})}")
        lines.append(f'<a href="{address}"{here}>{escape(text)}</a>')
    return "".join(lines)


def _button(query: Mapping[str, str], text: str, name: str, number: int) -> str:
    token = f"v1:{number}" if number else ""
    address = escape(f"{SEARCH}?{urlencode({**query, 'page_token': token})}")
    return (
        f'<div class="merButton" data-testid="pagination-{name}-button">'
        f'<a href="{address}">{text}</a></div>'
    )


def _item_page(item: Item) -> str:
    goods = item.goods
    text, disabled = BUTTONS[item.status]
    category = CATEGORIES[goods.category_id]
    is_shop = goods.kind is Kind.SHOPS
    return read_template("market_item.html").substitute(
        title=escape(goods.title),
        shop=escape(shop_of(goods)[1]) if is_shop else "",
        price=f"{item.price_yen:,}",
        bids=f"現在 {item.bids} 件の入札" if goods.kind is Kind.AUCTION else "",
        button=f'<button type="button" data-testid="checkout-button"{disabled}>{text}</button>',
        description=escape(DESCRIPTION.format(title=goods.title)),
        category=escape(f"{category.parent_name} > {category.name}"),
        condition=escape(CONDITIONS[goods.condition_id][0]),
        seller=escape(shop_of(goods)[1] if is_shop else f"出品者{goods.seller}"),
        picture=escape(image_path(goods)),
    )
