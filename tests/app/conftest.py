"""What the app's tests share: a quiet log, a terminal, and one API on SQLite a module."""

import io
import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import structlog

from mimawari import log
from tests.app.ground import Api, open_api
from tests.app.terminal import Terminal
from tests.conftest import Databases


@pytest.fixture(autouse=True)
def lines() -> Iterator[io.StringIO]:
    """What is logged in this test; afterwards logging is as it was before."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    stream = io.StringIO()
    log.configure("debug", stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """A terminal with a data folder of its own."""
    return Terminal(tmp_path / "data")


@pytest.fixture(scope="module")
async def api(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Api]:
    """The API with the example watch, on a SQLite file of its own."""
    async with open_api(await databases.ready(), tmp_path_factory.mktemp("data")) as running:
        yield running
