"""What a crawl says of an anime franchise (an IP), and what follows from it, frozen."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

MOST_TEXT = 200
MOST_TAGS, MOST_TAG_TEXT = 20, 50


class Status(StrEnum):
    """Where an item stands, as far as counting goes."""

    AVAILABLE = "available"
    SOLD = "sold"


class Kind(StrEnum):
    """What may happen to an item between two crawls."""

    NEW_LISTING = "new_listing"
    SOLD = "sold"
    NEW_SOLD = "new_sold"
    PRICE_CHANGE = "price_change"
    RELISTED = "relisted"


SALES = (Kind.SOLD, Kind.NEW_SOLD)
"""The changes that count as outflow."""


class AlertKind(StrEnum):
    """What is worth telling about an IP."""

    HIGH_OUTFLOW = "high_outflow"
    LOW_LIQUIDITY = "low_liquidity"
    SURGE = "surge"
    PRICE_DROP = "price_drop"


LEVELS = {
    AlertKind.HIGH_OUTFLOW: "warning",
    AlertKind.LOW_LIQUIDITY: "info",
    AlertKind.SURGE: "critical",
    AlertKind.PRICE_DROP: "warning",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A crawl that is asked for; its job adds its own id and time where they are not said."""

    ip_id: int
    keyword: str
    pages_on_sale: int
    pages_sold: int
    task_id: str = ""
    created_at: datetime | None = None
    retry_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """An item as a page of a search showed it."""

    source_id: str
    title: str
    price_yen: int | None
    status: Status
    image_url: str = ""
    item_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How much of the market a crawl could see; a cap is never read as a fact."""

    pages_asked: int = 0
    pages_read: int = 0
    capped_on_sale: bool = False
    capped_sold: bool = False
    page_errors: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether every page that was asked for was read."""
        return self.pages_read == self.pages_asked > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawl:
    """What a crawl found, in the order in which it was seen."""

    ip_id: int
    task_id: str
    crawled_at: datetime
    items: tuple[Seen, ...] = ()
    coverage: Coverage = field(default_factory=Coverage)
    error: str = ""
    retry_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemState:
    """An item as we know it."""

    status: Status
    price_yen: int | None
    sold_at: datetime | None
    last_seen_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What happened to an item, as far as two crawls can tell."""

    source_id: str
    kind: Kind
    price_before_yen: int | None
    price_yen: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What a crawl adds to what was known."""

    changes: tuple[Change, ...]
    states: dict[str, ItemState]
    """Every item that the crawl has news of, as it stands now."""
    seen: dict[str, Seen]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What newly sold items cost; all but the count are None if there were none with a price."""

    samples: int = 0
    average_yen: float | None = None
    median_yen: float | None = None
    least_yen: int | None = None
    most_yen: int | None = None
    stddev_yen: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What came and went in a span."""

    inflow: int = 0
    outflow: int = 0
    prices: Prices = field(default_factory=Prices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often IPs are crawled: every base / weight, within bounds."""

    base: timedelta
    least: timedelta
    most: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """From where on something is worth telling."""

    outflow: int
    liquidity_low: float
    liquidity_high: float
    price_drop: float
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A condition that holds now, with the figures that show it."""

    kind: AlertKind
    value: float
    threshold: float
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ip:
    """A franchise to go round to."""

    id: int
    name: str
    name_en: str
    keyword: str
    weight: float
    active: bool
    tags: tuple[str, ...]
    last_crawled_at: datetime | None
    baseline_at: datetime | None
    failures: int
    last_error: str
    coverage: Coverage
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NewIp:
    """A franchise as a person or a file describes it."""

    name: str
    keyword: str
    name_en: str = ""
    weight: float = 1.0
    active: bool = True
    tags: tuple[str, ...] = ()
