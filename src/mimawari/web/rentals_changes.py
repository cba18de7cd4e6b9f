"""What changed about properties, in words that people read."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mimawari.watches.rentals.models import Kind
from mimawari.watches.rentals.schemas.responses import ChangeOut
from mimawari.web.visit import Visit, write_yen

AMOUNTS = frozenset({Kind.RENT, Kind.FEE, Kind.DEPOSIT, Kind.KEY_MONEY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A change as a row of a table."""

    id: int
    at: datetime
    property_id: str
    name: str | None
    kind: str
    before: str
    after: str
    by_yen: int | None
    """How much an amount went up, or down below zero."""
    source: str


def tell(visit: Visit, change: ChangeOut) -> Told:
    """Say what changed from what to what."""
    return Told(
        id=change.id,
        at=change.at,
        property_id=change.property_id,
        name=change.building_name,
        kind=change.kind,
        before=_value(visit, change.kind, change.before),
        after=_value(visit, change.kind, change.after),
        by_yen=_find_step(change),
        source=change.source,
    )


def _find_step(change: ChangeOut) -> int | None:
    if change.kind not in AMOUNTS or change.before is None or change.after is None:
        return None
    return int(change.after) - int(change.before)


def _value(visit: Visit, kind: Kind, text: str | None) -> str:
    if text is None:
        return "–"
    match kind:
        case Kind.NEW | Kind.STATUS:
            return visit.words.maybe("state", text)
        case Kind.IMAGE:
            return visit.words("rentals.pictures", count=len(json.loads(text)))
        case Kind.ACCESS:
            return "; ".join(say_ways(visit, json.loads(text)))
        case Kind.AREA:
            return f"{text} m²"
        case _:
            return write_yen(int(text)) if kind in AMOUNTS else text


def say_ways(visit: Visit, ways: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say the ways to a property's stations."""
    return [_say_way(visit, way) for way in ways]


def _say_way(visit: Visit, way: Mapping[str, Any]) -> str:
    place = f"{way['line'] or ''} {way['station'] or ''}".strip()
    bus, walk = way["bus_minutes"], way["walk_minutes"]
    if bus:
        return visit.words("rentals.way_bus", place=place, bus=bus, walk=walk)
    return visit.words("rentals.way", place=place, walk=walk)
