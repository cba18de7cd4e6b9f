"""The rentals watch for its tests: at work on the simulated site, its API, and a screen."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mimawari.kernel.clock import VirtualClock
from mimawari.store.sql import SqlStore
from tests.app.filled import Behind, empty, filled, filled_once
from tests.conftest import Databases
from tests.rentals.api_ground import Rooms, open_rooms
from tests.rentals.cli_ground import VARIABLES, fill
from tests.rentals.scene import EVENING, Scene, open_scene

__all__ = ["empty", "filled", "filled_once"]


@pytest.fixture
async def scene(databases: Databases) -> AsyncIterator[Scene]:
    """One of the test's own, on SQLite."""
    clock = VirtualClock(EVENING)
    store = SqlStore(await databases.ready(), clock)
    async with open_scene(store, clock) as opened:
        yield opened
    await store.close()


@pytest.fixture(scope="module")
async def calm(
    databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Rooms]:
    """An API that is only asked for what it refuses."""
    async with open_rooms(await databases.ready(), tmp_path_factory.mktemp("calm")) as opened:
        yield opened


@pytest.fixture
async def rooms(databases: Databases, tmp_path: Path) -> AsyncIterator[Rooms]:
    """An API of the test's own."""
    async with open_rooms(await databases.ready(), tmp_path) as opened:
        yield opened


@pytest.fixture(scope="module")
def behind() -> Behind:
    """What the screens of this watch have behind them."""
    return Behind("rentals", fill, VARIABLES)
