"""Moves all rows from one database to another, of any engine, and proves that they are the same."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import Any

from sqlalchemy import (
    Table,
    func,
    insert,
    inspect,
    literal,
    select,
    text,
    tuple_,
)

from mimawari.errors import BadInput
from mimawari.store.sql.contract import require
from mimawari.store.sql.engine import Database, Opened, Session
from mimawari.store.sql.migrate import find_version, upgrade
from mimawari.store.sql.tables import metadata
from mimawari.watches import INSTALLED

BATCH = 500
"""So many rows are read and written at once."""
_DIGEST = 1 << 128
_VERSION = "alembic_version"

Row = dict[str, Any]
Tell = Callable[[str, int], None]
"""Is told which table is being copied, and how many more of its rows were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """A table that was copied: its rows, and a sum of them that any other row would change."""

    table: str
    rows: int
    digest: str


def list_tables() -> list[Table]:
    """List the tables of the kernel and of every watch, those that others point to first."""
    known = [metadata, *(watch.tables for watch in INSTALLED if watch.tables is not None)]
    return [table for some in known for table in some.sorted_tables]


async def count_rows(database: Database) -> dict[str, int]:
    """Count the rows of each table."""
    queries = {table.name: select(func.count()).select_from(table) for table in list_tables()}
    async with database.read() as reader:
        return {
            name: int((await reader.execute(query)).scalar_one()) for name, query in queries.items()
        }


async def copy(source: Database, target: Database, tell: Tell) -> list[Copied]:
    """Copy every row to an empty database, all or nothing, and read them again before it counts."""
    await _check_source(source)
    await require(target, [table.name for table in list_tables()])
    await upgrade(target)
    full = [name for name, rows in (await count_rows(target)).items() if rows]
    if full:
        raise BadInput(
            f"the database to copy to is not empty ({', '.join(full[:5])}); name a new one",
            code="not_empty",
        )
    async with source.held() as reading, target.write() as writing:
        await reading.run(lambda session: _stand_still(session, source.url.get_backend_name()))
        copied = [await _copy_table(reading, writing, table, tell) for table in list_tables()]
        await writing.run(lambda session: _check(session, copied))
        await writing.run(lambda session: _number_on(session, target.url.get_backend_name()))
    return copied


async def _check_source(source: Database) -> None:
    version = await find_version(source)
    if not version.is_current:
        raise BadInput(
            f"the database to copy from is at version {version.current or 'none'}, not"
            f" {version.needed}; run `mimawari db upgrade` on it first",
            code="not_current",
        )
    names = await source.look(lambda session: inspect(session.connection).get_table_names())
    if unknown := sorted({*names} - {table.name for table in list_tables()} - {_VERSION}):
        raise BadInput(
            f"the database to copy from has tables that this program does not know:"
            f" {', '.join(unknown[:5])}; remove them, or copy with the program that made them",
            code="unknown_tables",
        )


def _stand_still(session: Session, engine: str) -> None:
    """Begin a transaction in which what others write meanwhile is not seen."""
    session.connection.begin()
    if engine == "postgresql":
        session.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"))


async def _copy_table(reading: Opened, writing: Opened, table: Table, tell: Tell) -> Copied:
    rows, total = 0, 0
    last: Row | None = None
    while batch := await reading.run(partial(_read, table, last)):
        await writing.execute(insert(table), batch)
        last = batch[-1]
        rows, total = rows + len(batch), _add(total, batch)
        tell(table.name, len(batch))
    return Copied(table=table.name, rows=rows, digest=f"{total:032x}")


def _read(table: Table, last: Row | None, session: Session) -> list[Row]:
    """Read the rows that come after one, by the primary key."""
    key = list(table.primary_key.columns)
    # What the engine computes by itself is not written.
    kept = [column for column in table.columns if column.computed is None]
    query = select(*kept).order_by(*key).limit(BATCH)
    if last is not None:
        query = query.where(
            tuple_(*key) > tuple_(*(literal(last[column.name], column.type) for column in key))
        )
    return [dict(row) for row in session.execute(query).mappings()]


def _add(total: int, rows: Sequence[Row]) -> int:
    """Add rows to a sum in which their order does not matter, as each engine has its own."""
    for row in rows:
        text = json.dumps([_plain(row[name]) for name in sorted(row)], sort_keys=True)
        total += int.from_bytes(sha256(text.encode()).digest()[:16], "big")
    return total % _DIGEST


def _plain(value: Any) -> Any:
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat()
        case bytes() | memoryview():
            return bytes(value).hex()
        case bool() | int() | float() | str() | dict() | list() | None:
            return value
    return str(value)


def _check(session: Session, copied: Sequence[Copied]) -> None:
    """Read everything again where it is now, and refuse it where anything differs."""
    for table, one in zip(list_tables(), copied, strict=True):
        rows, total = 0, 0
        for batch in _read_all(session, table):
            rows, total = rows + len(batch), _add(total, batch)
        if (rows, f"{total:032x}") != (one.rows, one.digest):
            raise BadInput(
                f"the rows of {table.name} are not the same after copying; nothing was copied",
                code="not_the_same",
            )


def _read_all(session: Session, table: Table) -> Iterator[Sequence[Row]]:
    last: Row | None = None
    while batch := _read(table, last, session):
        yield batch
        last = batch[-1]


def _number_on(session: Session, engine: str) -> None:
    """Have new rows numbered after those that were copied; only PostgreSQL has to be told."""
    if engine != "postgresql":
        return
    for table in list_tables():
        column = table.autoincrement_column
        if column is None:
            continue
        sequence = func.pg_get_serial_sequence(table.name, column.name)
        latest = select(func.max(column)).scalar_subquery()
        query = select(func.setval(sequence, func.coalesce(latest, 1), latest.isnot(None)))
        session.execute(query)
