"""What the tests of the books watch stand on."""

import pytest

from mimawari.kernel.clock import VirtualClock
from tests.app.filled import empty, filled, filled_once
from tests.books.scene import NOON

__all__ = ["empty", "filled", "filled_once"]


@pytest.fixture
def clock() -> VirtualClock:
    """Noon in Tokyo."""
    return VirtualClock(NOON)
