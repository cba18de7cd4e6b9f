"""What the streams watch keeps."""

from typing import Any

from sqlalchemy import (
    Column,
    Computed,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    text,
)

from mimawari.columns import EXACT, Instant, Json, LongText, Moment, Prose, Uuid, Word

metadata = MetaData()

monitors = Table(
    "monitors",
    metadata,
    Column("id", Word(37), primary_key=True),
    Column("stream_url", Word(512), nullable=False),
    Column("callback_url", Word(512), nullable=False),
    Column("config", Json, nullable=False),
    Column("metadata", Json),
    Column("status", Word(20), nullable=False),
    Column("pod_name", Word(63)),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    # Not every engine can make an index of some rows only; of empty values none equals another.
    Column(
        "active_url",
        Word(512),
        Computed(
            "CASE WHEN status IN ('initializing', 'waiting', 'monitoring') THEN stream_url END",
            persisted=True,
        ),
    ),
    Index("idx_monitors_stream_url_active", "active_url", unique=True),
    Index("monitors_status", "status", "id"),
    Index("monitors_pod_name", "pod_name", "status"),
    **EXACT,
)


def _monitor_id(**given: Any) -> Column[str]:
    return Column("monitor_id", Word(37), ForeignKey("monitors.id", ondelete="CASCADE"), **given)


def _count(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default="0")


stats = Table(
    "monitor_stats",
    metadata,
    _monitor_id(primary_key=True),
    _count("total_segments"),
    _count("blackout_events"),
    _count("silence_events"),
    Column("last_check_at", Moment),
    **EXACT,
)

events = Table(
    "monitor_events",
    metadata,
    Column("id", Uuid, primary_key=True),
    _monitor_id(nullable=False),
    Column("event_type", Word(50), nullable=False),
    Column("payload", Json, nullable=False),
    Column("webhook_status", Word(20), nullable=False),
    _count("webhook_attempts"),
    Column("webhook_last_error", Prose),
    Column("created_at", Moment, nullable=False),
    Column("sent_at", Moment),
    Index("idx_monitor_events_monitor_id", "monitor_id"),
    Index("idx_monitor_events_created_at", "created_at"),
    Index(
        "idx_monitor_events_webhook_status",
        "webhook_status",
        sqlite_where=text("webhook_status = 'pending'"),
        postgresql_where=text("webhook_status = 'pending'"),
    ),
    **EXACT,
)

# How a monitor stands: what it goes on from after a crash, and what people see of it.
states = Table(
    "monitor_states",
    metadata,
    _monitor_id(primary_key=True),
    Column("created_by", Word(64), nullable=False),
    Column("stream_status", Word(20), nullable=False),
    Column("video", Word(20), nullable=False),
    Column("audio", Word(20), nullable=False),
    Column("title", Prose),
    Column("reason", Prose),
    Column("ended_at", Moment),
    Column("state", LongText, nullable=False),
    # Counts claims and reports of pods: who says a number that has passed is not heard.
    _count("version"),
    Column("report_id", Word(36)),
    **EXACT,
)

# How loud the last hours were, one value each ten seconds or so.
loudness = Table(
    "monitor_loudness",
    metadata,
    _monitor_id(primary_key=True),
    Column("at", Instant, primary_key=True, autoincrement=False),
    Column("lufs", Float(53), nullable=False),
    **EXACT,
)

# One row, which whoever adds a monitor holds: so that counting and adding are one step.
turns = Table(
    "monitor_turns",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("taken", Integer, nullable=False),
    **EXACT,
)
