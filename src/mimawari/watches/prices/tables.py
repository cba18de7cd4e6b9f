"""What the prices watch keeps; `mercari_crawl_results` has just the columns of its description."""

from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
)

from mimawari.columns import EXACT, Instant, LongText, Prose, Word
from mimawari.columns.stamps import SHORT, STAMP, current_stamp

metadata = MetaData()


def _stamps() -> tuple[Column[Any], ...]:
    return (
        Column("created_at", STAMP, nullable=False, server_default=current_stamp()),
        Column("updated_at", STAMP, nullable=False, server_default=current_stamp()),
    )


def _id() -> Column[int]:
    return Column("id", Integer, primary_key=True, autoincrement=True)


def _product_id(*, unique: bool = False, primary_key: bool = False) -> Column[int]:
    owner = ForeignKey("products.id", ondelete="CASCADE")
    given: dict[str, Any] = {"unique": unique, "primary_key": primary_key, "autoincrement": False}
    return Column("product_id", Integer, owner, nullable=False, **given)


NUMBERED: dict[str, Any] = {**EXACT, "sqlite_autoincrement": True}

products = Table("products", metadata, _id(), Column("name", Prose, nullable=False), *_stamps(),
                 **NUMBERED)  # fmt: skip

settings = Table(
    "mercari_crawl_settings",
    metadata,
    _id(),
    _product_id(unique=True),
    Column("keyword", Prose, nullable=False),
    Column("category_id", Integer),
    Column("min_price", Integer, nullable=False, server_default="0"),
    Column("max_price", Integer, nullable=False, server_default="0"),
    Column("enabled", Integer, nullable=False, server_default="1"),
    Column("exclusions", Prose, nullable=False),
    Column("item_conditions", Prose, nullable=False),
    Column("target_price", Integer),
    Column("median_percent", Integer),
    # The lowest price on sale that was told, against which the next one is a new lowest.
    Column("lowest_yen", Integer),
    # The first crawl that read every page it asked for; before it all pages are asked for.
    Column("first_run_at", Instant),
    Column("last_run_at", Instant),
    # How many items' own pages the last crawl left to be read, which decides the product's share.
    Column("wanted", Integer, nullable=False, server_default="0"),
    *_stamps(),
    **NUMBERED,
)


def _result_columns() -> tuple[Column[Any], ...]:
    return (
        Column("external_id", SHORT, nullable=False),
        Column("name", Prose, nullable=False),
        Column("price", Integer, nullable=False),
        Column("selling_url", Prose, nullable=False),
        Column("image_url", Prose, nullable=False),
        Column("selling_status", Integer, nullable=False),
        Column("seller_type", Integer, nullable=False),
        Column("seller_id", Prose),
        Column("sold_out_at", Prose),
    )


results = Table(
    "mercari_crawl_results",
    metadata,
    _id(),
    _product_id(),
    *_result_columns(),
    *_stamps(),
    Index("product_external_unique_idx", "product_id", "external_id", unique=True),
    Index("product_id_idx", "product_id"),
    Index("external_id_idx", "external_id"),
    Index("created_at_idx", "created_at"),
    Index("updated_at_idx", "updated_at"),
    **NUMBERED,
)

# What no longer matches its product's settings: out of every figure, and back when it does again.
removed = Table(
    "mercari_crawl_results_removed",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    _product_id(),
    *_result_columns(),
    Column("created_at", STAMP, nullable=False),
    Column("updated_at", STAMP, nullable=False),
    # `mismatch` comes back when the settings fit again, `gone` when a search shows it again.
    Column("kind", Word(16), nullable=False),
    Column("reason", Prose, nullable=False),
    Column("removed_at", Instant, nullable=False),
    Index("mercari_crawl_results_removed_product", "product_id"),
    **EXACT,
)

# What the description's table has no room for: how an item was seen, whether it was looked for,
# and what it stands for in the market's figures, in an order that they are read in.
sightings = Table(
    "mercari_crawl_sightings",
    metadata,
    _product_id(primary_key=True),
    Column("external_id", SHORT, primary_key=True),
    Column("listed_at", Instant),
    Column("last_seen_at", Instant, nullable=False),
    # When its own page was enqueued; null once that was read, or if it never was.
    Column("asked_at", Instant),
    # What the site files it under and how worn it is; null until a page tells.
    Column("category_id", Integer),
    Column("condition_id", Integer),
    Column("on_sale_yen", Integer),
    Column("sold_yen", Integer),
    # Quarters of an hour since 1970: a day of any zone begins with one of them.
    Column("sold_quarter", Integer),
    Column("sold_after_hours", Integer),
    Index("mercari_crawl_sightings_on_sale", "product_id", "on_sale_yen"),
    Index(
        "mercari_crawl_sightings_sold",
        "product_id", "sold_quarter", "sold_yen", "sold_after_hours",
    ),
    **EXACT,
)  # fmt: skip
SAME_ITEM = (sightings.c.product_id == results.c.product_id) & (
    sightings.c.external_id == results.c.external_id
)
"""Leads from a result to its sighting, and back."""

# The categories that a category lies in, as an item's own page tells them.
categories = Table(
    "mercari_categories",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    # Numbers, parted by blanks.
    Column("above", Prose, nullable=False),
    **EXACT,
)

# Made anew from the sightings of a day whenever one of them changes.
sold_days = Table(
    "mercari_sold_days",
    metadata,
    _product_id(primary_key=True),
    Column("day", Integer, primary_key=True, autoincrement=False),
    Column("sales", LongText, nullable=False),
    **EXACT,
)
alerts = Table(
    "mercari_price_alerts",
    metadata,
    _id(),
    _product_id(),
    Column("kind", Word(16), nullable=False),
    Column("external_id", SHORT, nullable=False),
    Column("name", Prose, nullable=False),
    Column("price", Integer, nullable=False),
    Column("threshold", Integer, nullable=False),
    Column("reason", Prose, nullable=False),
    # Why the price is out of line with what was sold; null if it is not.
    Column("doubt", Prose),
    Column("opened_at", Instant, nullable=False),
    Column("closed_at", Instant),
    Column("closed_reason", Prose),
    # The product and the kind while it is open, with the item where each has its own alert.
    Column("open_key", Word(48), unique=True),
    Index("mercari_price_alerts_product", "product_id", "id"),
    **NUMBERED,
)
runs = Table(
    "mercari_crawl_runs",
    metadata,
    Column("task_id", Word(36), primary_key=True),
    _product_id(),
    Column("crawled_at", Instant, nullable=False),
    Column("found", Integer, nullable=False),
    Column("added", Integer, nullable=False),
    Column("left_out", Integer, nullable=False),
    Column("removed", Integer, nullable=False),
    Column("restored", Integer, nullable=False),
    Column("followed_up", Integer, nullable=False),
    Column("pages_asked", Integer, nullable=False),
    Column("pages_read", Integer, nullable=False),
    Column("capped_on_sale", Boolean, nullable=False),
    Column("capped_sold", Boolean, nullable=False),
    Column("unpriced", Integer, nullable=False),
    Column("page_errors", Prose, nullable=False),
    Index("mercari_crawl_runs_product", "product_id", "crawled_at"),
    **EXACT,
)
