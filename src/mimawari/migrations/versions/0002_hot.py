"""Make the tables of the hot watch."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

EXACT: dict[str, Any] = {
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_nopad_bin",
    "mariadb_engine": "InnoDB",
}


def upgrade() -> None:
    """Go one step on."""
    _ip_metadata()
    _ip_alerts()
    _ip_crawls()
    _ip_stats_daily()
    _ip_stats_hourly()
    _ip_stats_monthly()
    _ip_stats_weekly()
    _item_changes()
    _item_snapshots()


def _ip_metadata() -> None:
    op.create_table(
        "ip_metadata",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("name_en", sa.String(length=200), nullable=False),
        sa.Column("keyword", sa.String(length=200), nullable=False),
        sa.Column("weight", sa.Float(precision=53), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("last_crawled_at", sa.BigInteger(), nullable=True),
        sa.Column("baseline_at", sa.BigInteger(), nullable=True),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=False),
        sa.Column("pages_asked", sa.Integer(), nullable=False),
        sa.Column("pages_read", sa.Integer(), nullable=False),
        sa.Column("capped_on_sale", sa.Boolean(), nullable=False),
        sa.Column("capped_sold", sa.Boolean(), nullable=False),
        sa.Column("page_errors", sa.Text(), nullable=False),
        sa.Column("inflow_total", sa.BigInteger(), nullable=False),
        sa.Column("outflow_total", sa.BigInteger(), nullable=False),
        sa.Column("hour_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        **EXACT,
        sqlite_autoincrement=True,
    )
    op.create_index("ip_metadata_keyword", "ip_metadata", ["keyword"], unique=True)


def _ip_alerts() -> None:
    op.create_table(
        "ip_alerts",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("ip_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("level", sa.String(length=16), nullable=False),
        sa.Column("value", sa.Float(precision=53), nullable=False),
        sa.Column("threshold", sa.Float(precision=53), nullable=False),
        sa.Column("samples", sa.Integer(), nullable=False),
        sa.Column("opened_at", sa.BigInteger(), nullable=False),
        sa.Column("closed_at", sa.BigInteger(), nullable=True),
        sa.Column("acknowledged_at", sa.BigInteger(), nullable=True),
        sa.Column("open_key", sa.String(length=64), nullable=True),
        sa.ForeignKeyConstraint(["ip_id"], ["ip_metadata.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        **EXACT,
    )
    op.create_index("ip_alerts_ip", "ip_alerts", ["ip_id", "id"], unique=False)
    op.create_index("ip_alerts_open", "ip_alerts", ["open_key"], unique=True)


def _ip_crawls() -> None:
    op.create_table(
        "ip_crawls",
        sa.Column("task_id", sa.String(length=64), nullable=False),
        sa.Column("ip_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("crawled_at", sa.BigInteger(), nullable=False),
        sa.Column("items", sa.Integer(), nullable=False),
        sa.Column("inflow", sa.Integer(), nullable=False),
        sa.Column("outflow", sa.Integer(), nullable=False),
        sa.Column("pages_asked", sa.Integer(), nullable=False),
        sa.Column("pages_read", sa.Integer(), nullable=False),
        sa.Column("capped_on_sale", sa.Boolean(), nullable=False),
        sa.Column("capped_sold", sa.Boolean(), nullable=False),
        sa.Column("page_errors", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["ip_id"], ["ip_metadata.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("task_id"),
        **EXACT,
    )
    op.create_index("ip_crawls_at", "ip_crawls", ["ip_id", "crawled_at"], unique=False)


def _ip_stats_daily() -> None:
    op.create_table(
        "ip_stats_daily",
        sa.Column("ip_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("start_at", sa.BigInteger(), nullable=False),
        sa.Column("inflow", sa.Integer(), nullable=False),
        sa.Column("outflow", sa.Integer(), nullable=False),
        sa.Column("samples", sa.Integer(), nullable=False),
        sa.Column("average_yen", sa.Float(precision=53), nullable=True),
        sa.Column("median_yen", sa.Float(precision=53), nullable=True),
        sa.Column("least_yen", sa.Integer(), nullable=True),
        sa.Column("most_yen", sa.Integer(), nullable=True),
        sa.Column("stddev_yen", sa.Float(precision=53), nullable=True),
        sa.Column("hours", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["ip_id"], ["ip_metadata.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("ip_id", "start_at"),
        **EXACT,
        sqlite_with_rowid=False,
    )


def _ip_stats_hourly() -> None:
    op.create_table(
        "ip_stats_hourly",
        sa.Column("ip_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("hour_at", sa.BigInteger(), nullable=False),
        sa.Column("inflow", sa.Integer(), nullable=False),
        sa.Column("outflow", sa.Integer(), nullable=False),
        sa.Column("samples", sa.Integer(), nullable=False),
        sa.Column("average_yen", sa.Float(precision=53), nullable=True),
        sa.Column("median_yen", sa.Float(precision=53), nullable=True),
        sa.Column("least_yen", sa.Integer(), nullable=True),
        sa.Column("most_yen", sa.Integer(), nullable=True),
        sa.Column("stddev_yen", sa.Float(precision=53), nullable=True),
        sa.Column("inflow_total", sa.BigInteger(), nullable=False),
        sa.Column("outflow_total", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["ip_id"], ["ip_metadata.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("ip_id", "hour_at"),
        **EXACT,
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ip_stats_hourly_at",
        "ip_stats_hourly",
        ["hour_at", "ip_id", "inflow_total", "inflow", "outflow_total", "outflow"],
        unique=False,
    )


def _ip_stats_monthly() -> None:
    op.create_table(
        "ip_stats_monthly",
        sa.Column("ip_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("start_at", sa.BigInteger(), nullable=False),
        sa.Column("inflow", sa.Integer(), nullable=False),
        sa.Column("outflow", sa.Integer(), nullable=False),
        sa.Column("samples", sa.Integer(), nullable=False),
        sa.Column("average_yen", sa.Float(precision=53), nullable=True),
        sa.Column("median_yen", sa.Float(precision=53), nullable=True),
        sa.Column("least_yen", sa.Integer(), nullable=True),
        sa.Column("most_yen", sa.Integer(), nullable=True),
        sa.Column("stddev_yen", sa.Float(precision=53), nullable=True),
        sa.Column("hours", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["ip_id"], ["ip_metadata.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("ip_id", "start_at"),
        **EXACT,
        sqlite_with_rowid=False,
    )


def _ip_stats_weekly() -> None:
    op.create_table(
        "ip_stats_weekly",
        sa.Column("ip_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("start_at", sa.BigInteger(), nullable=False),
        sa.Column("inflow", sa.Integer(), nullable=False),
        sa.Column("outflow", sa.Integer(), nullable=False),
        sa.Column("samples", sa.Integer(), nullable=False),
        sa.Column("average_yen", sa.Float(precision=53), nullable=True),
        sa.Column("median_yen", sa.Float(precision=53), nullable=True),
        sa.Column("least_yen", sa.Integer(), nullable=True),
        sa.Column("most_yen", sa.Integer(), nullable=True),
        sa.Column("stddev_yen", sa.Float(precision=53), nullable=True),
        sa.Column("hours", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["ip_id"], ["ip_metadata.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("ip_id", "start_at"),
        **EXACT,
        sqlite_with_rowid=False,
    )


def _item_changes() -> None:
    op.create_table(
        "item_changes",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("ip_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("source_id", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("price_before_yen", sa.Integer(), nullable=True),
        sa.Column("price_yen", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["ip_id"], ["ip_metadata.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        **EXACT,
    )
    op.create_index("item_changes_at", "item_changes", ["ip_id", "at"], unique=False)
    op.create_index("item_changes_item", "item_changes", ["ip_id", "source_id", "at"], unique=False)


def _item_snapshots() -> None:
    op.create_table(
        "item_snapshots",
        sa.Column("ip_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("source_id", sa.String(length=64), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("price_yen", sa.Integer(), nullable=True),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("image_url", sa.Text(), nullable=False),
        sa.Column("item_url", sa.Text(), nullable=False),
        sa.Column("first_seen_at", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_at", sa.BigInteger(), nullable=False),
        sa.Column("sold_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["ip_id"], ["ip_metadata.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("ip_id", "source_id"),
        **EXACT,
        sqlite_with_rowid=False,
    )
    op.create_index(
        "item_snapshots_newest",
        "item_snapshots",
        ["ip_id", "first_seen_at", "source_id"],
        unique=False,
    )
