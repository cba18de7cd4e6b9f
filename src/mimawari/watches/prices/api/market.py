"""Routes of what products are worth: the market of one, and alerts of all."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import date, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BaseModel, Field

from mimawari.edges import csv_export, pagination
from mimawari.edges.pagination import Listing
from mimawari.edges.routes import SystemOf
from mimawari.watches.prices import market, queries
from mimawari.watches.prices.figures import DaysToSell, Figures
from mimawari.watches.prices.market import Cheapest, Day, Market
from mimawari.watches.prices.schemas.requests import AlertsAsked, MarketAsked, ProductId, is_true
from mimawari.watches.prices.schemas.responses import AlertOut, AlertsOut

market_router = APIRouter()


class FiguresOut(BaseModel):
    """What some sales were worth; outliers are left out."""

    count: int
    median_yen: float | None
    p25_yen: float | None
    p75_yen: float | None
    min_yen: int | None
    max_yen: int | None


_NOTHING = FiguresOut(
    count=0, median_yen=None, p25_yen=None, p75_yen=None, min_yen=None, max_yen=None
)


def _figures(found: Figures | None) -> dict[str, Any]:
    return _rounded(asdict(found), 1) if found else _NOTHING.model_dump()


def _rounded(values: dict[str, Any], digits: int) -> dict[str, Any]:
    return {
        name: round(value, digits) if isinstance(value, float) else value
        for name, value in values.items()
    }


class DayOut(FiguresOut):
    """What was sold on a day; its figures are null where all of it is left out."""

    on: date
    outliers: int = Field(description="How many sales are left out.")

    @classmethod
    def of(cls, day: Day) -> "DayOut":
        """Show a day."""
        return cls(on=day.on, **_figures(day.figures), outliers=day.outliers)


class BoundsOut(BaseModel):
    """Between which prices something counts, and why."""

    least_yen: int | None
    most_yen: int | None
    reason: str


class CheapestOut(BaseModel):
    """The cheapest on sale, of what was seen lately."""

    result_id: int
    external_id: str
    name: str
    price: int
    selling_url: str
    image_url: str
    percent_under_median: float | None = Field(description="Null while nothing was sold.")
    last_seen_at: datetime
    outlier: str | None = Field(description="Why its price is out of line; null if it counts.")

    @classmethod
    def of(cls, found: Cheapest) -> "CheapestOut":
        """Show the cheapest."""
        return cls.model_validate(found, from_attributes=True)


class StepOut(BaseModel):
    """How many sold so soon, and not sooner."""

    within_hours: int | None = Field(description="Null is later than every step.")
    count: int


class DaysToSellOut(BaseModel):
    """How long things took to sell, of those whose listing was seen."""

    count: int
    median_days: float
    p25_days: float
    p75_days: float
    steps: list[StepOut]

    @classmethod
    def of(cls, found: DaysToSell) -> "DaysToSellOut":
        """Show how long it takes."""
        return cls(**_rounded(asdict(found), 2))


class MarketOut(BaseModel):
    """What a product is worth."""

    product_id: int
    zone: str = Field(description="Days begin at midnight here.")
    since_on: date
    until_on: date
    days: list[DayOut] = Field(description="Only those on which something was sold.")
    sold: FiguresOut | None = Field(description="Over all the days; null if nothing counts.")
    bounds: BoundsOut
    outliers: int = Field(description="How many sales are left out.")
    on_sale: int
    unseen: int = Field(
        description="How many of those on sale were not seen lately, so that they may be gone."
    )
    cheapest: CheapestOut | None = Field(description="The cheapest that counts.")
    doubtful: CheapestOut | None = Field(
        description="The cheapest of all, if its price is out of line with what was sold."
    )
    days_to_sell: DaysToSellOut | None

    @classmethod
    def of(cls, found: Market, product_id: int, zone: str) -> "MarketOut":
        """Show a market."""
        return cls(
            product_id=product_id,
            zone=zone,
            since_on=found.since_on,
            until_on=found.until_on,
            days=[DayOut.of(day) for day in found.days],
            sold=FiguresOut(**_figures(found.sold)) if found.sold else None,
            bounds=BoundsOut.model_validate(found.bounds, from_attributes=True),
            outliers=found.outliers,
            on_sale=found.on_sale,
            unseen=found.unseen,
            cheapest=CheapestOut.of(found.cheapest) if found.cheapest else None,
            doubtful=CheapestOut.of(found.doubtful) if found.doubtful else None,
            days_to_sell=DaysToSellOut.of(found.days_to_sell) if found.days_to_sell else None,
        )


_COLUMNS = ["on", *(name for name in DayOut.model_fields if name != "on")]


@market_router.get(
    "/products/{product_id}/market", response_model=MarketOut, responses=csv_export.CSV
)
async def show_market(
    system: SystemOf, product_id: ProductId, given: Annotated[MarketAsked, Query()]
) -> MarketOut | Response:
    """Tell what a product sold for day by day, what counts and why, and the cheapest on sale."""
    now, zone = system.clock.now(), system.settings.zone
    async with system.store.read() as reader:
        await queries.find_known(reader, product_id)
        found = await market.find_market(reader, product_id, given.days, now, system.settings)
    shown = MarketOut.of(found, product_id, str(zone))
    if given.format == "csv":
        pieces = csv_export.one_piece(shown.days)
        return await csv_export.download(f"product-{product_id}-days", _COLUMNS, pieces)
    return shown


@market_router.get("/prices/alerts", response_model=AlertsOut, responses=csv_export.CSV)
async def list_alerts(
    system: SystemOf, given: Annotated[AlertsAsked, Query()]
) -> AlertsOut | Response:
    """List alerts, newest first."""
    is_open = is_true(given.is_open)

    async def fetch(before: int | None, most: int) -> Sequence[AlertOut]:
        wanted = queries.want_alerts(system, given.product_id, is_open=is_open)
        async with system.store.read() as reader:
            rows = await queries.list_alerts(reader, most, before, wanted)
        return [AlertOut.of(row) for row in rows]

    listing = Listing(fetch=fetch, start=given.before, place_of=lambda alert: alert.id)
    if given.format == "csv":
        pieces = pagination.walk(listing, given.limit)
        return await csv_export.download("price-alerts", list(AlertOut.model_fields), pieces)
    shown, more = await pagination.find_page(listing, given.page)
    return AlertsOut(alerts=shown, next=shown[-1].id if more else None)
