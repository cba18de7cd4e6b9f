"""What is taken out of responses because it differs between machines or readings, and why.

Each rule names the responses it is for. A rule hides changes, so there are as few as possible.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from platformdirs import user_data_path

USUAL_FOLDER = str(user_data_path("mimawari", appauthor=False))
"""The program's data folder by default, which depends on the home of the user."""
Normal = Callable[[str, dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Rule:
    """Replace every value at some paths of the responses to some requests."""

    files: str
    request: str
    path: str
    put: str
    why: str


RULES: Sequence[Rule] = (
    Rule(
        "commands-.*", "doctor.*", r"json\[\]\.(ok|found|advice)", "…",
        "depends on this machine: versions of Python and SQLite, folders, free space",
    ),
    Rule(
        "commands-.*", "db info.*", r"json\.(version|needed)", "…",
        "every migration changes it",
    ),
    Rule("api-.*", "/openapi.json", r"json\.info\.version", "…", "every release changes it"),
)  # fmt: skip


def make_normal(folder: Path, database: str) -> Normal:
    """Make what takes out of the responses of a file whatever is no response to its requests."""
    # Where this reading has its files and its database.
    places = _list_places(folder, database)

    def normal(name: str, responses: dict[str, Any]) -> dict[str, Any]:
        return {
            text: _replace(name, text, response, places) for text, response in responses.items()
        }

    return normal


def _list_places(folder: Path, database: str) -> list[tuple[str, str]]:
    scheme, _, rest = database.partition("://")
    account, _, place = rest.rpartition("@")
    user = account.partition(":")[0]
    drivers = {"sqlite": ("aiosqlite",), "postgresql": ("asyncpg",), "mariadb": ("asyncmy",)}
    schemes = [scheme, *(f"{scheme}+{driver}" for driver in drivers[scheme])]
    accounts = [f"{user}:***@", f"{user}@", f"{user}:secret@"] if user else [""]
    found = [(f"{one}://{who}{place}", "<database>") for one in schemes for who in accounts]
    return [*found, (str(folder), "<folder>"), (USUAL_FOLDER, "<usual folder>")]


def _replace(
    name: str, text: str, response: dict[str, Any], places: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    rules = [
        rule
        for rule in RULES
        if re.fullmatch(rule.files, name) and re.fullmatch(rule.request, text)
    ]
    made: dict[str, Any] = _walk(response, "", rules, places)
    return made


def _walk(value: Any, path: str, rules: Sequence[Rule], places: Sequence[tuple[str, str]]) -> Any:
    if isinstance(value, dict):
        return {
            name: _walk(one, f"{path}.{name}" if path else name, rules, places)
            for name, one in value.items()
        }
    if isinstance(value, list):
        return [_walk(one, f"{path}[]", rules, places) for one in value]
    for rule in rules:
        if re.fullmatch(rule.path, path):
            return rule.put
    if isinstance(value, str):
        for place, put in places:
            value = value.replace(place, put)
    return value
