"""The ground of the market's tests: who asks its API, and what its pages have to show."""

from dataclasses import dataclass
from typing import Any

import httpx2

from mimawari.sim.sites.mercari.api import cut
from mimawari.sim.sites.mercari.items import FRANCHISES
from mimawari.sim.sites.mercari.lives import Goods, Item, Kind, Status
from mimawari.sim.sites.mercari.market import Market
from mimawari.sim.sites.mercari.pages import parse_query
from tests.sim.ground import Prover

SEARCH = "/v2/entities:search"
ITEM = "/items/get"
PRODUCT = "/v1/marketplaces/shops/products/"
BUSIEST = FRANCHISES[0].keyword
LAYOUTS = ("old", "new")


def find(market: Market, **query: str) -> list[Item]:
    """List the items of one page of a search, by the truth."""
    wanted, number = parse_query(query)
    return cut(market.search(wanted), wanted.keyword, number).items


def href_of(goods: Goods) -> str:
    """Name the page of an item."""
    return f"/shops/product/{goods.id}" if goods.kind is Kind.SHOPS else f"/item/{goods.id}"


@dataclass(slots=True)
class Asking:
    """A careful caller of the API, and the truth behind it."""

    http: httpx2.AsyncClient
    prover: Prover
    market: Market

    async def post(self, body: Any) -> httpx2.Response:
        """Search with any body."""
        headers = self.prover.headers("POST", SEARCH)
        return await self.http.post(SEARCH, json=body, headers=headers)

    async def search(self, token: str = "", size: int = 120, **condition: Any) -> dict[str, Any]:
        """Search as pages do."""
        given = {"keyword": BUSIEST, "sort": "SORT_CREATED_TIME", "order": "ORDER_DESC"}
        body = {"pageSize": size, "pageToken": token, "searchCondition": {**given, **condition}}
        reply = await self.post(body)
        assert reply.status_code == 200, reply.text
        found: dict[str, Any] = reply.json()
        return found

    async def walk(self, size: int = 120, **condition: Any) -> list[list[dict[str, Any]]]:
        """Read page after page until one is empty or names no next."""
        pages: list[list[dict[str, Any]]] = []
        token = ""
        while True:
            reply = await self.search(token, size, **condition)
            if reply["items"]:
                pages.append(reply["items"])
            token = reply["meta"]["nextPageToken"]
            if not token or not reply["items"]:
                return pages

    async def get(self, path: str, query: str = "") -> httpx2.Response:
        """Ask for one thing."""
        return await self.http.get(path + query, headers=self.prover.headers("GET", path))

    def one(self, kind: Kind, status: Status = Status.ON_SALE) -> str:
        """Pick an item of a kind."""
        return next(
            item.goods.id
            for item in self.market.items().values()
            if item.goods.kind is kind and item.status is status
        )
