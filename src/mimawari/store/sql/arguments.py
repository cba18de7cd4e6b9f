"""A job's arguments and an event's body as they are stored."""

import json
from collections.abc import Mapping
from typing import Any


def dump(value: Mapping[str, Any]) -> str:
    """Write them as one line of JSON."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def load(stored: str) -> tuple[Mapping[str, Any], str | None]:
    """Read them, or say why they cannot be read."""
    try:
        loaded = json.loads(stored)
    except ValueError as error:
        return {}, f"undecodable arguments: {error}"
    if not isinstance(loaded, dict):
        return {}, "undecodable arguments: not an object"
    return loaded, None
