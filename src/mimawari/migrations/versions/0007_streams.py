"""Make the tables of the streams watch."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql, postgresql

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

EXACT: dict[str, Any] = {
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_nopad_bin",
    "mariadb_engine": "InnoDB",
}
MOMENT = sa.BigInteger().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
UUID = sa.String(36).with_variant(postgresql.UUID(as_uuid=False), "postgresql")
LONG_TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mariadb")
ACTIVE = "CASE WHEN status IN ('initializing', 'waiting', 'monitoring') THEN stream_url END"


def upgrade() -> None:
    """Go one step on."""
    _monitors()
    _monitor_stats()
    _monitor_events()
    _monitor_states()
    op.create_table(
        "monitor_turns",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("taken", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        **EXACT,
    )


def _monitors() -> None:
    op.create_table(
        "monitors",
        sa.Column("id", sa.String(length=37), nullable=False),
        sa.Column("stream_url", sa.String(length=512), nullable=False),
        sa.Column("callback_url", sa.String(length=512), nullable=False),
        sa.Column("config", JSON, nullable=False),
        sa.Column("metadata", JSON, nullable=True),
        sa.Column("status", sa.String(length=20), nullable=False),
        sa.Column("pod_name", sa.String(length=63), nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("active_url", sa.String(length=512), sa.Computed(ACTIVE, persisted=True)),
        sa.PrimaryKeyConstraint("id"),
        **EXACT,
    )
    op.create_index("idx_monitors_stream_url_active", "monitors", ["active_url"], unique=True)
    op.create_index("monitors_status", "monitors", ["status", "id"])


def _owner() -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["monitor_id"], ["monitors.id"], ondelete="CASCADE")


def _monitor_stats() -> None:
    op.create_table(
        "monitor_stats",
        sa.Column("monitor_id", sa.String(length=37), nullable=False),
        sa.Column("total_segments", sa.Integer(), server_default="0", nullable=False),
        sa.Column("blackout_events", sa.Integer(), server_default="0", nullable=False),
        sa.Column("silence_events", sa.Integer(), server_default="0", nullable=False),
        sa.Column("last_check_at", MOMENT, nullable=True),
        _owner(),
        sa.PrimaryKeyConstraint("monitor_id"),
        **EXACT,
    )


def _monitor_events() -> None:
    op.create_table(
        "monitor_events",
        sa.Column("id", UUID, nullable=False),
        sa.Column("monitor_id", sa.String(length=37), nullable=False),
        sa.Column("event_type", sa.String(length=50), nullable=False),
        sa.Column("payload", JSON, nullable=False),
        sa.Column("webhook_status", sa.String(length=20), nullable=False),
        sa.Column("webhook_attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("webhook_last_error", sa.Text(), nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("sent_at", MOMENT, nullable=True),
        _owner(),
        sa.PrimaryKeyConstraint("id"),
        **EXACT,
    )
    pending = sa.text("webhook_status = 'pending'")
    op.create_index("idx_monitor_events_monitor_id", "monitor_events", ["monitor_id"])
    op.create_index("idx_monitor_events_created_at", "monitor_events", ["created_at"])
    op.create_index(
        "idx_monitor_events_webhook_status",
        "monitor_events",
        ["webhook_status"],
        sqlite_where=pending,
        postgresql_where=pending,
    )


def _monitor_states() -> None:
    op.create_table(
        "monitor_states",
        sa.Column("monitor_id", sa.String(length=37), nullable=False),
        sa.Column("created_by", sa.String(length=64), nullable=False),
        sa.Column("stream_status", sa.String(length=20), nullable=False),
        sa.Column("video", sa.String(length=20), nullable=False),
        sa.Column("audio", sa.String(length=20), nullable=False),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("ended_at", MOMENT, nullable=True),
        sa.Column("state", LONG_TEXT, nullable=False),
        _owner(),
        sa.PrimaryKeyConstraint("monitor_id"),
        **EXACT,
    )
