"""How the site writes amounts, floors, ages and places, in its context and on its pages."""

import re
from collections.abc import Iterable
from decimal import Decimal
from html import unescape
from typing import Any
from unicodedata import normalize

from mimawari.errors import BadInput
from mimawari.sites.yahoo_realestate.models import Coordinates
from mimawari.sites.yen import (
    Access,
    parse_area,
    parse_fee,
    parse_months_or_yen,
    parse_walk_minutes,
    parse_yen,
)
from mimawari.text import one_line

MOST_STATIONS = 10
MOST_FLOOR = 200
MOST_YEARS = 500
MOST_CHARACTERS = 200

# The context names layouts by number from one, the page by name.
_LAYOUTS = (
    *("1R", "1K", "1DK", "1LDK", "2K", "2DK", "2LDK"),
    *("3K", "3DK", "3LDK", "4K", "4DK", "4LDK", "5K以上"),
)
_TAG = re.compile(r"<[^<>]*>")
_NOTE = re.compile(r"\s*※.*")
_LAYOUT = re.compile(
    r"(?P<layout>[0-9]{1,2}(?:R|S?L?D?K)(?:\+[0-9]?S)?(?:以上)?|ワンルーム)(?![A-Z0-9])"
)
_FLOOR = re.compile(
    r"(?P<below>地下|B|-)?(?P<floor>[0-9]{1,3})(?:[-~〜][0-9]{1,3})?(?:階(?:部分)?)?"
)
_YEARS = re.compile(r"(?:.*築\s*)?(?P<years>[0-9]{1,3})(?:年(?P<under>未満)?.*)?")
_BUILT_ON = re.compile(r"(?P<year>[12][0-9]{3})[-年](?P<month>0?[1-9]|1[0-2])(?:月|\Z)")
_COORDINATES = re.compile(r"(-?[0-9]{1,2}(?:\.[0-9]{1,20})?),\s*(-?[0-9]{1,3}(?:\.[0-9]{1,20})?)")
_WAY = re.compile(r"[^\s/、][^、]*?歩\s{0,3}約?\s{0,3}[0-9]{1,3}\s{0,3}分(?:以内)?")
_DIGIT = re.compile(r"[0-9]")


def read_text(value: Any) -> str | None:
    """Return a name on one line; None if there is none."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise BadInput(f"{type(value).__name__} in place of a text")
    return one_line(value, most=MOST_CHARACTERS) or None


def read_label(value: Any) -> str | None:
    """Return a label without the markup and the footnotes that the site puts into it."""
    if not isinstance(value, str):
        return read_text(value)
    plain = unescape(_TAG.sub("", value[: 10 * MOST_CHARACTERS]))
    return read_text(_NOTE.sub("", one_line(plain)))


def read_rent(value: Any) -> int | None:
    """Return a rent, which must be there; None if the site wants to be asked for it."""
    label = read_label(value)
    if label is None:
        raise BadInput("no rent")
    rent_yen = parse_yen(label)
    if rent_yen == 0:
        raise BadInput("a rent of 0 yen")
    return rent_yen


def read_fee(value: Any) -> int | None:
    """Return a fee; 0 if the site says that there is none, None if it says nothing."""
    label = read_label(value)
    return None if label is None else parse_fee(label)


def read_deposit(value: Any, rent_yen: int | None) -> int | None:
    """Return a deposit or key money as a fee, in yen where the site counts it in rents."""
    label = read_label(value)
    return None if label is None else parse_months_or_yen(label, rent_yen)


def read_area(value: Any) -> Decimal | None:
    """Return an area in square metres."""
    label = read_label(value)
    return None if label is None else parse_area(label)


def read_layout(value: Any) -> str | None:
    """Return a layout such as 1K, from its number or its name."""
    if isinstance(value, int) and not isinstance(value, bool):
        if not 1 <= value <= len(_LAYOUTS):
            raise BadInput(f"layout number {value}")
        return _LAYOUTS[value - 1]
    name = _LAYOUT.match(_narrow(value) or "")
    return name["layout"].replace("ワンルーム", "1R") if name else None


def read_floor(value: Any) -> int | None:
    """Return the floor, the lowest of several, those below ground negative."""
    text = _numbered(value)
    if text is None:
        return None
    found = _FLOOR.fullmatch(text)
    if found is None or int(found["floor"]) > MOST_FLOOR:
        raise BadInput(f"floor {text!r}")
    return -int(found["floor"]) if found["below"] else int(found["floor"])


def read_years(value: Any) -> int | None:
    """Return the age in whole years, 0 for a new building."""
    text = _numbered(value)
    if "新築" in (text or _narrow(value) or ""):
        return 0
    if text is None:
        return None
    found = _YEARS.fullmatch(text)
    if found is None or int(found["years"]) > MOST_YEARS:
        raise BadInput(f"age {text!r}")
    return int(found["years"]) - bool(found["under"])


def read_built_on(value: Any) -> str | None:
    """Return the month a building was built in, as YYYY-MM."""
    text = _numbered(value)
    found = _BUILT_ON.search(text) if text else None
    return f"{found['year']}-{int(found['month']):02}" if found else None


def read_stations(labels: Iterable[Any]) -> tuple[Access, ...]:
    """Return the ways to stations on foot or by bus; others, such as by car, are left out."""
    found: dict[Access, None] = {}
    for value in labels:
        for way in _WAY.findall(_narrow(read_label(value)) or ""):
            try:
                found[parse_walk_minutes(way)] = None
            except BadInput:
                continue
    return tuple(found)[:MOST_STATIONS]


def read_coordinates(value: Any) -> Coordinates | None:
    """Return where a building stands, from latitude and longitude in one text."""
    text = read_text(value)
    if text is None:
        return None
    found = _COORDINATES.fullmatch(text)
    place = Coordinates(float(found[1]), float(found[2])) if found else None
    if place is None or abs(place.latitude) > 90 or abs(place.longitude) > 180:  # noqa: PLR2004 - degrees
        raise BadInput(f"coordinates {text!r}")
    return place


def _narrow(value: Any) -> str | None:
    """Return a text with plain characters in place of wide ones."""
    text = read_text(value)
    return None if text is None else normalize("NFKC", text)


def _numbered(value: Any) -> str | None:
    """Return a number's text; None if it has no digit, as a dash has none."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else _narrow(value)
    return text if text and _DIGIT.search(text) else None
