"""The rentals site: lists of rooms, and rooms with pages of their own."""

from mimawari.sites.yahoo_realestate.addresses import (
    SITE_URL,
    is_property_id,
    parse_detail_url,
    parse_list_url,
)
from mimawari.sites.yahoo_realestate.client import SITE, fetch_detail, fetch_list
from mimawari.sites.yahoo_realestate.details import parse_detail
from mimawari.sites.yahoo_realestate.lists import parse_list
from mimawari.sites.yahoo_realestate.models import Coordinates, ListPage, Property, Room

__all__ = [
    "SITE",
    "SITE_URL",
    "Coordinates",
    "ListPage",
    "Property",
    "Room",
    "fetch_detail",
    "fetch_list",
    "is_property_id",
    "parse_detail",
    "parse_detail_url",
    "parse_list",
    "parse_list_url",
]
