"""What a database says of itself, for the contract to be judged by."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from sqlalchemy import bindparam, text

from mimawari.columns import to_micros
from mimawari.store.sql.engine import Database, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts of one database; what an engine does not have is as it should be."""

    engine: str
    version: tuple[int, ...]
    encoding: str
    apart: timedelta | None = None
    """How far the server's clock is ahead of ours; negative if behind."""
    has_schema: bool = True
    inexact: tuple[str, ...] = ()
    """Tables whose text is not compared by code points."""
    forbidden: tuple[str, ...] = ()
    """Tables that the user may not read and write."""
    not_owned: tuple[str, ...] = ()
    """Tables that the user may not change."""
    journal: str = ""


_POSTGRES = text(
    "SELECT current_setting('server_version_num') AS version,"
    " current_setting('server_encoding') AS encoding, current_schema() AS place,"
    " CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint) AS now"
)
_POSTGRES_TABLES = text(
    "SELECT c.relname AS name, pg_has_role(c.relowner, 'USAGE') AS is_owned,"
    " has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')"
    " AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE')"
    " AS is_allowed FROM pg_class c WHERE c.relkind = 'r' AND c.relname = ANY(:names)"
    " AND c.relnamespace = CAST(current_schema() AS regnamespace) ORDER BY c.relname"
)
_MARIADB = text(
    "SELECT VERSION() AS version, @@character_set_connection AS encoding,"
    " CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED) AS now"
)
# A column of type JSON is utf8mb4_bin whatever its table is.
_MARIADB_TABLES = text(
    "SELECT DISTINCT table_name AS name FROM information_schema.columns"
    " WHERE table_schema = DATABASE() AND table_name IN :names AND character_set_name IS NOT NULL"
    " AND collation_name NOT IN ('utf8mb4_nopad_bin', 'utf8mb4_bin') ORDER BY table_name"
).bindparams(bindparam("names", expanding=True))


async def read_facts(database: Database, tables: Sequence[str]) -> Facts:
    """Read the facts; `tables` are ours, others are left out of account."""
    names = list(tables)
    readers = {"sqlite": _of_sqlite, "postgresql": _of_postgres, "mariadb": _of_mariadb}
    read = readers[database.link.engine.dialect.name]
    # The first use of a connection opens it, which must not count as time apart.
    await database.look(lambda session: session.execute(text("SELECT 1")).scalar())
    before = database.clock.now()
    facts, now = await database.look(lambda session: read(session, names))
    if now is None:
        return facts
    after = database.clock.now()
    middle = to_micros(before) + (to_micros(after) - to_micros(before)) // 2
    return replace(facts, apart=timedelta(microseconds=now - middle))


def _of_sqlite(session: Session, names: list[str]) -> tuple[Facts, int | None]:
    del names
    one: dict[str, Any] = {}
    for what in ("SELECT sqlite_version()", "PRAGMA encoding", "PRAGMA journal_mode"):
        one[what.split()[1]] = session.connection.exec_driver_sql(what).scalar_one()
    version = _numbers(one["sqlite_version()"])
    return Facts(
        engine="SQLite", version=version, encoding=one["encoding"], journal=one["journal_mode"]
    ), None


def _of_postgres(session: Session, names: list[str]) -> tuple[Facts, int | None]:
    row = session.execute(_POSTGRES).one()
    rows = session.execute(_POSTGRES_TABLES, {"names": names}).all() if row.place else []
    facts = Facts(
        engine="PostgreSQL",
        version=(int(row.version) // 10000, int(row.version) % 10000),
        encoding=row.encoding,
        has_schema=row.place is not None,
        forbidden=tuple(each.name for each in rows if not each.is_allowed),
        not_owned=tuple(each.name for each in rows if not each.is_owned),
    )
    return facts, int(row.now)


def _of_mariadb(session: Session, names: list[str]) -> tuple[Facts, int | None]:
    row = session.execute(_MARIADB).one()
    inexact = session.execute(_MARIADB_TABLES, {"names": names}).scalars().all()
    version = _numbers(row.version)
    facts = Facts(engine="MariaDB", version=version, encoding=row.encoding, inexact=tuple(inexact))
    return facts, int(row.now)


def _numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in found.group().split(".")) if found else ()
