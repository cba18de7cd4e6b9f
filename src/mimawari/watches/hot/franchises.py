"""The IPs: what is gone round to, kept and put on the schedule."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, select, update

from mimawari.kernel.job import AT_ONCE, NewJob
from mimawari.kernel.naming import Naming
from mimawari.kernel.ports import Reader, Tx
from mimawari.kernel.values import Entry
from mimawari.kernel.watch import Target
from mimawari.settings import Settings
from mimawari.text import format_duration
from mimawari.watches.hot import messages, rollups, rules
from mimawari.watches.hot.models import Coverage, Ip, NewIp, Pace, Request
from mimawari.watches.hot.sync import coverage_values, make_ip
from mimawari.watches.hot.tables import ips

KIND = "hot.crawl"
NAMING = (Naming(member="hot:([0-9]{1,9})", names=select(ips.c.id, ips.c.name)),)


def member_of(ip_id: int) -> str:
    """Name an IP's place on the schedule."""
    return f"hot:{ip_id}"


def pace_of(settings: Settings) -> Pace:
    """Tell how often IPs are crawled."""
    return Pace(
        base=settings.hot_base_interval,
        least=settings.hot_min_interval,
        most=settings.hot_max_interval,
    )


def entry_of(
    ip: Ip,
    weight: float,
    settings: Settings,
    now: datetime,
    *,
    first_after: timedelta | None = None,
) -> Entry:
    """Place an IP on the schedule: after its interval, or for the first time."""
    every = rules.interval(weight, pace_of(settings))
    reason = f"every {format_duration(every)} at weight {weight:g}"
    return Entry(
        member=member_of(ip.id),
        kind=KIND,
        args=request_of(ip, settings),
        next_at=now + (every if first_after is None else first_after),
        every=every,
        reason=reason if first_after is None else "first run",
    )


def request_of(ip: Ip, settings: Settings) -> dict[str, Any]:
    """Write what every crawl of an IP is asked for."""
    request = Request(
        ip_id=ip.id,
        keyword=ip.keyword,
        pages_on_sale=settings.hot_pages_on_sale,
        pages_sold=settings.hot_pages_sold,
    )
    return messages.write_request(request)


async def list_targets(reader: Reader, settings: Settings) -> Sequence[Target]:
    """List the active IPs and the daily sums; the schedule is rebuilt from these."""
    rows = await reader.execute(select(ips).where(ips.c.active).order_by(ips.c.id))
    found = [
        Target(
            member=member_of(ip.id),
            kind=KIND,
            args=request_of(ip, settings),
            every=rules.interval(ip.weight, pace_of(settings)),
            last_run_at=ip.last_crawled_at,
        )
        for ip in map(make_ip, rows)
    ]
    return [*found, rollups.TARGET] if found else []


async def find_ip(reader: Reader, ip_id: int) -> Ip | None:
    """Find an IP by its id."""
    row = (await reader.execute(select(ips).where(ips.c.id == ip_id))).first()
    return None if row is None else make_ip(row)


async def find_by_keyword(reader: Reader, keywords: Sequence[str]) -> Mapping[str, Ip]:
    """Find which of these keywords are watched, and by which IP."""
    query = select(ips).where(ips.c.keyword.in_(keywords))
    return {row.keyword: make_ip(row) for row in await reader.execute(query)}


async def add_ips(tx: Tx, new: Sequence[NewIp], settings: Settings, now: datetime) -> list[Ip]:
    """Keep new IPs and spread their first crawls over one interval."""
    rows = [{**_described(one), **_untouched(now)} for one in new]
    await tx.save(ips, rows)
    query = select(ips).where(ips.c.keyword.in_([row["keyword"] for row in rows]))
    added = [make_ip(row) for row in await tx.execute(query.order_by(ips.c.id))]
    active = [ip for ip in added if ip.active]
    for place, ip in enumerate(active):
        wait = rules.interval(ip.weight, pace_of(settings)) * place / len(active)
        tx.place(entry_of(ip, ip.weight, settings, now, first_after=wait))
    if active:
        tx.place_new(rollups.entry(now, settings.zone))
    return added


def _untouched(now: datetime) -> dict[str, Any]:
    """Tell what holds of an IP that was never crawled."""
    return {
        "failures": 0,
        "last_error": "",
        "inflow_total": 0,
        "outflow_total": 0,
        **coverage_values(Coverage()),
        "created_at": now,
        "updated_at": now,
    }


def _described(new: NewIp) -> dict[str, Any]:
    return {
        "name": new.name,
        "name_en": new.name_en,
        "keyword": new.keyword,
        "weight": new.weight,
        "active": new.active,
        "tags": json.dumps(new.tags, ensure_ascii=False),
    }


async def change_ip(tx: Tx, ip_id: int, new: NewIp, settings: Settings, now: datetime) -> Ip | None:
    """Describe an IP anew; one with another keyword starts from a new first crawl."""
    query = select(ips).where(ips.c.id == ip_id).with_for_update()
    row = (await tx.execute(query)).first()
    if row is None:
        return None
    values = {**_described(new), "updated_at": now}
    if new.keyword != row.keyword:
        values["baseline_at"] = None
    await tx.execute(update(ips).where(ips.c.id == ip_id).values(values))
    changed = make_ip((await tx.execute(select(ips).where(ips.c.id == ip_id))).one())
    if not changed.active:
        tx.remove(member_of(ip_id))
    elif not row.active or (new.keyword, new.weight) != (row.keyword, row.weight):
        first = timedelta(0) if not row.active or new.keyword != row.keyword else None
        tx.place(entry_of(changed, changed.weight, settings, now, first_after=first))
    return changed


async def remove_ip(tx: Tx, ip_id: int) -> bool:
    """Forget an IP with all that was kept of it; say whether it was there."""
    gone = await tx.execute(delete(ips).where(ips.c.id == ip_id))
    tx.remove(member_of(ip_id))
    return bool(gone.rowcount)


def crawl_now(ip: Ip, settings: Settings) -> NewJob:
    """Make the job that crawls an IP now; while one is live there is no second."""
    member = member_of(ip.id)
    return NewJob(
        kind=KIND,
        args=request_of(ip, settings),
        dedupe_key=member,
        target=member,
        priority=AT_ONCE,
        reason="asked for",
    )
