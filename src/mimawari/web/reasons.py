"""Sentences that the program writes itself, in the visitor's language; any other stays as it is."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml

from mimawari.errors import BadInput
from mimawari.text import parse_duration
from mimawari.web.words import Words

_FILE = Path(__file__).parent / "words" / "said.ja.yaml"
_HOLE = re.compile(r"\{(\w+)\}")
_SPAN = "span"
_NAMED = {"state": "state", "how": "notify_how"}
"""What stands in a reason as programs name it, and where its words are."""
_SHAPES = {_SPAN: r"(?:[0-9]+[dhms])+", "status": "[0-9]{3}", "count": "[0-9,]+"}


@cache
def load_said() -> Mapping[str, str]:
    """Load what is said in Japanese in place of each of our English sentences."""
    found: dict[str, str] = yaml.safe_load(_FILE.read_text("utf-8"))
    return found


@cache
def _patterns(language: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """List how sentences begin and go on, those that say most by themselves first."""
    said = load_said()
    templates = sorted(said, key=lambda one: -len(_HOLE.sub("", one)))
    # In English all is said as it is, but for durations and names, which programs write.
    if language == "en":
        held = {_SPAN, *_NAMED}
        said = {one: one for one in templates if held & set(_HOLE.findall(one))}
        templates = [one for one in templates if one in said]
    return tuple((_pattern(one), said[one]) for one in templates)


def _pattern(template: str) -> re.Pattern[str]:
    parts = _HOLE.split(template)
    for at in range(0, len(parts), 2):
        parts[at] = re.escape(parts[at])
    for at in range(1, len(parts), 2):
        parts[at] = f"(?P<{parts[at]}>{_SHAPES.get(parts[at], '.+?')})"
    return re.compile("".join(parts), re.DOTALL)


def say_reason(words: Words, reason: str | None) -> str:
    """Say why something waits, has ended or cannot be done."""
    given = reason or "–"
    known = words.maybe("reason", given)
    if known != given:
        return known
    for pattern, said in _patterns(words.language):
        if found := pattern.fullmatch(given):
            facts = {name: _fact(words, name, text) for name, text in found.groupdict().items()}
            return said.format(**facts)
    return given


def _fact(words: Words, name: str, text: str) -> str:
    if name == _SPAN:
        return words.span(parse_duration(text))
    if name in _NAMED:
        return words.maybe(_NAMED[name], text)
    # What a reason quotes may be another one of ours.
    return say_reason(words, text) if name == "reason" else text


def say_problem(words: Words, error: BadInput) -> str:
    """Say what is wrong with what somebody gave, sentence by sentence."""
    text = str(error)
    whole = say_reason(words, text)
    if whole != text:
        return whole
    return "; ".join(say_reason(words, part) for part in text.split("; "))
