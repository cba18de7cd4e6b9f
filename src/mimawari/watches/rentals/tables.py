"""What the rentals watch keeps."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
)

from mimawari.columns import EXACT, Instant, Prose, Word
from mimawari.watches.rentals.models import SITE_NAME

metadata = MetaData()


def _key() -> tuple[Column[str], ...]:
    return (
        Column("site", Word(32), primary_key=True),
        Column("property_id", Word(64), primary_key=True),
    )


def _terms() -> tuple[Column[Any], ...]:
    """Make the columns of what a property costs and is, which its history follows."""
    return (
        Column("status", Word(16), nullable=False),
        Column("rent_yen", Integer),
        Column("fee_yen", Integer),
        Column("deposit_yen", Integer),
        Column("key_money_yen", Integer),
        Column("layout", Word(64)),
        Column("area_m2", Float(53)),
    )


properties = Table(
    "properties",
    metadata,
    *_key(),
    *_terms(),
    Column("url", Prose, nullable=False),
    Column("structure_id", Word(64)),
    Column("title", Prose),
    Column("building_name", Prose),
    # Why there is no rent, in the site's words.
    Column("rent_note", Prose),
    Column("floor", Integer),
    Column("years_old", Integer),
    Column("built_on", Word(16)),
    Column("address", Prose),
    Column("latitude", Float(53)),
    Column("longitude", Float(53)),
    Column("stations", Prose),
    Column("images", Prose),
    Column("first_seen_at", Instant, nullable=False),
    Column("last_seen_at", Instant, nullable=False),
    Column("changed_at", Instant, nullable=False),
    Column("detail_at", Instant),
    Column("ended_at", Instant),
    # The site said that it is gone: it is never asked for again.
    Column("gone_at", Instant),
    # The day, in the configured zone, of its last snapshot.
    Column("snapshot_on", Word(10), nullable=False),
    Index("properties_rent", "status", "rent_yen", "property_id"),
    Index("properties_seen", "last_seen_at", "property_id"),
    **EXACT,
)

snapshots = Table(
    "property_snapshots",
    metadata,
    *_key(),
    Column("at", Instant, primary_key=True),
    *_terms(),
    Column("source", Word(16), nullable=False),
    **EXACT,
)

changes = Table(
    "property_changes",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("site", Word(32), nullable=False),
    Column("property_id", Word(64), nullable=False),
    Column("kind", Word(16), nullable=False),
    Column("old_value", Prose),
    Column("new_value", Prose),
    Column("at", Instant, nullable=False),
    Column("source", Word(16), nullable=False),
    Index("property_changes_property", "site", "property_id", "id"),
    Index("property_changes_kind", "kind", "id"),
    **EXACT,
)

# Every list that was ever asked for; one with an interval is a saved search.
lists = Table(
    "rental_lists",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("url", Prose, nullable=False),
    # Engines cannot index a whole address.
    Column("url_hash", Word(64), nullable=False),
    Column("limit_rooms", Integer, nullable=False),
    Column("every_seconds", Integer),
    Column("created_at", Instant, nullable=False),
    Column("last_run_at", Instant),
    Column("gone_at", Instant),
    Index("rental_lists_url", "url_hash", unique=True),
    **EXACT,
    sqlite_autoincrement=True,
)


def _list_id(*, primary_key: bool = False) -> Column[int]:
    owner = ForeignKey("rental_lists.id", ondelete="CASCADE")
    return Column(
        "list_id", Integer, owner, primary_key=primary_key, autoincrement=False, nullable=False
    )


# Which list has shown which property, in which run last, and how often it was missing since.
listed = Table(
    "list_properties",
    metadata,
    _list_id(primary_key=True),
    *_key(),
    Column("run_id", Word(36), nullable=False),
    Column("missed", Integer, nullable=False),
    Index("list_properties_property", "site", "property_id"),
    **EXACT,
)

runs = Table(
    "list_runs",
    metadata,
    Column("id", Word(36), primary_key=True),
    _list_id(),
    # The job that goes on with it.
    Column("job_id", Word(36), nullable=False),
    Column("started_at", Instant, nullable=False),
    Column("ended_at", Instant),
    Column("pages", Integer, nullable=False),
    Column("found", Integer, nullable=False),
    Column("refused", Integer, nullable=False),
    Column("new_to_queue", Integer, nullable=False),
    Column("already_known", Integer, nullable=False),
    # It saw all there is: from the first page to the last, and nothing was left out.
    Column("is_whole", Boolean, nullable=False),
    Column("ended_as", Prose, nullable=False),
    Index("list_runs_list", "list_id", "started_at"),
    **EXACT,
)

archive = Table(
    "detail_scrape_archive",
    metadata,
    Column("id", Word(36), primary_key=True),
    Column("property_id", Word(64), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("completed_at", Instant, nullable=False),
    Column("archived_at", Instant, nullable=False),
    Index("detail_scrape_archive_property", "property_id", "completed_at"),
    **EXACT,
)

# A view of the kernel's jobs, which the migration makes; so it is no table of ours to create.
queue = Table(
    "detail_scrape_queue",
    MetaData(),
    Column("id", Word(36)),
    Column("property_id", Word(64)),
    Column("url", Prose),
    Column("status", Word(16)),
    Column("attempts", Integer),
    Column("next_at", Instant),
    Column("last_error", Prose),
    Column("created_at", Instant),
    Column("completed_at", Instant),
)


def is_of(table: Table, property_id: str) -> ColumnElement[bool]:
    """Choose the rows of one property."""
    mine: ColumnElement[bool] = table.c.property_id == property_id
    return (table.c.site == SITE_NAME) & mine
