"""How a store wakes those who sleep: the ports of signals."""

from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mimawari.kernel.ports import Clock


class Bell(Protocol):
    """One sleeper's bell."""

    def ring(self) -> None:
        """Wake the sleeper, now or at its next wait."""

    async def wait(self, clock: "Clock", until: datetime) -> bool:
        """Wait for a ring or a time, whichever is first; say whether it was a ring."""


class Signal(Protocol):
    """Wakes those who sleep until a time when something earlier was put, here or elsewhere."""

    def bell(self, *topics: str) -> Bell:
        """Return a bell that rings for these topics, also from other processes."""

    def tell(self, topic: str) -> None:
        """Ring every bell of a topic in this process."""
