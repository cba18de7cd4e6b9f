"""Make the tables of 404s in a row: whether a site is asked for a control, and what is undone."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from mimawari.store.sql.collation import compare_by_code_points

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

LONG_TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mariadb")
EXACT: dict[str, Any] = {
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_nopad_bin",
    "mariadb_engine": "InnoDB",
}


def upgrade() -> None:
    """Go one step on."""
    op.create_table(
        "not_found_runs",
        sa.Column("site", sa.String(length=190), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("answers", sa.Integer(), nullable=False),
        sa.Column("holds", sa.Integer(), nullable=False),
        sa.Column("item_asked", sa.Boolean(), nullable=False),
        sa.Column("began_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("site"),
        **EXACT,
    )
    op.create_table(
        "not_found",
        sa.Column("job_id", sa.String(length=36), nullable=False),
        sa.Column("site", sa.String(length=190), nullable=False),
        sa.Column("kind", sa.String(length=64), nullable=False),
        sa.Column("target", sa.String(length=190), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("undo", LONG_TEXT, nullable=False),
        sa.PrimaryKeyConstraint("job_id"),
        **EXACT,
    )
    op.create_index("not_found_site", "not_found", ["site", "at"], unique=False)
    compare_by_code_points(op.get_bind(), ["not_found_runs", "not_found"])
