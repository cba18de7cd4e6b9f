"""Reads the replies of Mercari's API, of 2022 as of today."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NoReturn

from mimawari.errors import Gone, Invalid
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
    gather,
    kind_of,
    refusal,
)
from mimawari.text import clean, one_line

READ = Contract(name="mercari search")
FILLED = Contract(name="mercari search", filled={"updated_at": 0.5, "image_url": 0.5})
ENOUGH = 20
"""A share says something of this many items; a page of fewer may well be an odd one."""

MOST_ITEMS = 1_000
MOST_TOKEN = 500
MOST_DIGITS = 18
MOST_ID = 2**31 - 1
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
LATEST = datetime(2100, 1, 1, tzinfo=UTC)

_NUMBER = re.compile(f"-?[0-9]{{1,{MOST_DIGITS}}}")
_SELLER = re.compile(r"[0-9A-Za-z]{1,40}")
_STATUS = re.compile(r"(?:ITEM_)?STATUS_([A-Z_]+)|([a-z_]+)")
_STATUSES = {status.value: status for status in Status}
_KINDS = {"ITEM_TYPE_MERCARI": Kind.ORDINARY, "ITEM_TYPE_BEYOND": Kind.SHOPS}
_NOT_FOUND = {"RecordNotFoundException", "NotFoundException"}
_GRPC_NOT_FOUND = 5

Json = Mapping[str, Any]


def parse_search(body: bytes) -> SearchPage:
    """Read one page of a search; an item that cannot be used is refused, not the page."""
    reply = _read(body)
    items, meta = reply.get("items", ...), reply.get("meta")
    if not isinstance(meta, dict) or not (items is None or isinstance(items, list)):
        raise Invalid(f"the reply is no list of items{_said(reply)}", page=body)
    if items and len(items) > MOST_ITEMS:
        raise Invalid(f"the reply lists more than {MOST_ITEMS} items", page=body)
    token = meta.get("nextPageToken")
    if items and not isinstance(token, str):
        raise Invalid("the reply does not say whether there is another page", page=body)
    page = gather([_listed(raw) for raw in items or ()], _text(token)[:MOST_TOKEN])
    contract = FILLED if len(page.items) >= ENOUGH else READ
    contract.check(page.items, page.refused, body)
    return page


def parse_item(body: bytes) -> Detail:
    """Read the reply on an ordinary item; one that the site does not know is gone."""
    reply = _read(body)
    raw = reply.get("data")
    if reply.get("result") != "OK" or not isinstance(raw, dict):
        raise _refused_whole(reply, body)
    try:
        item = _ordinary(raw)
    except Unfit as error:
        raise Invalid(f"the item cannot be used: {error}", page=body) from error
    return Detail(item=item, description=_prose(raw.get("description")))


def parse_shops_product(body: bytes) -> Detail:
    """Read the reply on a product of Mercari Shops; one that the site does not know is gone."""
    reply = _read(body)
    if not isinstance(reply.get("displayName"), str):
        raise _refused_whole(reply, body)
    try:
        item = _product(reply)
    except Unfit as error:
        raise Invalid(f"the product cannot be used: {error}", page=body) from error
    return Detail(item=item, description=_prose(_child(reply, "productDetail").get("description")))


def parse_status(value: object) -> Status:
    """Read a status in any of the site's three spellings."""
    found = _STATUS.fullmatch(value) if isinstance(value, str) else None
    name = (found[1] or found[2]).lower() if found else ""
    if name not in _STATUSES:
        raise Unfit(f"its status is {_shown(value)}")
    return _STATUSES[name]


def _listed(raw: object) -> Item | Refused:
    if not isinstance(raw, dict):
        return refusal("?", Unfit(f"it is {_shown(raw)}"))
    try:
        return _found(raw)
    except Unfit as error:
        return refusal(raw.get("id"), error)


def _found(raw: Json) -> Item:
    """Read an item of a search."""
    item_id, kind = _identity(raw.get("id"))
    if _KINDS.get(str(raw.get("itemType")), kind) is not kind:
        raise Unfit(f"its type is {_shown(raw.get('itemType'))}, but its id is of another")
    seller = raw.get("sellerId") if kind is Kind.ORDINARY else _child(raw, "shop").get("id")
    photos = [_object(photo).get("uri") for photo in _list(raw.get("photos"))]
    return Item(
        id=item_id,
        kind=kind,
        title=_title(raw.get("name")),
        status=parse_status(raw.get("status")),
        price_yen=_price(raw.get("price"), has_none=_is_true(raw.get("isNoPrice"))),
        is_auction=bool(_child(raw, "auction")),
        seller_id=_seller(seller),
        image_url=_image([*_list(raw.get("thumbnails")), *photos]),
        created_at=_moment(raw.get("created")),
        updated_at=_moment(raw.get("updated")),
        category_id=_positive(raw.get("categoryId")),
        condition_id=_positive(raw.get("itemConditionId")),
    )


def _ordinary(raw: Json) -> Item:
    """Read the reply on an ordinary item."""
    item_id, kind = _identity(raw.get("id"))
    if kind is not Kind.ORDINARY:
        raise Unfit(f"{item_id} is the id of a product of Mercari Shops")
    return Item(
        id=item_id,
        kind=kind,
        title=_title(raw.get("name")),
        status=parse_status(raw.get("status")),
        price_yen=_price(raw.get("price"), has_none=_is_true(raw.get("is_no_price"))),
        is_auction=bool(_child(raw, "auction_info") or _child(raw, "auction")),
        seller_id=_seller(_child(raw, "seller").get("id")),
        image_url=_image([*_list(raw.get("thumbnails")), *_list(raw.get("photos"))]),
        created_at=_moment(raw.get("created")),
        updated_at=_moment(raw.get("updated")),
        category_id=_positive(_child(raw, "item_category").get("id")),
        category_above=_above(raw),
        condition_id=_positive(_child(raw, "item_condition").get("id")),
    )


def _product(raw: Json) -> Item:
    """Read the reply on a product; it has no status but a tag, and a name of its condition."""
    item_id, kind = _identity(raw.get("name"))
    if kind is not Kind.SHOPS:
        raise Unfit(f"{item_id} is the id of an ordinary item")
    tags = raw.get("productTags", ...)
    if not (tags is None or isinstance(tags, list)):
        raise Unfit("it does not say whether it is sold")
    detail = _child(raw, "productDetail")
    categories = [_object(one) for one in _list(detail.get("categories"))]
    return Item(
        id=item_id,
        kind=kind,
        title=_title(raw.get("displayName")),
        status=Status.SOLD_OUT if "sold_out" in (tags or ()) else Status.ON_SALE,
        price_yen=_price(raw.get("price"), has_none=False),
        seller_id=_seller(_child(detail, "shop").get("name")),
        image_url=_image([raw.get("thumbnail"), *_list(detail.get("photos"))]),
        created_at=_moment(raw.get("createTime")),
        updated_at=_moment(raw.get("updateTime")),
        category_id=_positive(categories[0].get("categoryId")) if categories else None,
        category_above=_above_product(categories),
        condition_id=CONDITIONS.get(_text(_child(detail, "condition").get("displayName"))),
    )


def _above(raw: Json) -> tuple[int, ...] | None:
    """Read the categories that an ordinary item's category lies in; None if none is named."""
    category = _child(raw, "item_category")
    named = [category.get("parent_category_id"), category.get("root_category_id")]
    tiers = [_object(one).get("id") for one in _list(raw.get("parent_categories_ntiers"))]
    return _categories([*named, *tiers], without=category.get("id"))


def _above_product(categories: Sequence[Json]) -> tuple[int, ...] | None:
    """Read the categories that a product's category, the first one, lies in."""
    if not categories:
        return None
    named = [one.get(name) for one in categories for name in ("parentId", "rootId")]
    tiers = [one.get("categoryId") for one in categories[1:]]
    return _categories([*named, *tiers], without=categories[0].get("categoryId"))


def _categories(values: Sequence[object], *, without: object) -> tuple[int, ...] | None:
    numbers = {number for value in values if (number := _positive(value)) is not None}
    return tuple(sorted(numbers - {_positive(without)})) if numbers else None


def _identity(value: object) -> tuple[str, Kind]:
    kind = kind_of(value) if isinstance(value, str) else None
    if not isinstance(value, str) or kind is None:
        raise Unfit(f"its id is {_shown(value)}")
    return value, kind


def _title(value: object) -> str:
    return checked_title(_text(value))


def _price(value: object, *, has_none: bool) -> int | None:
    """Read a price; where there is none, the number that stands in its place means nothing."""
    if has_none:
        return None
    number = _integer(value)
    if number is None:
        raise Unfit(f"its price is {_shown(value)}")
    return checked_yen(number)


def _seller(value: object) -> str | None:
    """Read who sells; the 0 of products of Mercari Shops is nobody."""
    number = None if isinstance(value, str) else _integer(value)
    text = _text(value) if number is None else str(number)
    return text if text != "0" and _SELLER.fullmatch(text) else None


def _image(values: Iterable[object]) -> str | None:
    return next((found for value in values if (found := checked_image(_text(value)))), None)


def _moment(value: object) -> datetime | None:
    """Read a time in seconds or in ISO 8601; None if it is none, or none that can be."""
    number = _integer(value)
    if number is None:
        return _iso_moment(_text(value))
    if not EARLIEST.timestamp() <= number < LATEST.timestamp():
        return None
    return datetime.fromtimestamp(number, UTC)


def _iso_moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None or not EARLIEST <= moment < LATEST:
        return None
    return moment.astimezone(UTC)


def _integer(value: object) -> int | None:
    """Read a whole number, which may be written as text; None if it is none."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 10**MOST_DIGITS:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _positive(value: object) -> int | None:
    number = _integer(value)
    return number if number is not None and 0 < number <= MOST_ID else None


def _is_true(value: object) -> bool:
    return value is True or value in ("true", "yes")


def _prose(value: object) -> str:
    return _text(value)[:MOST_DESCRIPTION]


def _text(value: object) -> str:
    return clean(value) if isinstance(value, str) else ""


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _child(raw: Json, name: str) -> Json:
    return _object(raw.get(name))


def _shown(value: object) -> str:
    return one_line(repr(value), most=60)


def _read(body: bytes) -> Json:
    """Read JSON within the bounds of what a number and a nesting may be."""
    try:
        reply = json.loads(body, parse_constant=_no_number, parse_int=_whole)
    except (ValueError, RecursionError) as error:
        raise Invalid(
            f"the reply is no JSON: {one_line(str(error), most=100)}", page=body
        ) from error
    if not isinstance(reply, dict):
        raise Invalid("the reply is no JSON object", page=body)
    return reply


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _whole(digits: str) -> int | str:
    """Leave a number as text that is too long to be one of anything."""
    return int(digits) if len(digits) <= MOST_DIGITS else digits


def _refused_whole(reply: Json, body: bytes) -> Gone | Invalid:
    codes = [_object(error).get("code") for error in _list(reply.get("errors"))]
    if _NOT_FOUND.intersection(map(str, codes)) or reply.get("code") == _GRPC_NOT_FOUND:
        return Gone(f"the site does not know the item{_said(reply)}")
    return Invalid(f"the reply is no item{_said(reply)}", page=body)


def _said(reply: Json) -> str:
    """Quote the error that a reply speaks of."""
    error = next(map(_object, _list(reply.get("errors"))), reply)
    words = [str(error[key]) for key in ("code", "message") if key in error]
    return f" ({one_line(': '.join(words), most=120)})" if words else ""
