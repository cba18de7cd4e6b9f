"""What the tests of mail stand on: a real server, and TLS that is trusted."""

from collections.abc import AsyncIterator

import pytest

from tests.net.post_office import Both, Office, open_office
from tests.net.sockets import make_certificate


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Both:
    """The TLS of a server called localhost, and of a client who trusts it."""
    return make_certificate(tmp_path_factory.mktemp("tls"), "localhost")


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    """A mail server of the test's own."""
    async with open_office() as office:
        yield office
