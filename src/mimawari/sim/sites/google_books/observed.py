"""What somebody who asked the book API was told, made again from its truth and its log."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, time, tzinfo
from typing import Any
from urllib.parse import parse_qsl

from mimawari.sim.sites.google_books.site import MOST_RESULTS, Shelf, parse_query, told_isbn13
from mimawari.sim.sites.google_books.titles import Book

ANSWERED = 200
API = "/books/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A volume of a reply: what tells its book from others, and whether that is an ISBN."""

    key: str
    has_isbn: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A call, and what it was told; whatever is not an answer of the catalogue tells nothing."""

    at: datetime
    q: str
    start: int
    most: int
    status: int | None
    is_answered: bool
    found: tuple[Found, ...] = ()
    total: int | None = None


def look_again(seed: int, requests: Iterable[Mapping[str, Any]]) -> list[Look]:
    """Make every call of a log again, on a shelf of the same seed."""
    shelf = Shelf(seed)
    return [_look(shelf, seen) for seen in requests if seen["path"].startswith(API)]


def _look(shelf: Shelf, seen: Mapping[str, Any]) -> Look:
    at = datetime.fromisoformat(seen["at"])
    query = parse_query(dict(parse_qsl(seen["query"])))
    # What is answered by order is not what is so.
    is_answered = seen["status"] == ANSWERED and not seen["order"]
    look = Look(
        at=at,
        q=query.words,
        start=query.start,
        most=query.most,
        status=seen["status"],
        is_answered=is_answered,
    )
    if not is_answered:
        return look
    shelf.advance(at)
    listing = shelf.list_page(query, at)
    return replace(look, found=tuple(map(_find, listing.books)), total=listing.total)


def _find(book: Book) -> Found:
    isbn13 = told_isbn13(book)
    return Found(key=isbn13 or book.id, has_isbn=isbn13 is not None)


class Calls:
    """The calls that reached the API, day by day in a zone."""

    def __init__(self, times: Iterable[datetime], quota: int, zone: tzinfo) -> None:
        self._times = sorted(times)
        self._quota = quota
        self._zone = zone
        self.of_days = Counter(at.astimezone(zone).date() for at in self._times)

    def count_left(self, at: datetime) -> int:
        """Count what the day's quota has left after all calls up to a time."""
        midnight = datetime.combine(at.astimezone(self._zone).date(), time(), self._zone)
        return self._quota - bisect_right(self._times, at) + bisect_left(self._times, midnight)


class Reading:
    """Where a job has to stand by what it was told.

    An error changes nothing. The calls of the day come before the bound of a run, and only where
    neither of them ends it can the end of the list do so, by the number that the reply told.
    """

    def __init__(self, max_per_run: int) -> None:
        self.max_per_run = max_per_run
        self.start_index = 0
        self.collected = 0
        self.is_exhausted = False
        self.has_failed = False
        """Whether the latest call of the run told nothing."""
        self.reason: str | None = None
        """Why the run has to end now; None where it has not."""

    def begin_run(self) -> None:
        """Forget what the run before has collected, and why it ended."""
        self.collected = 0
        self.has_failed = False
        self.reason = None

    def reset(self) -> None:
        """Begin anew at the first volume."""
        self.start_index = 0
        self.is_exhausted = False
        self.begin_run()

    @property
    def wanted(self) -> int:
        """How many volumes may be asked for at once."""
        return min(MOST_RESULTS, self.max_per_run - self.collected)

    def see(self, look: Look, calls_left: int) -> None:
        """Go on by one reply."""
        self.has_failed = not look.is_answered
        if not look.is_answered:
            return
        end = look.start + len(look.found)
        self.start_index = end
        self.collected += sum(one.has_isbn for one in look.found)
        if calls_left <= 0:
            self.reason = "quota"
        elif self.collected >= self.max_per_run:
            self.reason = "max_per_run"
        elif look.total is not None and (not look.found or end >= look.total):
            self.reason = "exhausted"
        self.is_exhausted = self.reason == "exhausted"
