"""What Mercari says of its items, and what it can be asked for."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from mimawari.sites.contract import Refused
from mimawari.text import clean, one_line

NAME = "mercari"
"""The site's name: that of its breaker and its settings."""

MOST_YEN = 999_999_999
MOST_TITLE = 1_000
MOST_DESCRIPTION = 50_000
CONDITIONS = {
    "新品、未使用": 1,
    "未使用に近い": 2,
    "目立った傷や汚れなし": 3,
    "やや傷や汚れあり": 4,
    "傷や汚れあり": 5,
    "全体的に状態が悪い": 6,
}
"""The numbers of item conditions, by the names that stand where no number does."""

_ORDINARY_ID = re.compile(r"m[0-9]{11}")
_SHOPS_ID = re.compile(r"[0-9A-Za-z]{22}")
_IMAGE = re.compile(r"https?://[!#-;=?-~]{1,2000}")
_TOKEN = re.compile(r"v1:([0-9]{1,6})")


class Unfit(Exception):
    """One item cannot be used; the message says what is wrong with it."""


class Status(StrEnum):
    """Where an item is on its way from seller to buyer."""

    ON_SALE = "on_sale"
    TRADING = "trading"
    SOLD_OUT = "sold_out"
    STOP = "stop"
    CANCEL = "cancel"

    @property
    def is_sold(self) -> bool:
        """Whether the site itself counts it among 売り切れ."""
        return self in {Status.TRADING, Status.SOLD_OUT}


class Kind(StrEnum):
    """Who sells: a person, or a shop of Mercari Shops."""

    ORDINARY = "ordinary"
    SHOPS = "shops"


class Side(StrEnum):
    """Which half of the market a search looks at."""

    ON_SALE = "on_sale"
    SOLD = "sold"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A search, newest first; None and empty values ask for everything."""

    keyword: str
    side: Side = Side.ON_SALE
    exclude: str = ""
    category_id: int | None = None
    price_min_yen: int | None = None
    price_max_yen: int | None = None
    condition_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An item as a list or its own page shows it; what was not said is None.

    The price of an auction is its highest bid so far. A seller may offer an item without any price.
    """

    id: str
    kind: Kind
    title: str
    status: Status
    price_yen: int | None
    is_auction: bool = False
    seller_id: str | None = None
    image_url: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    category_id: int | None = None
    category_above: tuple[int, ...] | None = None
    """The categories that the item's category lies in; None where the page does not name them."""
    condition_id: int | None = None

    @property
    def has_price(self) -> bool:
        """Whether the seller has set a price."""
        return self.price_yen is not None

    @property
    def path(self) -> str:
        """Where the item's own page is on the site."""
        return path_of(self.id, self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """An item's own page; the item's kind is the type of its seller."""

    item: Item
    description: str = ""


@dataclass(frozen=True, slots=True)
class SearchPage:
    """One page of a search; an empty token says that it is the last one."""

    items: tuple[Item, ...] = ()
    refused: tuple[Refused, ...] = ()
    next_token: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether the site showed nothing at all."""
        return not (self.items or self.refused)


def gather(found: Iterable[Item | Refused], next_token: str = "") -> SearchPage:
    """Make a page of what was found, each id once; an item that was read is not refused as well."""
    items: dict[str, Item] = {}
    refused: list[Refused] = []
    for one in found:
        if isinstance(one, Item):
            items.setdefault(one.id, one)
        else:
            refused.append(one)
    left = tuple(one for one in refused if one.id not in items)
    return SearchPage(tuple(items.values()), left, next_token)


def refusal(item_id: object, why: Unfit) -> Refused:
    """Say which item was refused and why, in words that fit a table."""
    return Refused(one_line(str(item_id or "?"), most=60), one_line(str(why), most=200))


def kind_of(item_id: str) -> Kind | None:
    """Tell the kind by the shape of the id; None if it has no shape we know."""
    if _ORDINARY_ID.fullmatch(item_id):
        return Kind.ORDINARY
    return Kind.SHOPS if _SHOPS_ID.fullmatch(item_id) else None


def path_of(item_id: str, kind: Kind) -> str:
    """Tell where an item's own page is on the site."""
    return f"/item/{item_id}" if kind is Kind.ORDINARY else f"/shops/product/{item_id}"


def checked_title(text: str) -> str:
    """Return a title, or say why there is none."""
    title = clean(text).strip()
    if not title:
        raise Unfit("it has no title")
    if len(title) > MOST_TITLE:
        raise Unfit(f"its title has {len(title)} characters")
    return title


def checked_yen(price_yen: int) -> int:
    """Return a price that an item can have: a price of nothing is a price that was not said."""
    if not 0 < price_yen <= MOST_YEN:
        raise Unfit(f"its price is {price_yen} yen")
    return price_yen


def checked_image(text: str) -> str | None:
    """Return the address of an image; None for anything that a browser would not load as one."""
    return text if _IMAGE.fullmatch(text) else None


def following(token: str) -> str | None:
    """Tell the token of the page after this one; None if this one is of no form we know."""
    if not token:
        return "v1:1"
    found = _TOKEN.fullmatch(token)
    return f"v1:{int(found[1]) + 1}" if found else None
