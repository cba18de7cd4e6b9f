"""Keep what items are filed under and how worn they are, which are asked after, and doubts."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from mimawari.store.sql.collation import compare_by_code_points

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

EXACT: dict[str, Any] = {
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_nopad_bin",
    "mariadb_engine": "InnoDB",
}
SIGHTINGS = "mercari_crawl_sightings"


def upgrade() -> None:
    """Go one step on."""
    op.drop_column(SIGHTINGS, "missing_at")
    op.add_column(SIGHTINGS, sa.Column("asked_at", sa.BigInteger(), nullable=True))
    for name in ("category_id", "condition_id"):
        op.add_column(SIGHTINGS, sa.Column(name, sa.Integer(), nullable=True))
    op.create_table(
        "mercari_categories",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("above", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        **EXACT,
    )
    op.add_column("mercari_price_alerts", sa.Column("doubt", sa.Text(), nullable=True))
    wanted = sa.Column("wanted", sa.Integer(), server_default="0", nullable=False)
    op.add_column("mercari_crawl_settings", wanted)
    compare_by_code_points(op.get_bind(), ["mercari_categories", "mercari_price_alerts"])
