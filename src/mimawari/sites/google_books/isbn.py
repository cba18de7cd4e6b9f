"""ISBNs, of which only those with the right check digit are any."""

import re

_ISBN10 = re.compile(r"[0-9]{9}[0-9X]")
_ISBN13 = re.compile(r"97[89][0-9]{10}")
_BETWEEN = re.compile(r"[\s-]")


def parse_isbn13(text: str) -> str | None:
    """Return thirteen digits from an ISBN of either length; None if it is none."""
    compact = _BETWEEN.sub("", text).upper()
    if _ISBN13.fullmatch(compact):
        return compact if compact[12] == _check_digit(compact[:12]) else None
    if _ISBN10.fullmatch(compact) and _is_right10(compact):
        digits = f"978{compact[:9]}"
        return digits + _check_digit(digits)
    return None


def _is_right10(isbn: str) -> bool:
    values = [10 if sign == "X" else int(sign) for sign in isbn]
    return sum(value * (10 - place) for place, value in enumerate(values)) % 11 == 0


def _check_digit(digits: str) -> str:
    total = sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(digits))
    return str(-total % 10)
