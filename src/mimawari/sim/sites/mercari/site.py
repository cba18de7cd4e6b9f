"""The simulated market as a site of the world: its pages, its API and its truth."""

from collections.abc import Collection, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from mimawari.kernel.ports import Clock
from mimawari.sim.faults import read_template
from mimawari.sim.sites.mercari.api import Api
from mimawari.sim.sites.mercari.items import FRANCHISES, Franchise
from mimawari.sim.sites.mercari.market import Market
from mimawari.sim.sites.mercari.pages import Pages


class MarketSite:
    """A flea market where goods of made-up anime are listed and sold."""

    name = "market"

    def __init__(
        self,
        clock: Clock,
        seed: int,
        franchises: Collection[Franchise] = FRANCHISES,
        crowd: int = 1,
    ) -> None:
        self.market = Market(clock, seed, franchises, crowd)
        self._api = Api(self.market, clock)
        self._pages = Pages(self.market, seed)
        # The days that have passed are caught up with here, so that no request waits for it.
        self.market.items()

    def owns(self, path: str) -> bool:
        """Say whether a path is this site's."""
        return self._api.owns(path) or self._pages.owns(path)

    async def answer(self, request: Request) -> Response:
        """Answer one request as the real market would."""
        if self._api.owns(request.url.path):
            return await self._api.answer(request)
        if request.method not in {"GET", "HEAD"}:
            return HTMLResponse("Method Not Allowed", 405, {"allow": "GET, HEAD"})
        return await self._pages.answer(request)

    def truth(self, query: Mapping[str, str]) -> Any:
        """Tell the items of a search, the rates of each franchise, or the events since a time."""
        return self.market.truth(query)

    def refusal(self) -> Response:
        """Make the page that turns somebody away for good."""
        page = read_template("market_refusal.html").substitute(ray="8f2c4d1e9a7b3c60")
        return HTMLResponse(page, 403, {"server": "cloudflare", "cf-ray": "8f2c4d1e9a7b3c60-NRT"})
