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
from mimawari.settings import Settings
from mimawari.watches.prices import daily_sales, figures, rules
from mimawari.watches.prices.daily_sales import QUARTERS
from mimawari.watches.prices.figures import Bounds, DaysToSell, Figures
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
    outlier: str | None
    """Why its price is out of line with what was sold; None if it is not."""


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
    unseen: int
    """How many of those on sale were not seen for so long that nobody knows."""
    cheapest: Cheapest | None
    """The cheapest that counts, of those seen lately."""
    doubtful: Cheapest | None
    """The cheapest of all seen lately, if its price is out of line."""


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
    reader: Reader | Tx, product_id: int, days: int, now: datetime, found: Settings
) -> Market:
    """Read what a product is worth over some days up to now."""
    zone, since = found.zone, now - found.prices_unseen_after
    until_on = now.astimezone(zone).date()
    since_on = until_on - (days - 1) * DAY
    sales = await _list_sales(reader, product_id, since_on, zone)
    by_day = {on: sorted(prices) for on, prices in sales.by_day.items()}
    # Days that are in order each are put in order together in no time.
    ordered = sorted(chain.from_iterable(by_day.values()))
    bounds = figures.find_bounds(ordered)
    sold = figures.make_figures(bounds.cut(ordered))
    on_sale = await _count_on_sale(reader, product_id, None)
    offers = _Offers(reader, product_id, since, bounds, sold)
    return Market(
        since_on=since_on,
        until_on=until_on,
        days=tuple(_make_day(on, prices, bounds) for on, prices in by_day.items()),
        sold=sold,
        outliers=len(ordered) - (sold.count if sold else 0),
        bounds=bounds,
        days_to_sell=figures.make_days_to_sell(_count_hours(sales, bounds)),
        on_sale=on_sale,
        unseen=on_sale - await _count_on_sale(reader, product_id, since),
        cheapest=await offers.find_cheapest(),
        doubtful=await offers.find_doubtful(),
    )


async def _list_sales(reader: Reader | Tx, product_id: int, since_on: date, zone: tzinfo) -> _Sales:
    start = rules.quarter_of(datetime.combine(since_on, time(), zone))
    sales = _Sales()
    for one in await daily_sales.list_days(reader, product_id, start // QUARTERS):
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
    del counts[daily_sales.UNKNOWN]
    return counts


def _on_sale(product_id: int) -> Any:
    return (sightings.c.product_id == product_id) & sightings.c.on_sale_yen.is_not(None)


async def _count_on_sale(reader: Reader | Tx, product_id: int, since: datetime | None) -> int:
    """Count what is on sale, all of it or what was seen since a time."""
    query = select(func.count()).where(_on_sale(product_id))
    if since is not None:
        query = query.where(sightings.c.last_seen_at >= since)
    counted: int = (await reader.execute(query)).scalar_one()
    return counted


@dataclass(frozen=True, slots=True)
class _Offers:
    """What is on sale of a product and was seen since a time."""

    reader: Reader | Tx
    product_id: int
    since: datetime
    bounds: Bounds
    sold: Figures | None

    async def find_cheapest(self) -> Cheapest | None:
        """Find the cheapest that counts."""
        found = await self._find(self.bounds.least_yen or 0)
        return None if found is None or found.outlier is not None else found

    async def find_doubtful(self) -> Cheapest | None:
        """Find the cheapest of all, if its price is out of line."""
        if self.bounds.least_yen is None:
            return None
        found = await self._find(0)
        return None if found is None or found.outlier is None else found

    async def _find(self, least_yen: int) -> Cheapest | None:
        query = (
            select(results, sightings.c.last_seen_at)
            .select_from(sightings)
            .join(results, SAME_ITEM)
            .where(_on_sale(self.product_id), sightings.c.on_sale_yen >= least_yen)
            .where(sightings.c.last_seen_at >= self.since)
            .order_by(sightings.c.on_sale_yen, results.c.id)
            .limit(1)
        )
        row = (await self.reader.execute(query)).first()
        return None if row is None else self._make(row)

    def _make(self, row: Any) -> Cheapest:
        median = None if self.sold is None else self.sold.median_yen
        return Cheapest(
            result_id=row.id,
            external_id=row.external_id,
            name=row.name,
            price=row.price,
            selling_url=row.selling_url,
            image_url=row.image_url,
            last_seen_at=row.last_seen_at,
            percent_under_median=median and round(100 * (1 - row.price / median), 1),
            outlier=self.bounds.find_outlier(row.price),
        )
