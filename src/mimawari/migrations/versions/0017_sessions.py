"""Make the tables of sessions and of links that log in once; forget those in the cache."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from mimawari.store.sql.collation import compare_by_code_points

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

EXACT: dict[str, Any] = {
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_nopad_bin",
    "mariadb_engine": "InnoDB",
}


def upgrade() -> None:
    """Go one step on."""
    op.create_table(
        "sessions",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("secret_hash", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("key_number", sa.Integer(), nullable=False),
        sa.Column("made_at", sa.BigInteger(), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.Column("address", sa.String(length=64), nullable=False),
        sa.Column("agent", sa.String(length=190), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("secret_hash", name="sessions_secret_hash"),
        **EXACT,
    )
    op.create_table(
        "login_links",
        sa.Column("secret_hash", sa.String(length=64), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("secret_hash"),
        **EXACT,
    )
    cache = sa.table("cache", sa.column("key", sa.String()))
    op.execute(sa.delete(cache).where(cache.c.key.like("web:once:%")))
    compare_by_code_points(op.get_bind(), ["sessions", "login_links"])
