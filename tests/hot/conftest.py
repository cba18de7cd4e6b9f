"""The hot watch for its tests: its API, and its commands on a screen."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.app.screen import Screen
from tests.conftest import Databases
from tests.hot.api_ground import Hot, open_hot
from tests.hot.cli_ground import fill


@pytest.fixture(scope="module")
async def calm(
    databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Hot]:
    """An API that is only asked for what it refuses."""
    async with open_hot(await databases.ready(), tmp_path_factory.mktemp("calm")) as running:
        yield running


@pytest.fixture
async def hot(databases: Databases, tmp_path: Path) -> AsyncIterator[Hot]:
    """An API of the test's own."""
    async with open_hot(await databases.ready(), tmp_path) as running:
        yield running


@pytest.fixture(scope="module")
def filled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with five IPs; it is copied, never used."""
    folder = tmp_path_factory.mktemp("filled")
    asyncio.run(fill(folder))
    return folder


@pytest.fixture
def filled(filled_once: Path, tmp_path: Path) -> Screen:
    """A screen with five IPs."""
    shutil.copytree(filled_once, tmp_path / "data")
    return Screen(tmp_path / "data", "hot")


@pytest.fixture
def empty(tmp_path: Path) -> Screen:
    """A screen with nothing behind it."""
    return Screen(tmp_path / "data", "hot")
