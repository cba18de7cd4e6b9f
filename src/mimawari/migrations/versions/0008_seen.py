"""Make what is kept for people to see: attempts of deliveries, pauses, loudness."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

EXACT: dict[str, Any] = {
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_nopad_bin",
    "mariadb_engine": "InnoDB",
}
LONG_TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mariadb")


def upgrade() -> None:
    """Go one step on."""
    _attempts()
    _pauses()
    op.create_table(
        "monitor_loudness",
        sa.Column("monitor_id", sa.String(length=37), nullable=False),
        sa.Column("at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("lufs", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(["monitor_id"], ["monitors.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("monitor_id", "at"),
        **EXACT,
    )


def _attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("event_id", sa.String(length=36), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("result", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("request", LONG_TEXT, nullable=True),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("answer", LONG_TEXT, nullable=True),
        sa.Column("took_us", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        **EXACT,
    )
    op.create_index("attempts_event", "attempts", ["event_id", "id"])
    op.create_index("attempts_at", "attempts", ["at"])


def _pauses() -> None:
    op.create_table(
        "pauses",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("what", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=190), nullable=False),
        sa.Column("since_at", sa.BigInteger(), nullable=False),
        sa.Column("until_at", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        **EXACT,
    )
    op.create_index("pauses_name", "pauses", ["name", "until_at"])
    op.create_index("pauses_until", "pauses", ["until_at"])
