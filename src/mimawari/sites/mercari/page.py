"""Reads the pages of jp.mercari.com as a browser has drawn them, in both of their layouts."""

import re
from collections.abc import Iterator
from urllib.parse import unquote

from selectolax.lexbor import LexborHTMLParser, LexborNode

from mimawari.errors import BadInput, Gone, Invalid
from mimawari.net.html import parse_html
from mimawari.sites.contract import Contract, Refused
from mimawari.sites.mercari.models import (
    CONDITIONS,
    MOST_DESCRIPTION,
    Detail,
    Item,
    Kind,
    SearchPage,
    Status,
    Unfit,
    checked_image,
    checked_title,
    checked_yen,
    following,
    gather,
    kind_of,
    refusal,
)
from mimawari.sites.yen import parse_yen
from mimawari.text import clean, one_line

CONTRACT = Contract(name="mercari page")
MOST_CELLS = 1_000

_GRIDS = ("#item-grid", "[data-testid=search-item-grid]")
GRID = ", ".join(_GRIDS)
CELL = "[data-testid=item-cell]"
CELLS = ", ".join(f"{grid} {CELL}" for grid in _GRIDS)
LINK = "a[data-testid=thumbnail-link]"
NO_ITEMS = ".merEmptyState, [data-testid=item-grid-empty-state]"
NO_ITEMS_WORDS = "出品された商品がありません"
NEXT = "[data-testid=pagination-next-button]"
STICKER = "[data-testid=thumbnail-sticker], [data-testid=item-tile-sticker]"

PRICE = "[data-testid=price], [data-testid=product-price]"
BUTTON = "[data-testid=checkout-button]"
CONDITION = "[data-testid='商品の状態']"
GONE_WORDS = (
    "ページが見つかりませんでした",
    "この商品は削除されました",
    "該当する商品は削除されています",
)

_NAME = "[data-testid=thumbnail-item-name]"
_THUMBNAIL = ".merItemThumbnail[aria-label]"
_SHOWN_PRICE = "[data-testid=item-tile-price], .merPrice"
_HREF = re.compile(r"/(item|shops/product)/([0-9A-Za-z]{1,40})/?(?:[?#].*)?$", re.DOTALL)
_KINDS = {"item": Kind.ORDINARY, "shops/product": Kind.SHOPS}
_AUCTION = ("現在", "入札", "オークション")
_BID = "入札"
_SOLD = ("売り切れ", "sold")
_STOPPED = "公開停止"
_SELLER = re.compile(r"/(?:user|shops)/profile/([0-9A-Za-z]{1,40})(?:[/?#]|$)")
_PAGE_TOKEN = re.compile(r"[?&]page_token=([^&#]{1,40})")
_NEVER_SHOWN = ["script", "style", "template", "noscript"]


def parse_rendered(html: str | bytes, url: str = "") -> SearchPage:
    """Read the cells that are drawn; a page with neither any nor a word on why is not understood.

    The page shows no seller, no times and no category, and does not tell trading from sold out.
    Addresses that leave out the site are taken to be at `url`.
    """
    body = _bytes(html)
    tree = parse_html(body, "utf-8")
    cells = _find_cells(tree, body)
    if len(cells) > MOST_CELLS:
        raise Invalid(f"the page shows more than {MOST_CELLS} items", page=body)
    page = gather((_read(cell, url) for cell in cells), _next_token(tree) if cells else "")
    CONTRACT.check(page.items, page.refused, body)
    return page


def parse_rendered_item(html: str | bytes, item_id: str) -> Detail:
    """Read an item's own page; a page that says so is of an item that is gone.

    The page tells times only roughly, as 3日前, so they are left out, and neither trading from
    sold out nor the number of the category.
    """
    body = _bytes(html)
    tree = parse_html(body, "utf-8")
    title, price, button = (_main(tree, name) for name in ("h1", PRICE, BUTTON))
    if price is None and any(_says(tree, words) for words in GONE_WORDS):
        raise Gone(f"the site shows no item {item_id}")
    if title is None or price is None or button is None:
        raise Invalid("the page lacks the title, the price or the button to buy", page=body)
    try:
        item = _shown_item(tree, item_id, (title, price, button))
    except Unfit as error:
        raise Invalid(f"the item cannot be used: {error}", page=body) from error
    prose = tree.css_first("[data-testid=description]")
    return Detail(item=item, description=clean(prose.text())[:MOST_DESCRIPTION] if prose else "")


def page_token(href: str) -> str:
    """Read the token of the page that a link leads to; empty if there is none that we know."""
    found = _PAGE_TOKEN.search(href)
    token = unquote(found[1]) if found else ""
    return token if token and following(token) else ""


def _find_cells(tree: LexborHTMLParser, body: bytes) -> list[LexborNode]:
    """Find the cells that hold an item; the others are shadows of what is to come."""
    has_grid = tree.css_first(GRID) is not None
    # Cells outside of the grid are recommendations, where there is a grid to be outside of.
    found = {cell.mem_id: cell for cell in tree.css(CELLS if has_grid else CELL)}
    cells = [cell for cell in found.values() if cell.css_first(LINK)]
    has_none = tree.css_first(NO_ITEMS) is not None
    if cells and has_none and not has_grid:
        raise Invalid("the page shows items and says that there are none", page=body)
    if not cells and not (has_none or _says(tree, NO_ITEMS_WORDS)):
        raise Invalid("the page shows neither items nor that there are none", page=body)
    return cells


def _read(cell: LexborNode, url: str) -> Item | Refused:
    link = cell.css_first(LINK)
    href = _attribute(link, "href") if link else ""
    found = _HREF.search(href)
    try:
        return _cell_item(cell, found, url)
    except Unfit as error:
        return refusal(found[2] if found else href, error)


def _cell_item(cell: LexborNode, found: re.Match[str] | None, url: str) -> Item:
    if found is None or kind_of(found[2]) is not _KINDS[found[1]]:
        raise Unfit("its link leads to no item")
    image = cell.css_first("img")
    name = _text(cell.css_first(_NAME))
    label, words = _cut(_attribute(cell.css_first(_THUMBNAIL), "aria-label"), "の画像")
    alt, more_words = _cut(_attribute(image, "alt"), "のサムネイル")
    marks = " ".join([*words, *more_words, *_stickers(cell)])
    rest = cell.text().replace(name, "", 1)
    return Item(
        id=found[2],
        kind=_KINDS[found[1]],
        title=checked_title(name.strip() or label or alt),
        status=_status(marks),
        price_yen=_price(_price_text(cell, words)),
        is_auction=any(word in marks or word in rest for word in _AUCTION),
        image_url=_image_url(_attribute(image, "src"), url),
    )


def _cut(text: str, words: str) -> tuple[str, list[str]]:
    """Cut a title from what the site says after it; a title may hold the site's words, too."""
    title, found, rest = text.rpartition(words)
    return (title, rest.split()) if found else (text, [])


def _stickers(cell: LexborNode) -> Iterator[str]:
    """Tell what the stickers on an image say; the old one, if nothing, is that of a sold item."""
    for sticker in cell.css(STICKER):
        words = _attribute(sticker, "aria-label") or _text(sticker).strip()
        is_old = _attribute(sticker, "data-testid") == "thumbnail-sticker"
        yield words or ("売り切れ" if is_old else "")


def _status(marks: str) -> Status:
    if _STOPPED in marks:
        return Status.STOP
    said = marks.lower()
    return Status.SOLD_OUT if any(word in said for word in _SOLD) else Status.ON_SALE


def _price_text(cell: LexborNode, words: list[str]) -> str:
    if words and words[-1].endswith("円"):
        return words[-1]
    return _text(cell.css_first(_SHOWN_PRICE))


def _price(text: str) -> int | None:
    try:
        price_yen = parse_yen(text)
    except BadInput as error:
        raise Unfit(f"its price is {one_line(text, most=40)!r}") from error
    return None if price_yen is None else checked_yen(price_yen)


def _image_url(source: str, url: str) -> str | None:
    is_path = source.startswith("/") and not source.startswith("//")
    return checked_image(url + source if is_path else source)


def _next_token(tree: LexborHTMLParser) -> str:
    link = tree.css_first(f"{NEXT} a, a{NEXT}")
    return page_token(_attribute(link, "href"))


def _main(tree: LexborHTMLParser, selector: str) -> LexborNode | None:
    """Find a part of the item itself: recommendations below it repeat the same names."""
    inside = ", ".join(
        f"{part} {one}" for part in ("#item-info", "#product-info") for one in selector.split(", ")
    )
    return tree.css_first(inside) or tree.css_first(selector)


def _shown_item(
    tree: LexborHTMLParser, item_id: str, parts: tuple[LexborNode, LexborNode, LexborNode]
) -> Item:
    kind = kind_of(item_id)
    if kind is None:
        raise Unfit(f"its id is {one_line(item_id, most=40)!r}")
    title, price, button = parts
    is_off = button.css_matches("[disabled], [aria-disabled=true]")
    seller = _SELLER.search(_attribute(_main(tree, "a[href*='/profile/']"), "href"))
    return Item(
        id=item_id,
        kind=kind,
        title=checked_title(title.text()),
        status=_status(button.text() + ("売り切れ" if is_off else "")),
        price_yen=_price(price.text()),
        is_auction=any(word in price.text() for word in _AUCTION) or _BID in button.text(),
        seller_id=seller[1] if seller else None,
        image_url=checked_image(_attribute(tree.css_first("meta[property='og:image']"), "content")),
        condition_id=CONDITIONS.get(_text(_main(tree, CONDITION)).strip()),
    )


def _says(tree: LexborHTMLParser, words: str) -> bool:
    """Tell whether a reader of the page sees the words; its scripts hold all words of the site."""
    tree.strip_tags(_NEVER_SHOWN)
    return tree.body is not None and words in tree.body.text()


def _attribute(node: LexborNode | None, name: str) -> str:
    return clean(node.attributes.get(name) or "") if node else ""


def _text(node: LexborNode | None) -> str:
    return clean(node.text()) if node else ""


def _bytes(html: str | bytes) -> bytes:
    return html if isinstance(html, bytes) else html.encode("utf-8", "replace")
