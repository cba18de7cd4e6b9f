"""Sessions of the pages, kept on the server, and one-time login links."""

import asyncio
import hmac
import secrets
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from mimawari.app.http import keys
from mimawari.errors import StoreDown
from mimawari.ids import new_id
from mimawari.kernel import sessions
from mimawari.kernel.ports import Clock
from mimawari.kernel.sessions import KEPT_FOR
from mimawari.text import clean, one_line

COOKIE = "mimawari_session"
BROWSER, BROWSER_FOR = "mimawari_browser", timedelta(days=365)
"""A cookie that marks a browser that has logged in with a key; it opens nothing."""
ONCE_FOR = timedelta(minutes=30)
SEEN_EVERY = timedelta(minutes=5)
"""The precision of the last-seen time, so that a page view seldom writes."""
MOST_AGENT = 120


@dataclass(frozen=True, slots=True)
class Session:
    """A visitor who is logged in."""

    id: str
    token: str
    """What forms must return, so that no other site can send them."""


class Sessions:
    """Begins, finds and ends sessions; the store holds only hashes of their cookies."""

    def __init__(self, api_keys: tuple[bytes, ...], kept: sessions.Sessions, clock: Clock) -> None:
        self._keys = api_keys
        self._fingerprints = tuple(map(keys.fingerprint, api_keys))
        self._kept = kept
        self._clock = clock
        self._touching: dict[str, asyncio.Task[None]] = {}

    def matches(self, given: str) -> int | None:
        """Tell which key was given, taking the same time whichever it is."""
        return keys.matches(given.encode(errors="surrogatepass"), self._keys)

    def make_mark(self, which: int) -> str:
        """Make a mark for a browser whose user holds a key."""
        name = secrets.token_hex(12)
        return f"{name}.{_sign(self._keys[which], name)}"

    def find_mark(self, cookie: str | None) -> str | None:
        """Return the name of a mark that was made with one of the keys."""
        name, _, proof = (cookie or "").partition(".")
        if not proof.isascii() or not name.isascii() or not name.isalnum():
            return None
        made = [hmac.compare_digest(proof, _sign(key, name)) for key in self._keys]
        return name[:24] if any(made) else None

    async def begin(self, which: int, address: str, agent: str) -> str:
        """Begin a session under a key, and return its cookie."""
        secret, now = secrets.token_urlsafe(32), self._clock.now()
        session = sessions.Session(
            id=new_id(),
            key=self._fingerprints[which],
            key_number=which + 1,
            made_at=now,
            seen_at=now,
            address=address,
            agent=one_line(clean(agent), most=MOST_AGENT),
        )
        await self._kept.begin(session, secret)
        return secret

    async def find(self, cookie: str | None, address: str) -> Session | None:
        """Find the session of a cookie; one that is too old, or whose key is gone, is ended."""
        if not cookie:
            return None
        found = await self._kept.find(cookie)
        if found is None:
            return None
        now = self._clock.now()
        if now - found.made_at > KEPT_FOR or found.key not in self._fingerprints:
            await self._kept.end(found.id)
            return None
        if now - found.seen_at > SEEN_EVERY or found.address != address:
            self._touch(found.id, now, address)
        token = hmac.new(cookie.encode("utf-8", "surrogatepass"), b"mimawari form", sha256)
        return Session(id=found.id, token=token.hexdigest())

    def _touch(self, session_id: str, now: datetime, address: str) -> None:
        """Record a session's last request beside the page, which never waits for a write."""
        if session_id not in self._touching:
            work = asyncio.create_task(self._record(session_id, now, address), name="session")
            self._touching[session_id] = work
            work.add_done_callback(lambda _: self._touching.pop(session_id, None))

    async def _record(self, session_id: str, now: datetime, address: str) -> None:
        with suppress(StoreDown):
            await self._kept.touch(session_id, now, address)

    async def end(self, session: Session) -> None:
        """End a session for good."""
        await self._kept.end(session.id)


def _sign(key: bytes, name: str) -> str:
    return hmac.new(key, f"mimawari browser {name}".encode(), sha256).hexdigest()


async def make_once(kept: sessions.Sessions, good_for: timedelta = ONCE_FOR) -> str:
    """Make a word that logs somebody in once, soon."""
    word = secrets.token_hex(24)
    await kept.offer(word, good_for)
    return word
