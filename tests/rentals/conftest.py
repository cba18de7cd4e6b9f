"""The rentals watch on the simulated site, for the tests that let it work."""

from collections.abc import AsyncIterator

import pytest

from mimawari.kernel.clock import VirtualClock
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade
from tests.conftest import Databases
from tests.rentals.scene import EVENING, Scene, open_scene


@pytest.fixture
async def scene(databases: Databases) -> AsyncIterator[Scene]:
    """One of the test's own, on SQLite."""
    clock = VirtualClock(EVENING)
    store = SqlStore(databases.fresh("sqlite"), clock)
    await upgrade(store.database)
    async with open_scene(store, clock) as opened:
        yield opened
    await store.close()
