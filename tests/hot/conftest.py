"""The API with the hot watch, for the tests that ask it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import Databases
from tests.hot.api_ground import Hot, open_hot


@pytest.fixture(scope="module")
async def calm(
    databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Hot]:
    """One that is only asked for what it refuses."""
    async with open_hot(await databases.ready(), tmp_path_factory.mktemp("calm")) as running:
        yield running


@pytest.fixture
async def hot(databases: Databases, tmp_path: Path) -> AsyncIterator[Hot]:
    """One of the test's own."""
    async with open_hot(await databases.ready(), tmp_path) as running:
        yield running
