"""Text as it comes in, made safe once; durations as people write them."""

import re
from datetime import timedelta
from typing import Any

from mimawari.errors import BadInput

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)(ms|s|m|h|d)")
_REFUSED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
# Marks that turn the direction of writing would turn the rest of the line with them.
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_DIGITS = re.compile("-?[0-9]{1,40}")


def clean(text: str) -> str:
    """Return text that every database, terminal and log of ours can hold."""
    return _REFUSED.sub("\ufffd", text)


def one_line(text: str, *, most: int = 500) -> str:
    """Return the text on one line, cut to what a table or a log has room for."""
    line = " ".join(clean(text).split())
    return line if len(line) <= most else line[: most - 1] + "…"


def plain_line(text: str, *, most: int = 500) -> str:
    """Return the text on one line that runs from left to right, whatever it holds."""
    return _BIDI.sub("\ufffd", one_line(text, most=most))


def plain_digits(value: Any) -> Any:
    """Refuse text that only some readers take for a whole number: 1_0, +5, 5.0 or wide digits."""
    if isinstance(value, str) and not _DIGITS.fullmatch(value):
        raise ValueError("must be a whole number in plain digits")
    return value


def whole_number(value: Any) -> Any:
    """Take 60.0 for 60: JSON has one kind of number only."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def parse_duration(text: str) -> timedelta:
    """Read '90s', '5m', '1h30m' or '2d'."""
    compact = text.strip()
    parts = _DURATION.findall(compact)
    if not parts or "".join(number + unit for number, unit in parts) != compact:
        raise BadInput(f"{text!r} is no duration; write it like 90s, 5m, 1h30m or 2d")
    try:
        return timedelta(seconds=sum(float(number) * _UNITS[unit] for number, unit in parts))
    except OverflowError as error:
        raise BadInput(f"{one_line(text, most=40)!r} is too long a duration") from error


def parse_durations(text: str) -> tuple[timedelta, ...]:
    """Read a list like '5m 15m 1h 4h 12h'."""
    return tuple(parse_duration(word) for word in text.split())


def format_duration(span: timedelta) -> str:
    """Write a duration the way `parse_duration` reads it, to the second."""
    rest = round(span.total_seconds())
    if rest <= 0:
        return "0s"
    words = []
    for unit in ("d", "h", "m", "s"):
        count, rest = divmod(rest, int(_UNITS[unit]))
        if count:
            words.append(f"{count}{unit}")
    return "".join(words)
