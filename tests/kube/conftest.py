"""One cluster, world and gateway for the tests of a file."""

from collections.abc import AsyncIterator

import pytest

from tests.conftest import Databases
from tests.kube.ground import Stage, open_stage


@pytest.fixture(scope="module")
async def stage(
    databases: Databases, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> AsyncIterator[Stage]:
    """A stage of the file's own, with the settings that it names."""
    settings = getattr(request.module, "SETTINGS", {})
    folder = tmp_path_factory.mktemp("gateway")
    async with open_stage(databases.fresh("postgresql"), folder, **settings) as opened:
        yield opened
