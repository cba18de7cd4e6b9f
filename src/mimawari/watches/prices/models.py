"""What the prices watch speaks of: products, what is searched for, and what was found."""

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

MOST_YEN = 999_999_999
ITEM_CONDITIONS = (1, 2, 3, 4, 5, 6)
"""How worn an item is, in the site's own numbers: from new to bad."""


class SellingStatus(IntEnum):
    """Whether an item is on sale."""

    ON_SALE = 1
    SOLD_OUT = 2


class SellerType(IntEnum):
    """Who sells an item."""

    USER = 1
    SHOP = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is searched for; a bound of 0 is none."""

    keyword: str
    category_id: int | None = None
    min_price: int = 0
    max_price: int = 0
    enabled: bool = True
    exclusions: tuple[str, ...] = ()
    item_conditions: tuple[int, ...] = ()
    target_price: int | None = None
    """Tell when something is on sale for this or less."""
    median_percent: int | None = None
    """Tell when something is on sale for so much less than the median of what was sold."""

    @property
    def search(self) -> tuple[object, ...]:
        """All that decides what a search finds."""
        return (
            self.keyword,
            self.category_id,
            self.min_price,
            self.max_price,
            self.exclusions,
            self.item_conditions,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A product whose market is watched."""

    id: int
    name: str
    setting: Setting
    created_at: datetime
    updated_at: datetime
    first_run_at: datetime | None
    last_run_at: datetime | None

    @property
    def is_changed(self) -> bool:
        """Whether its settings were changed since its last crawl, or in that very second."""
        return self.last_run_at is None or self.updated_at >= self.last_run_at.replace(
            microsecond=0
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An item as a search shows it."""

    external_id: str
    name: str
    price: int
    selling_url: str
    image_url: str
    selling_status: SellingStatus
    seller_type: SellerType
    seller_id: str | None
    listed_at: datetime | None
    category_id: int | None = None
    category_above: tuple[int, ...] | None = None
    """The categories that its category lies in; None where the page does not name them."""
    condition_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What an item is filed under and how worn it is; None is not known yet."""

    category_id: int | None = None
    category_above: tuple[int, ...] | None = None
    condition_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """How much of the market a crawl has seen."""

    pages_asked: int
    pages_read: int
    capped_on_sale: bool
    capped_sold: bool
    unpriced: int
    page_errors: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether every page that was asked for was read."""
        return self.pages_read == self.pages_asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawl:
    """What one crawl of a product brought."""

    product_id: int
    task_id: str
    crawled_at: datetime
    found: tuple[Found, ...]
    sight: Sight
