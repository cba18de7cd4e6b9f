"""What the rentals watch speaks of: rooms as pages show them, and what changed."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from mimawari.sites.yahoo_realestate import SITE

SITE_NAME = SITE.name
"""Under which site properties are kept."""

MOST_ROOMS = 5000
"""How many rooms one walk over a list takes at the most."""
USUAL_ROOMS = 100
"""How many a walk takes if nothing is said."""
SHORTEST_EVERY, LONGEST_EVERY = timedelta(hours=1), timedelta(days=30)
"""How often a saved search may be walked over."""


class Status(StrEnum):
    """Whether a property is on offer."""

    ACTIVE = "active"
    ENDED = "ended"


class Source(StrEnum):
    """Which page showed a property."""

    LIST = "list"
    DETAIL = "detail"


class Kind(StrEnum):
    """What changed about a property."""

    NEW = "new"
    RENT = "rent"
    FEE = "fee"
    DEPOSIT = "deposit"
    KEY_MONEY = "key_money"
    LAYOUT = "layout"
    AREA = "area"
    FLOOR = "floor"
    NAME = "name"
    ADDRESS = "address"
    ACCESS = "access"
    BUILT = "built"
    IMAGE = "image"
    STATUS = "status"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A property as a page shows it; None or empty is what the page does not say."""

    property_id: str
    url: str
    source: Source
    structure_id: str | None = None
    title: str | None = None
    building_name: str | None = None
    rent_yen: int | None = None
    rent_note: str | None = None
    fee_yen: int | None = None
    deposit_yen: int | None = None
    key_money_yen: int | None = None
    layout: str | None = None
    area_m2: float | None = None
    floor: int | None = None
    years_old: int | None = None
    built_on: str | None = None
    address: str | None = None
    latitude: float | None = None
    longitude: float | None = None
    stations: str | None = None
    images: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """That something about a property is not as it was."""

    kind: Kind
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """One walk over a list, from page to page, as its jobs carry it on."""

    list_id: int
    url: str
    left: int
    caller: str
    page: int = 1
    run_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RentalList:
    """A list of the site's that was asked for; with an interval it is a saved search."""

    id: int
    url: str
    limit: int
    every_for: timedelta | None
    created_at: datetime
    last_run_at: datetime | None
    gone_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one walk over a list has found so far."""

    id: str
    list_id: int
    job_id: str
    started_at: datetime
    ended_at: datetime | None
    pages: int
    found: int
    refused: int
    new_to_queue: int
    already_known: int
    is_whole: bool
    ended_as: str
