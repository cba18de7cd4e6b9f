"""What the tests of the simulated world are given: two toy sites on a socket, and the market."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from mimawari.kernel.clock import VirtualClock
from mimawari.sim.sites.mercari.site import MarketSite
from mimawari.sim.world import World
from tests.sim.ground import Prover, Toy, serve
from tests.sim.market_ground import Asking


@pytest.fixture
def toy() -> Toy:
    """A site that can be changed."""
    return Toy()


@pytest.fixture
def world(clock: VirtualClock, toy: Toy) -> World:
    """A world of that site and another."""
    return World(clock, (toy, Toy("other")), 1)


@pytest.fixture
async def http(world: World) -> AsyncIterator[httpx2.AsyncClient]:
    """Who asks that world, over a socket."""
    async with serve(world) as http:
        yield http


@pytest.fixture(scope="module")
def site() -> MarketSite:
    """The market, where no time passes."""
    return MarketSite(VirtualClock(), 1)


@pytest.fixture(scope="module")
async def api() -> AsyncIterator[Asking]:
    """Who asks the market's API."""
    clock = VirtualClock()
    site = MarketSite(clock, 1)
    async with serve(World(clock, (site,), 1)) as http:
        prover = Prover(http.base_url.netloc.decode(), clock.now())
        yield Asking(http, prover, site.market)
