"""The doctor: checks what the system needs and says what to do where it is not there."""

import os
import shutil
import sqlite3
import sys

from mimawari.app.copying import list_tables
from mimawari.app.http.keys import find_short, key_file, load_keys
from mimawari.app.http.tls import check_tls
from mimawari.app.ops import open_link, open_store, place
from mimawari.app.reporting.reporters import open_outside
from mimawari.edges.checks import Check
from mimawari.errors import BadInput, MimawariError
from mimawari.installation import install_advice
from mimawari.kernel.clock import RealClock
from mimawari.settings import FILE, Settings
from mimawari.store.sql.contract import find_breaches
from mimawari.store.sql.migrate import find_version
from mimawari.text import one_line

LEAST_FREE = 256 * 1024 * 1024


async def examine(settings: Settings) -> list[Check]:
    """Look at everything; make the data folder, and leave nothing else behind."""
    checks = [_python(), _sqlite(), _errors(settings), _streams(settings), _folder(settings)]
    if not checks[-1].ok:
        return checks
    tls = check_tls(settings, RealClock().now())
    databases = await _database(settings)
    return [*checks, _disk(settings), _keys(settings), tls, *databases, await _redis(settings)]


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


def _streams(settings: Settings) -> Check:
    """Look for who says whether a stream is live, which only those need who watch some."""
    if settings.streams_resolver_url:
        return Check("live streams", ok=True, found=f"by {settings.streams_resolver_url}")
    try:
        from yt_dlp.version import __version__ as ytdlp  # noqa: PLC0415 - an extra, and a heavy one
    except ImportError:
        advice = f"to watch some: {install_advice('youtube')}"
        return Check("live streams", ok=True, found="nobody resolves videos", advice=advice)
    signs = "" if settings.webhook_key.get_secret_value() else "; set WEBHOOK_SIGNING_KEY"
    return Check("live streams", ok=True, found=f"by yt-dlp {ytdlp}{signs}")


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
    path = key_file(settings)
    found = "from the environment" if settings.api_keys else str(path)
    if not settings.api_keys and not path.exists():
        return Check("API keys", ok=True, found=f"{path} (made by the first `mimawari serve`)")
    try:
        short = find_short(settings, load_keys(settings))
    except BadInput as error:
        return Check("API keys", ok=False, found=found, advice=str(error))
    return Check("API keys", ok=True, found=found, advice="; ".join(short))


async def _database(settings: Settings) -> list[Check]:
    if not settings.database_url and not (settings.data / FILE).exists():
        found = f"{settings.database} (made by the first `mimawari serve`)"
        return [Check("database", ok=True, found=found)]
    try:
        store = open_store(settings)
        try:
            names = [table.name for table in list_tables()]
            if breaches := await find_breaches(store.database, names):
                return [
                    Check("database", ok=False, found=b.found, advice=b.advice) for b in breaches
                ]
            found_version = await find_version(store.database)
        finally:
            await store.close()
    except MimawariError as error:
        advice = "check MIMAWARI_DATABASE_URL and that the server runs"
        return [Check("database", ok=False, found=one_line(str(error), most=300), advice=advice)]
    current = found_version.current or "none yet"
    found = f"{place(store)}, version {current}, needed {found_version.needed}"
    return [Check("database", ok=True, found=found)]


async def _redis(settings: Settings) -> Check:
    if not settings.redis_url:
        return Check("Redis", ok=True, found="not used")
    try:
        link = open_link(settings)
        try:
            server = await link.find_server()
        finally:
            await link.close()
    except MimawariError as error:
        advice = "check MIMAWARI_REDIS_URL and that the server runs"
        return Check("Redis", ok=False, found=one_line(str(error), most=300), advice=advice)
    found = f"version {server.version}, when full: {server.drops or 'unbounded'}"
    return Check("Redis", not server.advice, found, server.advice)
