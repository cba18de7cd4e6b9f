"""The port of sessions: who is logged in to the pages, and links that log in once."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

KEPT_FOR = timedelta(days=30)
"""How long somebody stays logged in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Somebody who is logged in to the pages."""

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
    """Who is logged in, and links that log in once; of their secrets only hashes are kept."""

    async def begin(self, session: Session, secret: str) -> None:
        """Keep a session under the hash of its secret."""

    async def find(self, secret: str) -> Session | None:
        """Find the session of a secret, by its hash."""

    async def touch(self, session_id: str, now: datetime, address: str) -> None:
        """Note when and from where a session was seen."""

    async def list(self) -> Sequence[Session]:
        """List the sessions, the one that was seen last first."""

    async def end(self, session_id: str) -> bool:
        """End a session for good; say whether there was one."""

    async def end_without(self, keys: Collection[str]) -> int:
        """End the sessions of all keys but these; say how many."""

    async def offer(self, secret: str, good_for: timedelta) -> None:
        """Keep a link that logs in once, by the hash of its secret."""

    async def redeem(self, secret: str) -> bool:
        """Use a link up; say whether it was good, which it is for one of those who come at once."""

    async def purge(self, begun_before: datetime) -> int:
        """Forget sessions that began before a time, and links that have run out; say how many."""
