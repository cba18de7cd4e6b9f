"""JSON as it must be: no NaN, no duplicate keys, no depth or numbers that break what reads it."""

import json
import math
import re
from typing import Any, NoReturn

from mimawari.errors import BadInput

DEEPEST = 32
LARGEST = 2**53 - 1
_LONE = re.compile("[\ud800-\udfff\x00]")


def check_json(body: bytes) -> Any:
    """Return what a body says, or refuse it with a sentence that says why."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _bad("the body is not UTF-8") from error
    _check_depth(text)
    try:
        value = json.loads(
            text,
            parse_constant=_constant,
            parse_int=_integer,
            parse_float=_fraction,
            object_pairs_hook=_object,
        )
    except json.JSONDecodeError as error:
        raise _bad(f"the body is not JSON: {error.msg} at character {error.pos}") from error
    _check_text(value)
    return value


def _bad(message: str) -> BadInput:
    return BadInput(message, code="bad_json")


def _check_depth(text: str) -> None:
    depth = 0
    in_string = escaped = False
    for character in text:
        if in_string:
            in_string = escaped or character != '"'
            escaped = not escaped and character == "\\"
        elif character == '"':
            in_string = True
        elif character in "[{":
            depth += 1
            if depth > DEEPEST:
                raise _bad(f"the body is nested more than {DEEPEST} deep")
        elif character in "]}":
            depth -= 1


def _constant(name: str) -> NoReturn:
    raise _bad(f"{name} is not a JSON number")


def _integer(digits: str) -> int:
    # Long strings of digits are refused before they are turned into a number.
    if len(digits) > len(str(LARGEST)) + 1 or abs(int(digits)) > LARGEST:
        raise _bad(f"whole numbers may be at most {LARGEST}")
    return int(digits)


def _fraction(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise _bad("a number is larger than any computer counts")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _bad("an object names the same key twice")
    return found


def _check_text(value: Any) -> None:
    if isinstance(value, str):
        if _LONE.search(value):
            raise _bad("text may not hold NUL or half a surrogate pair")
    elif isinstance(value, dict):
        for key, inner in value.items():
            _check_text(key)
            _check_text(inner)
    elif isinstance(value, list):
        for inner in value:
            _check_text(inner)
