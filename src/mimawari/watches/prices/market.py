"""What a product is worth: what it sold for day by day, and what is on sale now."""

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from itertools import chain
from typing import Any

from sqlalchemy import func, select

from mimawari.kernel.ports import Reader, Tx
from mimawari.watches.prices import figures, ledger, rules
from mimawari.watches.prices.figures import Bounds, DaysToSell, Figures
from mimawari.watches.prices.ledger import QUARTERS
from mimawari.watches.prices.tables import SAME_ITEM, results, sightings

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
    """Prices by the day of a zone, and all of them with the hours that each took."""

    by_day: dict[date, list[int]] = field(default_factory=dict)
    prices: list[int] = field(default_factory=list)
    hours: list[int] = field(default_factory=list)

    def add(self, on: date, prices: list[int], hours: list[int]) -> None:
        """Add what was sold on a day, or on a part of it."""
        if prices:
            self.by_day.setdefault(on, []).extend(prices)
            self.prices += prices
            self.hours += hours


async def find_market(
    reader: Reader | Tx, product_id: int, days: int, now: datetime, zone: tzinfo
) -> Market:
    """Read what a product is worth over some days up to now."""
    until_on = now.astimezone(zone).date()
    since_on = until_on - (days - 1) * DAY
    sales = await _list_sales(reader, product_id, since_on, zone)
    by_day = {on: sorted(prices) for on, prices in sales.by_day.items()}
    # Days that are in order each are put in order together in no time.
    ordered = sorted(chain.from_iterable(by_day.values()))
    bounds = figures.find_bounds(ordered)
    sold = figures.make_figures(bounds.cut(ordered))
    on_sale = select(func.count()).where(_on_sale(product_id))
    return Market(
        since_on=since_on,
        until_on=until_on,
        days=tuple(_make_day(on, prices, bounds) for on, prices in by_day.items()),
        sold=sold,
        outliers=len(ordered) - (sold.count if sold else 0),
        bounds=bounds,
        days_to_sell=figures.make_days_to_sell(_count_hours(sales, bounds)),
        on_sale=(await reader.execute(on_sale)).scalar_one(),
        cheapest=await _find_cheapest(reader, product_id, bounds, sold),
    )


async def _list_sales(reader: Reader | Tx, product_id: int, since_on: date, zone: tzinfo) -> _Sales:
    start = rules.quarter_of(datetime.combine(since_on, time(), zone))
    sales = _Sales()
    for one in await ledger.list_days(reader, product_id, start // QUARTERS):
        for first, last, on in _cut(one.day, zone):
            if on >= since_on:
                head, tail = sum(one.counts[:first]), sum(one.counts[:last])
                sales.add(on, one.prices[head:tail], one.hours[head:tail])
    return sales


@lru_cache(maxsize=4000)
def _cut(day: int, zone: tzinfo) -> tuple[tuple[int, int, date], ...]:
    """Cut a day of UTC into the parts that lie on different days of a zone."""
    start = datetime.fromtimestamp(day * QUARTERS * rules.QUARTER, UTC)
    days = [
        (start + timedelta(seconds=quarter * rules.QUARTER)).astimezone(zone).date()
        for quarter in range(QUARTERS)
    ]
    edges = [
        quarter for quarter in range(QUARTERS) if not quarter or days[quarter] != days[quarter - 1]
    ]
    return tuple(
        (first, last, days[first])
        for first, last in zip(edges, [*edges[1:], QUARTERS], strict=True)
    )


def _make_day(on: date, prices: Sequence[int], bounds: Bounds) -> Day:
    counted = bounds.cut(prices)
    return Day(on=on, figures=figures.make_figures(counted), outliers=len(prices) - len(counted))


def _count_hours(sales: _Sales, bounds: Bounds) -> Counter[int]:
    """Count how many sales of those that count took so many hours."""
    pairs = zip(sales.prices, sales.hours, strict=True)
    least, most = bounds.least_yen or 0, bounds.most_yen or sys.maxsize
    counts = Counter([hours for price, hours in pairs if least <= price <= most])
    del counts[ledger.UNKNOWN]
    return counts


def _on_sale(product_id: int) -> Any:
    return (sightings.c.product_id == product_id) & sightings.c.on_sale_yen.is_not(None)


async def _find_cheapest(
    reader: Reader | Tx, product_id: int, bounds: Bounds, sold: Figures | None
) -> Cheapest | None:
    query = (
        select(results, sightings.c.last_seen_at)
        .select_from(sightings)
        .join(results, SAME_ITEM)
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
