"""Looks at what the prices watch keeps, for its edges; changes nothing."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, or_, select

from mimawari.columns import behind, contains_word
from mimawari.edges.system import System
from mimawari.errors import NotFound
from mimawari.kernel.ports import Reader, Tx
from mimawari.watches.prices import products
from mimawari.watches.prices.figures import Bounds
from mimawari.watches.prices.models import MOST_YEN, Product, SellerType, SellingStatus
from mimawari.watches.prices.rules import QUARTER, quarter_of
from mimawari.watches.prices.tables import (
    SAME_ITEM,
    alerts,
    removed,
    results,
    runs,
    sightings,
)


class Sort(StrEnum):
    """What results are put in order by."""

    NEWEST = "newest"
    PRICE = "price"
    UPDATED = "updated"


_SORTED = {
    Sort.NEWEST: results.c.id,
    Sort.PRICE: results.c.price,
    Sort.UPDATED: results.c.updated_at,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which results of a product are asked for."""

    status: SellingStatus | None = None
    seller: SellerType | None = None
    least_yen: int | None = None
    most_yen: int | None = None
    search: str = ""
    is_outlier: bool | None = None
    seen_since: datetime | None = None
    sort: Sort = Sort.NEWEST
    is_ascending: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page of results ended: the next one goes on behind it."""

    value: Any
    result_id: int


def place_of(row: Any, sort: Sort) -> Place:
    """Tell where a page ends that ends with this result."""
    value = {Sort.NEWEST: row.id, Sort.PRICE: row.price, Sort.UPDATED: row.updated_at}[sort]
    return Place(value, row.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One crawl of a product."""

    task_id: str
    product_id: int
    crawled_at: datetime
    found: int
    added: int
    left_out: int
    removed: int
    restored: int
    followed_up: int
    pages_asked: int
    pages_read: int
    capped_on_sale: bool
    capped_sold: bool
    unpriced: int
    page_errors: str


_RUN = tuple(field.name for field in fields(Run))


async def find_known(reader: Reader | Tx, product_id: int) -> Product:
    """Find a product, or raise NotFound."""
    product = await products.find_product(reader, product_id)
    if product is None:
        raise NotFound(
            f"no product goes by the id {product_id};"
            " `mimawari prices product ls` and GET /api/products list them"
        )
    return product


async def find_run(reader: Reader, job_id: str) -> Run | None:
    """Find the crawl that a job made."""
    row = (await reader.execute(select(runs).where(runs.c.task_id == job_id))).first()
    return None if row is None else _make_run(row)


async def list_runs(reader: Reader, product_id: int, limit: int) -> list[Run]:
    """List the last crawls of a product, newest first."""
    query = select(runs).where(runs.c.product_id == product_id)
    found = await reader.execute(query.order_by(runs.c.crawled_at.desc()).limit(limit))
    return [_make_run(row) for row in found]


def _make_run(row: Any) -> Run:
    return Run(**{name: getattr(row, name) for name in _RUN})


async def list_results(
    reader: Reader, product_id: int, wanted: Wanted, bounds: Bounds, limit: int, after: Place | None
) -> Sequence[Any]:
    """List results, each with its sighting, in the order asked for, a page at a time."""
    key = _SORTED[wanted.sort]
    seen = (sightings.c.listed_at, sightings.c.last_seen_at)
    query = select(results, *seen).outerjoin(sightings, SAME_ITEM)
    query = query.where(results.c.product_id == product_id, *_conditions(wanted, bounds))
    if after is not None:
        place = (after.value, after.result_id)
        query = query.where(behind((key, results.c.id), place, is_ascending=wanted.is_ascending))
    order = (key, results.c.id) if wanted.is_ascending else (key.desc(), results.c.id.desc())
    found: Sequence[Any] = (await reader.execute(query.order_by(*order).limit(limit))).all()
    return found


def _conditions(wanted: Wanted, bounds: Bounds) -> list[ColumnElement[bool]]:
    at = results.c
    given = (
        (at.selling_status, operator.eq, wanted.status),
        (at.seller_type, operator.eq, wanted.seller),
        (at.price, operator.ge, wanted.least_yen),
        (at.price, operator.le, wanted.most_yen),
        (sightings.c.last_seen_at, operator.ge, wanted.seen_since),
    )
    found = [compare(column, value) for column, compare, value in given if value is not None]
    if wanted.search:
        found.append(contains_word(at.name, wanted.search))
    if wanted.is_outlier is not None:
        # A bound may lie above all that the column holds, and so above what may be asked for.
        most = min(bounds.most_yen or MOST_YEN, MOST_YEN)
        counts = at.price.between(bounds.least_yen or 0, most)
        found.append(~counts if wanted.is_outlier else counts)
    return found


async def list_sales(
    reader: Reader, product_id: int, since_at: datetime, bounds: Bounds, limit: int
) -> list[tuple[datetime, int]]:
    """List the newest sales that count: when, to a quarter of an hour, and for how much."""
    at = sightings.c
    most = min(bounds.most_yen or MOST_YEN, MOST_YEN)
    query = select(at.sold_quarter, at.sold_yen).where(
        at.product_id == product_id,
        at.sold_quarter >= quarter_of(since_at),
        at.sold_yen.between(bounds.least_yen or 0, most),
    )
    rows = await reader.execute(query.order_by(at.sold_quarter.desc()).limit(limit))
    return [(datetime.fromtimestamp(quarter * QUARTER, UTC), price) for quarter, price in rows]


async def list_removed(
    reader: Reader, product_id: int, limit: int, before: int | None
) -> Sequence[Any]:
    """List what was taken out of a product's results, newest result first, with the reason."""
    same = (sightings.c.product_id == removed.c.product_id) & (
        sightings.c.external_id == removed.c.external_id
    )
    query = select(removed, sightings.c.last_seen_at).outerjoin(sightings, same)
    query = query.where(removed.c.product_id == product_id)
    if before is not None:
        query = query.where(removed.c.id < before)
    found: Sequence[Any] = (
        await reader.execute(query.order_by(removed.c.id.desc()).limit(limit))
    ).all()
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertsWanted:
    """Which alerts are asked for."""

    seen_since: datetime
    """An alert of something that was not seen since is not open."""
    product_id: int | None = None
    is_open: bool | None = None


def want_alerts(system: System, product_id: int | None, *, is_open: bool | None) -> AlertsWanted:
    """Ask for alerts as they stand now."""
    seen_since = system.clock.now() - system.settings.prices_unseen_after
    return AlertsWanted(seen_since=seen_since, product_id=product_id, is_open=is_open)


async def list_alerts(
    reader: Reader, limit: int, before: int | None, wanted: AlertsWanted
) -> Sequence[Any]:
    """List alerts, newest first, each with when its item was last seen and whether it is open."""
    query = _alerts(wanted, alerts, sightings.c.last_seen_at, _is_open(wanted).label("is_open"))
    if before is not None:
        query = query.where(alerts.c.id < before)
    found: Sequence[Any] = (
        await reader.execute(query.order_by(alerts.c.id.desc()).limit(limit))
    ).all()
    return found


async def count_alerts(reader: Reader, wanted: AlertsWanted) -> int:
    """Count alerts."""
    counted: int = (await reader.execute(_alerts(wanted, func.count()))).scalar_one()
    return counted


def _alerts(wanted: AlertsWanted, *columns: Any) -> Select[Any]:
    same = (sightings.c.product_id == alerts.c.product_id) & (
        sightings.c.external_id == alerts.c.external_id
    )
    query = select(*columns).select_from(alerts).outerjoin(sightings, same)
    if wanted.product_id is not None:
        query = query.where(alerts.c.product_id == wanted.product_id)
    if wanted.is_open is not None:
        is_open = _is_open(wanted)
        query = query.where(is_open if wanted.is_open else ~is_open)
    return query


def _is_open(wanted: AlertsWanted) -> ColumnElement[bool]:
    seen_at = sightings.c.last_seen_at
    is_seen = or_(seen_at.is_(None), seen_at >= wanted.seen_since)
    return and_(alerts.c.open_key.is_not(None), is_seen)
