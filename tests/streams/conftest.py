"""The streams watch for its tests: at work on simulated streams, and on a screen."""

from collections.abc import AsyncIterator

import pytest

from mimawari.kernel.clock import VirtualClock
from mimawari.net.reader import Reader
from mimawari.store.sql import SqlStore
from mimawari.store.sql.link import NearLink
from tests.app.filled import Behind, empty, filled, filled_once
from tests.conftest import Databases
from tests.streams.cli_ground import VARIABLES, fill
from tests.streams.scene import EVENING, Scene, open_scene

__all__ = ["empty", "filled", "filled_once"]


@pytest.fixture(scope="session")
async def reader() -> AsyncIterator[Reader]:
    """What looks into playlists and segments."""
    reader = Reader()
    yield reader
    await reader.close()


@pytest.fixture
async def scene(
    databases: Databases, reader: Reader, request: pytest.FixtureRequest
) -> AsyncIterator[Scene]:
    """One of the test's own, on SQLite, with the settings that the test gives."""
    clock = VirtualClock(EVENING)
    store = SqlStore(await databases.ready(), clock)
    # Threads are for those who must not wait; here time itself does.
    store.database.link = NearLink(store.database.link.engine)
    async with open_scene(store, clock, reader, **getattr(request, "param", {})) as opened:
        yield opened
    await store.close()


@pytest.fixture(scope="module")
def behind() -> Behind:
    """What the screens of this watch have behind them."""
    return Behind("streams", fill, VARIABLES)
