"""Brings a database's tables to what this version needs, and never back."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from mimawari.errors import BadInput
from mimawari.store.sql.engine import Database, Session

WAIT_SECONDS = 0.05
_one_at_a_time = threading.Lock()
MIGRATIONS = Path(__file__).parent.parent.parent / "migrations"


@dataclass(frozen=True, slots=True)
class Version:
    """Which step a database is at, and which this program needs."""

    current: str | None
    needed: str

    @property
    def is_current(self) -> bool:
        """Tell whether nothing is to be done."""
        return self.current == self.needed


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    return config


def _version(connection: Connection) -> Version:
    scripts = ScriptDirectory.from_config(_config(connection))
    needed = scripts.get_current_head() or ""
    current = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in scripts.walk_revisions()}
    if current is not None and current not in known:
        raise BadInput(
            f"the database is at version {current}, which is newer than this program;"
            " install the newer mimawari again, or restore the backup made before the upgrade",
            code="database_newer",
        )
    return Version(current, needed)


async def find_version(database: Database) -> Version:
    """Tell which step a database is at."""
    return await database.look(lambda session: _version(session.connection))


async def upgrade(database: Database) -> Version:
    """Take every missing step, one process at a time; return where the database was before."""

    def steps(session: Session) -> Version:
        before = _version(session.connection)
        if not before.is_current:
            command.upgrade(_config(session.connection), "head")
        return before

    async with _alone(database):
        return await database.run(steps)


@asynccontextmanager
async def _alone(database: Database) -> AsyncIterator[None]:
    """Keep every other upgrade waiting, of this process and of others."""
    # Alembic keeps what it works on in globals: one upgrade at a time in a process.
    while not _one_at_a_time.acquire(blocking=False):  # noqa: ASYNC110 - shared by threads
        await asyncio.sleep(WAIT_SECONDS)
    try:
        if database.dialect.migration_lock is None:
            yield
            return
        lock, unlock = database.dialect.migration_lock
        async with database.held() as opened:
            await opened.execute(text(lock))
            try:
                yield
            finally:
                await opened.execute(text(unlock))
    finally:
        _one_at_a_time.release()
