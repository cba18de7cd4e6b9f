"""The port of streaks: failures in a row."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from mimawari.kernel.values import Failed, Streak


class Streaks(Protocol):
    """Failures in a row of targets and kinds, over all processes and restarts."""

    async def count(self, failed: Sequence[Failed]) -> None:
        """Add failures to the streaks of their subjects."""

    async def end(self, subjects: Collection[str]) -> None:
        """Forget the streaks of subjects of which a job went well."""

    async def list(self) -> list[Streak]:
        """List all streaks, the newest failure first."""

    async def purge(self, before: datetime) -> int:
        """Forget streaks whose last failure was before a time; say how many."""
