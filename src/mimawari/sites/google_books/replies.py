"""Reads the replies of Google Books: volumes, and complaints."""

import json
import re
from dataclasses import dataclass
from datetime import date
from typing import Any
from urllib.parse import urlsplit

from mimawari.errors import BadInput, Invalid
from mimawari.sites.contract import Contract, Refused
from mimawari.sites.google_books.isbn import parse_isbn13
from mimawari.sites.google_books.models import Volume, VolumesPage
from mimawari.sites.reading import BOUNDED
from mimawari.text import clean, one_line

MOST_TOTAL = 10**9
MOST_PAGES = 100_000
MOST_NAMES = 50
MOST_TITLE = 1000
MOST_DESCRIPTION = 20_000
MOST_URL = 2000
KIND = "books#volumes"
# A page may be the rest of a run or of a list, so that a volume without a title stands alone.
CONTRACT = Contract(name="google_books volumes", fewest=3)

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DATE = re.compile(r"(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{2}))?(?:-(?P<day>[0-9]{2}))?")
# A few volumes tell a time too, always midnight in some zone: it says nothing.
_TIME = re.compile(r"(?<=^[0-9]{4}-[0-9]{2}-[0-9]{2})T[0-9:.+Z-]+$")
_DAY_REASONS = {"dailyLimitExceeded", "dailyLimitExceededUnreg", "quotaExceeded"}
_BURST_REASONS = {"rateLimitExceeded", "userRateLimitExceeded", "RATE_LIMIT_EXCEEDED"}
_KEY_REASONS = {"keyInvalid", "keyExpired", "API_KEY_INVALID", "API_KEY_EXPIRED"}
_OFF_REASONS = {"accessNotConfigured", "SERVICE_DISABLED"}
_KEY_SAID = re.compile(r"API key (?:not valid|expired|not found)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Complaint:
    """What a reply that is no success says."""

    message: str
    reasons: frozenset[str]
    limits: frozenset[str]

    @property
    def is_of_the_day(self) -> bool:
        """Whether the day's requests are used up, or there are none for us at all."""
        return (
            "per day" in self.message.lower()
            or bool(self.reasons & _DAY_REASONS)
            or any(limit == "0" or "PerDay" in limit for limit in self.limits)
        )

    @property
    def is_of_a_burst(self) -> bool:
        """Whether there were too many requests at once."""
        return bool(self.reasons & _BURST_REASONS)

    @property
    def is_of_the_key(self) -> bool:
        """Whether the key is the matter."""
        return bool(self.reasons & _KEY_REASONS or _KEY_SAID.search(self.message))

    @property
    def is_switched_off(self) -> bool:
        """Whether the key's project has not switched the API on."""
        return bool(self.reasons & _OFF_REASONS)


def parse_complaint(body: bytes) -> Complaint | None:
    """Read what an error's body says; None if it is not the API that speaks."""
    reply = _load(body)
    error = reply.get("error") if isinstance(reply, dict) else None
    if not isinstance(error, dict):
        return None
    said = [*_objects(error.get("errors")), *_objects(error.get("details"))]
    metadata = [one["metadata"] for one in said if isinstance(one.get("metadata"), dict)]
    limits = [one.get(key) for one in metadata for key in ("quota_limit", "quota_limit_value")]
    return Complaint(
        message=_text(error.get("message")) or "",
        reasons=frozenset(filter(None, (_text(one.get("reason")) for one in said))),
        limits=frozenset(filter(None, map(_text, limits))),
    )


def parse_volumes(body: bytes) -> VolumesPage:
    """Read a reply; a volume that cannot be used is refused, a reply without any is no error."""
    reply = _load(body)
    if not isinstance(reply, dict) or not {"kind", "items", "totalItems"} & reply.keys():
        raise Invalid("the reply is no list of volumes", page=body)
    items = [] if reply.get("items") is None else reply["items"]
    if reply.get("kind", KIND) != KIND or not isinstance(items, list):
        raise Invalid("the reply is another list than one of volumes", page=body)
    volumes, refused = [], []
    for number, item in enumerate(items):
        try:
            volumes.append(_read_volume(item))
        except BadInput as error:
            refused.append(Refused(f"#{number}", str(error)))
    CONTRACT.check(volumes, refused, body)
    return VolumesPage(
        total_items=_number(reply.get("totalItems"), MOST_TOTAL),
        volumes=tuple(volumes),
        refused=tuple(refused),
    )


def _read_volume(item: Any) -> Volume:
    volume = item.get("volumeInfo") if isinstance(item, dict) else None
    if not isinstance(volume, dict):
        raise BadInput("it is no volume")
    volume_id, title = item.get("id"), _text(volume.get("title"))
    if not isinstance(volume_id, str) or not _ID.fullmatch(volume_id):
        raise BadInput("it has no id")
    if title is None:
        raise BadInput(f"{volume_id} has no title")
    images = volume.get("imageLinks")
    thumbnails = (
        (images.get("thumbnail"), images.get("smallThumbnail")) if isinstance(images, dict) else ()
    )
    return Volume(
        id=volume_id,
        title=title,
        subtitle=_text(volume.get("subtitle")),
        authors=_names(volume.get("authors")),
        publisher=_text(volume.get("publisher")),
        published=_published(volume.get("publishedDate")),
        isbn13=_isbn13(volume.get("industryIdentifiers")),
        language=_text(volume.get("language")),
        categories=_names(volume.get("categories")),
        description=_description(volume.get("description")),
        page_count=_number(volume.get("pageCount"), MOST_PAGES) or None,
        thumbnail=next(filter(None, map(_secure, thumbnails)), None),
        info_link=_link(volume.get("infoLink")),
    )


def _isbn13(identifiers: Any) -> str | None:
    """Return the ISBN, as long as there is a right one of either length."""
    numbers = [
        _text(one.get("identifier")) or ""
        for kind in ("ISBN_13", "ISBN_10")
        for one in _objects(identifiers)
        if one.get("type") == kind
    ]
    return next(filter(None, map(parse_isbn13, numbers)), None)


def _published(value: Any) -> str | None:
    """Return a date that exists, with as much of it as there is."""
    found = _DATE.fullmatch(_TIME.sub("", value)) if isinstance(value, str) else None
    if found is None:
        return None
    try:
        date(int(found["year"]), int(found["month"] or 1), int(found["day"] or 1))
    except ValueError:
        return None
    return found[0]


def _text(value: Any) -> str | None:
    return (one_line(value, most=MOST_TITLE) or None) if isinstance(value, str) else None


def _description(value: Any) -> str | None:
    return (clean(value[:MOST_DESCRIPTION]).strip() or None) if isinstance(value, str) else None


def _names(value: Any) -> tuple[str, ...]:
    names = map(_text, value[:MOST_NAMES]) if isinstance(value, list) else ()
    return tuple(filter(None, names))


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _number(value: Any, most: int) -> int | None:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and 0 <= value <= most else None


def _link(value: Any) -> str | None:
    """Return an address of the web as it is given; any other could be made to run something."""
    if not isinstance(value, str) or len(value) > MOST_URL or not value.isprintable():
        return None
    try:
        parts = urlsplit(value)
    except ValueError:
        return None
    return (
        value if parts.scheme in {"http", "https"} and parts.hostname and " " not in value else None
    )


def _secure(value: Any) -> str | None:
    link = _link(value)
    return f"https:{link.partition(':')[2]}" if link else None


def _load(body: bytes) -> Any:
    try:
        return json.loads(body, **BOUNDED)
    except (ValueError, RecursionError):
        return None
