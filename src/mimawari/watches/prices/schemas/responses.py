"""What the API of the prices watch gives out."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from mimawari.columns.stamps import parse_stamp
from mimawari.edges.request_fields import write_moment
from mimawari.edges.request_job import Later
from mimawari.kernel.why import Why
from mimawari.watches.prices.actions import Stage, Standing
from mimawari.watches.prices.alerts import AlertKind
from mimawari.watches.prices.figures import Bounds
from mimawari.watches.prices.models import Product, Setting
from mimawari.watches.prices.queries import Run


class SettingOut(BaseModel):
    """What is searched for."""

    keyword: str
    category_id: int | None
    min_price: int = Field(description="In yen; 0 means no bound.")
    max_price: int = Field(description="In yen; 0 means no bound.")
    enabled: bool
    exclusions: list[str]
    item_conditions: list[int] = Field(description="Empty means any.")
    target_price: int | None
    median_percent: int | None

    @classmethod
    def of(cls, setting: Setting) -> "SettingOut":
        """Show a setting."""
        return cls.model_validate(setting, from_attributes=True)


class ProductOut(BaseModel):
    """A product whose market is watched."""

    id: int
    name: str
    setting: SettingOut
    created_at: datetime
    updated_at: datetime
    first_run_at: datetime | None = Field(
        description="The first crawl that read every page it asked for."
    )
    last_run_at: datetime | None

    @classmethod
    def of(cls, product: Product) -> "ProductOut":
        """Show a product."""
        return cls.model_validate(product, from_attributes=True)


class ProductsOut(BaseModel):
    """A page of products, by id."""

    products: list[ProductOut]
    next: int | None = Field(description="Give this as `after` for the next page.")


class RunOut(BaseModel):
    """A crawl, and how much of the market it has seen."""

    job_id: str
    crawled_at: datetime
    found: int = Field(description="How many items the pages showed.")
    added: int = Field(description="How many of them are new.")
    left_out: int = Field(description="How many do not match the setting.")
    removed: int = Field(description="How many were taken out, as they match no longer.")
    restored: int = Field(description="How many came back.")
    details_enqueued: int = Field(description="How many items' own pages are to be read.")
    pages_asked: int
    pages_read: int
    capped_on_sale: bool = Field(description="There was more on sale than the pages asked for.")
    capped_sold: bool = Field(description="There was more sold than the pages asked for.")
    unpriced: int = Field(description="How many items have no price, and so were not kept.")
    page_errors: list[str]

    @classmethod
    def of(cls, run: Run) -> "RunOut":
        """Show a crawl."""
        return cls(
            **{name: value for name, value in asdict(run).items() if name in cls.model_fields}
            | {
                "job_id": run.task_id,
                "details_enqueued": run.followed_up,
                "page_errors": run.page_errors.splitlines(),
            }
        )


class NextOut(BaseModel):
    """When a product is crawled next, and why then."""

    next_at: datetime | None
    reason: str
    blocked_by: str | None
    job_id: str | None = Field(description="What is in the queue for it.")

    @classmethod
    def of(cls, found: Later | Why) -> "NextOut":
        """Show what a crawl waits for."""
        return cls.model_validate(found, from_attributes=True)


class AlertOut(BaseModel):
    """Something worth telling of what is on sale."""

    id: int
    product_id: int
    kind: AlertKind
    external_id: str
    name: str
    price: int
    threshold: int = Field(description="At this price or less it is told.")
    reason: str
    doubt: str | None = Field(
        description="Why the price is out of line with what was sold; null if it is not."
    )
    is_open: bool = Field(description="False as well while the item was not seen for too long.")
    last_seen_at: datetime | None
    opened_at: datetime
    closed_at: datetime | None
    closed_reason: str | None

    @classmethod
    def of(cls, row: Any) -> "AlertOut":
        """Show an alert."""
        return cls(**{field: getattr(row, field) for field in cls.model_fields})


class AlertsOut(BaseModel):
    """A page of alerts, newest first."""

    alerts: list[AlertOut]
    next: int | None = Field(description="Give this as `before` for the next page.")


class ProductDetailOut(ProductOut):
    """A product with its last crawls, its open alerts, and when it is crawled next."""

    crawls: list[RunOut] = Field(description="Newest first.")
    alerts: list[AlertOut] = Field(description="Those that are open.")
    next: NextOut

    @classmethod
    def on(
        cls, product: Product, runs: Sequence[Run], alerts: Sequence[Any], following: NextOut
    ) -> "ProductDetailOut":
        """Show all of a product."""
        return cls(
            **ProductOut.of(product).model_dump(),
            crawls=[RunOut.of(run) for run in runs],
            alerts=[AlertOut.of(row) for row in alerts],
            next=following,
        )


class _Camel(BaseModel):
    """Named as the description of the crawl API names things."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class CrawlOut(_Camel):
    """A crawl that was asked for: what it brought, or what it waits for."""

    product_id: int
    name: str
    job_id: str
    state: Stage
    found: int | None = None
    added: int | None = None
    left_out: int | None = None
    removed: int | None = None
    restored: int | None = None
    details_enqueued: int | None = Field(
        default=None, description="How many items' own pages are to be read, and not waited for."
    )
    pages_read: int | None = Field(default=None, description="So far, while it is at work.")
    pages_asked: int | None = None
    capped: bool | None = Field(
        default=None, description="There was more than the pages asked for, on sale or sold."
    )
    next_at: datetime | None = Field(default=None, description="When it may run, if it waits.")
    reason: str | None = Field(
        default=None, description="Why it waits or failed, or which pages could not be read."
    )

    @classmethod
    def of(cls, found: Standing) -> "CrawlOut":
        """Show how a crawl stands."""
        shown = {**asdict(found.asked), "state": found.stage, "pages_read": found.pages_read}
        run = found.run
        if run is None:
            return cls(**shown, next_at=found.next_at, reason=found.reason)
        return cls(
            **shown,
            found=run.found,
            added=run.added,
            left_out=run.left_out,
            removed=run.removed,
            restored=run.restored,
            details_enqueued=run.followed_up,
            pages_asked=run.pages_asked,
            capped=run.capped_on_sale or run.capped_sold,
            reason="; ".join(run.page_errors.splitlines()) or None,
        )


class CrawlsOut(_Camel):
    """The crawls that were asked for."""

    crawls: list[CrawlOut]


class _Item(BaseModel):
    """An item, as its table has it."""

    id: int
    product_id: int
    external_id: str
    name: str
    price: int
    selling_url: str
    image_url: str
    selling_status: int = Field(description="1: on sale, 2: sold.")
    seller_type: int = Field(description="1: a user, 2: a shop.")
    seller_id: str | None
    sold_out_at: str | None = Field(
        description="When it was sold; a day alone where no more is known, null where nothing is."
    )
    created_at: datetime
    updated_at: datetime


class ResultOut(_Item):
    """An item as it was seen last."""

    listed_at: datetime | None = Field(description="When its seller listed it, by the site.")
    last_seen_at: datetime | None
    outlier: str | None = Field(description="Why it is left out of the figures; null if it counts.")

    @classmethod
    def of(cls, row: Any, bounds: Bounds) -> "ResultOut":
        """Show a result."""
        return cls(**_shown(cls, row, "outlier"), outlier=bounds.find_outlier(row.price))


def _shown(form: type[_Item], row: Any, *without: str) -> dict[str, Any]:
    names = [name for name in form.model_fields if name not in without]
    sold_out_at = row.sold_out_at
    if sold_out_at and " " in sold_out_at:
        sold_out_at = write_moment(parse_stamp(sold_out_at))
    return {**{name: getattr(row, name) for name in names}, "sold_out_at": sold_out_at}


class ResultsOut(BaseModel):
    """A page of results."""

    results: list[ResultOut]
    next: str | None = Field(description="Give this as `after` for the next page.")


class RemovedOut(_Item):
    """A result that was taken out, and why."""

    kind: str = Field(
        description="`mismatch` comes back when the setting fits again,"
        " `gone` when a search shows it again."
    )
    reason: str
    removed_at: datetime
    last_seen_at: datetime | None

    @classmethod
    def of(cls, row: Any) -> "RemovedOut":
        """Show what was taken out."""
        return cls(**_shown(cls, row))


class RemovedPageOut(BaseModel):
    """A page of results that were taken out, newest result first."""

    removed: list[RemovedOut]
    next: int | None = Field(description="Give this as `before` for the next page.")
