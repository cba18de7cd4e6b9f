"""What the books watch keeps."""

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

from mimawari.columns import EXACT, Instant, Prose, Word
from mimawari.columns.stamps import SHORT, STAMP, current_stamp

metadata = MetaData()

jobs = Table(
    "book_jobs",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("name", Word(64), nullable=False, unique=True),
    Column("queries", Prose, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("every_seconds", Integer, nullable=False),
    Column("mail_limit", Integer, nullable=False),
    Column("max_per_run", Integer, nullable=False),
    Column("print_type", Word(16)),
    Column("lang_restrict", Word(16)),
    Column("recipients", Prose, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
    Column("last_run_at", Instant),
    **EXACT,
    sqlite_autoincrement=True,
)

cursors = Table(
    "collect_cursor",
    metadata,
    Column("job_name", SHORT, primary_key=True),
    Column("query_set_hash", SHORT, primary_key=True),
    Column("start_index", Integer, nullable=False, server_default="0"),
    Column("is_exhausted", Integer, nullable=False, server_default="0"),
    Column("last_updated_at", STAMP, nullable=False, server_default=current_stamp()),
    **EXACT,
)

# One book a row: under its ISBN, or where it has none under the id of its volume.
books = Table(
    "books",
    metadata,
    Column("book_key", Word(64), primary_key=True),
    Column("volume_id", Word(64), nullable=False),
    Column("isbn13", Word(13)),
    Column("title", Prose, nullable=False),
    Column("subtitle", Prose),
    Column("authors", Prose, nullable=False),
    Column("publisher", Prose),
    Column("published", Word(10)),
    Column("language", Prose),
    Column("categories", Prose, nullable=False),
    Column("description", Prose),
    Column("page_count", Integer),
    Column("thumbnail", Prose),
    Column("info_link", Prose),
    Column("first_job", Word(64), nullable=False),
    Column("first_seen_at", Instant, nullable=False),
    Column("last_seen_at", Instant, nullable=False),
    Index("books_first_seen", "first_seen_at", "book_key"),
    **EXACT,
)


def _job_id(**given: Any) -> Column[int]:
    owner = ForeignKey("book_jobs.id", ondelete="CASCADE")
    return Column("job_id", Integer, owner, autoincrement=False, nullable=False, **given)


# Which job has found which book, in the order in which they were shown.
job_books = Table(
    "job_books",
    metadata,
    _job_id(primary_key=True),
    Column("book_key", Word(64), primary_key=True),
    Column("run_id", Word(36), nullable=False),
    Column("found_at", Instant, nullable=False),
    Column("place", Integer, nullable=False),
    Index("job_books_found", "job_id", "found_at", "place"),
    **EXACT,
)

# Calls of a day in the configured zone: those that are over, and those that are on their way.
usage = Table(
    "api_usage",
    metadata,
    Column("provider", Word(32), primary_key=True),
    Column("day", Word(10), primary_key=True),
    Column("calls", Integer, nullable=False),
    Column("reserved", Integer, nullable=False),
    **EXACT,
)

runs = Table(
    "book_runs",
    metadata,
    Column("id", Word(36), primary_key=True),
    _job_id(),
    Column("query_set_hash", Word(64), nullable=False),
    # It changes neither when the job is due nor what is mailed.
    Column("is_dry", Boolean, nullable=False),
    Column("started_at", Instant, nullable=False),
    Column("ended_at", Instant),
    Column("pages", Integer, nullable=False),
    Column("volumes", Integer, nullable=False),
    Column("refused", Integer, nullable=False),
    Column("collected", Integer, nullable=False),
    Column("new_books", Integer, nullable=False),
    Column("next_index", Integer, nullable=False),
    Column("total_items", Integer),
    Column("stop_reason", Word(16)),
    Column("words", Prose),
    Index("book_runs_job", "job_id", "started_at"),
    **EXACT,
)

mails = Table(
    "book_mails",
    metadata,
    Column("id", Word(36), primary_key=True),
    Column("recipients", Prose, nullable=False),
    Column("language", Word(2), nullable=False),
    Column("books", Integer, nullable=False),
    Column("state", Word(16), nullable=False),
    Column("reason", Prose),
    Column("attempts", Integer, nullable=False),
    Column("created_at", Instant, nullable=False),
    # Since when it stands as it does.
    Column("changed_at", Instant, nullable=False),
    Index("book_mails_created", "created_at"),
    **EXACT,
)

# What was mailed, which outlives the job: one that is made again does not mail it again.
deliveries = Table(
    "delivery_items",
    metadata,
    Column("job_name", Word(64), primary_key=True),
    Column("book_key", Word(64), primary_key=True),
    Column("mail_id", Word(36), nullable=False),
    # The job's own recipients as it keeps them, so that no list gets a book twice.
    Column("recipients", Prose, nullable=False),
    Column("place", Integer, nullable=False),
    Index("delivery_items_mail", "mail_id"),
    Index("delivery_items_book", "book_key"),
    **EXACT,
)
