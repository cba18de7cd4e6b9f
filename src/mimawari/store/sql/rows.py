"""Many rows of a watch's own table in one statement."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Column, Table, TypeDecorator, text

from mimawari.store.sql.dialect import Dialect
from mimawari.store.sql.engine import Session, as_rows


def save_rows(
    session: Session,
    dialect: Dialect,
    table: Table,
    rows: Sequence[Mapping[str, Any]],
    change: Sequence[str],
) -> None:
    """Insert rows alike; where a primary key is taken, change some columns of it."""
    names = tuple(rows[0])
    stored = {name: _storing(table.c[name], session) for name in names}
    bound = [[store(row[name]) for name, store in stored.items()] for row in rows]
    session.execute(text(dialect.save(table, names, change)), as_rows(bound))


def _storing(column: Column[Any], session: Session) -> Callable[[Any], Any]:
    """Return what makes of a value that which the column stores."""
    kind, dialect = column.type, session.connection.dialect
    if isinstance(kind, TypeDecorator):
        return lambda value: kind.process_bind_param(value, dialect)
    return lambda value: value
