"""Make the tables of the rentals watch, and its view of the queue."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

EXACT: dict[str, Any] = {
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_nopad_bin",
    "mariadb_engine": "InnoDB",
}

# A job's target is `rentals:` and the id of its property.
QUEUE = """
CREATE VIEW detail_scrape_queue AS
SELECT q.id, q.property_id, p.url, q.status, q.attempts, q.next_at, q.last_error, q.created_at,
    q.completed_at
FROM (
    SELECT id, substr(target, 9) AS property_id, state AS status, attempts, due_at AS next_at,
        reason AS last_error, enqueued_at AS created_at, NULL AS completed_at
    FROM jobs WHERE kind = 'rentals.detail'
    UNION ALL
    SELECT id, substr(target, 9), state, attempts, NULL, reason, enqueued_at, ended_at
    FROM inbox WHERE kind = 'rentals.detail'
) q LEFT JOIN properties p ON p.site = 'yahoo_realestate' AND p.property_id = q.property_id
"""


def upgrade() -> None:
    """Go one step on."""
    _rental_lists()
    _detail_scrape_archive()
    _properties()
    _property_changes()
    _property_snapshots()
    _list_properties()
    _list_runs()
    op.execute(QUEUE)


def _detail_scrape_archive() -> None:
    op.create_table(
        "detail_scrape_archive",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("property_id", sa.String(length=64), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("completed_at", sa.BigInteger(), nullable=False),
        sa.Column("archived_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        **EXACT,
    )
    op.create_index(
        "detail_scrape_archive_property",
        "detail_scrape_archive",
        ["property_id", "completed_at"],
        unique=False,
    )


def _properties() -> None:
    op.create_table(
        "properties",
        sa.Column("site", sa.String(length=32), nullable=False),
        sa.Column("property_id", sa.String(length=64), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("rent_yen", sa.Integer(), nullable=True),
        sa.Column("fee_yen", sa.Integer(), nullable=True),
        sa.Column("deposit_yen", sa.Integer(), nullable=True),
        sa.Column("key_money_yen", sa.Integer(), nullable=True),
        sa.Column("layout", sa.String(length=64), nullable=True),
        sa.Column("area_m2", sa.Float(precision=53), nullable=True),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("structure_id", sa.String(length=64), nullable=True),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("building_name", sa.Text(), nullable=True),
        sa.Column("rent_note", sa.Text(), nullable=True),
        sa.Column("floor", sa.Integer(), nullable=True),
        sa.Column("years_old", sa.Integer(), nullable=True),
        sa.Column("built_on", sa.String(length=16), nullable=True),
        sa.Column("address", sa.Text(), nullable=True),
        sa.Column("latitude", sa.Float(precision=53), nullable=True),
        sa.Column("longitude", sa.Float(precision=53), nullable=True),
        sa.Column("stations", sa.Text(), nullable=True),
        sa.Column("images", sa.Text(), nullable=True),
        sa.Column("first_seen_at", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_at", sa.BigInteger(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.Column("detail_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("gone_at", sa.BigInteger(), nullable=True),
        sa.Column("snapshot_on", sa.String(length=10), nullable=False),
        sa.PrimaryKeyConstraint("site", "property_id"),
        **EXACT,
    )
    op.create_index(
        "properties_rent", "properties", ["status", "rent_yen", "property_id"], unique=False
    )
    op.create_index("properties_seen", "properties", ["last_seen_at", "property_id"], unique=False)


def _property_changes() -> None:
    op.create_table(
        "property_changes",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("site", sa.String(length=32), nullable=False),
        sa.Column("property_id", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("old_value", sa.Text(), nullable=True),
        sa.Column("new_value", sa.Text(), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("source", sa.String(length=16), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        **EXACT,
    )
    op.create_index("property_changes_kind", "property_changes", ["kind", "id"], unique=False)
    op.create_index(
        "property_changes_property", "property_changes", ["site", "property_id", "id"], unique=False
    )


def _property_snapshots() -> None:
    op.create_table(
        "property_snapshots",
        sa.Column("site", sa.String(length=32), nullable=False),
        sa.Column("property_id", sa.String(length=64), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("rent_yen", sa.Integer(), nullable=True),
        sa.Column("fee_yen", sa.Integer(), nullable=True),
        sa.Column("deposit_yen", sa.Integer(), nullable=True),
        sa.Column("key_money_yen", sa.Integer(), nullable=True),
        sa.Column("layout", sa.String(length=64), nullable=True),
        sa.Column("area_m2", sa.Float(precision=53), nullable=True),
        sa.Column("source", sa.String(length=16), nullable=False),
        sa.PrimaryKeyConstraint("site", "property_id", "at"),
        **EXACT,
    )


def _rental_lists() -> None:
    op.create_table(
        "rental_lists",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("url_hash", sa.String(length=64), nullable=False),
        sa.Column("limit_rooms", sa.Integer(), nullable=False),
        sa.Column("every_seconds", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_run_at", sa.BigInteger(), nullable=True),
        sa.Column("gone_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        **EXACT,
        sqlite_autoincrement=True,
    )
    op.create_index("rental_lists_url", "rental_lists", ["url_hash"], unique=True)


def _list_properties() -> None:
    op.create_table(
        "list_properties",
        sa.Column("list_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("site", sa.String(length=32), nullable=False),
        sa.Column("property_id", sa.String(length=64), nullable=False),
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("missed", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["list_id"], ["rental_lists.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("list_id", "site", "property_id"),
        **EXACT,
    )
    op.create_index(
        "list_properties_property", "list_properties", ["site", "property_id"], unique=False
    )


def _list_runs() -> None:
    op.create_table(
        "list_runs",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("list_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("job_id", sa.String(length=36), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("pages", sa.Integer(), nullable=False),
        sa.Column("found", sa.Integer(), nullable=False),
        sa.Column("refused", sa.Integer(), nullable=False),
        sa.Column("new_to_queue", sa.Integer(), nullable=False),
        sa.Column("already_known", sa.Integer(), nullable=False),
        sa.Column("is_whole", sa.Boolean(), nullable=False),
        sa.Column("ended_as", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["list_id"], ["rental_lists.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        **EXACT,
    )
    op.create_index("list_runs_list", "list_runs", ["list_id", "started_at"], unique=False)
