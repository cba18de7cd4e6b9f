"""Make the kernel's tables."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

LONG_TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mariadb")
LONG_BYTES = sa.LargeBinary().with_variant(mysql.LONGBLOB(), "mariadb")
EXACT: dict[str, Any] = {
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_nopad_bin",
    "mariadb_engine": "InnoDB",
}


def upgrade() -> None:
    """Go one step on."""
    _bells()
    _breakers()
    _cache()
    _cursors()
    _grants()
    _inbox()
    _jobs()
    _lanes()
    _limits()
    _meta()
    _outbox()
    _rates()
    _schedule()


def _bells() -> None:
    op.create_table(
        "bells",
        sa.Column("topic", sa.String(length=64), nullable=False),
        sa.Column("rung", sa.BigInteger(), nullable=False),
        sa.Column("sender", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("topic"),
        **EXACT,
    )


def _breakers() -> None:
    op.create_table(
        "breakers",
        sa.Column("site", sa.String(length=190), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("until_at", sa.BigInteger(), nullable=True),
        sa.Column("trial_for_us", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("site"),
        **EXACT,
    )


def _cache() -> None:
    op.create_table(
        "cache",
        sa.Column("key", sa.String(length=190), nullable=False),
        sa.Column("value", LONG_BYTES, nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
        **EXACT,
    )
    op.create_index("cache_expires", "cache", ["expires_at"], unique=False)


def _cursors() -> None:
    op.create_table(
        "cursors",
        sa.Column("name", sa.String(length=190), nullable=False),
        sa.Column("value", LONG_TEXT, nullable=False),
        sa.PrimaryKeyConstraint("name"),
        **EXACT,
    )


def _grants() -> None:
    op.create_table(
        "grants",
        sa.Column("limit_name", sa.String(length=190), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("caller", sa.String(length=190), nullable=False),
        sa.Column("boot", sa.String(length=64), nullable=False),
        sa.Column("granted_at", sa.BigInteger(), nullable=False),
        sa.Column("granted_ticks", sa.Float(precision=53), nullable=False),
        sa.Column("settled_at", sa.BigInteger(), nullable=False),
        sa.Column("settled_ticks", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("limit_name", "number"),
        **EXACT,
    )


def _inbox() -> None:
    op.create_table(
        "inbox",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("kind", sa.String(length=64), nullable=False),
        sa.Column("args", LONG_TEXT, nullable=False),
        sa.Column("dedupe_key", sa.String(length=190), nullable=True),
        sa.Column("target", sa.String(length=190), nullable=True),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("worker", sa.String(length=190), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("blocked_by", sa.String(length=190), nullable=True),
        sa.Column("enqueued_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=False),
        sa.Column("page", LONG_BYTES, nullable=True),
        sa.PrimaryKeyConstraint("id"),
        **EXACT,
    )
    op.create_index("inbox_state", "inbox", ["state", "id"], unique=False)


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("kind", sa.String(length=64), nullable=False),
        sa.Column("args", LONG_TEXT, nullable=False),
        sa.Column("dedupe_key", sa.String(length=190), nullable=True),
        sa.Column("target", sa.String(length=190), nullable=True),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("crashes", sa.Integer(), nullable=False),
        sa.Column("worker", sa.String(length=190), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("blocked_by", sa.String(length=190), nullable=True),
        sa.Column("enqueued_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        **EXACT,
    )
    op.create_index(
        "jobs_dedupe_key",
        "jobs",
        ["dedupe_key"],
        unique=True,
        sqlite_where=sa.text("dedupe_key IS NOT NULL"),
        postgresql_where=sa.text("dedupe_key IS NOT NULL"),
    )
    op.create_index(
        "jobs_claim", "jobs", ["kind", "state", "priority", "due_at", "id"], unique=False
    )


def _lanes() -> None:
    op.create_table(
        "lanes",
        sa.Column("key", sa.String(length=190), nullable=False),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("head_seq", sa.BigInteger(), nullable=False),
        sa.Column("due_at", sa.BigInteger(), nullable=True),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
        **EXACT,
    )
    op.create_index("lanes_due", "lanes", ["due_at"], unique=False)


def _limits() -> None:
    op.create_table(
        "limits",
        sa.Column("name", sa.String(length=190), nullable=False),
        sa.Column("given", sa.BigInteger(), nullable=False),
        sa.Column("held_at", sa.BigInteger(), nullable=True),
        sa.Column("held_boot", sa.String(length=64), nullable=True),
        sa.Column("held_ticks", sa.Float(precision=53), nullable=True),
        sa.Column("held_for_us", sa.BigInteger(), nullable=True),
        sa.Column("held_reason", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("name"),
        **EXACT,
    )


def _meta() -> None:
    op.create_table(
        "meta",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
        **EXACT,
    )


def _outbox() -> None:
    op.create_table(
        "outbox",
        sa.Column("key", sa.String(length=190), nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("kind", sa.String(length=64), nullable=False),
        sa.Column("body", LONG_TEXT, nullable=False),
        sa.Column("destination", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("key", "seq"),
        sa.UniqueConstraint("id", name="outbox_id"),
        **EXACT,
    )
    op.create_index("outbox_state", "outbox", ["state", "ended_at"], unique=False)


def _rates() -> None:
    op.create_table(
        "rates",
        sa.Column("client", sa.String(length=190), nullable=False),
        sa.Column("used_until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("client"),
        **EXACT,
    )


def _schedule() -> None:
    op.create_table(
        "schedule",
        sa.Column("member", sa.String(length=190), nullable=False),
        sa.Column("kind", sa.String(length=64), nullable=False),
        sa.Column("args", LONG_TEXT, nullable=False),
        sa.Column("next_at", sa.BigInteger(), nullable=False),
        sa.Column("every_us", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("member"),
        **EXACT,
    )
    op.create_index("schedule_next", "schedule", ["next_at"], unique=False)
