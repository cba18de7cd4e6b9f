"""The simulated market's API, as the real market's own pages call it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from mimawari.kernel.ports import Clock
from mimawari.sim.sites.mercari.lives import Item, Kind, Status
from mimawari.sim.sites.mercari.market import SHOWN, Market, Wanted
from mimawari.sim.sites.mercari.proofs import Proofs
from mimawari.sim.sites.mercari.replies import item_reply, search_entry, shops_reply
from mimawari.text import clean

SEARCH = "/v2/entities:search"
ITEM = "/items/get"
PRODUCT = "/v1/marketplaces/shops/products/"
PAGE_SIZE = 120
# A page this short is never made shorter still.
LEAST_FULL = 10
MOST_FOUND = 15_000
MOST_YEN = 10**9
_TOKEN = re.compile(r"v1:([0-9]{1,6})")
_ITEM_ID = re.compile(r"m[0-9]{11}")
_STATUSES = {f"STATUS_{status.upper()}": status for status in SHOWN}
_SORTS = {
    "SORT_DEFAULT": "score",
    "SORT_SCORE": "score",
    "SORT_CREATED_TIME": "created_time",
    "SORT_PRICE": "price",
    "SORT_NUM_LIKES": "num_likes",
}
_ORDERS = {"ORDER_DESC": True, "ORDER_ASC": False}
_CONDITION = {
    "keyword": "",
    "excludeKeyword": "",
    "sort": "SORT_SCORE",
    "order": "ORDER_DESC",
    "status": [],
    "sizeId": [],
    "categoryId": [],
    "brandId": [],
    "sellerId": [],
    "priceMin": 0,
    "priceMax": 0,
    "itemConditionId": [],
    "shippingPayerId": [],
    "shippingFromArea": [],
    "shippingMethod": [],
    "colorId": [],
    "hasCoupon": False,
    "createdAfterDate": "0",
    "createdBeforeDate": "0",
    "attributes": [],
    "itemTypes": [],
    "skuIds": [],
    "shopIds": [],
    "promotionValidAt": None,
    "excludeShippingMethodIds": [],
}


class Refused(Exception):
    """A request that the API does not take."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One page of a search."""

    items: list[Item]
    number: int
    total: int
    has_more: bool


def cut(found: list[Item], keyword: str, number: int, size: int = PAGE_SIZE) -> Leaf:
    """Return one page of a search: some are shorter than asked for, and none is left out."""
    starts = [0]
    for page in range(number + 1):
        short = crc32(f"{keyword}/{page}".encode()) % 3 if size > LEAST_FULL else 0
        starts.append(starts[-1] + size - short)
        if starts[-1] >= len(found):
            break
    if number + 1 >= len(starts):
        return Leaf([], number, len(found), has_more=False)
    items = found[starts[number] : starts[number + 1]]
    return Leaf(items, number, len(found), has_more=starts[number + 1] < len(found))


class Api:
    """Answers the API's requests from the market's truth."""

    def __init__(self, market: Market, clock: Clock) -> None:
        self._market = market
        self._clock = clock
        self._proofs = Proofs()

    def owns(self, path: str) -> bool:
        """Say whether a path is the API's."""
        return path in {SEARCH, ITEM} or path.startswith(PRODUCT)

    async def answer(self, request: Request) -> Response:
        """Answer one request, if it proves that it comes from a page."""
        if complaint := self._proofs.complaint(request, self._clock.now()):
            return _gateway_error(401, 16, complaint)
        if request.headers.get("x-platform") != "web":
            return _gateway_error(400, 3, "X-Platform is not one that we know")
        address, path = str(request.base_url).rstrip("/"), request.url.path
        if path == ITEM:
            return self._item(request.query_params.get("id", ""), address)
        if path == SEARCH:
            if request.method != "POST":
                return _gateway_error(405, 12, "Method Not Allowed")
            return await self._search(request, address)
        return self._product(path.removeprefix(PRODUCT), address)

    async def _search(self, request: Request, address: str) -> Response:
        try:
            asked, condition = _parse_search(await request.body())
            wanted = _parse_condition(condition)
            number, size = _parse_page(asked)
        except Refused as error:
            return _gateway_error(400, 3, str(error))
        leaf = cut(self._market.search(wanted), wanted.keyword, number, size)
        statuses = sorted(wanted.statuses)
        request.state.searched = {"keyword": wanted.keyword, "statuses": statuses, "page": number}
        return JSONResponse(_search_reply(leaf, wanted, condition, address))

    def _item(self, item_id: str, address: str) -> Response:
        if not _ITEM_ID.fullmatch(item_id):
            return _plain_error(400, "InvalidParameterException", "パラメータが不正です")
        item = self._market.find(item_id)
        if item is None:
            return _plain_error(404, "RecordNotFoundException", "見つかりませんでした")
        return JSONResponse(item_reply(item, address))

    def _product(self, item_id: str, address: str) -> Response:
        item = self._market.find(item_id)
        if item is None or item.goods.kind is not Kind.SHOPS:
            return _gateway_error(404, 5, "product not found")
        return JSONResponse(shops_reply(item, address))


def _search_reply(
    leaf: Leaf, wanted: Wanted, condition: Mapping[str, Any], address: str
) -> dict[str, Any]:
    odd = crc32(f"{wanted.keyword}/{wanted.sort}".encode())
    # Some searches name a next page that turns out to be empty.
    has_next = leaf.has_more or (odd % 4 == 0 and bool(leaf.items))
    # The number of hits is a guess that changes with the sort, as the real one is.
    guess = min(MOST_FOUND, leaf.total + leaf.total * (odd % 9) // 100 + odd % 3)
    return {
        "meta": {
            "nextPageToken": f"v1:{leaf.number + 1}" if has_next else "",
            "previousPageToken": f"v1:{leaf.number - 1}" if leaf.number else "",
            "numFound": str(guess if leaf.total else 0),
            "properties": [],
        },
        "items": [search_entry(item, address) for item in leaf.items],
        "components": [{"rowNumber": "0", "engagementArea": {"empty": {}}}],
        "searchCondition": _CONDITION | _echo(wanted, condition),
        "searchConditionId": "",
    }


def _echo(wanted: Wanted, condition: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "keyword": wanted.keyword,
        "excludeKeyword": wanted.exclude,
        "sort": condition.get("sort", "SORT_SCORE"),
        "order": condition.get("order", "ORDER_DESC"),
        "status": condition.get("status", []),
        "categoryId": sorted(wanted.categories),
        "itemConditionId": sorted(wanted.conditions),
        "priceMin": wanted.least_yen,
        "priceMax": wanted.most_yen,
    }


def _parse_search(body: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refused("the body is no JSON") from error
    condition = asked.get("searchCondition") if isinstance(asked, dict) else None
    if not isinstance(condition, dict):
        raise Refused("searchCondition is missing")
    return asked, condition


def _parse_page(asked: Mapping[str, Any]) -> tuple[int, int]:
    size = asked.get("pageSize", PAGE_SIZE)
    if type(size) is not int or not 0 < size <= PAGE_SIZE:
        raise Refused(f"pageSize is not between 1 and {PAGE_SIZE}")
    return parse_token(asked.get("pageToken", "")), size


def parse_token(token: object) -> int:
    """Read which page a token asks for."""
    if token == "":
        return 0
    match = _TOKEN.fullmatch(token) if isinstance(token, str) else None
    if match is None:
        raise Refused("pageToken is invalid")
    return int(match[1])


def _parse_condition(condition: Mapping[str, Any]) -> Wanted:
    keyword, exclude = condition.get("keyword", ""), condition.get("excludeKeyword", "")
    sort, order = condition.get("sort", "SORT_SCORE"), condition.get("order", "ORDER_DESC")
    if not isinstance(keyword, str) or not isinstance(exclude, str):
        raise Refused("keyword is no text")
    if not isinstance(sort, str) or sort not in _SORTS:
        raise Refused("sort is invalid")
    if not isinstance(order, str) or order not in _ORDERS:
        raise Refused("order is invalid")
    return Wanted(
        keyword=clean(keyword),
        exclude=clean(exclude),
        statuses=_parse_statuses(condition.get("status", [])),
        least_yen=_parse_number(condition.get("priceMin", 0)),
        most_yen=_parse_number(condition.get("priceMax", 0)),
        categories=_parse_numbers(condition.get("categoryId", [])),
        conditions=_parse_numbers(condition.get("itemConditionId", [])),
        sort=_SORTS[sort],
        descending=_ORDERS[order],
    )


def _parse_list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise Refused("a list is no list")
    return value


def _parse_numbers(value: object) -> frozenset[int]:
    return frozenset(map(_parse_number, _parse_list(value)))


def _parse_statuses(value: object) -> frozenset[Status]:
    names = _parse_list(value)
    if not all(isinstance(name, str) and name in _STATUSES for name in names):
        raise Refused("status is invalid")
    return frozenset(_STATUSES[name] for name in names) or SHOWN


def _parse_number(value: object) -> int:
    if isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value):
        return int(value)
    if type(value) is not int or not 0 <= value <= MOST_YEN:
        raise Refused("a number is no number")
    return value


def _gateway_error(status: int, code: int, message: str) -> Response:
    return JSONResponse({"code": code, "message": message, "details": []}, status)


def _plain_error(status: int, code: str, message: str) -> Response:
    errors = [{"code": code, "message": message}]
    return JSONResponse({"result": "error", "errors": errors, "meta": {}}, status)
