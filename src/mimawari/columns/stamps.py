"""Moments as text: in UTC and to the second, as every database writes CURRENT_TIMESTAMP."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Dialect, String, Text, TypeDecorator
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from mimawari.columns import Prose, Word

WRITTEN = "%Y-%m-%d %H:%M:%S"


def write_stamp(at: datetime) -> str:
    """Write a moment."""
    return at.astimezone(UTC).strftime(WRITTEN)


def parse_stamp(text: str) -> datetime:
    """Read a moment as it was written."""
    return datetime.strptime(text[:19], WRITTEN).replace(tzinfo=UTC)


class Stamp(TypeDecorator[datetime]):
    """A moment as text, in UTC and to the second, as CURRENT_TIMESTAMP writes it."""

    impl: type[String] = Text
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:
        """Write a moment."""
        del dialect
        return None if value is None else write_stamp(value)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:
        """Read a moment."""
        del dialect
        return None if value is None else parse_stamp(value)


class BoundedStamp(Stamp):
    """The same in a text of bounded length."""

    impl = String
    cache_ok = True


# MariaDB can index only text of a bounded length.
SHORT = Prose().with_variant(Word(64), "mariadb")
STAMP = Stamp().with_variant(BoundedStamp(32), "mariadb")


class current_stamp(FunctionElement[str]):  # noqa: N801 - named as SQL names it
    """Now, as text."""

    inherit_cache = True


@compiles(current_stamp)
def _plainly(_element: current_stamp, _compiler: SQLCompiler, **_options: Any) -> str:
    return "CURRENT_TIMESTAMP"


@compiles(current_stamp, "postgresql")
def _as_text(_element: current_stamp, _compiler: SQLCompiler, **_options: Any) -> str:
    return "to_char(CURRENT_TIMESTAMP AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')"
