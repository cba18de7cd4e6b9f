"""What a product is worth: what it sold for day by day, and what is on sale now."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import Any

from sqlalchemy import String, cast, func, select

from mimawari.kernel.ports import Reader, Tx
from mimawari.watches.prices import figures, rules
from mimawari.watches.prices.figures import Bounds, DaysToSell, Figures
from mimawari.watches.prices.tables import results, sightings

USUAL_DAYS = 30
"""Over how many days alerts, and whoever does not say, look back."""
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """What was sold on one day; the figures are None where nothing counts."""

    on: date
    figures: Figures | None
    outliers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cheapest:
    """The cheapest on sale, and how far it is under the median of what was sold."""

    result_id: int
    external_id: str
    name: str
    price: int
    selling_url: str
    image_url: str
    last_seen_at: datetime
    percent_under_median: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Market:
    """What a product is worth."""

    since_on: date
    until_on: date
    days: tuple[Day, ...]
    """Days on which something was sold; on the others nothing was seen to be sold."""
    sold: Figures | None
    outliers: int
    bounds: Bounds
    days_to_sell: DaysToSell | None
    on_sale: int
    cheapest: Cheapest | None


@dataclass(slots=True)
class _Sales:
    """Prices in the order of their sale, and how many hours each took; -1 is unknown."""

    by_day: dict[date, list[int]] = field(default_factory=dict)
    prices: list[int] = field(default_factory=list)
    hours: list[int] = field(default_factory=list)


async def find_market(
    reader: Reader | Tx, product_id: int, days: int, now: datetime, zone: tzinfo
) -> Market:
    """Read what a product is worth over some days up to now."""
    until_on = now.astimezone(zone).date()
    since_on = until_on - (days - 1) * DAY
    sales = await _list_sales(reader, product_id, since_on, zone)
    ordered = sorted(sales.prices)
    bounds = figures.find_bounds(ordered)
    sold = figures.make_figures(bounds.cut(ordered))
    on_sale = select(func.count()).where(_on_sale(product_id))
    return Market(
        since_on=since_on,
        until_on=until_on,
        days=tuple(_make_day(on, prices, bounds) for on, prices in sales.by_day.items()),
        sold=sold,
        outliers=len(ordered) - (sold.count if sold else 0),
        bounds=bounds,
        days_to_sell=figures.make_days_to_sell(_counting_hours(sales, bounds)),
        on_sale=(await reader.execute(on_sale)).scalar_one(),
        cheapest=await _find_cheapest(reader, product_id, bounds, sold),
    )


async def _list_sales(reader: Reader | Tx, product_id: int, since_on: date, zone: tzinfo) -> _Sales:
    """Read prices packed by the database, a row for each quarter of an hour: rows are dear."""
    start = datetime.combine(since_on, time(), zone)
    seen = sightings.c
    hours = func.coalesce(seen.sold_after_hours, -1)
    query = (
        select(
            seen.sold_quarter,
            func.aggregate_strings(cast(seen.sold_yen, String(16)), ","),
            func.aggregate_strings(cast(hours, String(16)), ","),
        )
        .where(seen.product_id == product_id, seen.sold_quarter >= rules.quarter_of(start))
        .group_by(seen.sold_quarter)
        .order_by(seen.sold_quarter)
    )
    rows: Iterable[Any] = await reader.execute(query)
    sales = _Sales()
    for quarter, prices, taken in rows:
        sold = [*map(int, prices.split(","))]
        sales.by_day.setdefault(_day_of(quarter, zone), []).extend(sold)
        sales.prices += sold
        sales.hours += map(int, taken.split(","))
    return sales


@lru_cache(maxsize=20_000)
def _day_of(quarter: int, zone: tzinfo) -> date:
    return datetime.fromtimestamp(quarter * rules.QUARTER, UTC).astimezone(zone).date()


def _make_day(on: date, prices: Sequence[int], bounds: Bounds) -> Day:
    counted = bounds.cut(sorted(prices))
    return Day(on=on, figures=figures.make_figures(counted), outliers=len(prices) - len(counted))


def _counting_hours(sales: _Sales, bounds: Bounds) -> list[int]:
    pairs = zip(sales.prices, sales.hours, strict=True)
    least, most = bounds.least_yen or 0, bounds.most_yen or float("inf")
    return sorted(hours for price, hours in pairs if hours >= 0 and least <= price <= most)


def _on_sale(product_id: int) -> Any:
    return (sightings.c.product_id == product_id) & sightings.c.on_sale_yen.is_not(None)


async def _find_cheapest(
    reader: Reader | Tx, product_id: int, bounds: Bounds, sold: Figures | None
) -> Cheapest | None:
    same = (results.c.product_id == sightings.c.product_id) & (
        results.c.external_id == sightings.c.external_id
    )
    query = (
        select(results, sightings.c.last_seen_at)
        .select_from(sightings)
        .join(results, same)
        .where(_on_sale(product_id), sightings.c.on_sale_yen >= (bounds.least_yen or 0))
        .order_by(sightings.c.on_sale_yen, results.c.id)
        .limit(1)
    )
    row = (await reader.execute(query)).first()
    if row is None or bounds.find_outlier(row.price) is not None:
        return None
    under = None if sold is None else round(100 * (1 - row.price / sold.median_yen), 1)
    return Cheapest(
        result_id=row.id,
        external_id=row.external_id,
        name=row.name,
        price=row.price,
        selling_url=row.selling_url,
        image_url=row.image_url,
        last_seen_at=row.last_seen_at,
        percent_under_median=under,
    )
