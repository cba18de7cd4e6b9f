"""The ground of the tests of the hot watch's commands: a data folder with five IPs in it."""

from datetime import datetime, timedelta
from pathlib import Path

from mimawari.kernel.clock import RealClock
from mimawari.settings import DEFAULTS
from mimawari.store.sql import SqlStore
from mimawari.watches.hot import alerts, franchises, sync
from mimawari.watches.hot.models import AlertKind, Coverage, Finding, Ip, NewIp, Seen, Status
from tests.hot.crawling import WHOLE, crawl_of
from tests.ready import lay_tables

HOUR = timedelta(hours=1)
POST, LIBRARIANS, HOSTILE_IP, FORMULA, SLEEPING = range(1, 6)
HOSTILE = "[red]a[/] \x1b[31mb\x07 日本\n\u202e:x"
NEW = (
    NewIp(name="星くず郵便", keyword="星くず", name_en="Stardust Post", tags=("mail", "stars")),
    NewIp(name="月夜の図書係", keyword="月夜の図書係", weight=2.0),
    NewIp(name=HOSTILE, keyword="hostile"),
    NewIp(name="=SUM(A1)", keyword="formula"),
    NewIp(name="Sleeping", keyword="Sleeping", active=False),
)
CAPPED = Coverage(pages_asked=10, pages_read=10, capped_sold=True)
PARTLY = Coverage(pages_asked=10, pages_read=8, page_errors=("sold page 2: [red]slow[/]",))
SURGE = Finding(kind=AlertKind.SURGE, value=2.5, threshold=2.0, samples=40)
BUSY = Finding(kind=AlertKind.HIGH_OUTFLOW, value=60, threshold=50, samples=40)


def seen(prefix: str, listed: int, sold: int) -> list[Seen]:
    """Make items that were listed, and others that were sold."""
    counts = ((Status.AVAILABLE, listed), (Status.SOLD, sold))
    return [
        Seen(source_id=f"{prefix}{status}{n}", title="t", price_yen=1000, status=status)
        for status, count in counts
        for n in range(count)
    ]


async def fill(data: Path) -> None:
    """Keep IPs that were crawled long ago, a day before the last, and a few hours ago.

    No time lies near the end of a window, so that an hour may end while the tests run.
    """
    clock = RealClock()
    store = SqlStore(await lay_tables(data / "mimawari.db"), clock)
    now = clock.now()
    start = sync.hour_of(now)
    async with store.edit() as tx:
        post, librarians, hostile, formula, _ = await franchises.add_ips(tx, NEW, DEFAULTS, now)

    async def crawl(ip: Ip, hours: int, found: tuple[int, int], coverage: Coverage = WHOLE) -> None:
        at: datetime = start - HOUR * hours
        made = crawl_of(ip, at, seen(f"m{hours}", *found), coverage=coverage)
        async with store.edit() as tx:
            await sync.apply_crawl(tx, made, now)

    for ip in (post, librarians, hostile, formula):
        await crawl(ip, 70, (3, 3))
    for ip, found in ((post, (9, 1)), (librarians, (1, 9)), (hostile, (1, 0))):
        await crawl(ip, 30, found)
    await crawl(post, 6, (2, 9))
    await crawl(post, 4, (0, 0))
    await crawl(librarians, 5, (3, 3), CAPPED)
    await crawl(hostile, 5, (1, 1))
    await crawl(formula, 5, (1, 0), PARTLY)
    async with store.edit() as tx:
        await alerts.sync_alerts(tx, librarians, [SURGE, BUSY], now - HOUR * 3)
    async with store.edit() as tx:
        await alerts.sync_alerts(tx, librarians, [SURGE], now - HOUR * 2)
    await store.close()
