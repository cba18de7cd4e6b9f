"""The hash of a set of queries: the digits that its definition in JavaScript gives."""

import re
from collections.abc import Iterable
from hashlib import sha256

SHOWN = 16
"""So many digits are shown in logs."""
# What JavaScript takes for white space; Python's own idea of it is another one.
_SPACES = "\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_RUN = re.compile(f"[{_SPACES}]+")


def hash_queries(queries: Iterable[str]) -> str:
    """Return 64 digits that tell sets of queries apart, whatever their order and spacing."""
    normal = sorted((_RUN.sub(" ", query).strip(" ") for query in queries), key=_units)
    # A half of a pair that stands alone is written as the replacement character there.
    whole = "\n".join(normal).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return sha256(whole.encode()).hexdigest()


def _units(text: str) -> bytes:
    """Order text by its 16-bit units, as JavaScript does."""
    return text.encode("utf-16-be", "surrogatepass")


def short_hash(digits: str) -> str:
    """Return as much of a hash as is shown in logs."""
    return digits[:SHOWN]
