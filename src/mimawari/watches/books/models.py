"""What the books watch speaks of: jobs, where their reading stands, and why it stopped."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from mimawari.watches.books.hashing import hash_queries

MOST_A_PAGE = 40
"""The API gives no more at once."""
USUAL_EVERY = timedelta(hours=24)
USUAL_PER_RUN = 40
USUAL_MAIL_LIMIT = 20


class StopReason(StrEnum):
    """Why a run ended; only an exhausted one has nothing more to find."""

    QUOTA = "quota"
    MAX_PER_RUN = "max_per_run"
    EXHAUSTED = "exhausted"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """What is searched for, how often and how much of it."""

    name: str
    queries: tuple[str, ...]
    enabled: bool = True
    every_for: timedelta = USUAL_EVERY
    mail_limit: int = USUAL_MAIL_LIMIT
    max_per_run: int = USUAL_PER_RUN
    print_type: str | None = None
    lang_restrict: str | None = None

    @property
    def q(self) -> str:
        """All queries as one, of which one has to be met."""
        return " OR ".join(self.queries)

    @property
    def query_set_hash(self) -> str:
        """What tells this set of queries from others, and so its cursor from theirs."""
        return hash_queries(self.queries)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """Where the reading of a set of queries stands."""

    start_index: int = 0
    is_exhausted: bool = False


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
class Stop:
    """That a run is over, and why."""

    reason: StopReason
    at: datetime
    words: str
