"""Who is logged in: a signed cookie that dies with its key, a token for forms, links for once."""

import hmac
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from mimawari.kernel.ports import Cache, Clock

COOKIE = "mimawari_session"
KEPT_FOR = timedelta(days=30)
ONCE_FOR = timedelta(minutes=30)
_ONCE = "web:once:"


@dataclass(frozen=True, slots=True)
class Session:
    """A visitor who is logged in."""

    name: str
    """The session's own name, by which its requests are counted."""
    token: str
    """What forms must bring back, so that no other site can send them."""


class Sessions:
    """Makes sessions and knows them again, with nothing kept but the keys themselves."""

    def __init__(self, keys: tuple[bytes, ...], clock: Clock) -> None:
        self._secrets = [hmac.digest(key, b"mimawari session", "sha256") for key in keys]
        self._clock = clock

    def matches(self, given: str) -> int | None:
        """Tell which key was given, taking the same time whichever it is."""
        wanted = hmac.digest(given.encode(errors="surrogatepass"), b"mimawari session", "sha256")
        found = [hmac.compare_digest(wanted, secret) for secret in self._secrets]
        return found.index(True) if any(found) else None

    def make(self, which: int = 0) -> str:
        """Make the cookie of a new session under a key."""
        body = f"{which}.{int(self._clock.now().timestamp())}.{secrets.token_hex(12)}"
        return f"{body}.{self._sign(which, body)}"

    def find(self, cookie: str | None) -> Session | None:
        """Find the session of a cookie, if it is ours and not too old."""
        body, _, signature = (cookie or "").rpartition(".")
        parts = body.split(".")
        if len(parts) != 3 or not all(part.isascii() and part.isalnum() for part in parts):  # noqa: PLR2004 - key, time, name
            return None
        which, made, name = parts
        if not (which.isdecimal() and made.isdecimal() and len(which) < 4 and len(made) < 12):  # noqa: PLR2004 - plausible sizes
            return None
        if int(which) >= len(self._secrets) or not signature.isascii():
            return None
        if not hmac.compare_digest(signature, self._sign(int(which), body)):
            return None
        age = self._clock.now() - datetime.fromtimestamp(int(made), UTC)
        if age > KEPT_FOR:
            return None
        return Session(name=name, token=self._sign(int(which), f"form {body}"))

    def _sign(self, which: int, text: str) -> str:
        return hmac.new(self._secrets[which], text.encode(), sha256).hexdigest()


async def make_once(cache: Cache, good_for: timedelta = ONCE_FOR) -> str:
    """Make a word that logs somebody in once, soon."""
    word = secrets.token_hex(24)
    await cache.set(f"{_ONCE}{word}", b"1", good_for)
    return word


async def use_once(cache: Cache, word: str) -> bool:
    """Take a word back; say whether it was good, which it is once."""
    if not (word.isascii() and word.isalnum()) or await cache.get(f"{_ONCE}{word}") is None:
        return False
    return await cache.drop(f"{_ONCE}{word}") == 1
