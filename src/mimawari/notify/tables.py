"""What is kept of notifications: targets, events, what is to be told of them, and what was."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
)

from mimawari.columns import EXACT, Instant, LongText, Prose, Word

metadata = MetaData()
NUMBERED: dict[str, Any] = {**EXACT, "sqlite_autoincrement": True}


def _target_id(*, primary_key: bool = False) -> Column[int]:
    owner = ForeignKey("notify_targets.id", ondelete="CASCADE")
    return Column(
        "target_id", Integer, owner, nullable=False, primary_key=primary_key, autoincrement=False
    )


targets = Table(
    "notify_targets",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("name", Word(100), nullable=False),
    # A secret, or where it is found: env:NAME or file:PATH.
    Column("url", Prose, nullable=False),
    Column("watches", Prose, nullable=False),
    Column("kinds", Prose, nullable=False),
    Column("how", Word(16), nullable=False),
    Column("span_us", BigInteger, nullable=False),
    Column("daily_at", Word(5), nullable=False),
    Column("language", Word(2), nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("changed_at", Instant, nullable=False),
    Index("notify_targets_name", "name", unique=True),
    **NUMBERED,
)

# Every event that anybody may be told of; that one is here proves that it was fanned out.
events = Table(
    "notify_events",
    metadata,
    Column("id", Word(36), primary_key=True),
    Column("kind", Word(64), nullable=False),
    Column("watches", Prose, nullable=False),
    Column("body", LongText, nullable=False),
    Column("at", Instant, nullable=False),
    Index("notify_events_at", "at"),
    **EXACT,
)

# One message to one target.
sends = Table(
    "notify_sends",
    metadata,
    Column("id", Word(36), primary_key=True),
    _target_id(),
    Column("events", Integer, nullable=False),
    Column("state", Word(16), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("reason", Prose),
    Column("report", LongText),
    Column("created_at", Instant, nullable=False),
    Column("ended_at", Instant),
    Index("notify_sends_target", "target_id", "id"),
    **EXACT,
)

# One event to one target; without a send it waits for the others of its span.
lines = Table(
    "notify_lines",
    metadata,
    _target_id(primary_key=True),
    Column("event_id", Word(36), primary_key=True),
    Column("send_id", Word(36)),
    Index("notify_lines_send", "send_id"),
    **EXACT,
)

# The incidents that were told and are not over.
incidents = Table(
    "notify_incidents",
    metadata,
    Column("subject", Word(190), primary_key=True),
    Column("kind", Word(64), nullable=False),
    Column("began_at", Instant, nullable=False),
    Column("told_at", Instant, nullable=False),
    **EXACT,
)
