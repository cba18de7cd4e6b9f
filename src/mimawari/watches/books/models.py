"""What the books watch speaks of: jobs, where their reading stands, and why it stopped."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from mimawari.errors import BadInput
from mimawari.settings.mail import is_mail_address
from mimawari.sites.google_books import Query
from mimawari.text import clean
from mimawari.watches.books.hashing import hash_queries

MOST_A_PAGE = 40
"""The API gives no more at once."""
MOST_QUERIES = 20
MOST_PER_RUN = 1000
MOST_MAILED = 200
MOST_RECIPIENTS = 50
SHORTEST_EVERY, LONGEST_EVERY = timedelta(minutes=1), timedelta(days=365)
USUAL_EVERY = timedelta(hours=24)
USUAL_PER_RUN = 40
USUAL_MAIL_LIMIT = 20


# Letters of any script, so that a job may be named in Japanese.
_NAME = re.compile(r"\w[\w.-]{0,63}")


class StopReason(StrEnum):
    """Why a run ended; only an exhausted one has nothing more to find."""

    QUOTA = "quota"
    MAX_PER_RUN = "max_per_run"
    EXHAUSTED = "exhausted"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What is searched for, how often and how much of it."""

    name: str
    queries: tuple[str, ...]
    enabled: bool = True
    every_for: timedelta = USUAL_EVERY
    mail_limit: int = USUAL_MAIL_LIMIT
    max_per_run: int = USUAL_PER_RUN
    print_type: str | None = None
    lang_restrict: str | None = None
    recipients: tuple[str, ...] = ()
    """Who gets its books; nobody named means those of MIMAWARI_MAIL_TO."""

    def __post_init__(self) -> None:
        """Refuse what could not be searched for or mailed, with what to give instead."""
        if not _NAME.fullmatch(self.name):
            raise BadInput(
                "name: give 1 to 64 letters, digits, dots, dashes or underscores, like new-books"
            )
        if not 1 <= len(self.queries) <= MOST_QUERIES or not all(map(str.strip, self.queries)):
            raise BadInput(f"queries: give 1 to {MOST_QUERIES} of them, none empty")
        if any(clean(query) != query for query in self.queries):
            raise BadInput("queries: leave out control characters")
        if not SHORTEST_EVERY <= self.every_for <= LONGEST_EVERY:
            raise BadInput("interval: give 1m to 365d, like 24h")
        _check_range("max_per_run", self.max_per_run, 1, MOST_PER_RUN)
        _check_range("mail_limit", self.mail_limit, 0, MOST_MAILED)
        if len(self.recipients) > MOST_RECIPIENTS or not all(map(is_mail_address, self.recipients)):
            raise BadInput(f"recipients: give at most {MOST_RECIPIENTS} plain mail addresses")
        # The site's own rules, so that no run finds out later.
        Query(q=self.q, print_type=self.print_type, lang_restrict=self.lang_restrict)

    @property
    def q(self) -> str:
        """All queries as one, of which one has to be met."""
        return " OR ".join(self.queries)

    @property
    def query_set_hash(self) -> str:
        """What tells this set of queries from others, and so its cursor from theirs."""
        return hash_queries(self.queries)


@dataclass(frozen=True, slots=True, kw_only=True)
class BookJob(Search):
    """A search that is kept, and when it was last done."""

    id: int
    created_at: datetime
    updated_at: datetime
    last_run_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """Where the reading of a set of queries stands."""

    start_index: int = 0
    is_exhausted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCursor(Cursor):
    """A cursor with whose it is and when it last moved."""

    job_name: str
    query_set_hash: str
    last_updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How far a run has come."""

    start_index: int
    collected: int = 0
    page: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """What a page brought."""

    volumes: int
    with_isbn: int
    total_items: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a run over some pages brought, and why it stopped once it has."""

    id: str
    job_id: int
    query_set_hash: str
    is_dry: bool
    started_at: datetime
    ended_at: datetime | None = None
    pages: int = 0
    volumes: int = 0
    refused: int = 0
    collected: int = 0
    new_books: int = 0
    next_index: int = 0
    total_items: int | None = None
    stop_reason: StopReason | None = None
    words: str | None = None


def _check_range(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise BadInput(f"{name}: give {least} to {most}, not {value}")
