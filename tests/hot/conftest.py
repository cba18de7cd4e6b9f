"""The hot watch for its tests: its API, and its commands on a screen."""

from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mimawari.store.redis import RedisStore
from tests.app.filled import Behind, empty, filled, filled_once
from tests.conftest import Databases
from tests.hot.api_ground import Hot, open_hot
from tests.hot.cli_ground import fill
from tests.hot.foreign import Foreign, compile_messages

__all__ = ["empty", "filled", "filled_once"]


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
def behind() -> Behind:
    """What the screens of this watch have behind them."""
    return Behind("hot", fill)


@pytest.fixture(scope="session")
def messages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The messages of the specification, by the official library."""
    return compile_messages(tmp_path_factory.mktemp("spec"))


@pytest.fixture
def other(store: RedisStore, messages: dict[str, Any]) -> Iterator[Foreign]:
    """Another program at the same Redis."""
    program = Foreign(store.link.url, messages)
    with closing(program.client):
        yield program
