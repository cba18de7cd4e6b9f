"""What the hot watch keeps."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
)

from mimawari.columns import EXACT, Instant, Prose, Word

metadata = MetaData()
# An IP's own rows lie together, so that a page of them is one read.
TOGETHER = {**EXACT, "sqlite_with_rowid": False}


def _coverage() -> tuple[Column[object], ...]:
    return (
        Column("pages_asked", Integer, nullable=False),
        Column("pages_read", Integer, nullable=False),
        Column("capped_on_sale", Boolean, nullable=False),
        Column("capped_sold", Boolean, nullable=False),
        Column("page_errors", Prose, nullable=False),
    )


def _flow() -> tuple[Column[object], ...]:
    return (
        Column("inflow", Integer, nullable=False),
        Column("outflow", Integer, nullable=False),
        # Of what was newly sold, as far as it had a price.
        Column("samples", Integer, nullable=False),
        Column("average_yen", Float(53)),
        Column("median_yen", Float(53)),
        Column("least_yen", Integer),
        Column("most_yen", Integer),
        Column("stddev_yen", Float(53)),
    )


def _ip_id(*, primary_key: bool = False) -> Column[int]:
    owner = ForeignKey("ip_metadata.id", ondelete="CASCADE")
    return Column(
        "ip_id", Integer, owner, primary_key=primary_key, autoincrement=False, nullable=False
    )


ips = Table(
    "ip_metadata",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("name", Word(200), nullable=False),
    Column("name_en", Word(200), nullable=False),
    Column("keyword", Word(200), nullable=False),
    Column("weight", Float(53), nullable=False),
    Column("active", Boolean, nullable=False),
    Column("tags", Prose, nullable=False),
    Column("last_crawled_at", Instant),
    # The first crawl that read every page; before it everything would look new.
    Column("baseline_at", Instant),
    Column("failures", Integer, nullable=False),
    Column("last_error", Prose, nullable=False),
    *_coverage(),
    # All that was ever counted, and the last hour that has a row: where a window ends now.
    Column("inflow_total", BigInteger, nullable=False),
    Column("outflow_total", BigInteger, nullable=False),
    Column("hour_at", Instant),
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
    Index("ip_metadata_keyword", "keyword", unique=True),
    **EXACT,
    sqlite_autoincrement=True,
)

items = Table(
    "item_snapshots",
    metadata,
    _ip_id(primary_key=True),
    Column("source_id", Word(64), primary_key=True),
    Column("status", Word(16), nullable=False),
    Column("price_yen", Integer),
    Column("title", Prose, nullable=False),
    Column("image_url", Prose, nullable=False),
    Column("item_url", Prose, nullable=False),
    Column("first_seen_at", Instant, nullable=False),
    Column("last_seen_at", Instant, nullable=False),
    Column("sold_at", Instant),
    Index("item_snapshots_newest", "ip_id", "first_seen_at", "source_id"),
    **TOGETHER,
)

# An item's life story, and the source of every count.
changes = Table(
    "item_changes",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    _ip_id(),
    Column("source_id", Word(64), nullable=False),
    Column("kind", Word(16), nullable=False),
    Column("at", Instant, nullable=False),
    Column("price_before_yen", Integer),
    Column("price_yen", Integer),
    Index("item_changes_at", "ip_id", "at"),
    Index("item_changes_item", "ip_id", "source_id", "at"),
    **EXACT,
)

# One row an applied crawl: the proof that its task was applied, and how much it could see.
crawls = Table(
    "ip_crawls",
    metadata,
    Column("task_id", Word(64), primary_key=True),
    _ip_id(),
    Column("crawled_at", Instant, nullable=False),
    Column("items", Integer, nullable=False),
    Column("inflow", Integer, nullable=False),
    Column("outflow", Integer, nullable=False),
    *_coverage(),
    Column("error", Prose, nullable=False),
    Index("ip_crawls_at", "ip_id", "crawled_at"),
    **EXACT,
)

hours = Table(
    "ip_stats_hourly",
    metadata,
    _ip_id(primary_key=True),
    Column("hour_at", Instant, primary_key=True),
    *_flow(),
    # Running totals up to and with this hour: any window is the difference of two rows.
    Column("inflow_total", BigInteger, nullable=False),
    Column("outflow_total", BigInteger, nullable=False),
    # Holds all that a leaderboard reads, so that it walks along the index alone.
    Index(
        "ip_stats_hourly_at",
        *("hour_at", "ip_id", "inflow_total", "inflow", "outflow_total", "outflow"),
    ),
    **TOGETHER,
)


def _periods(name: str) -> Table:
    return Table(
        name,
        metadata,
        _ip_id(primary_key=True),
        Column("start_at", Instant, primary_key=True),
        *_flow(),
        Column("hours", Integer, nullable=False),
        **TOGETHER,
    )


days = _periods("ip_stats_daily")
weeks = _periods("ip_stats_weekly")
months = _periods("ip_stats_monthly")

alerts = Table(
    "ip_alerts",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    _ip_id(),
    Column("kind", Word(32), nullable=False),
    Column("level", Word(16), nullable=False),
    Column("value", Float(53), nullable=False),
    Column("threshold", Float(53), nullable=False),
    Column("samples", Integer, nullable=False),
    Column("opened_at", Instant, nullable=False),
    Column("closed_at", Instant),
    Column("acknowledged_at", Instant),
    # Set while it is open: of a kind only one is open for an IP.
    Column("open_key", Word(64)),
    Index("ip_alerts_open", "open_key", unique=True),
    Index("ip_alerts_ip", "ip_id", "id"),
    **EXACT,
)
