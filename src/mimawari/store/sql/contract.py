"""What a database must offer, checked before any work begins and by `mimawari doctor`.

What a session can set is not here: `sessions` sets it. Each breach says what is wrong, what it
would do, and how to mend it.
"""

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from sqlalchemy import insert
from sqlalchemy.exc import DBAPIError, InvalidRequestError

from mimawari.columns import begins_with
from mimawari.errors import BadInput, StoreDown
from mimawari.ids import new_id
from mimawari.store.sql.engine import Database, Session
from mimawari.store.sql.facts import Facts, read_facts
from mimawari.store.sql.link import LEAST_FREE
from mimawari.store.sql.migrate import find_version
from mimawari.store.sql.refusals import Refusal, refusal_of
from mimawari.store.sql.session_settings import CHARSET, COLLATION
from mimawari.store.sql.tables import meta

MOST_APART = timedelta(seconds=30)
OLDEST = {"SQLite": (3, 38), "PostgreSQL": (12,), "MariaDB": (10, 6)}
NAMED_TABLES = 3
PROBE_ROWS, PROBE_BYTES = 100, 600
"""A row stays in its page: MariaDB crashes where it has no space for a value outside of it."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A term of the contract that a database does not keep."""

    found: str
    advice: str


_REFUSED = {
    Refusal.READ_ONLY: Breach(
        "the database is read-only, so nothing that is learned could be kept",
        "name the primary server in MIMAWARI_DATABASE_URL, end the read-only mode"
        " (PostgreSQL: ALTER DATABASE name RESET default_transaction_read_only; MariaDB:"
        " SET GLOBAL read_only = 0), or let this user write to the file, its folder and its disk",
    ),
    Refusal.NO_SPACE: Breach(
        "the database has no space left, so nothing that is learned could be kept",
        "free space on the disk that holds the database, or move it to a larger one",
    ),
    Refusal.RIGHTS: Breach(
        "the user of the database lacks a right that the program needs",
        "grant it: PostgreSQL: ALTER SCHEMA public OWNER TO user; and ALTER TABLE … OWNER TO user;"
        " MariaDB: GRANT ALL ON name.* TO user",
    ),
}


async def find_breaches(database: Database, tables: Sequence[str]) -> list[Breach]:
    """Return every term that the database does not keep; leave nothing behind."""
    if found := _look_at_file(database):
        return found
    try:
        facts = await read_facts(database, tables)
    except InvalidRequestError as error:
        return [Breach(str(error), "use MariaDB 10.6 or newer, PostgreSQL or SQLite")]
    except (StoreDown, DBAPIError) as error:
        return [_explain(error)]
    if found := judge(facts):
        return found
    version = await find_version(database)
    if not version.is_current:
        if facts.not_owned:
            return [_not_owned(facts.not_owned)]
        found += await _attempt(database, _change_tables)
    if version.current is not None:
        found += await _attempt(database, _write)
    return found


async def require(database: Database, tables: Sequence[str]) -> None:
    """Raise BadInput unless the database keeps the contract."""
    if found := await find_breaches(database, tables):
        sentences = (f"{breach.found}; {breach.advice}" for breach in found)
        raise BadInput(". ".join(sentences), code="database_unfit")


def judge(facts: Facts) -> list[Breach]:
    """Return the terms that these facts break."""
    rules = (_version, _encoding, _clock, _schema, _tables, _rights, _journal)
    return [breach for rule in rules if (breach := rule(facts)) is not None]


def _version(facts: Facts) -> Breach | None:
    oldest = OLDEST[facts.engine]
    if facts.version >= oldest:
        return None
    needed = f"{facts.engine} {'.'.join(map(str, oldest))} or newer"
    version = ".".join(map(str, facts.version))
    return Breach(
        f"{facts.engine} {version} lacks what the program's statements need",
        f"upgrade the server to {needed}, or use another database",
    )


def _encoding(facts: Facts) -> Breach | None:
    if facts.encoding in {"UTF8", "UTF-8", CHARSET}:
        return None
    mend = {
        "PostgreSQL": "make a new database: CREATE DATABASE mimawari ENCODING 'UTF8' TEMPLATE"
        " template0; and name it in MIMAWARI_DATABASE_URL (`mimawari db copy` moves the rows)",
        "SQLite": "name a new file in MIMAWARI_DATABASE_URL (`mimawari db copy` moves the rows)",
        "MariaDB": "connect without a proxy that changes the character set of a session",
    }
    return Breach(
        f"the database's encoding is {facts.encoding}, not UTF-8: Japanese text would be refused"
        " or damaged",
        mend[facts.engine],
    )


def _clock(facts: Facts) -> Breach | None:
    if facts.apart is None or abs(facts.apart) <= MOST_APART:
        return None
    way = "ahead of" if facts.apart > timedelta(0) else "behind"
    return Breach(
        f"the database server's clock is {abs(facts.apart).total_seconds():.0f} s {way} this"
        " machine's: processes on several machines would start work early or late, and take each"
        " other's jobs for abandoned",
        "set both clocks right, for example with chrony or systemd-timesyncd",
    )


def _schema(facts: Facts) -> Breach | None:
    if facts.has_schema:
        return None
    return Breach(
        "no schema of the user's search_path exists, so no table can be found or made",
        "CREATE SCHEMA it, or ALTER ROLE user SET search_path = public",
    )


def _tables(facts: Facts) -> Breach | None:
    if not facts.inexact:
        return None
    change = f"CONVERT TO CHARACTER SET {CHARSET} COLLATE {COLLATION};"
    statements = [f"ALTER TABLE `{name}` {change}" for name in facts.inexact[:NAMED_TABLES]]
    return Breach(
        f"{len(facts.inexact)} tables hold text in another character set or collation than"
        f" {COLLATION}: text would be damaged, or names that differ taken for one",
        "make a backup, stop all processes and run: " + " ".join(statements),
    )


def _rights(facts: Facts) -> Breach | None:
    if not facts.forbidden:
        return None
    names = ", ".join(facts.forbidden[:NAMED_TABLES])
    return Breach(
        f"the user of the database may not read and write {len(facts.forbidden)} of its tables"
        f" ({names})",
        "as the owner: GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO user;"
        " GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO user",
    )


def _journal(facts: Facts) -> Breach | None:
    if facts.journal in {"", "wal"}:
        return None
    return Breach(
        f"the file cannot have a write-ahead log (its journal mode stays {facts.journal}), so"
        " readers and writers would block each other",
        "put the file on a local disk, not on a network's: MIMAWARI_DATA or MIMAWARI_DATABASE_URL",
    )


def _not_owned(names: Sequence[str]) -> Breach:
    shown = ", ".join(names[:NAMED_TABLES])
    return Breach(
        f"the tables must be upgraded, and {len(names)} belong to another user ({shown})",
        "run `mimawari db upgrade` once as their owner, or as a superuser:"
        f" ALTER TABLE {names[0]} OWNER TO user; and so on for each",
    )


def _look_at_file(database: Database) -> list[Breach]:
    """Look at a file's folder and disk, which SQLite reports late and in vague words."""
    if database.url.get_backend_name() != "sqlite":
        return []
    file = Path(database.url.database or "")
    folder = file.parent
    if not folder.is_dir():
        return []
    paths = [folder, *([file] if file.exists() else [])]
    if not all(os.access(path, os.W_OK) for path in paths):
        return [_REFUSED[Refusal.READ_ONLY]]
    return [_REFUSED[Refusal.NO_SPACE]] if shutil.disk_usage(folder).free < LEAST_FREE else []


async def _attempt(database: Database, work: Callable[[Session], None]) -> list[Breach]:
    try:
        await database.run(work)
    except (StoreDown, DBAPIError) as error:
        return [_explain(error)]
    return []


def _explain(error: StoreDown | DBAPIError) -> Breach:
    """Return the breach behind an error; raise it again where it is something else."""
    cause = error if isinstance(error, DBAPIError) else error.__cause__
    refusal = refusal_of(cause)
    if refusal is None:
        raise error
    known = _REFUSED[refusal]
    said = getattr(cause, "orig", None) or cause
    return Breach(f"{known.found} ({' '.join(str(said).split())[:200]})", known.advice)


def _write(session: Session) -> None:
    """Write rows and take them back: space is taken before the end of a transaction."""
    begin = f"probe {new_id()}"
    rows = [{"name": f"{begin} {at}", "value": "x" * PROBE_BYTES} for at in range(PROBE_ROWS)]
    ours = begins_with(meta.c.name, begin)
    with session.connection.begin_nested() as probe:
        session.execute(insert(meta), rows)
        session.execute(meta.update().where(ours).values(value=""))
        session.execute(meta.delete().where(ours))
        probe.rollback()


def _change_tables(session: Session) -> None:
    """Make, change and remove a table, as an upgrade does."""
    name = f"mimawari_probe_{new_id().replace('-', '')}"
    run = session.connection.exec_driver_sql
    run(f"CREATE TABLE {name} (id INTEGER NOT NULL PRIMARY KEY)")
    try:
        run(f"ALTER TABLE {name} ADD COLUMN more INTEGER")
        run(f"CREATE INDEX {name}_more ON {name} (more)")
    except DBAPIError:
        # MariaDB does not take a table back with the transaction.
        if session.connection.dialect.name == "mariadb":
            run(f"DROP TABLE {name}")
        raise
    run(f"DROP TABLE {name}")
