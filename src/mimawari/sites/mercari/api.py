"""Asks the API that Mercari's own page asks."""

import json
from http import HTTPStatus

from mimawari.errors import Invalid, Transient
from mimawari.ids import new_id
from mimawari.kernel.ports import Clock
from mimawari.net.page import MOST_JSON_BYTES, Http, Outcome, Page, Site, Verdict
from mimawari.sites.mercari.dpop import device_id, make_proof, process_key
from mimawari.sites.mercari.models import NAME, Detail, Kind, Query, SearchPage, Side, kind_of
from mimawari.sites.mercari.replies import parse_item, parse_search, parse_shops_product
from mimawari.text import clean, one_line

PAGE_SIZE = 120
SEARCH = "/v2/entities:search"
_NO_ROUTE = b"404 page not found"
_STATUSES = {
    Side.ON_SALE: ["STATUS_ON_SALE"],
    Side.SOLD: ["STATUS_SOLD_OUT", "STATUS_TRADING"],
}


def judge(page: Page) -> Verdict | None:
    """Tell a request that the site does not take from an item that is gone."""
    if page.status == HTTPStatus.UNAUTHORIZED:
        return Verdict(Outcome.BLOCKED, "the site asks for a proof other than the one we gave")
    if page.status == HTTPStatus.BAD_REQUEST:
        return Verdict(Outcome.DRIFT, "the site does not take the request any more")
    if page.status == HTTPStatus.NOT_FOUND and (
        page.url.endswith(SEARCH) or page.body.strip() == _NO_ROUTE
    ):
        return Verdict(Outcome.DRIFT, "the site has no such route any more")
    return None


SITE = Site(name=NAME, judge=judge, most_bytes=MOST_JSON_BYTES)


class ApiMarket:
    """Mercari by its API: quick, and with all that the site says of an item."""

    def __init__(self, http: Http, url: str, clock: Clock) -> None:
        self._http = http
        self._url = url.rstrip("/")
        self._clock = clock
        self._session_id = new_id().replace("-", "")

    async def search_page(self, query: Query, token: str = "") -> SearchPage:
        """Fetch one page of a search; the empty token asks for the first."""
        body = json.dumps(self._wanted(query, token)).encode()
        page = await self._ask("POST", SEARCH, body)
        return await self._http.read(parse_search, page.body)

    async def item(self, item_id: str) -> Detail:
        """Fetch an item by the route of its kind; one that is no more raises Gone."""
        kind = kind_of(item_id)
        if kind is None:
            raise Invalid(f"{one_line(item_id, most=60)!r} is no id of an item")
        if kind is Kind.ORDINARY:
            path, parse = f"/items/get?id={item_id}&include_auction=true", parse_item
        else:
            path = f"/v1/marketplaces/shops/products/{item_id}?view=FULL"
            parse = parse_shops_product
        page = await self._ask("GET", path)
        detail = await self._http.read(parse, page.body)
        if detail.item.id != item_id:
            raise Invalid(f"the site answered with the item {detail.item.id}", page=page.body)
        return detail

    async def _ask(self, method: str, path: str, body: bytes | None = None) -> Page:
        url = self._url + path
        headers = {
            "Accept": "application/json, text/plain, */*",
            "Accept-Language": "ja",
            "DPoP": make_proof(process_key(), method, url, self._clock),
            "X-Platform": "web",
        }
        if body is not None:
            headers["Content-Type"] = "application/json; charset=utf-8"
        page = await self._http.fetch(SITE, url, method=method, headers=headers, body=body)
        if page.outcome is Outcome.EMPTY:
            raise Transient("the site gave an empty reply")
        return page

    def _wanted(self, query: Query, token: str) -> dict[str, object]:
        """Say what is searched for, in the words of the site's own page."""
        return {
            "userId": "",
            "pageSize": PAGE_SIZE,
            "pageToken": token,
            "searchSessionId": self._session_id,
            "source": "BaseSerp",
            "indexRouting": "INDEX_ROUTING_UNSPECIFIED",
            "thumbnailTypes": [],
            "searchCondition": _condition(query),
            "defaultDatasets": [],
            "serviceFrom": "suruga",
            "withItemBrand": True,
            "withItemSize": False,
            "withItemPromotions": True,
            "withItemSizes": True,
            "withShopname": False,
            "useDynamicAttribute": True,
            "withSuggestedItems": False,
            "withOfferPricePromotion": True,
            "withProductSuggest": False,
            "withParentProducts": False,
            "withProductArticles": False,
            "withSearchConditionId": False,
            "withAuction": True,
            "laplaceDeviceUuid": device_id(),
        }


def _condition(query: Query) -> dict[str, object]:
    """Say what an item must be; the site takes 0 and an empty list for anything."""
    return {
        "keyword": clean(query.keyword),
        "excludeKeyword": clean(query.exclude),
        "sort": "SORT_CREATED_TIME",
        "order": "ORDER_DESC",
        "status": _STATUSES[query.side],
        "sizeId": [],
        "categoryId": [] if query.category_id is None else [query.category_id],
        "brandId": [],
        "sellerId": [],
        "priceMin": query.price_min_yen or 0,
        "priceMax": query.price_max_yen or 0,
        "itemConditionId": list(query.condition_ids),
        "shippingPayerId": [],
        "shippingFromArea": [],
        "shippingMethod": [],
        "colorId": [],
        "hasCoupon": False,
        "attributes": [],
        "itemTypes": [],
        "skuIds": [],
        "shopIds": [],
        "excludeShippingMethodIds": [],
    }
