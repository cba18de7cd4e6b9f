"""The doctor: checks what the system needs and says what to do where it is not there."""

import os
import shutil
import sqlite3
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from mimawari import show
from mimawari.app.keys import key_file
from mimawari.app.ops import open_store, place
from mimawari.app.reporting import open_outside
from mimawari.errors import BadInput, MimawariError
from mimawari.settings import FILE, Settings
from mimawari.store.sql.migrate import find_version
from mimawari.text import one_line

LEAST_FREE = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at."""

    name: str
    ok: bool
    found: str
    advice: str = ""


async def examine(settings: Settings) -> list[Check]:
    """Look at everything; changes nothing but makes the data folder."""
    checks = [_python(), _sqlite(), _errors(settings), _folder(settings)]
    if not checks[-1].ok:
        return checks
    return [*checks, _disk(settings), _keys(settings), await _database(settings)]


def _python() -> Check:
    ok = sys.version_info >= (3, 11)
    return Check("Python", ok, sys.version.split()[0], "" if ok else "install Python 3.11 or newer")


def _sqlite() -> Check:
    ok = sqlite3.sqlite_version_info >= (3, 38)
    advice = "" if ok else "install a Python built with SQLite 3.38 or newer"
    return Check("SQLite", ok, sqlite3.sqlite_version, advice)


def _errors(settings: Settings) -> Check:
    try:
        names = ["the log", *(each.name for each in open_outside(settings))]
    except BadInput as error:
        return Check("errors go to", ok=False, found="not everybody", advice=str(error))
    return Check("errors go to", ok=True, found=", ".join(names))


def _folder(settings: Settings) -> Check:
    try:
        settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        advice = "make the folder, or set MIMAWARI_DATA to another one"
        return Check(
            "data folder", ok=False, found=f"{settings.data}: {error.strerror}", advice=advice
        )
    ok = os.access(settings.data, os.W_OK)
    advice = "" if ok else "let this user write there, or set MIMAWARI_DATA"
    return Check("data folder", ok, str(settings.data), advice)


def _disk(settings: Settings) -> Check:
    free = shutil.disk_usage(settings.data).free
    advice = "" if free >= LEAST_FREE else "make room: less than 256 MiB is free"
    return Check("free disk", free >= LEAST_FREE, f"{free // 1024 // 1024} MiB", advice)


def _keys(settings: Settings) -> Check:
    if settings.api_keys:
        return Check("API keys", ok=True, found="from the environment")
    path = key_file(settings)
    found = str(path) if path.exists() else f"{path} (made by the first `mimawari serve`)"
    return Check("API keys", ok=True, found=found)


async def _database(settings: Settings) -> Check:
    if not settings.database_url and not (settings.data / FILE).exists():
        found = f"{settings.database} (made by the first `mimawari serve`)"
        return Check("database", ok=True, found=found)
    try:
        store = open_store(settings)
        try:
            version = await find_version(store.database)
        finally:
            await store.close()
    except MimawariError as error:
        advice = "check MIMAWARI_DATABASE_URL and that the server runs"
        return Check("database", ok=False, found=one_line(str(error), most=300), advice=advice)
    found = f"{place(store)}, version {version.current or 'none yet'}, needed {version.needed}"
    return Check("database", ok=True, found=found)


def show_checks(checks: Sequence[Check]) -> None:
    """Show every check, and the advice where one failed."""
    columns = {
        "": lambda check: "[green]ok[/]" if check.ok else "[red]no[/]",
        "check": lambda check: check.name,
        "found": lambda check: show.cell(check.found, most=300),
        "do": lambda check: check.advice,
    }
    show.table(checks, columns, empty="Nothing to check.")
