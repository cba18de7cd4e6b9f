"""What operators do: open the system, look at it, bring it up to date, copy it away."""

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import inspect, select
from sqlalchemy.exc import ArgumentError

from mimawari.app.copying import list_tables
from mimawari.app.process.steady_clock import find_mark
from mimawari.errors import BadInput, NotFound
from mimawari.installation import install_advice
from mimawari.kernel.clock import RealClock, ScaledClock
from mimawari.kernel.ports import Clock, Reporter
from mimawari.kernel.reporting import LOG
from mimawari.kernel.watch import Watch, Watches
from mimawari.settings import Settings
from mimawari.store.sql import SqlStore
from mimawari.store.sql.collation import compare_by_code_points
from mimawari.store.sql.contract import require
from mimawari.store.sql.engine import Session
from mimawari.store.sql.migrate import find_version, upgrade
from mimawari.store.sql.tables import meta

if TYPE_CHECKING:
    from mimawari.store.redis.link import RedisLink


@dataclass(frozen=True, slots=True)
class System:
    """Everything a process needs, opened."""

    settings: Settings
    clock: Clock
    store: SqlStore
    watches: Watches
    reporter: Reporter = LOG


def open_store(settings: Settings, clock: Clock | None = None) -> SqlStore:
    """Reach for the database; nothing is read yet."""
    if not settings.database_url:
        settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        if settings.redis_url:
            return _open_redis(settings, clock or RealClock())
        return SqlStore(settings.database, clock or RealClock())
    except (ArgumentError, ValueError) as error:
        # The URL may hold a password, so it is not repeated.
        raise BadInput(
            "MIMAWARI_DATABASE_URL is no URL of a database; write it like"
            " postgresql://user:password@host/name, mariadb://… or sqlite:////folder/file.db",
            code="bad_database_url",
        ) from error
    except ImportError as error:
        extra = "mariadb" if error.name == "asyncmy" else "postgres"
        raise BadInput(
            f"the driver of this database is missing ({error.name}); {install_advice(extra)}",
            code="driver_missing",
        ) from error


def _open_redis(settings: Settings, clock: Clock) -> SqlStore:
    link = open_link(settings)
    from mimawari.store.redis import RedisStore  # noqa: PLC0415 - an extra

    store = RedisStore(settings.database, link, clock)
    store.foreign.lease_for = settings.janitor_timeout
    return store


def open_link(settings: Settings) -> "RedisLink":
    """Reach for the Redis that is set; nothing is asked yet."""
    try:
        from mimawari.store.redis.link import RedisLink  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise BadInput(
            f"MIMAWARI_REDIS_URL is set, but its client is missing; {install_advice('redis')}",
            code="driver_missing",
        ) from error
    try:
        return RedisLink(settings.redis_url)
    except ValueError as error:
        # The URL may hold a password, so it is not repeated.
        raise BadInput(
            "MIMAWARI_REDIS_URL is no URL of a Redis; write it like redis://:password@host:6379/0,"
            " rediss://… or unix:///folder/socket",
            code="bad_redis_url",
        ) from error


def place(store: SqlStore) -> str:
    """Tell where a store's database is, without its password."""
    return store.database.url.render_as_string(hide_password=True)


@asynccontextmanager
async def opened(
    settings: Settings, watches: Iterable[Watch], reporter: Reporter = LOG
) -> AsyncIterator[System]:
    """Open the system with its tables up to date, and close it at the end."""
    store = open_store(settings)
    try:
        await upgrade_tables(settings, store)
        clock = await _clock(settings, store)
        store.database.clock = clock
        system = System(settings, clock, store, Watches(watches, settings), reporter)
        await _make_tables(system)
        yield system
    finally:
        await store.close()


async def _clock(settings: Settings, store: SqlStore) -> Clock:
    """Return the clock; all processes of a scaled store count from one anchor, kept in it."""
    since = await find_mark(store)
    if settings.time_scale == 1.0:
        return RealClock(since)
    if settings.time_anchor is not None:
        return ScaledClock(settings.time_scale, settings.time_anchor, since)
    name = f"clock x{settings.time_scale:g}"
    now = RealClock(since).now()

    def work(session: Session) -> str:
        new = {"name": name, "value": now.isoformat()}
        session.execute(store.database.dialect.upsert(meta, new, {"name": name}))
        query = select(meta.c.value).where(meta.c.name == name)
        value: str = session.execute(query).scalar_one()
        return value

    anchor = datetime.fromisoformat(await store.database.run(work))
    return ScaledClock(settings.time_scale, anchor, since)


async def _make_tables(system: System) -> None:
    """Make the tables of watches that are not in the migrations yet."""
    brought = [watch.tables for watch in system.watches.all if watch.tables is not None]

    def work(session: Session) -> None:
        there = {*inspect(session.connection).get_table_names()}
        for tables in brought:
            if missing := [one for one in tables.sorted_tables if one.name not in there]:
                tables.create_all(session.connection, missing)
                compare_by_code_points(session.connection, [one.name for one in missing])

    await system.store.database.run(work)


async def upgrade_tables(settings: Settings, store: SqlStore) -> Path | None:
    """Bring the tables up to date, with a copy of a SQLite file before; return the copy."""
    await require(store.database, [table.name for table in list_tables()])
    version = await find_version(store.database)
    if version.is_current:
        return None
    copy = None
    if version.current is not None and _is_sqlite(store):
        copy = await backup(settings, store, f"before-{version.needed}")
    await upgrade(store.database)
    return copy


async def backup(settings: Settings, store: SqlStore, name: str) -> Path:
    """Copy a SQLite database to a file of its own while it is in use."""
    source = store.database.url.database
    if not _is_sqlite(store) or source is None:
        raise BadInput(
            "only SQLite is copied by mimawari; use pg_dump or mariadb-dump for this database",
            code="not_sqlite",
        )
    target = settings.data / "backups" / f"mimawari-{name}.db"
    await asyncio.to_thread(_copy, Path(source), target)
    return target


def _is_sqlite(store: SqlStore) -> bool:
    return store.database.url.get_backend_name() == "sqlite"


def _copy(source: Path, target: Path) -> None:
    if not source.exists():
        raise NotFound(f"there is no database at {source} yet; `mimawari db upgrade` makes it")
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    free = shutil.disk_usage(target.parent).free
    if free < source.stat().st_size * 1.1:
        raise BadInput(
            f"{target.parent} has {free} bytes free, too few for a copy", code="disk_full"
        )
    unfinished = target.with_suffix(".unfinished")
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(unfinished)) as new:
        old.backup(new)
    unfinished.replace(target)
