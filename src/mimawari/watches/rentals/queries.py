"""Looks at what the rentals watch keeps, for its edges; changes nothing."""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import takewhile
from typing import Any

from sqlalchemy import ColumnElement, and_, func, or_, select

from mimawari.columns import behind, contains_word
from mimawari.edges.system import System
from mimawari.kernel.job import State
from mimawari.kernel.ports import Reader
from mimawari.watches.rentals import cleanup
from mimawari.watches.rentals.models import SITE_NAME, Kind, Status
from mimawari.watches.rentals.tables import changes, is_of, lists, properties, runs, snapshots


class Sort(StrEnum):
    """What properties are put in order by."""

    NEWEST = "newest"
    CHANGED = "changed"
    RENT = "rent"
    AREA = "area"
    SEEN = "seen"


_SORTED = {
    Sort.NEWEST: properties.c.first_seen_at,
    Sort.CHANGED: properties.c.changed_at,
    Sort.SEEN: properties.c.last_seen_at,
    # One without a rent or an area goes as if it had none.
    Sort.RENT: func.coalesce(properties.c.rent_yen, 0),
    Sort.AREA: func.coalesce(properties.c.area_m2, 0.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which properties are asked for."""

    status: Status | None = None
    least_rent_yen: int | None = None
    most_rent_yen: int | None = None
    least_area_m2: float | None = None
    layout: str | None = None
    search: str = ""
    sort: Sort = Sort.NEWEST
    is_ascending: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page of properties ended: the next one goes on behind it."""

    value: Any
    property_id: str


def place_of(row: Any, sort: Sort) -> Place:
    """Tell where a page ends that ends with this property."""
    value = {
        Sort.NEWEST: row.first_seen_at,
        Sort.CHANGED: row.changed_at,
        Sort.SEEN: row.last_seen_at,
        Sort.RENT: row.rent_yen or 0,
        Sort.AREA: row.area_m2 or 0.0,
    }[sort]
    return Place(value, row.property_id)


async def list_properties(
    reader: Reader, wanted: Wanted, limit: int, after: Place | None
) -> Sequence[Any]:
    """List properties in the order asked for, a page at a time."""
    key, name = _SORTED[wanted.sort], properties.c.property_id
    query = select(properties).where(properties.c.site == SITE_NAME, *_conditions(wanted))
    if after is not None:
        place = (after.value, after.property_id)
        query = query.where(behind((key, name), place, is_ascending=wanted.is_ascending))
    order = (key, name) if wanted.is_ascending else (key.desc(), name.desc())
    found: Sequence[Any] = (await reader.execute(query.order_by(*order).limit(limit))).all()
    return found


async def count_properties(reader: Reader, wanted: Wanted) -> int:
    """Count the properties that are asked for."""
    query = select(func.count()).select_from(properties)
    query = query.where(properties.c.site == SITE_NAME, *_conditions(wanted))
    return int((await reader.execute(query)).scalar_one())


def _conditions(wanted: Wanted) -> list[ColumnElement[bool]]:
    at = properties.c
    given = (
        (at.status, operator.eq, wanted.status),
        (at.rent_yen, operator.ge, wanted.least_rent_yen),
        (at.rent_yen, operator.le, wanted.most_rent_yen),
        (at.area_m2, operator.ge, wanted.least_area_m2),
        (at.layout, operator.eq, wanted.layout),
    )
    found = [compare(column, value) for column, compare, value in given if value is not None]
    # A page that was gone before anybody read it tells nothing.
    found.append(at.snapshot_on != "")
    if wanted.search:
        searched = (at.building_name, at.address, at.title, at.stations)
        found.append(or_(*(contains_word(one, wanted.search) for one in searched)))
    return found


async def find_property(reader: Reader, property_id: str) -> Any:
    """Find one property."""
    query = select(properties).where(is_of(properties, property_id))
    return (await reader.execute(query)).first()


async def list_by_prefix(reader: Reader, prefix: str, limit: int) -> Sequence[Any]:
    """List properties by the beginning of their ids."""
    key = properties.c.property_id
    # LIKE does not tell large letters from small ones on every engine; no id has a `~`.
    begins = (key >= prefix) & (key < f"{prefix}~")
    query = select(properties).where(properties.c.site == SITE_NAME, begins)
    found: Sequence[Any] = (await reader.execute(query.order_by(key).limit(limit))).all()
    return found


async def find_id_length(reader: Reader, ids: Sequence[str]) -> int:
    """Tell how much of these ids tells each of them apart from all others that are known."""
    key = properties.c.property_id
    beside = (func.lag(key).over(order_by=key), func.lead(key).over(order_by=key))
    known = select(key, *(other.label(name) for name, other in zip("ab", beside, strict=True)))
    known_ids = known.where(properties.c.site == SITE_NAME).subquery()
    query = select(known_ids).where(known_ids.c.property_id.in_(ids))
    # What shares most with an id stands beside it in their order.
    pairs = [(row[0], other) for row in await reader.execute(query) for other in row[1:] if other]
    return max((_count_shared(*pair) + 1 for pair in pairs), default=0)


def _count_shared(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


async def list_snapshots(reader: Reader, property_id: str, limit: int) -> Sequence[Any]:
    """List how a property was, newest first."""
    query = (
        select(snapshots)
        .where(is_of(snapshots, property_id))
        .order_by(snapshots.c.at.desc())
        .limit(limit)
    )
    found: Sequence[Any] = (await reader.execute(query)).all()
    return found


async def count_snapshots(reader: Reader, property_id: str) -> int:
    """Count the times at which a property was read."""
    query = select(func.count()).select_from(snapshots).where(is_of(snapshots, property_id))
    counted: int = (await reader.execute(query)).scalar_one()
    return counted


async def list_changes(
    reader: Reader,
    limit: int,
    *,
    before: int | None = None,
    property_id: str | None = None,
    kind: Kind | None = None,
) -> Sequence[Any]:
    """List changes with the building's name and the address, newest first, a page at a time."""
    query = select(changes, properties.c.building_name, properties.c.url).join(
        properties,
        and_(
            properties.c.site == changes.c.site,
            properties.c.property_id == changes.c.property_id,
        ),
    )
    if before is not None:
        query = query.where(changes.c.id < before)
    if property_id is not None:
        query = query.where(is_of(changes, property_id))
    if kind is not None:
        query = query.where(changes.c.kind == kind)
    found: Sequence[Any] = (
        await reader.execute(query.order_by(changes.c.id.desc()).limit(limit))
    ).all()
    return found


async def list_last_runs(reader: Reader, list_ids: Sequence[int]) -> Sequence[Any]:
    """List the last walk over each of these lists that was walked over."""
    last = select(runs.c.list_id, func.max(runs.c.started_at).label("started_at"))
    last_of = last.where(runs.c.list_id.in_(list_ids)).group_by(runs.c.list_id).subquery()
    same = (runs.c.list_id == last_of.c.list_id) & (runs.c.started_at == last_of.c.started_at)
    found: Sequence[Any] = (await reader.execute(select(runs).join(last_of, same))).all()
    return found


async def list_runs_since(reader: Reader, since: datetime, most: int) -> Sequence[Any]:
    """List the walks that went on after a time with the lists' addresses, newest first."""
    query = select(runs, lists.c.url).join(lists, lists.c.id == runs.c.list_id)
    is_late = runs.c.ended_at.is_(None) | (runs.c.ended_at > since)
    query = query.where(is_late).order_by(runs.c.started_at.desc(), runs.c.id).limit(most)
    found: Sequence[Any] = (await reader.execute(query)).all()
    return found


async def count_queue(system: System) -> Mapping[State, int]:
    """Count the details in the queue by their state."""
    return await system.store.queue.counts(cleanup.KIND)
