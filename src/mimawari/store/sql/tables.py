"""What the kernel keeps, one table an idea."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Dialect,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects import mysql
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


LongText = Text().with_variant(mysql.LONGTEXT(), "mariadb")
LongBytes = LargeBinary().with_variant(mysql.LONGBLOB(), "mariadb")
# MariaDB compares text without regard to case and trailing spaces unless told; names are exact.
EXACT: dict[str, Any] = {
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_nopad_bin",
    "mariadb_engine": "InnoDB",
}


def begins_with(column: Column[str], prefix: str) -> ColumnElement[bool]:
    """Compare beginnings exactly, which LIKE does not do on every engine."""
    return func.substr(column, 1, len(clean(prefix))) == prefix


metadata = MetaData()


def _job_columns() -> tuple[Column[Any], ...]:
    """Make the columns that a job has as long as it lives and after its end."""
    return (
        Column("id", Word(36), primary_key=True),
        Column("kind", Word(64), nullable=False),
        Column("args", LongText, nullable=False),
        Column("dedupe_key", Word(190)),
        Column("target", Word(190)),
        Column("priority", Integer, nullable=False),
        Column("state", Word(16), nullable=False),
        Column("token", BigInteger, nullable=False),
        Column("attempts", Integer, nullable=False),
        Column("worker", Word(190)),
        Column("reason", Prose),
        Column("blocked_by", Word(190)),
        Column("enqueued_at", Instant, nullable=False),
    )


jobs = Table(
    "jobs",
    metadata,
    *_job_columns(),
    # When a pending job may run; when a processing job's lease runs out.
    Column("due_at", Instant, nullable=False),
    Column("crashes", Integer, nullable=False),
    # Most jobs have no key; where the engine can, they cost this index nothing.
    Index(
        "jobs_dedupe_key",
        "dedupe_key",
        unique=True,
        sqlite_where=text("dedupe_key IS NOT NULL"),
        postgresql_where=text("dedupe_key IS NOT NULL"),
    ),
    # One index serves all: with a second one to choose from, engines sort the whole backlog.
    Index("jobs_claim", "kind", "state", "priority", "due_at", "id"),
    **EXACT,
)

# One row a job that has ended: the proof that its effects are in, and the dead letters.
inbox = Table(
    "inbox",
    metadata,
    *_job_columns(),
    Column("ended_at", Instant, nullable=False),
    Column("page", LongBytes),
    Index("inbox_state", "state", "id"),
    **EXACT,
)

schedule = Table(
    "schedule",
    metadata,
    Column("member", Word(190), primary_key=True),
    Column("kind", Word(64), nullable=False),
    Column("args", LongText, nullable=False),
    Column("next_at", Instant, nullable=False),
    Column("every_us", BigInteger, nullable=False),
    Column("reason", Prose),
    Index("schedule_next", "next_at"),
    **EXACT,
)

limits = Table(
    "limits",
    metadata,
    Column("name", Word(190), primary_key=True),
    Column("given", BigInteger, nullable=False),
    Column("held_at", Instant),
    Column("held_boot", Word(64)),
    Column("held_ticks", Float(53)),
    Column("held_for_us", BigInteger),
    Column("held_reason", Prose),
    **EXACT,
)

grants = Table(
    "grants",
    metadata,
    Column("limit_name", Word(190), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("id", Word(36), nullable=False),
    Column("caller", Word(190), nullable=False),
    Column("boot", Word(64), nullable=False),
    Column("granted_at", Instant, nullable=False),
    Column("granted_ticks", Float(53), nullable=False),
    # Until when the site may have counted it: the end of the request, or of the leave for it.
    Column("settled_at", Instant, nullable=False),
    Column("settled_ticks", Float(53), nullable=False),
    **EXACT,
)

breakers = Table(
    "breakers",
    metadata,
    Column("site", Word(190), primary_key=True),
    Column("state", Word(16), nullable=False),
    Column("failures", Integer, nullable=False),
    Column("until_at", Instant),
    Column("trial_for_us", BigInteger, nullable=False),
    Column("reason", Prose),
    **EXACT,
)

cursors = Table(
    "cursors",
    metadata,
    Column("name", Word(190), primary_key=True),
    Column("value", LongText, nullable=False),
    **EXACT,
)

# A key's events form a lane; only its head is ever on its way.
lanes = Table(
    "lanes",
    metadata,
    Column("key", Word(190), primary_key=True),
    Column("last_seq", BigInteger, nullable=False),
    Column("head_seq", BigInteger, nullable=False),
    Column("due_at", Instant),
    Column("token", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    Index("lanes_due", "due_at"),
    **EXACT,
)

outbox = Table(
    "outbox",
    metadata,
    Column("key", Word(190), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("id", Word(36), nullable=False),
    Column("kind", Word(64), nullable=False),
    Column("body", LongText, nullable=False),
    Column("destination", Prose, nullable=False),
    Column("state", Word(16), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("reason", Prose),
    Column("created_at", Instant, nullable=False),
    Column("ended_at", Instant),
    UniqueConstraint("id", name="outbox_id"),
    Index("outbox_state", "state", "ended_at"),
    **EXACT,
)

cache = Table(
    "cache",
    metadata,
    Column("key", Word(190), primary_key=True),
    Column("value", LongBytes, nullable=False),
    Column("expires_at", Instant, nullable=False),
    Index("cache_expires", "expires_at"),
    **EXACT,
)

# How far each API client has used up its allowance, shared by every API process.
rates = Table(
    "rates",
    metadata,
    Column("client", Word(190), primary_key=True),
    Column("used_until", Instant, nullable=False),
    **EXACT,
)

# Counts what was put, for engines that cannot call other processes.
bells = Table(
    "bells",
    metadata,
    Column("topic", Word(64), primary_key=True),
    Column("rung", BigInteger, nullable=False),
    Column("sender", Word(64), nullable=False),
    **EXACT,
)

meta = Table(
    "meta",
    metadata,
    Column("name", Word(64), primary_key=True),
    Column("value", Text, nullable=False),
    **EXACT,
)
