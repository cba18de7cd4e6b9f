"""What tests of notifications stand on."""

from collections.abc import AsyncIterator

import pytest

from tests.notify.catcher import Catcher, open_catcher


@pytest.fixture
async def catcher() -> AsyncIterator[Catcher]:
    async with open_catcher() as found:
        yield found
