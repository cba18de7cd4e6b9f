"""The streams watch for its tests: at work on simulated streams, and on a screen."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mimawari.kernel.clock import VirtualClock
from mimawari.net.reader import Reader
from mimawari.store.sql import SqlStore
from mimawari.store.sql.link import NearLink
from tests.app.screen import Screen
from tests.conftest import Databases
from tests.streams.cli_ground import VARIABLES, fill
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


@pytest.fixture(scope="module")
def filled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with some monitors; it is copied, never used."""
    folder = tmp_path_factory.mktemp("filled")
    asyncio.run(fill(folder))
    return folder


@pytest.fixture
def filled(filled_once: Path, tmp_path: Path) -> Screen:
    """A screen with some monitors."""
    shutil.copytree(filled_once, tmp_path / "data")
    return Screen(tmp_path / "data", "streams", VARIABLES)


@pytest.fixture
def empty(tmp_path: Path) -> Screen:
    """A screen with nothing behind it."""
    return Screen(tmp_path / "data", "streams", VARIABLES)
