"""Sums of days, weeks and months that are over, and what is forgotten in time."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import delete, func, select

from mimawari.errors import BadInput
from mimawari.kernel.job import NewJob
from mimawari.kernel.ports import Reader, Tx
from mimawari.kernel.values import Entry
from mimawari.kernel.watch import Target
from mimawari.settings import Settings
from mimawari.watches.hot import rules
from mimawari.watches.hot.models import SALES, Flow
from mimawari.watches.hot.sync import flow_values
from mimawari.watches.hot.tables import (
    alerts,
    changes,
    crawls,
    days,
    hours,
    ips,
    items,
    months,
    weeks,
)

MEMBER = "hot:daily"
KIND = "hot.rollup"
DAY = timedelta(days=1)
AFTER_MIDNIGHT = timedelta(minutes=10)
LATE_SLOT = timedelta(minutes=5)
BATCH = 200
"""How many IPs are summed up, or cleaned up, in one commit."""
MOST_DAYS = 60

TARGET = Target(member=MEMBER, kind=KIND, every=DAY)


class Period(StrEnum):
    """A span of the calendar."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


TABLES = {Period.DAY: days, Period.WEEK: weeks, Period.MONTH: months}


@dataclass(frozen=True, slots=True)
class Span:
    """A period with its first day, in a zone."""

    period: Period
    first: date
    zone: ZoneInfo

    @property
    def start_at(self) -> datetime:
        """When it begins."""
        return _midnight(self.first, self.zone)

    @property
    def end_at(self) -> datetime:
        """When it is over."""
        return _midnight(self.following, self.zone)

    @property
    def following(self) -> date:
        """The first day after it."""
        match self.period:
            case Period.DAY:
                return self.first + DAY
            case Period.WEEK:
                return self.first + 7 * DAY
            case Period.MONTH:
                return (self.first.replace(day=28) + 4 * DAY).replace(day=1)


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time(), zone).astimezone(UTC)


def span_of(period: Period, day: date, zone: ZoneInfo) -> Span:
    """Find the day, the week from Monday or the month that a day lies in."""
    match period:
        case Period.WEEK:
            day -= timedelta(days=day.weekday())
        case Period.MONTH:
            day = day.replace(day=1)
    return Span(period, day, zone)


def entry(now: datetime, zone: ZoneInfo) -> Entry:
    """Place the daily sums on the schedule."""
    at = next_run(now, zone)
    return Entry(member=MEMBER, kind=KIND, next_at=at, every=DAY, reason="after midnight")


def next_run(now: datetime, zone: ZoneInfo) -> datetime:
    """Tell when the day is over, and its last crawls applied."""
    return span_of(Period.DAY, now.astimezone(zone).date(), zone).end_at + AFTER_MIDNIGHT


def put_late(tx: Tx, ip_id: int, at: datetime, now: datetime, zone: ZoneInfo) -> None:
    """Have a day summed up again where a crawl of it came after its end."""
    span = span_of(Period.DAY, at.astimezone(zone).date(), zone)
    if span.end_at > now:
        return
    # All that is applied before the slot begins is in the sum; what comes later takes the next.
    slot = now + LATE_SLOT * 2 - (now - datetime.min.replace(tzinfo=UTC)) % LATE_SLOT
    job = fold_job(span, ip_id=ip_id)
    key = f"hot.fold:{ip_id}:{span.first}:{slot:%H%M}"
    tx.put(replace(job, run_at=slot, dedupe_key=key, reason="a crawl came late"))


def fold_job(span: Span, *, ip_id: int | None = None, after: int = 0) -> NewJob:
    """Make the job that sums up a period for all IPs, or for one."""
    args: dict[str, Any] = {"period": span.period, "first": span.first.isoformat()}
    if ip_id is not None:
        args["ip_id"] = ip_id
    if after:
        args["after"] = after
    return NewJob(kind="hot.fold", args=args)


def parse_span(args: Mapping[str, Any], zone: ZoneInfo) -> Span:
    """Read which period a job sums up."""
    try:
        return span_of(Period(args["period"]), date.fromisoformat(args["first"]), zone)
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput('a sum needs {"period": "day", "first": "2026-01-31"}') from error


async def list_days(
    reader: Reader, rolled: str | None, now: datetime, zone: ZoneInfo
) -> list[Span]:
    """List the days that are over and not summed up yet, oldest first."""
    if rolled is None:
        earliest = (await reader.execute(select(func.min(hours.c.hour_at)))).scalar()
        if earliest is None:
            return []
        day = earliest.astimezone(zone).date()
    else:
        day = date.fromisoformat(rolled) + DAY
    found: list[Span] = []
    while (span := Span(Period.DAY, day, zone)).end_at <= now and len(found) < MOST_DAYS:
        found.append(span)
        day = span.following
    return found


async def fold(tx: Tx, span: Span, ip_ids: Sequence[int]) -> None:
    """Sum up a period for some IPs, as often as there is reason to."""
    counts = await _counts(tx, span, ip_ids)
    prices = await _prices(tx, span, ip_ids)
    rows = [
        {
            "ip_id": row.ip_id,
            "start_at": span.start_at,
            "hours": int(row.hours),
            **flow_values(
                Flow(
                    inflow=int(row.inflow),
                    outflow=int(row.outflow),
                    prices=rules.summarize(prices[row.ip_id]),
                )
            ),
        }
        for row in counts
    ]
    table = TABLES[span.period]
    change = [column.name for column in table.c if not column.primary_key]
    await tx.save(table, rows, change)


async def _counts(tx: Tx, span: Span, ip_ids: Sequence[int]) -> Any:
    is_day = span.period is Period.DAY
    source = hours if is_day else days
    at = hours.c.hour_at if is_day else days.c.start_at
    observed = func.count() if is_day else func.sum(days.c.hours)
    query = (
        select(
            source.c.ip_id,
            func.sum(source.c.inflow).label("inflow"),
            func.sum(source.c.outflow).label("outflow"),
            observed.label("hours"),
        )
        .where(source.c.ip_id.in_(ip_ids), at >= span.start_at, at < span.end_at)
        .group_by(source.c.ip_id)
    )
    return (await tx.execute(query)).all()


async def _prices(tx: Tx, span: Span, ip_ids: Sequence[int]) -> Mapping[int, list[int]]:
    query = select(changes.c.ip_id, changes.c.price_yen).where(
        changes.c.ip_id.in_(ip_ids),
        changes.c.at >= span.start_at,
        changes.c.at < span.end_at,
        changes.c.kind.in_(SALES),
        changes.c.price_yen.is_not(None),
    )
    found: dict[int, list[int]] = defaultdict(list)
    for row in await tx.execute(query):
        found[row.ip_id].append(row.price_yen)
    return found


async def list_ids(tx: Tx, after: int) -> list[int]:
    """List the ids of a batch of IPs."""
    query = select(ips.c.id).where(ips.c.id > after).order_by(ips.c.id).limit(BATCH)
    return [row.id for row in await tx.execute(query)]


async def forget(tx: Tx, ip_ids: Sequence[int], settings: Settings, now: datetime) -> None:
    """Forget what some IPs have kept for long enough."""
    hourly, daily = now - settings.hot_keep_hourly, now - settings.hot_keep_daily
    weekly, seen = now - settings.hot_keep_weekly, now - settings.hot_keep_items
    for table, at, before in (
        (hours, hours.c.hour_at, hourly),
        (crawls, crawls.c.crawled_at, hourly),
        (days, days.c.start_at, daily),
        (alerts, alerts.c.closed_at, daily),
        (weeks, weeks.c.start_at, weekly),
        (items, items.c.last_seen_at, seen),
        (changes, changes.c.at, seen),
    ):
        await tx.execute(delete(table).where(table.c.ip_id.in_(ip_ids), at < before))
