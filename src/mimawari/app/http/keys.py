"""API keys: from the environment or a file that the first start makes."""

import hashlib
import hmac
import os
import secrets
import tempfile
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

from mimawari.errors import BadInput
from mimawari.settings import Settings

FILE = "api-keys"
LEAST = 20
"""The least length of a key that other machines can try."""


def key_file(settings: Settings) -> Path:
    """Tell where the key file is."""
    return settings.data / FILE


def load_keys(settings: Settings) -> tuple[bytes, ...]:
    """Read the keys; the first start without any makes one. Refuses an empty key."""
    if settings.api_keys:
        return tuple(key.encode(errors="surrogateescape") for key in settings.api_keys)
    path = key_file(settings)
    if not path.exists():
        _make(path)
    lines = path.read_bytes().splitlines()
    keys = tuple(line.strip() for line in lines if not line.startswith(b"#"))
    if not keys or not all(keys):
        raise BadInput(
            f"{path} holds an empty key; write one key a line, or delete the file"
            " and start again to have one made",
            code="empty_api_key",
        )
    return keys


def _make(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Readable by its owner alone from its first moment on, and whole before it has its name;
    # another process may be faster.
    file, unfinished = tempfile.mkstemp(prefix=f"{FILE}-", dir=path.parent)
    with os.fdopen(file, "w", encoding="utf-8") as stream:
        stream.write(f"{secrets.token_urlsafe(32)}\n")
    try:
        with suppress(FileExistsError):
            os.link(unfinished, path)
    finally:
        Path(unfinished).unlink()


def find_short(settings: Settings, keys: tuple[bytes, ...]) -> list[str]:
    """Describe each key that is short enough to be guessed, with what to do about it.

    Raise BadInput for one that other machines can try.
    """
    source = _source_of(settings)
    doors = [
        (f"key {number} of {source}", key, settings.host) for number, key in enumerate(keys, 1)
    ]
    if internal := settings.internal_key.get_secret_value():
        doors.append(("INTERNAL_API_KEY", internal.encode(), settings.internal_host))
    found = []
    for name, key, host in doors:
        length = len(key.decode("utf-8", "replace"))
        if length >= LEAST:
            continue
        advice = f"give it at least {LEAST}; `openssl rand -hex 24` makes one"
        if not _is_loopback(host):
            raise BadInput(
                f"{name} has {length} characters and is accepted on {host}, where others can"
                f" guess it: {advice}",
                code="short_key",
            )
        found.append(f"{name} has {length} characters: {advice}")
    return found


def _source_of(settings: Settings) -> str:
    return "MIMAWARI_API_KEYS (API_KEY)" if settings.api_keys else str(key_file(settings))


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def fingerprint(key: bytes) -> str:
    """Name a key in tables and logs, where the key itself is never written."""
    return hashlib.sha256(key).hexdigest()[:16]


def matches(given: bytes, keys: tuple[bytes, ...]) -> int | None:
    """Tell which key was given, taking the same time whichever it is."""
    # Digests, since comparing tells how long what is compared is.
    wanted = hashlib.sha256(given).digest()
    found = [hmac.compare_digest(wanted, hashlib.sha256(key).digest()) for key in keys]
    return found.index(True) if any(found) else None
