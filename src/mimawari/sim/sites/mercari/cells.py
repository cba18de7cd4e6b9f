"""The cells of the simulated market's lists, in both layouts, and the pictures in them."""

from collections.abc import Callable, Mapping
from html import escape
from types import MappingProxyType
from zlib import crc32

from mimawari.sim.sites.mercari.lives import Goods, Item, Kind, Status
from mimawari.sim.sites.mercari.replies import image_path

# One in so many cells of the new layout carries no name of its own.
NAMELESS = 12
PLACE = "search_result:newest:body:item_list:item_thumbnail"
EMPTY: Mapping[str, str] = MappingProxyType(
    {
        "old": '<div id="none" class="merEmptyState"><p>出品された商品がありません</p></div>',
        "new": (
            '<div id="none" data-testid="item-grid-empty-state">'
            "<p>出品された商品がありません</p></div>"
        ),
    }
)
_CORNER = (
    '<svg viewBox="0 0 122 122" aria-hidden="true"><path d="M0 0h122L0 122V0Z"></path>'
    '<text x="8" y="52" fill="#fff" font-size="26" font-weight="800"'
    ' transform="rotate(-45 40 52)">SOLD</text></svg>'
)
_PERSON = '<circle cx="120" cy="72" r="28"/><path d="M76 190q0-86 44-86t44 86z"/>'
_STAND = '<rect x="62" y="192" width="116" height="12" rx="6" fill="#fff9"/>'
_CARD = '<rect x="72" y="46" width="96" height="148" rx="10"/>'
_DISC = '<circle cx="120" cy="120" r="72"/><circle cx="120" cy="120" r="16" fill="#fff"/>'
_STAR = '<path d="M120 44l22 48 52 6-39 36 11 52-46-27-46 27 11-52-39-36 52-6z"/>'
_EARS = '<circle cx="78" cy="66" r="22"/><circle cx="162" cy="66" r="22"/>'
_EYES = '<g fill="#fff9"><circle cx="98" cy="110" r="9"/><circle cx="142" cy="110" r="9"/></g>'
_SHAPES: Mapping[int, str] = MappingProxyType(
    {
        5111: _PERSON + _STAND,
        5112: _PERSON,
        5121: f'<g opacity=".8">{_CARD}</g>{_STAND}<g transform="scale(.6) translate(80 74)"'
        f' fill="#fff9">{_PERSON}</g>',
        5122: '<circle cx="120" cy="120" r="70"/><circle cx="120" cy="120" r="52" fill="#fff7"/>',
        5123: f'<circle cx="120" cy="48" r="18" fill="none" stroke="#fff" stroke-width="6"/>'
        f"{_STAR}",
        5124: f'{_EARS}<circle cx="120" cy="124" r="68"/>{_EYES}',
        5125: '<rect x="52" y="40" width="136" height="10" rx="5" fill="#fff9"/>'
        '<rect x="62" y="50" width="116" height="150"/>',
        5126: '<path d="M64 48h84l28 28v118H64z"/><path d="M148 48v28h28z" fill="#fff8"/>',
        5131: f'{_CARD}<rect x="84" y="60" width="72" height="76" rx="6" fill="#fff8"/>',
        5141: f'<rect x="52" y="52" width="136" height="136" rx="8" fill="#fff6"/>{_DISC}',
        5142: _DISC,
        5151: '<path d="M56 56h60v136H56zM124 56h60v136h-60z"/>',
        5161: '<path d="M64 74l34-22q22 18 44 0l34 22-16 36-18-8v92H98v-92l-18 8z"/>',
    }
)


def item_path(goods: Goods) -> str:
    """Return the path of an item's own page."""
    return f"/shops/product/{goods.id}" if goods.kind is Kind.SHOPS else f"/item/{goods.id}"


def draw_old(item: Item) -> str:
    """Write the inside of a cell of the old layout."""
    goods = item.goods
    title, price = escape(goods.title), f"{item.price_yen:,}"
    is_sold = item.status is not Status.ON_SALE
    sold = " 売り切れ" if is_sold else ""
    kind = "ITEM_TYPE_BEYOND" if goods.kind is Kind.SHOPS else "ITEM_TYPE_MERCARI"
    sticker = (
        '<div role="img" data-testid="thumbnail-sticker" class="sticker" aria-label="売り切れ">'
        f"{_CORNER}</div>"
    )
    return (
        f'<div><a href="{item_path(goods)}" data-location="{PLACE}" data-testid="thumbnail-link">'
        f'<div class="merItemThumbnail fluid" role="img" aria-label="{title}の画像{sold} {price}円"'
        f' id="{goods.id}" itemtype="{kind}"><figure class="itemThumbnail">'
        f'<div class="imageContainer" role="img" aria-label="{title}のサムネイル"><picture>'
        f'<img loading="lazy" decoding="async" alt="{title}のサムネイル"'
        f' src="{image_path(goods)}"></picture></div><div class="overlayContent">'
        f"{sticker if is_sold else ''}"
        '<div class="priceContainer"><span class="merPrice"><span class="currency">¥</span>'
        f'<span class="number">{price}</span></span></div></div></figure></div></a></div>'
    )


def draw_new(item: Item) -> str:
    """Write the inside of a cell of the new layout."""
    goods = item.goods
    title, mark = escape(goods.title), crc32(goods.id.encode())
    is_sold = item.status is not Status.ON_SALE
    now = "<span>現在 </span>" if goods.kind is Kind.AUCTION and not is_sold else ""
    sticker = (
        '<svg data-testid="item-tile-sticker" aria-hidden="true" viewBox="0 0 120 120" width="33%">'
        '<text x="50%" y="50%" transform="translate(-16, -16) rotate(-45, 60, 60)"'
        ' text-anchor="middle" dominant-baseline="middle">SOLD</text></svg>'
    )
    name = f'<div><p data-testid="thumbnail-item-name">{title}</p></div>'
    return (
        f'<div><div><div><a href="{item_path(goods)}" data-location="{PLACE}"'
        f' data-testid="thumbnail-link" target="_blank" aria-labelledby="n{mark} p{mark}"><span>'
        f'<picture><img alt="{title}のサムネイル{" 売り切れ" if is_sold else ""}" decoding="async"'
        f' loading="lazy" src="{image_path(goods)}"></picture>{sticker if is_sold else ""}'
        f'<div><span data-testid="item-tile-price" id="p{mark}"><span>{now}<span>¥</span>'
        f"<span>{item.price_yen:,}</span></span></span></div></span>"
        f'<div id="n{mark}">{name if mark % NAMELESS else ""}</div></a></div></div></div>'
    )


DRAW: Mapping[str, Callable[[Item], str]] = MappingProxyType({"old": draw_old, "new": draw_new})


def draw_picture(item: Item | None) -> str:
    """Draw an item's picture: a made-up thing in its franchise's colour."""
    goods = None if item is None else item.goods
    hue = crc32((goods.franchise if goods else "").encode()) % 360
    tone = crc32((goods.id if goods else "").encode()) % 80
    shape = _SHAPES[goods.category_id] if goods else _STAR
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 240 240"><defs>'
        '<linearGradient id="g" x2="1" y2="1">'
        f'<stop stop-color="hsl({(hue + tone) % 360} 60% 86%)"/>'
        f'<stop offset="1" stop-color="hsl({(hue + tone + 30) % 360} 50% 70%)"/>'
        '</linearGradient></defs><rect width="240" height="240" fill="url(#g)"/>'
        f'<g fill="hsl({(hue + 200 + tone) % 360} 40% 46%)"'
        f' transform="rotate({tone // 4 - 10} 120 120)">{shape}</g></svg>'
    )
