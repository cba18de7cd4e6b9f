"""The words of the pages, by language; a word that is missing is an error, never an empty place."""

import re
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import yaml

LANGUAGES = ("ja", "en")
USUAL = "ja"
NAMES = {"ja": "日本語", "en": "English"}
_FOLDER = Path(__file__).parent / "words"
_TAG = re.compile(r"\s*([A-Za-z]{1,8})[A-Za-z0-9-]*\s*(?:;\s*q\s*=\s*([0-9.]+))?\s*")


@cache
def load_words(language: str) -> Mapping[str, str]:
    """Load the words of a language from all its files, by their keys."""
    found: dict[str, str] = {}
    for file in sorted(_FOLDER.glob(f"{language}/*.yaml")):
        found |= yaml.safe_load(file.read_text("utf-8"))
    return found


class Words:
    """Says things in one language."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._words = load_words(language)

    def __call__(self, key: str, **facts: Any) -> str:
        """Say what goes by a key, with facts in their places."""
        return self._words[key].format(**facts)

    def __contains__(self, key: str) -> bool:
        """Say whether there is something that goes by a key."""
        return key in self._words

    def span(self, span: timedelta) -> str:
        """Write a duration with its two largest units."""
        seconds = round(span.total_seconds())
        for size, key in ((86400, "d"), (3600, "h"), (60, "m")):
            if seconds >= size:
                whole, rest = divmod(seconds, size)
                lower = {"d": (3600, "h"), "h": (60, "m"), "m": (1, "s")}[key]
                more = rest // lower[0]
                said = self(f"unit.{key}", n=whole)
                return (said + (self(f"unit.{lower[1]}", n=more) if more else "")).rstrip()
        return self("unit.s", n=seconds)

    def maybe(self, prefix: str, name: str) -> str:
        """Say what goes by a key that comes from outside, or that itself where nobody knows it."""
        return self._words.get(f"{prefix}.{name}", name)


def choose_language(cookie: str | None, accepted: str) -> str:
    """Choose a language: as the visitor has said, else as the browser prefers."""
    if cookie in LANGUAGES:
        return cookie
    wishes: list[tuple[float, str]] = []
    for place, part in enumerate(accepted[:500].split(",")):
        found = _TAG.fullmatch(part)
        if found and found[1].lower() in LANGUAGES:
            wishes.append((_weight(found[2]) - place / 1000, found[1].lower()))
    return max(wishes)[1] if wishes else USUAL


def _weight(text: str | None) -> float:
    try:
        return float(text) if text else 1.0
    except ValueError:
        return 0.0
