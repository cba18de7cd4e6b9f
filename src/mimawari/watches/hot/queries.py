"""Looks at what the hot watch keeps, for its edges; changes nothing but the cache."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from heapq import nsmallest
from operator import neg
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Integer, Select, Subquery, and_, case, cast, func, or_, select

from mimawari.columns import contains_word
from mimawari.kernel.ports import Cache, Reader
from mimawari.watches.hot import rules
from mimawari.watches.hot.models import Ip, Status
from mimawari.watches.hot.rollups import TABLES, Period
from mimawari.watches.hot.sync import HOUR, hour_of, make_ip
from mimawari.watches.hot.tables import alerts, changes, crawls, hours, ips, items

LEADERBOARD = "hot:leaderboard:"
MOST_RANKED = 100


OF_IPS = "hot:ip:"


def of_ip(ip_id: int) -> str:
    """Name what the cache holds of an IP."""
    return f"{OF_IPS}{ip_id}:"


async def drop_kept(cache: Cache, ip_id: int | None = None) -> None:
    """Forget the answers that a change to an IP, or to any, has made old."""
    for prefix in (LEADERBOARD, OF_IPS if ip_id is None else of_ip(ip_id)):
        await cache.drop(prefix)


class Board(StrEnum):
    """What a leaderboard ranks by."""

    HOT = "hot"
    INFLOW = "inflow"
    OUTFLOW = "outflow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Whole hours, the current one left out."""

    start_at: datetime
    end_at: datetime

    @classmethod
    def before(cls, now: datetime, count: int) -> "Window":
        """Return the last so many whole hours."""
        end = hour_of(now)
        return cls(start_at=end - HOUR * count, end_at=end)


class Standing(NamedTuple):
    """What came to and went from an IP in a window; light, since there are as many as IPs."""

    ip_id: int
    inflow: int
    outflow: int

    @property
    def score(self) -> float:
        """How hot it was."""
        return rules.hot_score(self.inflow, self.outflow)

    @property
    def liquidity(self) -> float | None:
        """How much was sold of what came in."""
        return rules.liquidity(self.inflow, self.outflow)


BITS = 32
PACK, MASK = 2**BITS, 2**BITS - 1
"""Two totals travel as one number, so that one look finds both; each stays below 2**31."""


NEAR = HOUR * 3
"""Every IP that is crawled as it should be has a row within so long."""

_BEFORE = (hours.c.inflow_total - hours.c.inflow) * PACK + hours.c.outflow_total - hours.c.outflow
_EVERYTHING = ips.c.inflow_total * PACK + ips.c.outflow_total


def _near(at: datetime) -> Subquery:
    """Find what IPs had counted before a time by one walk along the rows that follow it."""
    here = (hours.c.hour_at >= at) & (hours.c.hour_at < at + NEAR)
    # Not the bare column: SQLite would walk along all rows there are, to have them in its order.
    ip_id = cast(hours.c.ip_id, Integer).label("ip_id")
    return select(ip_id, func.min(_BEFORE).label("total")).where(here).group_by(ip_id).subquery()


def _first(at: datetime) -> Any:
    """Find what an IP had counted before a time from its first row after it, however late."""
    here = (hours.c.ip_id == ips.c.id) & (hours.c.hour_at >= at)
    return select(_BEFORE).where(here).order_by(hours.c.hour_at).limit(1).scalar_subquery()


def _total(at: datetime, found: Any) -> Any:
    """Return what an IP had counted before a time: where its last row is older, all of it."""
    return case((ips.c.hour_at < at, _EVERYTHING), else_=found)


def _totals_of(times: Sequence[datetime], ip_ids: Sequence[int]) -> Select[Any]:
    return select(ips.c.id, *(_total(at, _first(at)) for at in times)).where(ips.c.id.in_(ip_ids))


def _totals(times: Sequence[datetime]) -> Select[Any]:
    nears = [(at, _near(at)) for at in times]
    found = (_total(at, func.coalesce(near.c.total, _first(at))) for at, near in nears)
    query = select(ips.c.id, *found).where(ips.c.active)
    for _, near in nears:
        query = query.outerjoin(near, near.c.ip_id == ips.c.id)
    return query


async def list_standings(
    reader: Reader, *windows: Window, ip_ids: Sequence[int] | None = None
) -> list[list[Standing]]:
    """Tell for each window what came and went, from the totals at its two ends.

    Active IPs or those named; one that nothing came to or went from has no standing.
    """
    times = sorted({at for window in windows for at in (window.start_at, window.end_at)})
    query = _totals(times) if ip_ids is None else _totals_of(times, ip_ids)
    rows = (await reader.execute(query.where(ips.c.hour_at.is_not(None)))).all()
    columns = list(zip(*rows, strict=True)) or [()] * (len(times) + 1)
    totals = dict(zip(times, columns[1:], strict=True))
    return [
        _list_moved(columns[0], totals[window.start_at], totals[window.end_at])
        for window in windows
    ]


def _list_moved(
    ip_ids: Sequence[int], starts: Sequence[int], ends: Sequence[int]
) -> list[Standing]:
    return [
        Standing(ip_id, moved >> BITS, moved & MASK)
        for ip_id, start, end in zip(ip_ids, starts, ends, strict=True)
        if (moved := end - start)
    ]


def rank(standings: Sequence[Standing], board: Board, most: int) -> list[Standing]:
    """Put the first before the others; equals by their ids."""
    return [one for *_, one in nsmallest(most, _sortable(standings, board))]


def find_places(
    standings: Sequence[Standing], board: Board, ip_ids: Collection[int]
) -> Mapping[int, int]:
    """Find the places of some IPs among all."""
    ordered = sorted(_sortable(standings, board))
    return {ip_id: place for place, (_, ip_id, _) in enumerate(ordered, 1) if ip_id in ip_ids}


def _sortable(standings: Sequence[Standing], board: Board) -> Iterable[tuple[float, int, Standing]]:
    """Lay the figure that a board ranks by, and the id, before each standing."""
    ids, inflows, outflows = zip(*standings, strict=True) if standings else ((), (), ())
    match board:
        case Board.HOT:
            worths = map(rules.hot_score, inflows, outflows)
        case Board.INFLOW:
            worths = map(float, inflows)
        case Board.OUTFLOW:
            worths = map(float, outflows)
    return zip(map(neg, worths), ids, standings, strict=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """An IP in its place on a board, and its place in the window before."""

    rank: int
    previous_rank: int | None
    ip: Ip
    standing: Standing


async def list_ranked(reader: Reader, board: Board, window: Window, most: int) -> list[Ranked]:
    """Rank the active IPs by a window."""
    ranked, _ = await find_page(reader, board, window, most, 0)
    return ranked


async def find_page(
    reader: Reader, board: Board, window: Window, most: int, offset: int
) -> tuple[list[Ranked], int]:
    """Return a page of the ranking, and how many IPs are ranked."""
    span = window.end_at - window.start_at
    before = Window(start_at=window.start_at - span, end_at=window.start_at)
    standings, earlier = await list_standings(reader, window, before)
    shown = rank(standings, board, offset + most)[offset:]
    places = find_places(earlier, board, {one.ip_id for one in shown})
    named = await find_names(reader, [one.ip_id for one in shown])
    # One that was removed since it was ranked has no name any more.
    there = [one for one in shown if one.ip_id in named]
    ranked = [
        Ranked(
            rank=place,
            previous_rank=places.get(one.ip_id),
            ip=named[one.ip_id],
            standing=one,
        )
        for place, one in enumerate(there, start=offset + 1)
    ]
    return ranked, len(standings)


async def list_ips(
    reader: Reader,
    limit: int,
    after: int = 0,
    *,
    active: bool | None = None,
    search: str = "",
) -> list[Ip]:
    """List IPs by id, a page at a time."""
    query = select(ips).where(ips.c.id > after).order_by(ips.c.id).limit(limit)
    if active is not None:
        query = query.where(ips.c.active == active)
    if search:
        found = [contains_word(column, search) for column in _SEARCHED]
        query = query.where(or_(*found))
    return [make_ip(row) for row in await reader.execute(query)]


_SEARCHED = (ips.c.name, ips.c.name_en, ips.c.keyword, ips.c.tags)


async def find_names(reader: Reader, ip_ids: Sequence[int]) -> Mapping[int, Ip]:
    """Find the names of some IPs and how much of the market their last crawl saw."""
    query = select(ips).where(ips.c.id.in_(ip_ids))
    return {row.id: make_ip(row) for row in await reader.execute(query)}


async def list_hours(
    reader: Reader, ip_id: int, start_at: datetime, end_at: datetime, limit: int
) -> Sequence[Any]:
    """List an IP's hours of a span, oldest first; an hour without a crawl has no row."""
    at = hours.c.hour_at
    query = select(hours).where(hours.c.ip_id == ip_id, at >= start_at, at < end_at)
    found: Sequence[Any] = (await reader.execute(query.order_by(at).limit(limit))).all()
    return found


async def list_sold(
    reader: Reader, ip_ids: Sequence[int], start_at: datetime, end_at: datetime
) -> Mapping[int, Mapping[datetime, int]]:
    """List how many of each IP were sold in each hour of a span that had a crawl."""
    at = hours.c.hour_at
    query = select(hours.c.ip_id, at, hours.c.outflow)
    query = query.where(hours.c.ip_id.in_(ip_ids), at >= start_at, at < end_at)
    found: dict[int, dict[datetime, int]] = {ip_id: {} for ip_id in ip_ids}
    for ip_id, hour_at, sold in await reader.execute(query):
        found[ip_id][hour_at] = sold
    return found


async def list_periods(
    reader: Reader, ip_id: int, period: Period, limit: int, before: datetime | None = None
) -> Sequence[Any]:
    """List an IP's days, weeks or months that are over, newest first."""
    table = TABLES[period]
    query = select(table).where(table.c.ip_id == ip_id)
    if before is not None:
        query = query.where(table.c.start_at < before)
    ordered = query.order_by(table.c.start_at.desc()).limit(limit)
    found: Sequence[Any] = (await reader.execute(ordered)).all()
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a page of items ended: the next one goes on below it."""

    first_seen_at: datetime
    source_id: str


async def list_items(
    reader: Reader, ip_id: int, limit: int, *, status: Status | None, below: Place | None
) -> Sequence[Any]:
    """List an IP's items, newest first, a page at a time."""
    query = select(items).where(items.c.ip_id == ip_id)
    if status is not None:
        query = query.where(items.c.status == status)
    if below is not None:
        query = query.where(_below(below))
    ordered = query.order_by(items.c.first_seen_at.desc(), items.c.source_id.desc())
    found: Sequence[Any] = (await reader.execute(ordered.limit(limit))).all()
    return found


def _below(place: Place) -> ColumnElement[bool]:
    at = items.c.first_seen_at
    same = and_(at == place.first_seen_at, items.c.source_id < place.source_id)
    return or_(at < place.first_seen_at, same)


async def find_item(reader: Reader, ip_id: int, source_id: str) -> Any:
    """Find one item."""
    here = (items.c.ip_id == ip_id) & (items.c.source_id == source_id)
    return (await reader.execute(select(items).where(here))).first()


async def list_changes(reader: Reader, ip_id: int, source_id: str, limit: int) -> Sequence[Any]:
    """List what happened to an item, oldest first."""
    here = (changes.c.ip_id == ip_id) & (changes.c.source_id == source_id)
    query = select(changes).where(here).order_by(changes.c.at, changes.c.id).limit(limit)
    found: Sequence[Any] = (await reader.execute(query)).all()
    return found


async def list_crawls(reader: Reader, ip_id: int, limit: int) -> Sequence[Any]:
    """List an IP's last crawls, newest first."""
    query = select(crawls).where(crawls.c.ip_id == ip_id)
    ordered = query.order_by(crawls.c.crawled_at.desc()).limit(limit)
    found: Sequence[Any] = (await reader.execute(ordered)).all()
    return found


async def list_alerts(
    reader: Reader, limit: int, *, before: int | None, ip_id: int | None, is_open: bool | None
) -> Sequence[Any]:
    """List alerts with their IP's name, newest first, a page at a time."""
    query: Select[Any] = select(alerts, ips.c.name).join(ips, ips.c.id == alerts.c.ip_id)
    if before is not None:
        query = query.where(alerts.c.id < before)
    if ip_id is not None:
        query = query.where(alerts.c.ip_id == ip_id)
    if is_open is not None:
        key = alerts.c.open_key
        query = query.where(key.is_not(None) if is_open else key.is_(None))
    ordered = query.order_by(alerts.c.id.desc()).limit(limit)
    found: Sequence[Any] = (await reader.execute(ordered)).all()
    return found


async def count_all(reader: Reader) -> Mapping[str, int]:
    """Count what is kept: IPs, active ones, failing ones, items, open alerts."""
    counts = {
        "ips": select(func.count()).select_from(ips),
        "active": select(func.count()).select_from(ips).where(ips.c.active),
        "failing": select(func.count()).select_from(ips).where(ips.c.failures > 0),
        "items": select(func.count()).select_from(items),
        "open_alerts": select(func.count())
        .select_from(alerts)
        .where(alerts.c.open_key.is_not(None)),
    }
    row = (await reader.execute(select(*(q.scalar_subquery() for q in counts.values())))).one()
    return dict(zip(counts, map(int, row), strict=True))
