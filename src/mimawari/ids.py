"""Names for new things, in the order of their making."""

from hashlib import sha256

import uuid_utils

_VARIANT = 0x8000
_VERSION = 0x7000


def new_id() -> str:
    """Return a name that no other process gives, sorting after the ones given before."""
    return str(uuid_utils.uuid7())


def named_id(at_ms: int, *words: str) -> str:
    """Return the one name that these words have, sorting among the others by a time."""
    digest = sha256("\0".join(words).encode()).hexdigest()
    time = f"{min(max(at_ms, 0), 2**48 - 1):012x}"
    third = _VERSION | int(digest[:3], 16)
    fourth = _VARIANT | (int(digest[3:7], 16) & 0x3FFF)
    return f"{time[:8]}-{time[8:]}-{third:04x}-{fourth:04x}-{digest[7:19]}"
