"""What the kernel keeps, one table an idea."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
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
)
from sqlalchemy.dialects import mysql
from sqlalchemy.types import TypeDecorator

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


LongText = Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
LongBytes = LargeBinary().with_variant(mysql.LONGBLOB(), "mysql", "mariadb")
# MariaDB compares text without regard to case unless told; names here are exact.
EXACT: dict[str, Any] = {
    f"{engine}_{option}": value
    for engine in ("mysql", "mariadb")
    for option, value in (("charset", "utf8mb4"), ("collate", "utf8mb4_bin"), ("engine", "InnoDB"))
}

metadata = MetaData()

jobs = Table(
    "jobs",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("kind", String(64), nullable=False),
    Column("args", LongText, nullable=False),
    Column("dedupe_key", String(190)),
    Column("target", String(190)),
    Column("priority", Integer, nullable=False),
    Column("state", String(16), nullable=False),
    # When a pending job may run; when a processing job's lease runs out.
    Column("due_at", Instant, nullable=False),
    Column("token", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("crashes", Integer, nullable=False),
    Column("worker", String(190)),
    Column("reason", Text),
    Column("blocked_by", String(190)),
    Column("enqueued_at", Instant, nullable=False),
    UniqueConstraint("dedupe_key", name="jobs_dedupe_key"),
    Index("jobs_claim", "kind", "state", "priority", "due_at"),
    Index("jobs_due", "kind", "state", "due_at"),
    **EXACT,
)

# One row a job that has ended: the proof that its effects are in, and the dead letters.
inbox = Table(
    "inbox",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("kind", String(64), nullable=False),
    Column("args", LongText, nullable=False),
    Column("dedupe_key", String(190)),
    Column("target", String(190)),
    Column("priority", Integer, nullable=False),
    Column("state", String(16), nullable=False),
    Column("token", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("worker", String(190)),
    Column("reason", Text),
    Column("blocked_by", String(190)),
    Column("enqueued_at", Instant, nullable=False),
    Column("ended_at", Instant, nullable=False),
    Column("page", LongBytes),
    Index("inbox_state", "state", "id"),
    **EXACT,
)

schedule = Table(
    "schedule",
    metadata,
    Column("member", String(190), primary_key=True),
    Column("kind", String(64), nullable=False),
    Column("args", LongText, nullable=False),
    Column("next_at", Instant, nullable=False),
    Column("every_us", BigInteger, nullable=False),
    Column("reason", Text),
    Index("schedule_next", "next_at"),
    **EXACT,
)

limits = Table(
    "limits",
    metadata,
    Column("name", String(190), primary_key=True),
    Column("given", BigInteger, nullable=False),
    Column("held_at", Instant),
    Column("held_boot", String(64)),
    Column("held_ticks", Float(53)),
    Column("held_for_us", BigInteger),
    Column("held_reason", Text),
    **EXACT,
)

grants = Table(
    "grants",
    metadata,
    Column("limit_name", String(190), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("id", String(36), nullable=False),
    Column("caller", String(190), nullable=False),
    Column("boot", String(64), nullable=False),
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
    Column("site", String(190), primary_key=True),
    Column("state", String(16), nullable=False),
    Column("failures", Integer, nullable=False),
    Column("until_at", Instant),
    Column("trial_for_us", BigInteger, nullable=False),
    Column("reason", Text),
    **EXACT,
)

cursors = Table(
    "cursors",
    metadata,
    Column("name", String(190), primary_key=True),
    Column("value", LongText, nullable=False),
    **EXACT,
)

# A key's events form a lane; only its head is ever on its way.
lanes = Table(
    "lanes",
    metadata,
    Column("key", String(190), primary_key=True),
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
    Column("key", String(190), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("id", String(36), nullable=False),
    Column("kind", String(64), nullable=False),
    Column("body", LongText, nullable=False),
    Column("destination", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("reason", Text),
    Column("created_at", Instant, nullable=False),
    Column("ended_at", Instant),
    UniqueConstraint("id", name="outbox_id"),
    Index("outbox_state", "state", "ended_at"),
    **EXACT,
)

cache = Table(
    "cache",
    metadata,
    Column("key", String(190), primary_key=True),
    Column("value", LongBytes, nullable=False),
    Column("expires_at", Instant, nullable=False),
    Index("cache_expires", "expires_at"),
    **EXACT,
)

# How far each API client has used up its allowance, shared by every API process.
rates = Table(
    "rates",
    metadata,
    Column("client", String(190), primary_key=True),
    Column("used_until", Instant, nullable=False),
    **EXACT,
)

# Counts what was put, for engines that cannot call other processes.
bells = Table(
    "bells",
    metadata,
    Column("topic", String(64), primary_key=True),
    Column("rung", BigInteger, nullable=False),
    Column("sender", String(64), nullable=False),
    **EXACT,
)

meta = Table(
    "meta",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
    **EXACT,
)
