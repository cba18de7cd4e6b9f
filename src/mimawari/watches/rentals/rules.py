"""What a page says about a property against what is known: pure decisions."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from mimawari.sites.yahoo_realestate import Property, Room
from mimawari.watches.rentals.models import Change, Kind, Seen, Source

DAILY_AT = time(2)
MISSES = 2
"""Missing from this many whole runs in a row, a property is taken to have ended."""


@dataclass(frozen=True, slots=True)
class Field:
    """Something about a property whose changes are told."""

    kind: Kind
    column: str
    is_listed: bool = False
    """Whether lists say it too, in the same words."""


FIELDS = (
    Field(Kind.RENT, "rent_yen", is_listed=True),
    Field(Kind.FEE, "fee_yen", is_listed=True),
    Field(Kind.DEPOSIT, "deposit_yen", is_listed=True),
    Field(Kind.KEY_MONEY, "key_money_yen", is_listed=True),
    Field(Kind.LAYOUT, "layout", is_listed=True),
    Field(Kind.AREA, "area_m2", is_listed=True),
    Field(Kind.FLOOR, "floor"),
    Field(Kind.NAME, "building_name"),
    Field(Kind.ADDRESS, "address"),
    Field(Kind.ACCESS, "stations"),
    Field(Kind.BUILT, "built_on"),
    Field(Kind.IMAGE, "images"),
)
_UNSAID = (None, "", "[]")
_DETAIL_ONLY = frozenset(field.column for field in FIELDS if not field.is_listed)
_NAMES = ("source", "property_id")


def seen_on_list(room: Room) -> Seen:
    """Tell what a list says about a property."""
    place = room.coordinates
    return Seen(
        property_id=room.property_id,
        url=room.detail_url,
        source=Source.LIST,
        structure_id=room.structure_id,
        building_name=room.building_name,
        rent_yen=room.rent_yen,
        fee_yen=room.fee_yen,
        deposit_yen=room.deposit_yen,
        key_money_yen=room.key_money_yen,
        layout=room.layout,
        area_m2=None if room.area_m2 is None else round(float(room.area_m2), 2),
        floor=room.floor,
        years_old=room.years_old,
        address=room.address,
        latitude=place.latitude if place else None,
        longitude=place.longitude if place else None,
        stations=_json([asdict(way) for way in room.stations]),
    )


def seen_on_page(found: Property) -> Seen:
    """Tell what a property's own page says about it."""
    return Seen(
        property_id=found.property_id,
        url=found.detail_url,
        source=Source.DETAIL,
        title=found.title,
        building_name=found.building_name,
        rent_yen=found.rent_yen,
        rent_note=found.rent_note,
        fee_yen=found.fee_yen,
        deposit_yen=found.deposit_yen,
        key_money_yen=found.key_money_yen,
        layout=found.layout,
        area_m2=None if found.area_m2 is None else round(float(found.area_m2), 2),
        floor=found.floor,
        years_old=found.years_old,
        built_on=found.built_on,
        address=found.address,
        stations=_json([asdict(way) for way in found.stations]),
        images=_json(found.images),
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def list_changes(old: Mapping[str, Any], seen: Seen) -> list[Change]:
    """Tell what is not as it was; what was not known before is filled in without a word."""
    found = []
    for field in FIELDS:
        if not field.is_listed and (seen.source is Source.LIST or old["detail_at"] is None):
            continue
        before, after = old[field.column], getattr(seen, field.column)
        if before != after and _is_told(field, old, seen):
            found.append(Change(kind=field.kind, before=_text(before), after=_text(after)))
    return found


def _is_told(field: Field, old: Mapping[str, Any], seen: Seen) -> bool:
    before, after = old[field.column], getattr(seen, field.column)
    if field.kind is Kind.RENT and None in (before, after):
        # A rent that comes or goes is told only where the page says that there is none.
        return bool(seen.rent_note if after is None else old["rent_note"])
    return before not in _UNSAID and after not in _UNSAID


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def merge(old: Mapping[str, Any], seen: Seen) -> dict[str, Any]:
    """Return what is known after a look; a list never takes the place of a property's own page."""
    given = {
        name: value
        for name, value in asdict(seen).items()
        if name not in _NAMES and value not in _UNSAID
    }
    if seen.source is Source.LIST:
        given = {
            name: value
            for name, value in given.items()
            if name not in _DETAIL_ONLY or old[name] in _UNSAID
        }
    if seen.rent_yen is not None:
        given["rent_note"] = None
    elif seen.rent_note:
        given["rent_yen"] = None
    return {**old, **given}


def next_daily(now: datetime, zone: ZoneInfo) -> datetime:
    """Tell when the day's known properties are enqueued next."""
    local = now.astimezone(zone)
    at = datetime.combine(local.date(), DAILY_AT, zone)
    if at <= local:
        at = datetime.combine(local.date() + timedelta(days=1), DAILY_AT, zone)
    return at.astimezone(UTC)
