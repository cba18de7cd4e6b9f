"""What forms send and addresses name, checked by the same rules as what programs send."""

import unicodedata
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from mimawari.edges.request_fields import LARGEST_ID
from mimawari.errors import BadInput, NotFound
from mimawari.text import one_line
from mimawari.web.reasons import say_reason
from mimawari.web.visit import Visit
from mimawari.web.words import Words

M = TypeVar("M", bound=BaseModel)
MOST_DIGITS = 12
_OURS = "Value error, "


def check(form: type[M], given: Mapping[str, Any], words: Words, fields: str) -> M:
    """Check what was given, or tell what is wrong by the names that the page has for its fields."""
    try:
        return form.model_validate(given)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        raise BadInput("; ".join(_sentence(one, words, fields) for one in problems)) from error


def _sentence(problem: ErrorDetails, words: Words, fields: str) -> str:
    names = [part for part in problem["loc"] if isinstance(part, str)]
    said = _say(problem, words)
    if not names:
        return said
    known = (name for name in reversed(names) if f"{fields}.{name}" in words)
    return f"{words.maybe(fields, next(known, names[-1]))}: {said}"


def _say(problem: ErrorDetails, words: Words) -> str:
    """Say one problem: in our own words, in those that are known for its kind, else as it came."""
    text = one_line(problem["msg"], most=200)
    if text.startswith(_OURS):
        return say_reason(words, text.removeprefix(_OURS))
    key = f"wrong.{problem['type']}"
    facts = {name: one_line(str(value), most=80) for name, value in problem.get("ctx", {}).items()}
    return words(key, **facts) if key in words else text


def fill_in(given: Mapping[str, str]) -> dict[str, str]:
    """Return what was filled in; what was left empty is as if it were not there."""
    return {name: text for name, text in given.items() if text}


def whole(label: str, text: str, words: Words) -> int:
    """Take what was typed for a whole number, or tell that it is none."""
    found = read_whole(text)
    if not isinstance(found, int):
        raise BadInput(f"{label}: {words('wrong.int_type')}")
    return found


def read_whole(text: str) -> int | str | None:
    """Read a whole number as people type it, wide or with commas; None of nothing at all."""
    plain = _plain(text).replace(",", "")
    is_number = plain.isascii() and plain.isdecimal() and len(plain) <= MOST_DIGITS
    # What is no number goes on as it is, to be refused with a sentence.
    return int(plain) if is_number else plain or None


def read_number(text: str) -> float | str:
    """Read a number as people type it; what is none stays as it is."""
    try:
        return float(_plain(text))
    except ValueError:
        return text


def read_words(text: str) -> list[str]:
    """Read words or phrases that stand on lines or between commas."""
    lines = text.replace("、", ",").replace("\n", ",").split(",")
    return [word for line in lines if (word := line.strip())]


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).strip()


def id_of(visit: Visit) -> int:
    """Return the number that is part of the address, or say that nothing goes by it."""
    number = int(visit.request.path_params["id"])
    if not 1 <= number <= LARGEST_ID:
        raise NotFound(visit.words("problem.nowhere"))
    return number
