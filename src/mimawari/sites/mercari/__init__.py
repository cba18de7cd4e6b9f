"""Mercari Japan: its API, its pages as a browser draws them, and walks over a search."""

from mimawari.sites.mercari.api import ApiMarket
from mimawari.sites.mercari.browser import BrowserMarket, Screen
from mimawari.sites.mercari.models import (
    NAME,
    Detail,
    Item,
    Kind,
    Query,
    SearchPage,
    Side,
    Status,
    kind_of,
)
from mimawari.sites.mercari.opening import open_market
from mimawari.sites.mercari.page import parse_rendered, parse_rendered_item
from mimawari.sites.mercari.replies import parse_item, parse_search, parse_shops_product
from mimawari.sites.mercari.walk import Market, Result, walk

__all__ = [
    "NAME",
    "ApiMarket",
    "BrowserMarket",
    "Detail",
    "Item",
    "Kind",
    "Market",
    "Query",
    "Result",
    "Screen",
    "SearchPage",
    "Side",
    "Status",
    "kind_of",
    "open_market",
    "parse_item",
    "parse_rendered",
    "parse_rendered_item",
    "parse_search",
    "parse_shops_product",
    "walk",
]
