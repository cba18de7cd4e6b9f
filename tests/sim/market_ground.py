"""The ground of the market's tests: what its pages have to show, by the truth."""

from mimawari.sim.market import Market
from mimawari.sim.market_api import cut
from mimawari.sim.market_items import FRANCHISES
from mimawari.sim.market_lives import Goods, Item, Kind
from mimawari.sim.market_pages import parse_query

BUSIEST = FRANCHISES[0].keyword
LAYOUTS = ("old", "new")


def find(market: Market, **query: str) -> list[Item]:
    """List the items of one page of a search, by the truth."""
    wanted, number = parse_query(query)
    return cut(market.search(wanted), wanted.keyword, number).items


def href_of(goods: Goods) -> str:
    """Name the page of an item."""
    return f"/shops/product/{goods.id}" if goods.kind is Kind.SHOPS else f"/item/{goods.id}"
