"""A job's arguments and an event's body as they are stored."""

import json
from collections.abc import Mapping
from typing import Any

# Made once: making an encoder costs more than most arguments take to encode.
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def dump(value: Mapping[str, Any]) -> str:
    """Write them as one line of JSON."""
    return _encode(value) if value else "{}"


def load(stored: str) -> tuple[Mapping[str, Any], str | None]:
    """Read them, or say why they cannot be read."""
    if stored == "{}":
        return {}, None
    try:
        loaded = json.loads(stored)
    except (ValueError, RecursionError) as error:
        return {}, f"undecodable arguments: {error}"
    if not isinstance(loaded, dict):
        return {}, "undecodable arguments: not an object"
    return loaded, None
