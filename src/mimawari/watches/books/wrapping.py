"""Text for readers: made harmless, cut at a good place, and wrapped by the columns it takes."""

import re
import unicodedata
from html import unescape

from mimawari.text import clean

COLUMNS = 72

_OPENING = frozenset({"Ps", "Pi"})
# Marks behind which a line may end, but before which it may not, and so with small kana.
_CLOSING = frozenset({"Pe", "Pf", "Po", "Lm"})
_SMALL = frozenset("ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮヵヶ")
# Marks that turn the direction of writing would turn what follows with them.
_TURNING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_MARKUP = re.compile(
    r"</?(?:a|b|br|div|em|i|li|ol|p|span|strong|u|ul)\b[^<>]{0,200}>", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"[。\uff01\uff1f][」』\uff09]*|[.!?][)\"'\u201d\u2019]*(?= )")
_PAUSE = re.compile(r"、|(?= )")
_JOINER = "\u200d"


def one_run(text: str) -> str:
    """Return text on one line, without the marks that would turn what stands beside it."""
    return " ".join(_TURNING.sub("", clean(text)).split())


def strip_markup(text: str) -> str:
    """Return the words of a text with simple markup; anything else in brackets is left as it is."""
    return one_run(unescape(_MARKUP.sub(" ", text)))


def cut(text: str, most: int) -> str:
    """Return at most so many characters: to the end of a sentence, else of a word, and an ellipsis.

    What is cut fills at least three fifths of its room, however far a good place is.
    """
    if len(text) <= most:
        return text
    least = most * 3 // 5
    if sentences := _last_end(_SENTENCE_END, text[: most - 1], least):
        head = text[:sentences]
        return f"{head}\u00a0…" if head[-1].isascii() else f"{head}…"
    end = _last_end(_PAUSE, text[: most - 1], least) or most - 1
    while end > least and _is_joined(text[end - 1], text[end]):
        end -= 1
    # Before an ellipsis no comma is needed; only one goes, lest a row of them takes all the room.
    return f"{text[: end - 1] if text[end - 1] in ' ,;:、' else text[:end]}…"


def _last_end(place: re.Pattern[str], text: str, least: int) -> int | None:
    ends = [found.end() for found in place.finditer(text)]
    return ends[-1] if ends and ends[-1] >= least else None


def wrap(text: str, columns: int = COLUMNS) -> list[str]:
    """Break a run of text into lines, where its language allows; wide characters take two."""
    lines, line, gap = [], "", ""
    for unit in _units(text):
        if unit == " ":
            gap = " " if line else ""
        elif not line or width(line + gap + unit) <= columns:
            line, gap = line + gap + unit, ""
        else:
            lines.append(line)
            line, gap = unit, ""
        while width(line) > columns:
            fit = _fitting(line, columns)
            lines.append(line[:fit])
            line = line[fit:]
    return [*lines, line] if line else lines


def width(text: str) -> int:
    """Count the columns that text takes on a terminal."""
    return sum(map(_width, text))


def _width(char: str) -> int:
    if unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


def _units(text: str) -> list[str]:
    """Split text into spaces and what no line end may part."""
    units: list[str] = []
    for char in text:
        if units and units[-1] != " " and char != " " and _sticks(units[-1][-1], char):
            units[-1] += char
        else:
            units.append(char)
    return units


def _sticks(before: str, char: str) -> bool:
    return (
        _is_joined(before, char)
        or char in _SMALL
        or unicodedata.category(char) in _CLOSING
        or unicodedata.category(before) in _OPENING
        or (_width(before) == 1 and _width(char) == 1)
    )


def _is_joined(before: str, char: str) -> bool:
    return _width(char) == 0 or before == _JOINER


def _fitting(line: str, columns: int) -> int:
    """Tell how many characters of a unit that is too long stand on a line."""
    fit = 1
    while fit < len(line) and width(line[: fit + 1]) <= columns:
        fit += 1
    return fit
