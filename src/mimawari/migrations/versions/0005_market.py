"""Add what the market's figures are read from, and the alerts of the prices watch."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

EXACT: dict[str, Any] = {
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_nopad_bin",
    "mariadb_engine": "InnoDB",
}
# MariaDB can index only text of a bounded length.
SHORT = sa.Text().with_variant(sa.String(64), "mariadb")
LONG_TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mariadb")
SIGHTINGS = "mercari_crawl_sightings"
SOLD = ("sold_quarter", "sold_yen", "sold_after_hours")


def upgrade() -> None:
    """Go one step on."""
    for name in ("median_percent", "lowest_yen"):
        op.add_column("mercari_crawl_settings", sa.Column(name, sa.Integer(), nullable=True))
    for name in ("on_sale_yen", *SOLD):
        op.add_column(SIGHTINGS, sa.Column(name, sa.Integer(), nullable=True))
    op.create_index(f"{SIGHTINGS}_on_sale", SIGHTINGS, ["product_id", "on_sale_yen"])
    op.create_index(f"{SIGHTINGS}_sold", SIGHTINGS, ["product_id", *SOLD])
    op.create_table(
        "mercari_sold_days",
        sa.Column("product_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("day", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("sales", LONG_TEXT, nullable=False),
        sa.ForeignKeyConstraint(["product_id"], ["products.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("product_id", "day"),
        **EXACT,
    )
    op.create_table(
        "mercari_price_alerts",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("product_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("external_id", SHORT, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("price", sa.Integer(), nullable=False),
        sa.Column("threshold", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("opened_at", sa.BigInteger(), nullable=False),
        sa.Column("closed_at", sa.BigInteger(), nullable=True),
        sa.Column("closed_reason", sa.Text(), nullable=True),
        sa.Column("open_key", sa.String(length=48), nullable=True),
        sa.ForeignKeyConstraint(["product_id"], ["products.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("open_key"),
        **EXACT,
        sqlite_autoincrement=True,
    )
    op.create_index("mercari_price_alerts_product", "mercari_price_alerts", ["product_id", "id"])
