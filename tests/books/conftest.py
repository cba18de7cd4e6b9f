"""What the tests of the books watch stand on."""

import pytest

from mimawari.kernel.clock import VirtualClock
from tests.books.scene import NOON


@pytest.fixture
def clock() -> VirtualClock:
    """Noon in Tokyo."""
    return VirtualClock(NOON)
