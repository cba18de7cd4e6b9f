"""Make the tables of streaks of failures and of notifications."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

EXACT: dict[str, Any] = {
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_nopad_bin",
    "mariadb_engine": "InnoDB",
}
NUMBERED: dict[str, Any] = {**EXACT, "sqlite_autoincrement": True}
LONG_TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mariadb")


def upgrade() -> None:
    """Go one step on."""
    _streaks()
    _targets()
    _events()
    _sends()
    _lines()
    _incidents()


def _streaks() -> None:
    op.create_table(
        "streaks",
        sa.Column("subject", sa.String(length=190), nullable=False),
        sa.Column("kind", sa.String(length=64), nullable=False),
        sa.Column("job_id", sa.String(length=36), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("dead", sa.Integer(), nullable=False),
        sa.Column("began_at", sa.BigInteger(), nullable=False),
        sa.Column("last_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("subject"),
        **EXACT,
    )


def _targets() -> None:
    op.create_table(
        "notify_targets",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("watches", sa.Text(), nullable=False),
        sa.Column("kinds", sa.Text(), nullable=False),
        sa.Column("how", sa.String(length=16), nullable=False),
        sa.Column("span_us", sa.BigInteger(), nullable=False),
        sa.Column("daily_at", sa.String(length=5), nullable=False),
        sa.Column("language", sa.String(length=2), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        **NUMBERED,
    )
    op.create_index("notify_targets_name", "notify_targets", ["name"], unique=True)


def _events() -> None:
    op.create_table(
        "notify_events",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("kind", sa.String(length=64), nullable=False),
        sa.Column("watches", sa.Text(), nullable=False),
        sa.Column("body", LONG_TEXT, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        **EXACT,
    )
    op.create_index("notify_events_at", "notify_events", ["at"])


def _owner() -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["target_id"], ["notify_targets.id"], ondelete="CASCADE")


def _sends() -> None:
    op.create_table(
        "notify_sends",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("target_id", sa.Integer(), nullable=False),
        sa.Column("events", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("report", LONG_TEXT, nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        _owner(),
        sa.PrimaryKeyConstraint("id"),
        **EXACT,
    )
    op.create_index("notify_sends_target", "notify_sends", ["target_id", "id"])


def _lines() -> None:
    op.create_table(
        "notify_lines",
        sa.Column("target_id", sa.Integer(), nullable=False),
        sa.Column("event_id", sa.String(length=36), nullable=False),
        sa.Column("send_id", sa.String(length=36), nullable=True),
        _owner(),
        sa.PrimaryKeyConstraint("target_id", "event_id"),
        **EXACT,
    )
    op.create_index("notify_lines_send", "notify_lines", ["send_id"])


def _incidents() -> None:
    op.create_table(
        "notify_incidents",
        sa.Column("subject", sa.String(length=190), nullable=False),
        sa.Column("kind", sa.String(length=64), nullable=False),
        sa.Column("began_at", sa.BigInteger(), nullable=False),
        sa.Column("told_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("subject"),
        **EXACT,
    )
