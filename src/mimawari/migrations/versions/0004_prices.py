"""Make the tables of the prices watch."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

EXACT: dict[str, Any] = {
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_nopad_bin",
    "mariadb_engine": "InnoDB",
}
# MariaDB can index only text of a bounded length.
SHORT = sa.Text().with_variant(sa.String(64), "mariadb")
STAMP = sa.Text().with_variant(sa.String(32), "mariadb")
NOW_IN_POSTGRES = "to_char(CURRENT_TIMESTAMP AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')"


def _now() -> sa.TextClause:
    is_postgres = op.get_bind().dialect.name == "postgresql"
    return sa.text(NOW_IN_POSTGRES if is_postgres else "CURRENT_TIMESTAMP")


def upgrade() -> None:
    """Go one step on."""
    _products()
    _mercari_crawl_results()
    _mercari_crawl_results_removed()
    _mercari_crawl_runs()
    _mercari_crawl_settings()
    _mercari_crawl_sightings()


def _products() -> None:
    op.create_table(
        "products",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", STAMP, server_default=_now(), nullable=False),
        sa.Column("updated_at", STAMP, server_default=_now(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        **EXACT,
        sqlite_autoincrement=True,
    )


def _mercari_crawl_results() -> None:
    op.create_table(
        "mercari_crawl_results",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("product_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("external_id", SHORT, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("price", sa.Integer(), nullable=False),
        sa.Column("selling_url", sa.Text(), nullable=False),
        sa.Column("image_url", sa.Text(), nullable=False),
        sa.Column("selling_status", sa.Integer(), nullable=False),
        sa.Column("seller_type", sa.Integer(), nullable=False),
        sa.Column("seller_id", sa.Text(), nullable=True),
        sa.Column("sold_out_at", sa.Text(), nullable=True),
        sa.Column("created_at", STAMP, server_default=_now(), nullable=False),
        sa.Column("updated_at", STAMP, server_default=_now(), nullable=False),
        sa.ForeignKeyConstraint(["product_id"], ["products.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        **EXACT,
        sqlite_autoincrement=True,
    )
    op.create_index("created_at_idx", "mercari_crawl_results", ["created_at"], unique=False)
    op.create_index("external_id_idx", "mercari_crawl_results", ["external_id"], unique=False)
    op.create_index(
        "product_external_unique_idx",
        "mercari_crawl_results",
        ["product_id", "external_id"],
        unique=True,
    )
    op.create_index("product_id_idx", "mercari_crawl_results", ["product_id"], unique=False)
    op.create_index("updated_at_idx", "mercari_crawl_results", ["updated_at"], unique=False)


def _mercari_crawl_results_removed() -> None:
    op.create_table(
        "mercari_crawl_results_removed",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("product_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("external_id", SHORT, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("price", sa.Integer(), nullable=False),
        sa.Column("selling_url", sa.Text(), nullable=False),
        sa.Column("image_url", sa.Text(), nullable=False),
        sa.Column("selling_status", sa.Integer(), nullable=False),
        sa.Column("seller_type", sa.Integer(), nullable=False),
        sa.Column("seller_id", sa.Text(), nullable=True),
        sa.Column("sold_out_at", sa.Text(), nullable=True),
        sa.Column("created_at", STAMP, nullable=False),
        sa.Column("updated_at", STAMP, nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("removed_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["product_id"], ["products.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        **EXACT,
    )
    op.create_index(
        "mercari_crawl_results_removed_product",
        "mercari_crawl_results_removed",
        ["product_id"],
        unique=False,
    )


def _mercari_crawl_runs() -> None:
    op.create_table(
        "mercari_crawl_runs",
        sa.Column("task_id", sa.String(length=36), nullable=False),
        sa.Column("product_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("crawled_at", sa.BigInteger(), nullable=False),
        sa.Column("found", sa.Integer(), nullable=False),
        sa.Column("added", sa.Integer(), nullable=False),
        sa.Column("left_out", sa.Integer(), nullable=False),
        sa.Column("removed", sa.Integer(), nullable=False),
        sa.Column("restored", sa.Integer(), nullable=False),
        sa.Column("followed_up", sa.Integer(), nullable=False),
        sa.Column("pages_asked", sa.Integer(), nullable=False),
        sa.Column("pages_read", sa.Integer(), nullable=False),
        sa.Column("capped_on_sale", sa.Boolean(), nullable=False),
        sa.Column("capped_sold", sa.Boolean(), nullable=False),
        sa.Column("unpriced", sa.Integer(), nullable=False),
        sa.Column("page_errors", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["product_id"], ["products.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("task_id"),
        **EXACT,
    )
    op.create_index(
        "mercari_crawl_runs_product",
        "mercari_crawl_runs",
        ["product_id", "crawled_at"],
        unique=False,
    )


def _mercari_crawl_settings() -> None:
    op.create_table(
        "mercari_crawl_settings",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("product_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("keyword", sa.Text(), nullable=False),
        sa.Column("category_id", sa.Integer(), nullable=True),
        sa.Column("min_price", sa.Integer(), server_default="0", nullable=False),
        sa.Column("max_price", sa.Integer(), server_default="0", nullable=False),
        sa.Column("enabled", sa.Integer(), server_default="1", nullable=False),
        sa.Column("exclusions", sa.Text(), nullable=False),
        sa.Column("item_conditions", sa.Text(), nullable=False),
        sa.Column("target_price", sa.Integer(), nullable=True),
        sa.Column("first_run_at", sa.BigInteger(), nullable=True),
        sa.Column("last_run_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", STAMP, server_default=_now(), nullable=False),
        sa.Column("updated_at", STAMP, server_default=_now(), nullable=False),
        sa.ForeignKeyConstraint(["product_id"], ["products.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("product_id"),
        **EXACT,
        sqlite_autoincrement=True,
    )


def _mercari_crawl_sightings() -> None:
    op.create_table(
        "mercari_crawl_sightings",
        sa.Column("product_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("external_id", SHORT, nullable=False),
        sa.Column("listed_at", sa.BigInteger(), nullable=True),
        sa.Column("last_seen_at", sa.BigInteger(), nullable=False),
        sa.Column("missing_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["product_id"], ["products.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("product_id", "external_id"),
        **EXACT,
    )
