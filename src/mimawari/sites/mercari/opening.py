"""Opens Mercari in the mode that the settings choose."""

from typing import Protocol

from mimawari.kernel.ports import Clock
from mimawari.net.page import Http
from mimawari.settings import Settings
from mimawari.sites.mercari.api import ApiMarket
from mimawari.sites.mercari.browser import BrowserMarket, Screen
from mimawari.sites.mercari.walk import Market


class Way(Http, Screen, Protocol):
    """Asks and draws."""


def open_market(settings: Settings, way: Way, clock: Clock) -> Market:
    """Return Mercari by its API, or by its pages in a browser."""
    if settings.mercari_mode == "browser":
        return BrowserMarket(way, settings.mercari_url, way)
    return ApiMarket(way, settings.mercari_api_url, clock)
