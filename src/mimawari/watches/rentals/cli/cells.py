"""Words and cells that the commands of the rentals watch share."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from mimawari import show
from mimawari.edges.system import System
from mimawari.kernel.job import State
from mimawari.kernel.ports import Reader
from mimawari.kernel.values import Limit
from mimawari.text import format_duration
from mimawari.watches.rentals import queries, tasks
from mimawari.watches.rentals.models import Kind, Status

SHORTEST_ID = 8
"""So much of an id is shown at the least where it is cut."""
STATUSES = {Status.ACTIVE: "[green]active[/]", Status.ENDED: "[red]ended[/]"}
MINUTE = timedelta(minutes=1)

_NAMES = {Kind.KEY_MONEY: "key money", Kind.ACCESS: "stations", Kind.IMAGE: "pictures"}
_AMOUNTS = frozenset({Kind.RENT, Kind.FEE, Kind.DEPOSIT, Kind.KEY_MONEY})


def yen(amount: int | None) -> str:
    """Write an amount with its thousands apart."""
    return "–" if amount is None else f"{amount:,}"


def area(square_metres: float | None) -> str:
    """Write an area as the site does."""
    return "–" if square_metres is None else f"{square_metres:.2f}"


def day(at: datetime, zone: ZoneInfo) -> str:
    """Say briefly on which day something was."""
    return at.astimezone(zone).strftime("%m-%d")


def soon(at: datetime, now: datetime, zone: ZoneInfo) -> str:
    """Say when something will be, to the minute where it is not a matter of seconds."""
    span = max(at - now, timedelta(0))
    if span >= MINUTE:
        span = MINUTE * math.ceil(span / MINUTE)
    local = at.astimezone(zone)
    is_today = local.date() == now.astimezone(zone).date()
    return f"{local:{'%H:%M' if is_today else '%m-%d %H:%M'}} (in {format_duration(span)})"


async def cut_ids(reader: Reader, ids: Sequence[str]) -> dict[str, str]:
    """Cut ids as short as they still name one property each."""
    length = max(SHORTEST_ID, await queries.find_id_length(reader, ids))
    return {one: one[:length] for one in ids}


def status(row: Any) -> str:
    """Say whether a property is on offer, in colour."""
    return "[red]gone[/]" if row.gone_at is not None else STATUSES[Status(row.status)]


def stations(text: str | None) -> list[str]:
    """Say the ways to a property's stations, the first one first."""
    return [f"{way['line'] or ''} {_way(way)}".strip() for way in json.loads(text or "[]")]


def nearest(text: str | None) -> str:
    """Say the first way to a station briefly."""
    return next(map(_way, json.loads(text or "[]")), "")


def _way(way: Mapping[str, Any]) -> str:
    bus = f"bus {way['bus_minutes']} + " if way["bus_minutes"] else ""
    return f"{way['station'] or ''} {bus}{way['walk_minutes']} min".strip()


def what(kind: str) -> str:
    """Name what changed."""
    return _NAMES.get(Kind(kind), kind)


def changed(kind: str, before: str | None, after: str | None) -> str:
    """Say from what to what something changed."""
    named = Kind(kind)
    if named is Kind.NEW:
        return "[green]first seen[/]"
    if named is Kind.STATUS:
        return f"{STATUSES[Status(before or '')]} → {STATUSES[Status(after or '')]}"
    if named is Kind.IMAGE:
        return _pictures(len(json.loads(before or "[]")), len(json.loads(after or "[]")))
    return f"{_value(named, before)} → {_value(named, after)}{_direction(named, before, after)}"


def _pictures(before: int, after: int) -> str:
    return f"{before} → {after}" if before != after else f"{before}, not the same as before"


def _value(kind: Kind, text: str | None) -> str:
    if text is None:
        return "not said"
    if kind in _AMOUNTS:
        return yen(int(text))
    if kind is Kind.ACCESS:
        return show.cell("; ".join(stations(text)), most=200)
    return f"{show.cell(text, most=200)} m²" if kind is Kind.AREA else show.cell(text, most=200)


def _direction(kind: Kind, before: str | None, after: str | None) -> str:
    if kind not in _AMOUNTS or before is None or after is None:
        return ""
    return " [red]▲[/]" if int(after) > int(before) else " [green]▼[/]"


def queue_facts(counts: Mapping[State, int], opened: System) -> dict[str, str]:
    """Say how many details are in which state, and how long those that wait will take."""
    states = [f"{counts.get(state, 0):,} {show.state(state)}" for state in State]
    facts = {"queue": ", ".join(states)}
    limit, waiting = opened.watches.limit(tasks.DETAIL), counts.get(State.PENDING, 0)
    if waiting:
        span = format_duration(limit.spacing * waiting)
        facts["drained"] = f"in about {span}, at {limit.count} an hour"
    return facts


def reason_words(opened: System, reason: str) -> str:
    """Say a limit's reason in words; any other one is a sentence already."""
    limits = {
        "hourly_limit": opened.watches.limit(tasks.DETAIL),
        "minute_limit": opened.watches.limit(tasks.LIST),
    }
    if reason not in limits:
        return show.plain(reason, most=300)
    return f"no more than {limits[reason].count} {window(limits[reason])} are allowed"


def window(limit: Limit) -> str:
    """Name what a limit counts and in what time."""
    details, pages = "details an hour", "pages of lists a minute"
    return details if limit.name == tasks.DETAIL else pages


@contextmanager
def spinner(sentence: str) -> Iterator[Callable[[str], None] | None]:
    """Show on a terminal that something is waited for; what is yielded says it anew."""
    if not show.complaints.is_terminal:
        yield None
        return
    with show.complaints.status(sentence) as shown:
        yield shown.update
