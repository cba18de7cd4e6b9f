"""Many rows of a watch's own table in one statement."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Table, TypeDecorator, text

from mimawari.store.sql.dialect import Dialect
from mimawari.store.sql.engine import Session, as_rows


@dataclass(frozen=True, slots=True)
class Saving:
    """Where rows go, and which columns change where a key is taken: the primary one, or another."""

    table: Table
    change: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


def save_rows(
    session: Session, dialect: Dialect, saving: Saving, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Insert rows alike; where a key is taken, change some columns of the row that has it."""
    names = tuple(rows[0])
    stored = {name: _storing(saving.table.c[name], session) for name in names}
    bound = [[store(row[name]) for name, store in stored.items()] for row in rows]
    statement = dialect.save(saving.table, names, saving.change, saving.keys)
    session.execute(text(statement), as_rows(bound))


def _storing(column: Column[Any], session: Session) -> Callable[[Any], Any]:
    """Return what makes of a value that which the column stores."""
    kind, dialect = column.type, session.connection.dialect
    if isinstance(kind, TypeDecorator):
        return lambda value: kind.process_bind_param(value, dialect)
    return lambda value: value
