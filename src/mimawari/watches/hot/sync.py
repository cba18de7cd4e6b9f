"""Applies crawls to what the hot watch keeps; never the network."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Table, func, insert, select, update

from mimawari.kernel.ports import Tx
from mimawari.watches.hot import rules
from mimawari.watches.hot.models import (
    SALES,
    Coverage,
    Crawl,
    Flow,
    Ip,
    ItemState,
    Kind,
    Status,
)
from mimawari.watches.hot.tables import changes, crawls, hours, ips, items

HOUR = timedelta(hours=1)
USUAL_FOR = timedelta(days=7)
LEAST_USUAL = 20
"""Fewer prices than this are nothing to compare with."""

CHANGING = ("status", "price_yen", "title", "image_url", "item_url", "last_seen_at", "sold_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What became of a crawl: the IP before it, what it counted, and the whole hour's flow."""

    ip: Ip
    inflow: int
    outflow: int
    hour: Flow | None
    """None if nothing was counted: up to the first whole crawl, and where one failed."""
    is_latest: bool
    states: Mapping[str, ItemState] = field(default_factory=dict)
    """The items as they are now, and when those among them were first seen that we knew."""
    first_seen: Mapping[str, datetime] = field(default_factory=dict)


def hour_of(at: datetime) -> datetime:
    """Tell when the hour of a moment began."""
    return at.replace(minute=0, second=0, microsecond=0)


def make_ip(row: Any) -> Ip:
    """Make an IP of its row."""
    return Ip(
        id=row.id,
        name=row.name,
        name_en=row.name_en,
        keyword=row.keyword,
        weight=row.weight,
        active=row.active,
        tags=tuple(json.loads(row.tags)),
        last_crawled_at=row.last_crawled_at,
        baseline_at=row.baseline_at,
        failures=row.failures,
        last_error=row.last_error,
        coverage=make_coverage(row),
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def make_coverage(row: Any) -> Coverage:
    """Tell from a row how much of the market was seen."""
    return Coverage(
        pages_asked=row.pages_asked,
        pages_read=row.pages_read,
        capped_on_sale=row.capped_on_sale,
        capped_sold=row.capped_sold,
        page_errors=tuple(json.loads(row.page_errors)),
    )


def coverage_values(coverage: Coverage) -> dict[str, Any]:
    """Tell what columns hold a coverage."""
    return {**asdict(coverage), "page_errors": json.dumps(coverage.page_errors)}


async def apply_crawl(tx: Tx, crawl: Crawl, now: datetime) -> Applied | None:
    """Count a crawl once; None if its IP is no more or its task was applied before."""
    # Two crawls of one IP are applied one after the other, whoever does it.
    locked = select(ips).where(ips.c.id == crawl.ip_id).with_for_update()
    row = (await tx.execute(locked)).first()
    if row is None or await _is_applied(tx, crawl.task_id):
        return None
    ip = make_ip(row)
    if crawl.error:
        await _save_crawl(tx, crawl, 0, 0)
        await _save_failure(tx, crawl, now)
        return Applied(ip=ip, inflow=0, outflow=0, hour=None, is_latest=True)
    known, first_seen = await _find_known(tx, crawl)
    compared = rules.compare(known, crawl.items, crawl.crawled_at)
    await _save_items(tx, crawl, compared.states, compared.seen)
    counted = compared.changes if ip.baseline_at is not None else ()
    inflow = sum(change.kind is Kind.NEW_LISTING for change in counted)
    outflow = sum(change.kind in SALES for change in counted)
    rows = [{"ip_id": ip.id, "at": crawl.crawled_at, **asdict(change)} for change in counted]
    await tx.save(changes, rows)
    await _save_crawl(tx, crawl, inflow, outflow)
    is_latest = ip.last_crawled_at is None or crawl.crawled_at >= ip.last_crawled_at
    await _save_success(tx, ip, crawl, now, is_latest=is_latest)
    hour = None if ip.baseline_at is None else await save_hour(tx, row, crawl.crawled_at)
    return Applied(
        ip=ip,
        inflow=inflow,
        outflow=outflow,
        hour=hour,
        is_latest=is_latest,
        states=compared.states,
        first_seen=first_seen,
    )


async def _is_applied(tx: Tx, task_id: str) -> bool:
    found = await tx.execute(select(crawls.c.task_id).where(crawls.c.task_id == task_id))
    return found.first() is not None


async def _find_known(
    tx: Tx, crawl: Crawl
) -> tuple[Mapping[str, ItemState], Mapping[str, datetime]]:
    wanted = {item.source_id for item in crawl.items}
    query = select(
        items.c.source_id,
        items.c.status,
        items.c.price_yen,
        items.c.sold_at,
        items.c.last_seen_at,
        items.c.first_seen_at,
    ).where(items.c.ip_id == crawl.ip_id, items.c.source_id.in_(wanted))
    rows = (await tx.execute(query)).all()
    states = {
        row.source_id: ItemState(
            status=Status(row.status),
            price_yen=row.price_yen,
            sold_at=row.sold_at,
            last_seen_at=row.last_seen_at,
        )
        for row in rows
    }
    return states, {row.source_id: row.first_seen_at for row in rows}


async def _save_items(
    tx: Tx, crawl: Crawl, states: Mapping[str, ItemState], seen: Mapping[str, Any]
) -> None:
    rows = [
        {
            "ip_id": crawl.ip_id,
            "source_id": source_id,
            "status": state.status,
            "price_yen": state.price_yen,
            "title": seen[source_id].title,
            "image_url": seen[source_id].image_url,
            "item_url": seen[source_id].item_url,
            "first_seen_at": crawl.crawled_at,
            "last_seen_at": state.last_seen_at,
            "sold_at": state.sold_at,
        }
        for source_id, state in states.items()
    ]
    await tx.save(items, rows, CHANGING)


async def _save_crawl(tx: Tx, crawl: Crawl, inflow: int, outflow: int) -> None:
    values = {
        "task_id": crawl.task_id,
        "ip_id": crawl.ip_id,
        "crawled_at": crawl.crawled_at,
        "items": len(crawl.items),
        "inflow": inflow,
        "outflow": outflow,
        "error": crawl.error,
        **coverage_values(crawl.coverage),
    }
    await tx.execute(insert(crawls).values(values))


async def _save_failure(tx: Tx, crawl: Crawl, now: datetime) -> None:
    values = {
        "failures": ips.c.failures + 1,
        "last_error": crawl.error,
        "updated_at": now,
        **coverage_values(crawl.coverage),
    }
    await tx.execute(update(ips).where(ips.c.id == crawl.ip_id).values(values))


async def _save_success(tx: Tx, ip: Ip, crawl: Crawl, now: datetime, *, is_latest: bool) -> None:
    values: dict[str, Any] = {"updated_at": now}
    if is_latest:
        values |= {
            "last_crawled_at": crawl.crawled_at,
            "failures": 0,
            "last_error": "",
            **coverage_values(crawl.coverage),
        }
    if ip.baseline_at is None and crawl.coverage.is_whole:
        values["baseline_at"] = crawl.crawled_at
    await tx.execute(update(ips).where(ips.c.id == ip.id).values(values))


async def save_hour(tx: Tx, ip: Any, at: datetime) -> Flow:
    """Make an hour's row anew from all that changed in it, and carry the totals on."""
    start = hour_of(at)
    flow = await find_flow(tx, ip.id, start, start + HOUR)
    here = (hours.c.ip_id == ip.id) & (hours.c.hour_at == start)
    old = (await tx.execute(select(hours).where(here))).first()
    more_in = flow.inflow - (old.inflow if old else 0)
    more_out = flow.outflow - (old.outflow if old else 0)
    before = (old.inflow_total, old.outflow_total) if old else await _totals_at(tx, ip, start)
    row = {
        "ip_id": ip.id,
        "hour_at": start,
        **flow_values(flow),
        "inflow_total": before[0] + more_in,
        "outflow_total": before[1] + more_out,
    }
    await tx.save(hours, [row], [name for name in row if name not in {"ip_id", "hour_at"}])
    later = (hours.c.ip_id == ip.id) & (hours.c.hour_at > start)
    await tx.execute(update(hours).where(later).values(_more(hours, more_in, more_out)))
    last = {"hour_at": max(start, ip.hour_at or start)}
    totals = {**_more(ips, more_in, more_out), **last}
    await tx.execute(update(ips).where(ips.c.id == ip.id).values(totals))
    return flow


def _more(table: Table, inflow: int, outflow: int) -> dict[str, Any]:
    return {
        "inflow_total": table.c.inflow_total + inflow,
        "outflow_total": table.c.outflow_total + outflow,
    }


async def _totals_at(tx: Tx, ip: Any, start: datetime) -> tuple[int, int]:
    """Tell what had been counted before an hour that has no row yet."""
    if ip.hour_at is None or ip.hour_at < start:
        return ip.inflow_total, ip.outflow_total
    later = select(hours).where(hours.c.ip_id == ip.id, hours.c.hour_at > start)
    row = (await tx.execute(later.order_by(hours.c.hour_at).limit(1))).first()
    if row is None:
        return ip.inflow_total, ip.outflow_total
    return row.inflow_total - row.inflow, row.outflow_total - row.outflow


async def find_flow(tx: Tx, ip_id: int, start: datetime, end: datetime) -> Flow:
    """Count what came and went in a span, and what was paid."""
    counting = (*SALES, Kind.NEW_LISTING)
    query = select(changes.c.kind, changes.c.price_yen).where(
        changes.c.ip_id == ip_id,
        changes.c.at >= start,
        changes.c.at < end,
        changes.c.kind.in_(counting),
    )
    rows = (await tx.execute(query)).all()
    sold = [row for row in rows if row.kind in SALES]
    prices = [row.price_yen for row in sold if row.price_yen is not None]
    return Flow(inflow=len(rows) - len(sold), outflow=len(sold), prices=rules.summarize(prices))


def flow_values(flow: Flow) -> dict[str, Any]:
    """Tell what columns hold a flow."""
    return {"inflow": flow.inflow, "outflow": flow.outflow, **asdict(flow.prices)}


async def find_usual_yen(tx: Tx, ip_id: int, at: datetime) -> float | None:
    """Tell what newly sold items cost in the week before this hour: the hours' medians, weighed."""
    start = hour_of(at)
    query = select(func.sum(hours.c.median_yen * hours.c.samples), func.sum(hours.c.samples)).where(
        hours.c.ip_id == ip_id,
        hours.c.hour_at >= start - USUAL_FOR,
        hours.c.hour_at < start,
        hours.c.samples > 0,
    )
    total, count = (await tx.execute(query)).one()
    return float(total) / int(count) if count and count >= LEAST_USUAL else None


async def save_weight(tx: Tx, ip_id: int, weight: float) -> None:
    """Keep how heavy an IP weighs from now on."""
    await tx.execute(update(ips).where(ips.c.id == ip_id).values(weight=weight))
