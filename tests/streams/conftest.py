"""The streams watch on simulated streams, for the tests that let it work."""

from collections.abc import AsyncIterator

import pytest

from mimawari.kernel.clock import VirtualClock
from mimawari.net.reader import Reader
from mimawari.store.sql import SqlStore
from mimawari.store.sql.link import NearLink
from tests.conftest import Databases
from tests.streams.scene import EVENING, Scene, open_scene


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
