"""What the kernel keeps, one table an idea."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from mimawari.columns import EXACT, Instant, LongBytes, LongText, Prose, Word

metadata = MetaData()


def _job_columns() -> tuple[Column[Any], ...]:
    """Make the columns that a job has as long as it lives and after its end."""
    return (
        Column("id", Word(36), primary_key=True),
        Column("kind", Word(64), nullable=False),
        Column("args", LongText, nullable=False),
        Column("dedupe_key", Word(190)),
        Column("target", Word(190)),
        Column("priority", Integer, nullable=False),
        Column("state", Word(16), nullable=False),
        Column("token", BigInteger, nullable=False),
        Column("attempts", Integer, nullable=False),
        Column("worker", Word(190)),
        Column("reason", Prose),
        Column("blocked_by", Word(190)),
        Column("enqueued_at", Instant, nullable=False),
    )


jobs = Table(
    "jobs",
    metadata,
    *_job_columns(),
    # When a pending job may run; when a processing job's lease runs out.
    Column("due_at", Instant, nullable=False),
    Column("crashes", Integer, nullable=False),
    # How often the guard ended a process that had it in hand and stood still.
    Column("stops", Integer, nullable=False, server_default="0"),
    # Most jobs have no key; where the engine can, they cost this index nothing.
    Index(
        "jobs_dedupe_key",
        "dedupe_key",
        unique=True,
        sqlite_where=text("dedupe_key IS NOT NULL"),
        postgresql_where=text("dedupe_key IS NOT NULL"),
    ),
    # One index serves all: with a second one to choose from, engines sort the whole backlog.
    Index("jobs_claim", "kind", "state", "priority", "due_at", "id"),
    **EXACT,
)

# One row a job that has ended: the proof that its effects are in, and the dead letters.
inbox = Table(
    "inbox",
    metadata,
    *_job_columns(),
    Column("ended_at", Instant, nullable=False),
    Column("page", LongBytes),
    Index("inbox_state", "state", "id"),
    **EXACT,
)

schedule = Table(
    "schedule",
    metadata,
    Column("member", Word(190), primary_key=True),
    Column("kind", Word(64), nullable=False),
    Column("args", LongText, nullable=False),
    Column("next_at", Instant, nullable=False),
    Column("every_us", BigInteger, nullable=False),
    Column("reason", Prose),
    Index("schedule_next", "next_at"),
    **EXACT,
)

limits = Table(
    "limits",
    metadata,
    Column("name", Word(190), primary_key=True),
    Column("given", BigInteger, nullable=False),
    Column("held_at", Instant),
    Column("held_boot", Word(64)),
    Column("held_ticks", Float(53)),
    Column("held_for_us", BigInteger),
    Column("held_reason", Prose),
    **EXACT,
)

grants = Table(
    "grants",
    metadata,
    Column("limit_name", Word(190), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("id", Word(36), nullable=False),
    Column("caller", Word(190), nullable=False),
    Column("boot", Word(64), nullable=False),
    Column("granted_at", Instant, nullable=False),
    Column("granted_ticks", Float(53), nullable=False),
    # Until when the site may have counted it: the end of the request, or of the leave for it.
    Column("settled_at", Instant, nullable=False),
    Column("settled_ticks", Float(53), nullable=False),
    **EXACT,
)

breakers = Table(
    "breakers",
    metadata,
    Column("site", Word(190), primary_key=True),
    Column("state", Word(16), nullable=False),
    Column("failures", Integer, nullable=False),
    Column("until_at", Instant),
    Column("trial_for_us", BigInteger, nullable=False),
    Column("reason", Prose),
    **EXACT,
)

# Who is alive, by their own word; decides nothing.
processes = Table(
    "processes",
    metadata,
    Column("name", Word(190), primary_key=True),
    Column("roles", Word(190), nullable=False),
    Column("version", Word(64), nullable=False),
    Column("started_at", Instant, nullable=False),
    Column("said_at", Instant, nullable=False),
    **EXACT,
)

# When a breaker was open or a limit on hold, for people to see; decides nothing.
pauses = Table(
    "pauses",
    metadata,
    Column("id", Word(36), primary_key=True),
    Column("what", Word(16), nullable=False),
    Column("name", Word(190), nullable=False),
    Column("since_at", Instant, nullable=False),
    Column("until_at", Instant, nullable=False),
    Column("reason", Prose, nullable=False),
    Index("pauses_name", "name", "until_at"),
    Index("pauses_until", "until_at"),
    **EXACT,
)

# Failures in a row; a subject is a target or, of jobs without one, their kind.
streaks = Table(
    "streaks",
    metadata,
    Column("subject", Word(190), primary_key=True),
    Column("kind", Word(64), nullable=False),
    Column("job_id", Word(36), nullable=False),
    Column("reason", Prose, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("dead", Integer, nullable=False),
    Column("began_at", Instant, nullable=False),
    Column("last_at", Instant, nullable=False),
    **EXACT,
)

# A site's 404s since an item's page was last read.
not_found_runs = Table(
    "not_found_runs",
    metadata,
    Column("site", Word(190), primary_key=True),
    Column("state", Word(16), nullable=False),
    Column("answers", Integer, nullable=False),
    Column("holds", Integer, nullable=False),
    Column("item_asked", Boolean, nullable=False),
    Column("began_at", Instant),
    **EXACT,
)

# Jobs that ended with a 404 of which it is not settled yet whether it is true.
not_found = Table(
    "not_found",
    metadata,
    Column("job_id", Word(36), primary_key=True),
    Column("site", Word(190), nullable=False),
    Column("kind", Word(64), nullable=False),
    Column("target", Word(190)),
    Column("at", Instant, nullable=False),
    Column("undo", LongText, nullable=False),
    Index("not_found_site", "site", "at"),
    **EXACT,
)

cursors = Table(
    "cursors",
    metadata,
    Column("name", Word(190), primary_key=True),
    Column("value", LongText, nullable=False),
    **EXACT,
)

# A key's events form a lane; only its head is ever on its way.
lanes = Table(
    "lanes",
    metadata,
    Column("key", Word(190), primary_key=True),
    Column("last_seq", BigInteger, nullable=False),
    Column("head_seq", BigInteger, nullable=False),
    Column("due_at", Instant),
    Column("token", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    # Which process has the head in hand, and whether it is suspected of making one stand still.
    Column("owner", Word(36)),
    Column("suspect", Integer, nullable=False, server_default="0"),
    Index("lanes_due", "due_at"),
    Index("lanes_suspect", "suspect", "due_at"),
    Index("lanes_owner", "owner"),
    **EXACT,
)

outbox = Table(
    "outbox",
    metadata,
    Column("key", Word(190), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("id", Word(36), nullable=False),
    Column("kind", Word(64), nullable=False),
    Column("body", LongText, nullable=False),
    Column("destination", Prose, nullable=False),
    Column("state", Word(16), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("reason", Prose),
    Column("created_at", Instant, nullable=False),
    Column("ended_at", Instant),
    UniqueConstraint("id", name="outbox_id"),
    Index("outbox_state", "state", "ended_at"),
    **EXACT,
)

# How each attempt to deliver went, as far as there is something to be seen of it.
attempts = Table(
    "attempts",
    metadata,
    Column("id", Word(36), primary_key=True),
    Column("event_id", Word(36), nullable=False),
    Column("number", Integer, nullable=False),
    Column("at", Instant, nullable=False),
    Column("result", Word(16), nullable=False),
    Column("reason", Prose),
    Column("request", LongText),
    Column("status", Integer),
    Column("answer", LongText),
    Column("took_us", BigInteger),
    Index("attempts_event", "event_id", "id"),
    Index("attempts_at", "at"),
    **EXACT,
)

cache = Table(
    "cache",
    metadata,
    Column("key", Word(190), primary_key=True),
    Column("value", LongBytes, nullable=False),
    Column("expires_at", Instant, nullable=False),
    Index("cache_expires", "expires_at"),
    **EXACT,
)

# How far each API client has used up its allowance, shared by every API process.
rates = Table(
    "rates",
    metadata,
    Column("client", Word(190), primary_key=True),
    Column("used_until", Instant, nullable=False),
    **EXACT,
)

# Sessions of the pages, by the hash of the cookie.
sessions = Table(
    "sessions",
    metadata,
    Column("id", Word(36), primary_key=True),
    Column("secret_hash", Word(64), nullable=False),
    Column("key", Word(64), nullable=False),
    Column("key_number", Integer, nullable=False),
    Column("made_at", Instant, nullable=False),
    Column("seen_at", Instant, nullable=False),
    Column("address", Word(64), nullable=False),
    Column("agent", Word(190), nullable=False),
    UniqueConstraint("secret_hash", name="sessions_secret_hash"),
    **EXACT,
)

# One-time login links, by the hash of their token.
login_links = Table(
    "login_links",
    metadata,
    Column("secret_hash", Word(64), primary_key=True),
    Column("expires_at", Instant, nullable=False),
    **EXACT,
)

# What a transaction changed and Redis, where there is one, may not have heard of yet.
relay = Table(
    "relay",
    metadata,
    Column("id", Word(36), primary_key=True),
    Column("sealed_at", Instant, nullable=False),
    Column("names", LongText, nullable=False),
    **EXACT,
)

# Counts what was put, for engines that cannot call other processes.
bells = Table(
    "bells",
    metadata,
    Column("topic", Word(64), primary_key=True),
    Column("rung", BigInteger, nullable=False),
    Column("sender", Word(64), nullable=False),
    **EXACT,
)

meta = Table(
    "meta",
    metadata,
    Column("name", Word(64), primary_key=True),
    Column("value", Text, nullable=False),
    **EXACT,
)
