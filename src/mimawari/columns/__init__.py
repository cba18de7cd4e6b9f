"""Columns that hold the same on SQLite, PostgreSQL and MariaDB."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    JSON,
    TIMESTAMP,
    BigInteger,
    Column,
    ColumnElement,
    Dialect,
    LargeBinary,
    String,
    Text,
    and_,
    func,
    or_,
)
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator

from mimawari.text import clean

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_micros(at: datetime) -> int:
    """Turn an aware time into the number that is stored."""
    return (at - EPOCH) // _MICROSECOND


def to_time(micros: int) -> datetime:
    """Turn a stored number into an aware time in UTC."""
    return EPOCH + timedelta(microseconds=micros)


class Instant(TypeDecorator[datetime]):
    """A moment, kept as microseconds since 1970 in UTC: the same on every engine."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        """Store an aware time."""
        del dialect
        return None if value is None else to_micros(value)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:
        """Load an aware time."""
        del dialect
        return None if value is None else to_time(int(value))


class Word(TypeDecorator[str]):
    """Text that is cleaned on its way in, so that every engine can hold it and find it again."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Store clean text."""
        del dialect
        return None if value is None else clean(value)


class Prose(Word):
    """Longer clean text."""

    impl = Text
    cache_ok = True


# Where the engine has types of its own that others can read too, they are used.
Moment = Instant().with_variant(TIMESTAMP(timezone=True), "postgresql")
Json = JSON().with_variant(postgresql.JSONB(), "postgresql")
Uuid = Word(36).with_variant(postgresql.UUID(as_uuid=False), "postgresql")
LongText = Text().with_variant(mysql.LONGTEXT(), "mariadb")
LongBytes = LargeBinary().with_variant(mysql.LONGBLOB(), "mariadb")
# MariaDB compares text without regard to case and trailing spaces unless told; names are exact.
EXACT: dict[str, Any] = {
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_nopad_bin",
    "mariadb_engine": "InnoDB",
}


def behind(
    order: tuple[Any, Any], place: tuple[Any, Any], *, is_ascending: bool
) -> ColumnElement[bool]:
    """Say that a row comes behind a place, ordered by a column and where it is equal by a key."""
    (column, key), (value, last) = order, place
    if is_ascending:
        return or_(column > value, and_(column == value, key > last))
    return or_(column < value, and_(column == value, key < last))


def begins_with(column: Column[str], prefix: str) -> ColumnElement[bool]:
    """Compare beginnings exactly, which LIKE does not do on every engine."""
    return func.substr(column, 1, len(clean(prefix))) == prefix


class folding(FunctionElement[str]):  # noqa: N801 - named as SQL names a function
    """Text whose capitals are told from small letters as the database's language does."""

    type = Text()
    inherit_cache = True


@compiles(folding)
def _as_it_is(element: folding, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(element.clauses, **options)


@compiles(folding, "postgresql")
def _in_its_language(element: folding, compiler: SQLCompiler, **options: Any) -> str:
    return f'({compiler.process(element.clauses, **options)} COLLATE "default")'


def contains_word(column: Column[str], word: str) -> ColumnElement[bool]:
    """Find a word anywhere in a text, whether it is written in capitals or not."""
    return folding(column).icontains(word, autoescape=True)
