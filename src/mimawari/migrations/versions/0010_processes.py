"""Make the table of processes that say that they are alive."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
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
        "processes",
        sa.Column("name", sa.String(length=190), nullable=False),
        sa.Column("roles", sa.String(length=190), nullable=False),
        sa.Column("version", sa.String(length=64), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("said_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
        **EXACT,
    )
