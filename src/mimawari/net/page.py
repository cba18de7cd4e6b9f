"""What passes between a site's client and the fetcher."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import ParamSpec, Protocol, TypeVar

from mimawari.errors import Blocked, Gone, Invalid, JobError, Transient

MOST_BYTES = 8 * 1024 * 1024
MOST_JSON_BYTES = 4 * 1024 * 1024

P = ParamSpec("P")
T = TypeVar("T")


class Outcome(StrEnum):
    """What became of a request; never guessed."""

    OK = "ok"
    NOT_MODIFIED = "not_modified"
    EMPTY = "empty"
    GONE = "gone"
    BLOCKED = "blocked"
    RATE_LIMITED = "rate_limited"
    TRANSIENT = "transient"
    DRIFT = "drift"


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome with its reason, and the time before which the site wants no more."""

    outcome: Outcome
    reason: str = ""
    until: datetime | None = None

    def error(self, site: str, page: bytes | None = None) -> JobError | None:
        """Return the error that decides the job's future; None if there is a page to read."""
        match self.outcome:
            case Outcome.GONE:
                return Gone(self.reason)
            case Outcome.BLOCKED | Outcome.RATE_LIMITED:
                return Blocked(site, self.reason, until=self.until)
            case Outcome.TRANSIENT:
                return Transient(self.reason, until=self.until)
            case Outcome.DRIFT:
                return Invalid(self.reason, page=page)
            case _:
                return None


@dataclass(frozen=True, slots=True)
class Known:
    """What an earlier reply was known by, so that the site may answer "not modified"."""

    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A reply: whole, within its size, and neither a block nor an error."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    fetched_at: datetime
    outcome: Outcome = Outcome.OK
    known: Known = field(default_factory=Known)


Judge = Callable[[Page], Verdict | None]
"""A site's own word on a reply of any status; None leaves it to the rules for all sites."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A site as the fetcher knows it; its name is that of its breaker and its settings."""

    name: str
    judge: Judge | None = None
    most_bytes: int = MOST_BYTES
    deadline_for: timedelta = timedelta(seconds=30)


class Http(Protocol):
    """How a site's client asks: limited, guarded, bounded and logged."""

    async def fetch(
        self,
        site: Site,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        known: Known | None = None,
    ) -> Page:
        """Return the page, or raise the error that says what became of the request."""
        ...

    async def read(self, parse: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a parser aside, within bounds of time and memory; it must be importable by name."""
        ...


class Files(Protocol):
    """How files are taken of which one leave covers many."""

    async def take(self, site: Site, url: str, *, headers: Mapping[str, str] | None = None) -> Page:
        """Return one of the files that one leave covers, whatever its status."""
        ...

    async def look(self, parse: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Read a file aside, where no page waits for it; what reads must be importable by name."""
        ...
