"""A simulated catalogue of books behind an API in the shape of Google Books'."""

import re
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import Any
from zlib import crc32
from zoneinfo import ZoneInfo

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from mimawari.errors import BadInput
from mimawari.kernel.ports import Clock
from mimawari.sim.chance import chance_of
from mimawari.sim.sites.google_books.titles import (
    COVERS,
    Book,
    draw_cover,
    fold,
    make_book,
    make_isbn10,
    make_volume,
    publish_on,
)
from mimawari.text import one_line

ORIGIN_AT = datetime(2026, 1, 1, tzinfo=UTC)
"""The catalogue's history begins here, so that it depends on nothing but seed and time."""
BOOKS_AT_FIRST = 3000
PAUSE_FOR = timedelta(minutes=30)
QUOTA_A_DAY = 1000
BURST = 10
BURST_FOR = timedelta(seconds=1)
MOST_RESULTS = 40
MOST_INDEX = 2**31 - 1
KEPT_QUERIES = 16
MOST_WORDS = 32
"""Words after these are left out of a query, as the real search does; an OR is none."""
UNKNOWN_TOTAL = 1_000_000
FEW = 10
SPELLS_SHARE = 0.3
_PACIFIC = "America/Los_Angeles"
_CONSUMER = "project_number:100200300400"
_TERM = re.compile(r'(?:(intitle|inauthor|subject|isbn):)?("[^"]*"?|\S+)', re.IGNORECASE)
_FIELDS = {"intitle": 0, "inauthor": 1, "subject": 2, "": 3}
_NUMBER = re.compile(r"-?[0-9]{1,19}")
_PRINT_TYPES = {"all": None, "books": "BOOK", "magazines": "MAGAZINE"}
_SORRY = """<!DOCTYPE html><html><head><title>Sorry...</title></head><body>
<h1>We're sorry...</h1><p>... but your computer or network may be sending automated queries.
To protect our users, we can't process your request right now.</p></body></html>"""


class BadParameter(BadInput):
    """A parameter that the API refuses, with its own word for why."""

    def __init__(self, name: str, reason: str, message: str) -> None:
        super().__init__(message)
        self.name = name
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Term:
    """A word or phrase that is looked for, in one field or in all."""

    field: str
    text: str

    def is_in(self, book: Book) -> bool:
        """Say whether a book has it; words of letters and digits must be whole words."""
        if self.field == "isbn":
            number = self.text.replace("-", "").upper()
            return bool(book.identifiers) and number in {book.isbn13, make_isbn10(book.isbn13)}
        text = book.folded[_FIELDS[self.field]]
        if self.text not in text or not self.text.isascii():
            return self.text in text
        whole = rf"(?<![a-z0-9]){re.escape(self.text)}(?![a-z0-9])"
        return re.search(whole, text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What was asked for."""

    words: str
    groups: tuple[tuple[Term, ...], ...]
    language: str
    print_type: str | None
    is_newest: bool
    start: int
    most: int

    def is_met(self, book: Book) -> bool:
        """Say whether a book has all terms of a group, and all else that was asked for."""
        return (
            self.language in {"", book.language}
            and self.print_type in {None, book.print_type}
            and any(all(term.is_in(book) for term in group) for group in self.groups)
        )

    def rank(self, book: Book) -> tuple[str, int, int]:
        """Return what books are ordered by, the highest first."""
        if self.is_newest:
            return book.published_date or "", 0, book.number
        hits = sum(term.text in book.folded[0] for group in self.groups for term in group)
        return "", hits, crc32(book.id.encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What a page shows: some of the books that were found, and how many there are said to be."""

    books: Sequence[Book]
    total: int


class Shelf:
    """All books there are by a time, which only goes on."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._chance = chance_of("books", seed)
        self.books: dict[str, Book] = {}
        self._known: dict[Query, tuple[int, Sequence[Book]]] = {}
        for _ in range(BOOKS_AT_FIRST):
            days = self._chance.uniform(0, 3000)
            self._add((ORIGIN_AT - timedelta(days=days)).replace(microsecond=0), is_new=False)
        self._next_at = ORIGIN_AT + self._pause()

    def advance(self, now: datetime) -> None:
        """Put in all books that were to appear by now, in their order."""
        while self._next_at <= now:
            self._add(self._next_at, is_new=True)
            self._next_at += self._pause()

    def find(self, query: Query) -> Sequence[Book]:
        """List the books that a query is met by, in the order that it asks for."""
        # The pages of a search are asked for one after the other; one search serves them all.
        asked = replace(query, start=0, most=0)
        count, found = self._known.pop(asked, (0, ()))
        new = [book for book in islice(self.books.values(), count, None) if query.is_met(book)]
        if new:
            found = sorted([*found, *new], key=query.rank, reverse=True)
        self._known[asked] = len(self.books), found
        if len(self._known) > KEPT_QUERIES:
            del self._known[next(iter(self._known))]
        return found

    def list_page(self, query: Query, now: datetime) -> Listing:
        """List a page of what is found, with another number of them on each, as the real one."""
        found = self.find(query)
        books, total = found[query.start : query.start + query.most], len(found)
        if total >= FEW:
            hour = now.strftime("%Y-%m-%dT%H")
            chance = chance_of("total", self._seed, query.words, query.start, hour)
            near = round(total * chance.uniform(0.8, 1.6))
            total = chance.choice((UNKNOWN_TOTAL, *(near,) * 7))
        return Listing(books=books, total=total)

    def _pause(self) -> timedelta:
        seconds = self._chance.expovariate(1 / PAUSE_FOR.total_seconds())
        return timedelta(seconds=1 + round(seconds))

    def _add(self, at: datetime, *, is_new: bool) -> None:
        published_on = publish_on(self._chance, at, is_new=is_new)
        book = make_book(self._chance, len(self.books), at, published_on)
        self.books[book.id] = book


class Books:
    """An API whose catalogue follows from its seed and the time; `spells` are hours of failures."""

    name = "books"

    def __init__(self, clock: Clock, seed: int, *, spells: bool = True) -> None:
        self.spells = spells
        self.quota_a_day = QUOTA_A_DAY
        self._clock = clock
        self._seed = seed
        self._failures = chance_of("books", "failures", seed)
        self._day = date.min
        self._used: dict[str, int] = {}
        self._recent: dict[str, deque[datetime]] = defaultdict(deque)
        self._shelf = Shelf(seed)
        # The months that have passed are caught up with here, so that no request waits for it.
        self._shelf.advance(clock.now())

    def owns(self, path: str) -> bool:
        """Say whether a path is this site's."""
        return path.startswith(("/books/", COVERS))

    async def answer(self, request: Request) -> Response:
        """Answer one request as the real API would."""
        now = self._clock.now()
        self._shelf.advance(now)
        if request.url.path == COVERS:
            return self._answer_cover(request.query_params.get("id", ""))
        if request.url.path != "/books/v1/volumes" or request.method not in {"GET", "HEAD"}:
            return _refuse(404, "Not Found", "notFound")
        key = request.headers.get("x-goog-api-key") or request.query_params.get("key", "")
        refused = self._count(key, now)
        if refused:
            return refused
        if self.spells and self._failures.random() < self._spell(now):
            return _refuse(503, "Service temporarily unavailable.", "backendFailed")
        try:
            query = parse_query(request.query_params)
        except BadParameter as error:
            return _refuse(400, str(error), error.reason, error.name)
        return JSONResponse(self._list_volumes(query, request.url.netloc, now))

    def truth(self, query: Mapping[str, str]) -> Any:
        """Tell the books that match in their order, all without a page, and the calls of today."""
        now = self._clock.now()
        self._shelf.advance(now)
        self._turn(now)
        books = self._shelf.find(parse_query(query)) if query.get("q") else []
        return {
            "now": now.isoformat(),
            "catalogue": len(self._shelf.books),
            "books": [_tell(book) for book in books],
            "day": self._day.isoformat(),
            "used_today": dict(self._used),
            "quota_a_day": self.quota_a_day,
            "failing_share": self._spell(now) if self.spells else 0.0,
        }

    def refusal(self) -> Response:
        """Make the page this site shows when it blocks somebody."""
        return HTMLResponse(_SORRY, 403)

    def _answer_cover(self, book_id: str) -> Response:
        book = self._shelf.books.get(book_id)
        if book is None:
            return _refuse(404, "Not Found", "notFound")
        return Response(draw_cover(book), media_type="image/svg+xml")

    def _list_volumes(self, query: Query, host: str, now: datetime) -> dict[str, Any]:
        listing = self._shelf.list_page(query, now)
        answer = {"kind": "books#volumes", "totalItems": listing.total}
        places = enumerate(listing.books, query.start + 1)
        items = [make_volume(book, query.words, place, host) for place, book in places]
        # The real one leaves the list out where it would be empty.
        return answer | ({"items": items} if items else {})

    def _count(self, key: str, now: datetime) -> Response | None:
        """Count a call; refuse it where the day's quota or the burst's is used up."""
        self._turn(now)
        used = self._used.get(key, 0)
        if used >= (self.quota_a_day if key else 0):
            return _refuse_quota("Queries per day")
        recent = self._recent[key]
        while recent and recent[0] <= now - BURST_FOR:
            recent.popleft()
        if len(recent) >= BURST:
            return _refuse_quota("Queries per minute per user")
        recent.append(now)
        self._used[key] = used + 1
        return None

    def _turn(self, now: datetime) -> None:
        """Forget the calls of a day that is over, where the quota is counted."""
        day = now.astimezone(ZoneInfo(_PACIFIC)).date()
        if day != self._day:
            self._day = day
            self._used.clear()

    def _spell(self, now: datetime) -> float:
        """Return the share of calls that fail now; most of the time none does."""
        hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        chance = chance_of("books", "spell", self._seed, hour.isoformat())
        is_bad, share = chance.random() < SPELLS_SHARE, chance.uniform(0.3, 0.8)
        start = hour + timedelta(minutes=chance.uniform(0, 35))
        end = start + timedelta(minutes=chance.uniform(8, 25))
        return share if is_bad and start <= now < end else 0.0


def parse_query(given: Mapping[str, str]) -> Query:
    """Read the parameters, or say which one is refused."""
    words = given.get("q", "").strip()
    if not words:
        raise BadParameter("q", "queryRequired", "Missing query.")
    order = given.get("orderBy", "relevance")
    if order not in {"relevance", "newest"}:
        raise _bad_value("orderBy", order, "[newest, relevance]")
    print_type = given.get("printType", "all").lower()
    if print_type not in _PRINT_TYPES:
        raise _bad_value("printType", print_type, "[all, books, magazines]")
    return Query(
        words=words,
        groups=_parse_groups(words),
        language=given.get("langRestrict", "").lower(),
        print_type=_PRINT_TYPES[print_type],
        is_newest=order == "newest",
        start=_parse_number(given, "startIndex", 0, MOST_INDEX),
        most=_parse_number(given, "maxResults", 10, MOST_RESULTS),
    )


def _parse_groups(words: str) -> tuple[tuple[Term, ...], ...]:
    """Read the terms of a query, apart at each OR; groups without one are left out."""
    groups: list[list[Term]] = [[]]
    count = 0
    for field, text in _TERM.findall(words):
        if (field, text) == ("", "OR"):
            groups.append([])
        elif count < MOST_WORDS:
            count += 1
            groups[-1].append(Term(field.lower(), fold(text.strip('"')).strip()))
    whole = (tuple(term for term in group if term.text) for group in groups)
    return tuple(group for group in whole if group)


def _parse_number(given: Mapping[str, str], name: str, usual: int, most: int) -> int:
    text = given.get(name, str(usual))
    number = int(text) if _NUMBER.fullmatch(text) else -1
    if not 0 <= number <= most:
        raise _bad_value(name, text, f"[0, {most}]")
    return number


def _bad_value(name: str, value: str, allowed: str) -> BadParameter:
    shown = one_line(value, most=40)
    message = f"Invalid value '{shown}'. Values must be within the range: {allowed}"
    return BadParameter(name, "invalidParameter", message)


def _refuse(code: int, message: str, reason: str, parameter: str = "") -> Response:
    where = {"location": parameter, "locationType": "parameter"} if parameter else {}
    error = {"message": message, "domain": "global", "reason": reason, **where}
    return JSONResponse({"error": {"code": code, "message": message, "errors": [error]}}, code)


def _refuse_quota(limit: str) -> Response:
    message = (
        f"Quota exceeded for quota metric 'Queries' and limit '{limit}' of service"
        f" 'books.googleapis.com' for consumer '{_CONSUMER}'."
    )
    error = {"message": message, "domain": "global", "reason": "rateLimitExceeded"}
    status = "RESOURCE_EXHAUSTED"
    body = {"code": 429, "message": message, "errors": [error], "status": status}
    return JSONResponse({"error": body}, 429)


def told_isbn13(book: Book) -> str | None:
    """Return the thirteen digits that a book's volume tells, in one form or the other."""
    return book.isbn13 if any("ISBN" in kind for kind, _ in book.identifiers) else None


def _tell(book: Book) -> dict[str, Any]:
    return {
        "id": book.id,
        "title": book.title,
        "authors": list(book.authors),
        "language": book.language,
        "print_type": book.print_type,
        "published_date": book.published_date,
        "isbn13": told_isbn13(book),
        "appeared_at": book.appeared_at.isoformat(),
    }
