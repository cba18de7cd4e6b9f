"""Compare text by code points in PostgreSQL, whatever the language of the database is."""

import sqlalchemy as sa
from alembic import op

from mimawari.store.sql.collation import compare_by_code_points

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

TABLES = (
    "api_usage",
    "attempts",
    "bells",
    "book_jobs",
    "book_mails",
    "book_runs",
    "books",
    "breakers",
    "cache",
    "collect_cursor",
    "cursors",
    "delivery_items",
    "detail_scrape_archive",
    "grants",
    "inbox",
    "ip_alerts",
    "ip_crawls",
    "ip_metadata",
    "ip_stats_daily",
    "ip_stats_hourly",
    "ip_stats_monthly",
    "ip_stats_weekly",
    "item_changes",
    "item_snapshots",
    "job_books",
    "jobs",
    "lanes",
    "limits",
    "list_properties",
    "list_runs",
    "mercari_crawl_results",
    "mercari_crawl_results_removed",
    "mercari_crawl_runs",
    "mercari_crawl_settings",
    "mercari_crawl_sightings",
    "mercari_price_alerts",
    "mercari_sold_days",
    "meta",
    "monitor_events",
    "monitor_loudness",
    "monitor_states",
    "monitor_stats",
    "monitor_turns",
    "monitors",
    "notify_events",
    "notify_incidents",
    "notify_lines",
    "notify_sends",
    "notify_targets",
    "outbox",
    "pauses",
    "processes",
    "products",
    "properties",
    "property_changes",
    "property_snapshots",
    "rates",
    "relay",
    "rental_lists",
    "schedule",
    "streaks",
)
QUEUE = "detail_scrape_queue"


def upgrade() -> None:
    """Go one step on."""
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    # A column cannot be changed while a view uses it; this one is ours.
    query = sa.text("SELECT pg_get_viewdef(CAST(:name AS regclass))")
    definition = connection.execute(query, {"name": QUEUE}).scalar_one()
    connection.exec_driver_sql(f"DROP VIEW {QUEUE}")
    compare_by_code_points(connection, TABLES)
    connection.exec_driver_sql(f"CREATE VIEW {QUEUE} AS {definition}")
