"""The conformance suites run on every backend: the SQL engines, and Redis beside PostgreSQL."""

from collections.abc import AsyncIterator

import pytest

from mimawari.kernel.clock import VirtualClock
from mimawari.store.sql import SqlStore
from tests.servers import BACKENDS
from tests.stores import open_again


@pytest.fixture(params=BACKENDS)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def rival(store: SqlStore, clock: VirtualClock) -> AsyncIterator[SqlStore]:
    """A second store on the same database, as another process would have it."""
    rival = open_again(store, clock)
    yield rival
    await rival.close()
