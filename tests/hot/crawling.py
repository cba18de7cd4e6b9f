"""Crawls as the tests make them up, applied as the watch applies them."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select

from mimawari.kernel.job import NewJob
from mimawari.settings import DEFAULTS, Settings
from mimawari.store.sql import SqlStore
from mimawari.watches.hot import franchises, messages
from mimawari.watches.hot.models import Coverage, Crawl, Ip, NewIp, Seen, Status
from mimawari.watches.hot.tables import changes, hours, items

NOON = datetime(2026, 6, 1, 3, 0, tzinfo=UTC)
"""Noon in Tokyo."""
HOUR = timedelta(hours=1)
WHOLE = Coverage(pages_asked=10, pages_read=10)


def seen(source_id: str, price: int | None = 1000, *, sold: bool = False) -> Seen:
    """Make an item as a page shows it."""
    status = Status.SOLD if sold else Status.AVAILABLE
    return Seen(source_id=source_id, title=f"the {source_id}", price_yen=price, status=status)


def on_sale(*ids: str, price: int | None = 1000) -> list[Seen]:
    """Make items on sale."""
    return [seen(one, price) for one in ids]


def sold(*ids: str, price: int | None = 1000) -> list[Seen]:
    """Make items that were sold."""
    return [seen(one, price, sold=True) for one in ids]


def crawl_of(ip: Ip, at: datetime, found: Sequence[Seen], **given: Any) -> Crawl:
    """Make a crawl that read every page."""
    values = {"task_id": f"{ip.id}-{at.isoformat()}", "coverage": WHOLE, **given}
    return Crawl(ip_id=ip.id, crawled_at=at, items=tuple(found), **values)


async def add_ip(store: SqlStore, name: str = "星くず郵便", **given: Any) -> Ip:
    """Keep an IP."""
    new = NewIp(name=name, keyword=name, **given)
    async with store.edit() as tx:
        [ip] = await franchises.add_ips(tx, [new], DEFAULTS, NOON)
    return ip


def apply_job(crawl: Crawl) -> NewJob:
    """Make the job that applies a crawl."""
    member = franchises.member_of(crawl.ip_id)
    return NewJob(kind="hot.apply", args=messages.write_crawl(crawl), target=member)


async def find_ip(store: SqlStore, ip_id: int) -> Ip:
    """Find an IP that is there."""
    async with store.read() as reader:
        ip = await franchises.find_ip(reader, ip_id)
    assert ip is not None
    return ip


async def flows(store: SqlStore, ip: Ip) -> list[tuple[int, int]]:
    """List inflow and outflow of an IP's hours."""
    query = select(hours).where(hours.c.ip_id == ip.id).order_by(hours.c.hour_at)
    async with store.read() as reader:
        return [(row.inflow, row.outflow) for row in await reader.execute(query)]


async def story(store: SqlStore, ip: Ip, source_id: str) -> list[str]:
    """Tell an item's life."""
    query = select(changes.c.kind).where(changes.c.ip_id == ip.id, changes.c.source_id == source_id)
    async with store.read() as reader:
        rows = await reader.execute(query.order_by(changes.c.at, changes.c.id))
        return [row.kind for row in rows]


async def kept(store: SqlStore, ip: Ip, source_id: str) -> Any:
    """Find an item that is kept."""
    here = (items.c.ip_id == ip.id) & (items.c.source_id == source_id)
    async with store.read() as reader:
        return (await reader.execute(select(items).where(here))).one()


def settings_with(**given: Any) -> Settings:
    """Return the defaults with some settings changed."""
    return DEFAULTS.model_copy(update=given)
