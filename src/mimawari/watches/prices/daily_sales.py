"""The sales of each day, packed in one row, so that a year of them is read at a glance."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from pydantic_core import from_json
from sqlalchemy import delete, select

from mimawari.kernel.ports import Reader, Tx
from mimawari.watches.prices.rules import sold_quarter_of
from mimawari.watches.prices.tables import settings, sightings, sold_days

QUARTERS = 96
"""Quarters of an hour in a day."""
UNKNOWN = -1
"""Stands for the hours of a sale whose listing nobody saw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoldDay:
    """What was sold on a day of UTC, in the order of time."""

    day: int
    counts: list[int]
    """How many in each quarter of an hour, from which other zones' days are cut."""
    prices: list[int]
    hours: list[int]


async def hold(tx: Tx, product_id: int) -> None:
    """Let nobody else change a product's results before this is committed."""
    mine = settings.c.product_id == product_id
    await tx.execute(select(settings.c.id).where(mine).with_for_update())


async def save_days(tx: Tx, product_id: int, rows: Iterable[Mapping[str, Any]]) -> None:
    """Pack anew the days of sales that results stood for or stand for, once all is written."""
    quarters = (sold_quarter_of(row) for row in rows)
    days = sorted({quarter // QUARTERS for quarter in quarters if quarter is not None})
    if not days:
        return
    mine = sold_days.c.product_id == product_id
    await tx.execute(delete(sold_days).where(mine, sold_days.c.day.in_(days)))
    packed = [
        {"product_id": product_id, "day": one.day, "sales": _pack(one)}
        for one in await _list_sold(tx, product_id, days[0], days[-1])
        if one.day in days
    ]
    await tx.save(sold_days, packed)


async def _list_sold(tx: Tx, product_id: int, first: int, last: int) -> list[SoldDay]:
    at = sightings.c
    query = select(at.sold_quarter, at.sold_yen, at.sold_after_hours).where(
        at.product_id == product_id,
        at.sold_quarter.between(first * QUARTERS, (last + 1) * QUARTERS - 1),
    )
    rows = (await tx.execute(query.order_by(at.sold_quarter, at.sold_yen))).all()
    return [
        _make_day(day, list(some))
        for day, some in groupby(rows, key=lambda row: row[0] // QUARTERS)
    ]


def _make_day(day: int, rows: list[Any]) -> SoldDay:
    counts = [0] * QUARTERS
    for quarter, _, _ in rows:
        counts[quarter % QUARTERS] += 1
    return SoldDay(
        day=day,
        counts=counts,
        prices=[price for _, price, _ in rows],
        hours=[UNKNOWN if hours is None else hours for _, _, hours in rows],
    )


def _pack(one: SoldDay) -> str:
    return json.dumps([one.counts, one.prices, one.hours], separators=(",", ":"))


async def list_days(reader: Reader | Tx, product_id: int, since: int) -> list[SoldDay]:
    """List the days on which something was sold, from one of UTC's on."""
    query = select(sold_days.c.day, sold_days.c.sales).where(
        sold_days.c.product_id == product_id, sold_days.c.day >= since
    )
    found = []
    for day, sales in await reader.execute(query.order_by(sold_days.c.day)):
        # Long lists of numbers are read at more than twice the speed of the standard library.
        counts, prices, hours = from_json(sales)
        found.append(SoldDay(day=day, counts=counts, prices=prices, hours=hours))
    return found
