"""JSON from outside, read within bounds."""

from typing import Any

MOST_DIGITS = 18


def _whole(digits: str) -> int | None:
    """Read a whole number; one that nothing here can be is as good as none."""
    return int(digits) if len(digits) <= MOST_DIGITS else None


BOUNDED: dict[str, Any] = {"parse_int": _whole, "parse_constant": lambda _: None}
"""How a decoder takes numbers that are none, or too long to be one: as nothing."""
