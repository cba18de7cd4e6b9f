"""Reads the JSON that the site embeds in its pages for its own scripts."""

import json
import re
from itertools import islice
from typing import Any

from mimawari.sites.reading import BOUNDED

MOST_TRIES = 3
MOST_KEYS = 100
MOST_TOKENS = 500_000

_START = re.compile(r"__SERVER_SIDE_CONTEXT__\s*=\s*\{")
_KEY = re.compile(r"[\s,]*(?:([A-Za-z_$][\w$]*)|\"([^\"\\]*)\"|'([^'\\]*)')\s*:\s*")
# A string without an end is a token, too, and none is tried twice: a page may mean to be slow.
_TOKEN = re.compile(
    r"\"(?:[^\"\\]|\\.)*+(?:\"|\\?\Z)|'(?:[^'\\]|\\.)*+(?:'|\\?\Z)|`(?:[^`\\]|\\.)*+(?:`|\\?\Z)"
    r"|[{}\[\](),]",
    re.DOTALL,
)
_DEEPER, _HIGHER = frozenset("{[("), frozenset("}])")
_DECODER = json.JSONDecoder(**BOUNDED)


def find_context(text: str) -> dict[str, Any] | None:
    """Return the `page` object of the embedded context; None if there is none that can be read."""
    for start in islice(_START.finditer(text), MOST_TRIES):
        at = _find_page(text, start.end())
        page = _decode(text, at) if at is not None else None
        if page is not None:
            return page
    return None


def _find_page(text: str, at: int) -> int | None:
    """Find where the value of `page` begins, among the outer keys only."""
    for _ in range(MOST_KEYS):
        key = _KEY.match(text, at)
        if key is None:
            return None
        if "page" in key.groups():
            return key.end()
        end = _end_of_value(text, key.end())
        if end is None:
            return None
        at = end
    return None


def _end_of_value(text: str, at: int) -> int | None:
    """Find the comma after a value of JavaScript, whatever its strings and brackets hold."""
    depth = 0
    for token in islice(_TOKEN.finditer(text, at), MOST_TOKENS):
        sign = token[0]
        if sign in _DEEPER:
            depth += 1
        elif sign in _HIGHER:
            depth -= 1
        elif sign == "," and depth == 0:
            return token.end()
        if depth < 0:
            return None
    return None


def _decode(text: str, at: int) -> dict[str, Any] | None:
    try:
        page, _ = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None
    return page if isinstance(page, dict) else None
