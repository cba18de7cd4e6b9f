"""The page of settings: each with its value, its default, what has set it, and what it does."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pydantic import SecretStr
from pydantic_settings import BaseSettings
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError
from starlette.responses import Response

from mimawari.log import STRUCK, strike
from mimawari.settings import DEFAULTS, Settings, names_of
from mimawari.settings.books import BooksSettings
from mimawari.settings.hot import HotSettings
from mimawari.settings.mail import MailSettings
from mimawari.settings.prices import PricesSettings
from mimawari.settings.rentals import RentalsSettings
from mimawari.settings.streams import StreamsSettings
from mimawari.text import format_duration
from mimawari.web.visit import Visit
from mimawari.web.words import Words
from mimawari.web.written import hide_secrets

WHOLE = "whole"
GROUPS: Mapping[str, type[BaseSettings]] = {
    "hot": HotSettings,
    "prices": PricesSettings,
    "rentals": RentalsSettings,
    "books": BooksSettings,
    "streams": StreamsSettings,
    "mail": MailSettings,
}
SECRET = frozenset({"api_keys", "proxies"})
"""Secrets whose kind does not tell that they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A setting as people see it."""

    name: str
    variables: tuple[str, ...]
    value: str
    default: str
    source: str
    """The variable that has set it; empty where nothing has."""
    is_default: bool
    said: str


async def show(visit: Visit) -> Response:
    """Show every setting, by the watch that goes by it."""
    settings = visit.system.settings
    groups: dict[str, list[Shown]] = {WHOLE: [], **{name: [] for name in GROUPS}}
    for field in Settings.model_fields:
        groups[_group_of(field)].append(make_shown(field, settings, visit.words))
    return visit.page("settings.html", groups=groups)


def _group_of(field: str) -> str:
    found = (name for name, kind in GROUPS.items() if field in kind.model_fields)
    return next(found, WHOLE)


def make_shown(field: str, settings: Settings, words: Words) -> Shown:
    """Tell all of one setting, without what is secret."""
    said = words.maybe("setting", field)
    value, default = getattr(settings, field), getattr(DEFAULTS, field)
    return Shown(
        name=field,
        variables=names_of(field),
        value=write_value(field, value, words),
        default=write_value(field, default, words),
        source=_source_of(field, settings),
        is_default=value == default,
        said=str(Settings.model_fields[field].description) if said == field else said,
    )


def _source_of(field: str, settings: Settings) -> str:
    if field not in settings.model_fields_set:
        return ""
    given = {name.upper() for name in os.environ}
    return next((name for name in names_of(field) if name in given), "")


def write_value(field: str, value: Any, words: Words) -> str:
    """Write a value as an operator would, with secrets struck out."""
    if isinstance(value, SecretStr):
        return STRUCK if value.get_secret_value() else ""
    if field in SECRET:
        return ", ".join(STRUCK for _ in value)
    if field == "database_url":
        return _write_database(value)
    return _write_plain(value, words)


def _write_plain(value: Any, words: Words) -> str:
    match value:
        case None:
            return ""
        case bool():
            return words("settings.yes" if value else "settings.no")
        case timedelta():
            return format_duration(value)
        case tuple():
            return ", ".join(_write_word(str(part)) for part in value)
        case _:
            return str(strike(str(value)))


def _write_word(word: str) -> str:
    is_plain = word.startswith(("http://", "https://")) and "@" not in word
    return word if is_plain else hide_secrets(word)


def _write_database(url: str) -> str:
    if not url:
        return ""
    try:
        parts = make_url(url)
    except (ArgumentError, ValueError):
        return STRUCK
    # Drivers take a password among the parameters too.
    return parts.set(query=dict.fromkeys(parts.query, STRUCK)).render_as_string(hide_password=True)


PAGES = (("/settings", show, ("GET",)),)
