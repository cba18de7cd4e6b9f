"""Routes of what an IP has: liquidity, hours, days, items and crawls."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from mimawari.edges import csv_export, pagination, response_cache
from mimawari.edges.pagination import Listing
from mimawari.edges.request_fields import write_moment
from mimawari.edges.routes import SystemOf
from mimawari.edges.system import System
from mimawari.errors import NotFound
from mimawari.kernel.ports import Reader
from mimawari.watches.hot import queries
from mimawari.watches.hot.actions import find_known
from mimawari.watches.hot.models import Ip
from mimawari.watches.hot.queries import Place, Standing, Window
from mimawari.watches.hot.rollups import Period
from mimawari.watches.hot.schemas.requests import (
    CrawlsAsked,
    HoursAsked,
    IpId,
    ItemsAsked,
    PeriodsAsked,
    SourceId,
    SpanAsked,
    read_place,
    write_place,
)
from mimawari.watches.hot.schemas.responses import (
    ChangeOut,
    CoverageOut,
    CrawlOut,
    CrawlsOut,
    HourOut,
    HoursOut,
    ItemLifeOut,
    ItemOut,
    ItemsOut,
    LiquidityOut,
    PeriodOut,
    PeriodsOut,
    WindowOut,
    columns_of,
    note_of,
)
from mimawari.watches.hot.sync import HOUR, hour_of

figures_router = APIRouter(prefix="/ips/{ip_id}")
A_DAY = 24
MOST_CHANGES = 1000


class Sums(StrEnum):
    """Sums of what span."""

    DAILY = "daily"
    WEEKLY = "weekly"
    MONTHLY = "monthly"


PERIODS = {Sums.DAILY: Period.DAY, Sums.WEEKLY: Period.WEEK, Sums.MONTHLY: Period.MONTH}


async def _known(system: System, ip_id: int) -> Ip:
    async with system.store.read() as reader:
        return await find_known(reader, ip_id)


@figures_router.get("/liquidity")
async def show_liquidity(
    system: SystemOf, ip_id: IpId, asked: Annotated[SpanAsked, Query()]
) -> LiquidityOut:
    """Tell how much was sold of what came in, over whole hours."""
    ip = await _known(system, ip_id)
    window = Window.before(system.clock.now(), asked.hours)

    async def make() -> LiquidityOut:
        async with system.store.read() as reader:
            return await _liquidity(reader, ip, window, asked.hours)

    def fits(kept: LiquidityOut) -> bool:
        return (kept.hours, kept.window.end_at) == (asked.hours, window.end_at)

    key = f"{queries.of_ip(ip_id)}liquidity"
    return await response_cache.find_or_make(system.store.cache, key, LiquidityOut, make, fits)


async def _liquidity(reader: Reader, ip: Ip, window: Window, hours: int) -> LiquidityOut:
    [found] = await queries.list_standings(reader, window, ip_ids=[ip.id])
    standing = found[0] if found else Standing(ip.id, 0, 0)
    observed = await queries.list_hours(reader, ip.id, window.start_at, window.end_at, hours)
    return LiquidityOut(
        ip_id=ip.id,
        hours=hours,
        window=WindowOut(start_at=window.start_at, end_at=window.end_at),
        inflow=standing.inflow,
        outflow=standing.outflow,
        liquidity=standing.liquidity,
        score=standing.score,
        hours_observed=len(observed),
        coverage=CoverageOut.of(ip.coverage),
        note=note_of(ip),
    )


@figures_router.get("/stats/hourly", response_model=HoursOut, responses=csv_export.CSV)
async def list_hours(
    system: SystemOf, ip_id: IpId, asked: Annotated[HoursAsked, Query()]
) -> HoursOut | Response:
    """List an IP's hours, oldest first; those without a crawl are not there."""
    await _known(system, ip_id)
    start, end = _span(asked, system.clock.now())
    listing = _hours(system, ip_id, start, end)
    if asked.format == "csv":
        pieces = pagination.walk(listing, asked.limit)
        return await csv_export.download(f"ip-{ip_id}-hours", columns_of(HourOut), pieces)

    async def make() -> HoursOut:
        shown, more = await pagination.find_page(listing, asked.page)
        following = write_moment(shown[-1].hour_at + HOUR) if more else None
        return HoursOut(ip_id=ip_id, from_at=start, to_at=end, hours=shown, next=following)

    if asked.from_at or asked.to_at:
        return await make()

    def fits(kept: HoursOut) -> bool:
        return kept.to_at == end

    key = f"{queries.of_ip(ip_id)}hourly_stats:{asked.page}"
    return await response_cache.find_or_make(system.store.cache, key, HoursOut, make, fits)


def _span(asked: HoursAsked, now: datetime) -> tuple[datetime, datetime]:
    """Return what was asked for; else the last 24 hours, with the one that is not over."""
    end = asked.to_at or hour_of(now) + HOUR
    return asked.from_at or end - HOUR * A_DAY, end


def _hours(
    system: System, ip_id: int, start: datetime, end: datetime
) -> Listing[HourOut, datetime]:
    async def fetch(from_at: datetime, most: int) -> Sequence[HourOut]:
        async with system.store.read() as reader:
            rows = await queries.list_hours(reader, ip_id, from_at, end, most)
        return [HourOut.of(row) for row in rows]

    return Listing(fetch=fetch, start=start, place_of=lambda hour: hour.hour_at + HOUR)


@figures_router.get("/stats/{sums}")
async def list_periods(
    system: SystemOf, ip_id: IpId, sums: Sums, asked: Annotated[PeriodsAsked, Query()]
) -> PeriodsOut:
    """List an IP's days, weeks or months that are over, newest first."""
    await _known(system, ip_id)

    async def fetch(before: datetime | None, most: int) -> Sequence[PeriodOut]:
        async with system.store.read() as reader:
            rows = await queries.list_periods(reader, ip_id, PERIODS[sums], most, before)
        return [PeriodOut.of(row) for row in rows]

    listing = Listing(fetch=fetch, start=asked.before, place_of=lambda period: period.start_at)
    shown, more = await pagination.find_page(listing, asked.limit)
    return PeriodsOut(
        ip_id=ip_id,
        zone=str(system.settings.zone),
        periods=shown,
        next=write_moment(shown[-1].start_at) if more else None,
    )


@figures_router.get("/items", response_model=ItemsOut, responses=csv_export.CSV)
async def list_items(
    system: SystemOf, ip_id: IpId, asked: Annotated[ItemsAsked, Query()]
) -> ItemsOut | Response:
    """List an IP's items, newest first."""
    await _known(system, ip_id)
    listing = _items(system, ip_id, asked)
    if asked.format == "csv":
        pieces = pagination.walk(listing, asked.limit)
        return await csv_export.download(f"ip-{ip_id}-items", columns_of(ItemOut), pieces)

    async def make() -> ItemsOut:
        shown, more = await pagination.find_page(listing, asked.page)
        return ItemsOut(items=shown, next=write_place(_place_of(shown[-1])) if more else None)

    if asked.below is not None:
        return await make()
    key = f"{queries.of_ip(ip_id)}items:{asked.status or 'all'}:{asked.page}"
    return await response_cache.find_or_make(system.store.cache, key, ItemsOut, make)


def _items(system: System, ip_id: int, asked: ItemsAsked) -> Listing[ItemOut, Place | None]:
    async def fetch(below: Place | None, most: int) -> Sequence[ItemOut]:
        async with system.store.read() as reader:
            rows = await queries.list_items(reader, ip_id, most, status=asked.status, below=below)
        return [ItemOut.of(row) for row in rows]

    start = None if asked.below is None else read_place(asked.below)
    return Listing(fetch=fetch, start=start, place_of=_place_of)


def _place_of(item: ItemOut) -> Place:
    return Place(first_seen_at=item.first_seen_at, source_id=item.source_id)


@figures_router.get("/items/{source_id}")
async def show_item(system: SystemOf, ip_id: IpId, source_id: SourceId) -> ItemLifeOut:
    """Show one item and what happened to it, oldest first."""
    await _known(system, ip_id)
    async with system.store.read() as reader:
        row = await queries.find_item(reader, ip_id, source_id)
        rows = await queries.list_changes(reader, ip_id, source_id, MOST_CHANGES + 1)
    if row is None:
        raise NotFound(f"IP {ip_id} has no item {source_id}; GET …/items lists those it has")
    changes = [ChangeOut.model_validate(each, from_attributes=True) for each in rows]
    return ItemLifeOut(
        item=ItemOut.of(row), changes=changes[:MOST_CHANGES], is_cut=len(changes) > MOST_CHANGES
    )


@figures_router.get("/crawls")
async def list_crawls(
    system: SystemOf, ip_id: IpId, asked: Annotated[CrawlsAsked, Query()]
) -> CrawlsOut:
    """List an IP's last crawls with how much they saw, newest first."""
    await _known(system, ip_id)
    async with system.store.read() as reader:
        rows = await queries.list_crawls(reader, ip_id, asked.limit)
    return CrawlsOut(crawls=[CrawlOut.of(row) for row in rows])
