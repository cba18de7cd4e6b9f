"""The port of sessions of the pages and of one-time login links."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

KEPT_FOR = timedelta(days=30)
"""The longest life of a session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session of the pages."""

    id: str
    key: str
    """The fingerprint of the API key that it was begun with, and dies with."""
    key_number: int
    """Which of the keys that was when it began, from 1 on."""
    made_at: datetime
    seen_at: datetime
    address: str
    agent: str
    """What the browser calls itself, cut short."""


class Sessions(Protocol):
    """Sessions of the pages and one-time login links; only hashes of their secrets are kept."""

    async def begin(self, session: Session, secret: str) -> None:
        """Keep a session under the hash of its secret."""

    async def find(self, secret: str) -> Session | None:
        """Find the session of a secret, by its hash."""

    async def touch(self, session_id: str, now: datetime, address: str) -> None:
        """Record the time and address of a session's last request."""

    async def list(self) -> Sequence[Session]:
        """List the sessions, the most recently used first."""

    async def end(self, session_id: str) -> bool:
        """End a session; return whether it existed."""

    async def end_without(self, keys: Collection[str]) -> int:
        """End the sessions of all keys except these; return how many."""

    async def offer(self, secret: str, good_for: timedelta) -> None:
        """Keep a link that logs in once, by the hash of its secret."""

    async def redeem(self, secret: str) -> bool:
        """Use up a link; return True to exactly one caller, if it has not expired."""

    async def purge(self, begun_before: datetime) -> int:
        """Delete sessions begun before a time and expired links; return how many."""
