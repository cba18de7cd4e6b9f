"""Make the tables of the books watch."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
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
    _book_jobs()
    _collect_cursor()
    _books()
    _job_books()
    _api_usage()
    _book_runs()
    _book_mails()
    _delivery_items()


def _book_jobs() -> None:
    op.create_table(
        "book_jobs",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("queries", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("every_seconds", sa.Integer(), nullable=False),
        sa.Column("mail_limit", sa.Integer(), nullable=False),
        sa.Column("max_per_run", sa.Integer(), nullable=False),
        sa.Column("print_type", sa.String(length=16), nullable=True),
        sa.Column("lang_restrict", sa.String(length=16), nullable=True),
        sa.Column("recipients", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("last_run_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
        **EXACT,
        sqlite_autoincrement=True,
    )


def _collect_cursor() -> None:
    op.create_table(
        "collect_cursor",
        sa.Column("job_name", SHORT, nullable=False),
        sa.Column("query_set_hash", SHORT, nullable=False),
        sa.Column("start_index", sa.Integer(), server_default="0", nullable=False),
        sa.Column("is_exhausted", sa.Integer(), server_default="0", nullable=False),
        sa.Column("last_updated_at", STAMP, server_default=_now(), nullable=False),
        sa.PrimaryKeyConstraint("job_name", "query_set_hash"),
        **EXACT,
    )


def _books() -> None:
    op.create_table(
        "books",
        sa.Column("book_key", sa.String(length=64), nullable=False),
        sa.Column("volume_id", sa.String(length=64), nullable=False),
        sa.Column("isbn13", sa.String(length=13), nullable=True),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("subtitle", sa.Text(), nullable=True),
        sa.Column("authors", sa.Text(), nullable=False),
        sa.Column("publisher", sa.Text(), nullable=True),
        sa.Column("published", sa.String(length=10), nullable=True),
        sa.Column("language", sa.Text(), nullable=True),
        sa.Column("categories", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("page_count", sa.Integer(), nullable=True),
        sa.Column("thumbnail", sa.Text(), nullable=True),
        sa.Column("info_link", sa.Text(), nullable=True),
        sa.Column("first_job", sa.String(length=64), nullable=False),
        sa.Column("first_seen_at", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("book_key"),
        **EXACT,
    )
    op.create_index("books_first_seen", "books", ["first_seen_at", "book_key"])


def _job_books() -> None:
    op.create_table(
        "job_books",
        sa.Column("job_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("book_key", sa.String(length=64), nullable=False),
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("found_at", sa.BigInteger(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["book_jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "book_key"),
        **EXACT,
    )
    op.create_index("job_books_found", "job_books", ["job_id", "found_at", "place"])


def _api_usage() -> None:
    op.create_table(
        "api_usage",
        sa.Column("provider", sa.String(length=32), nullable=False),
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("reserved", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("provider", "day"),
        **EXACT,
    )


def _book_runs() -> None:
    op.create_table(
        "book_runs",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("job_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("query_set_hash", sa.String(length=64), nullable=False),
        sa.Column("is_dry", sa.Boolean(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("pages", sa.Integer(), nullable=False),
        sa.Column("volumes", sa.Integer(), nullable=False),
        sa.Column("refused", sa.Integer(), nullable=False),
        sa.Column("collected", sa.Integer(), nullable=False),
        sa.Column("new_books", sa.Integer(), nullable=False),
        sa.Column("next_index", sa.Integer(), nullable=False),
        sa.Column("total_items", sa.Integer(), nullable=True),
        sa.Column("stop_reason", sa.String(length=16), nullable=True),
        sa.Column("words", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["book_jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        **EXACT,
    )
    op.create_index("book_runs_job", "book_runs", ["job_id", "started_at"])


def _book_mails() -> None:
    op.create_table(
        "book_mails",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("recipients", sa.Text(), nullable=False),
        sa.Column("language", sa.String(length=2), nullable=False),
        sa.Column("books", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        **EXACT,
    )
    op.create_index("book_mails_created", "book_mails", ["created_at"])


def _delivery_items() -> None:
    op.create_table(
        "delivery_items",
        sa.Column("job_name", sa.String(length=64), nullable=False),
        sa.Column("book_key", sa.String(length=64), nullable=False),
        sa.Column("mail_id", sa.String(length=36), nullable=False),
        sa.Column("recipients", sa.Text(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("job_name", "book_key"),
        **EXACT,
    )
    op.create_index("delivery_items_mail", "delivery_items", ["mail_id"])
    op.create_index("delivery_items_book", "delivery_items", ["book_key"])
