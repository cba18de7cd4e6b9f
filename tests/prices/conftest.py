"""The API with the prices watch, for the tests that ask it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.app.filled import empty, filled, filled_once
from tests.conftest import Databases
from tests.prices.api_ground import Shop, open_shop

__all__ = ["empty", "filled", "filled_once"]


@pytest.fixture(scope="module")
async def calm(
    databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Shop]:
    """One that the tests of a module share, and leave as it is."""
    async with open_shop(await databases.ready(), tmp_path_factory.mktemp("calm")) as opened:
        yield opened


@pytest.fixture
async def shop(databases: Databases, tmp_path: Path) -> AsyncIterator[Shop]:
    """One of the test's own."""
    async with open_shop(await databases.ready(), tmp_path) as opened:
        yield opened
