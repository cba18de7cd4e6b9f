"""Make the table of what Redis, where there is one, may not have heard of yet."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0011"
down_revision = "0010"
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
    op.create_table(
        "relay",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("sealed_at", sa.BigInteger(), nullable=False),
        sa.Column("names", LONG_TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        **EXACT,
    )
