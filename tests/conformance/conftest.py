"""The conformance suites run on every backend: the SQL engines, and Redis beside PostgreSQL."""

import pytest

from tests.servers import BACKENDS


@pytest.fixture(params=BACKENDS)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)
