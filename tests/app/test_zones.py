"""Where clocks are put forward and back, no day is skipped or counted twice."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from mimawari.columns.stamps import write_stamp
from mimawari.kernel.clock import VirtualClock
from mimawari.notify import rules as notify
from mimawari.settings import DEFAULTS
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade
from mimawari.watches.books import quota
from mimawari.watches.hot import rollups, rules
from mimawari.watches.hot.models import Flow
from mimawari.watches.hot.sync import flow_values
from mimawari.watches.hot.tables import days, hours
from mimawari.watches.prices import market, products, sync
from mimawari.watches.rentals import rules as rentals
from tests.conftest import Databases
from tests.hot.crawling import add_ip
from tests.prices.crawling import add_product, apply, found, kept
from tests.stores import open_store

CHANGES = [
    ("America/New_York", date(2026, 3, 8)),
    ("America/New_York", date(2026, 11, 1)),
    ("Europe/Berlin", date(2026, 3, 29)),
    ("Europe/Berlin", date(2026, 10, 25)),
    # Half an hour.
    ("Australia/Lord_Howe", date(2026, 4, 5)),
    ("Australia/Lord_Howe", date(2026, 10, 4)),
    # At midnight: one day begins at 1, and one has its first hour twice.
    ("America/Santiago", date(2026, 9, 6)),
    ("Asia/Beirut", date(2026, 10, 25)),
]
DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
TIMES = ("00:00", "00:30", "01:30", "02:00", "02:15", "02:30", "03:00", "08:00", "23:45")
Next = Callable[[datetime], datetime]

around_a_change = pytest.mark.parametrize(("name", "on"), CHANGES)


def span_around(zone: ZoneInfo, on: date) -> tuple[datetime, datetime]:
    """Return two days before a change and three days after it."""
    noon = datetime.combine(on, time(12), zone).astimezone(UTC)
    return noon - 2 * DAY, noon + 3 * DAY


def follow(find_next: Next, zone: ZoneInfo, on: date) -> list[datetime]:
    """List the runs around a change, each found from the one before it."""
    now, end = span_around(zone, on)
    runs = []
    while (now := find_next(now)) < end:
        runs.append(now)
    return runs


def daily(zone: ZoneInfo) -> dict[str, Next]:
    """Name all that is done once a day."""
    settings = DEFAULTS.model_copy(update={"zone": zone})
    found: dict[str, Next] = {
        "sums": lambda now: rollups.next_run(now, zone),
        "rooms": lambda now: rentals.next_daily(now, zone),
        "calls": lambda now: quota.next_day(now, settings),
    }
    for at in TIMES:
        found[f"messages at {at}"] = lambda now, at=at: notify.next_daily(  # type: ignore[misc]
            time.fromisoformat(at), now, zone
        )
    return found


@around_a_change
def test_what_is_done_daily_is_done_once_on_each_day(name: str, on: date) -> None:
    zone = ZoneInfo(name)
    for what, find_next in daily(zone).items():
        runs = follow(find_next, zone, on)
        found = [at.astimezone(zone).date() for at in runs]
        assert all(after - before == DAY for before, after in pairwise(found)), (what, runs)
        assert on in found, what


@around_a_change
def test_the_next_time_is_the_same_whenever_it_is_looked_up(name: str, on: date) -> None:
    zone = ZoneInfo(name)
    for what, find_next in daily(zone).items():
        if what == "sums":
            # What comes in the minutes until a day is summed up is left for the next sum.
            continue
        runs = follow(find_next, zone, on)
        for before, after in pairwise(runs):
            steps = range((after - before) // (20 * MINUTE) + 1)
            looks = [before, *(before + step * 20 * MINUTE for step in steps), after - MINUTE]
            assert {find_next(at) for at in looks if at < after} == {after}, what


@around_a_change
@pytest.mark.parametrize("cron", ["0 * * * *", "*/20 * * * *", "30 2 * * *", "30 1 * * *"])
def test_products_are_crawled_over_a_change_without_a_gap(name: str, on: date, cron: str) -> None:
    zone = ZoneInfo(name)
    settings = DEFAULTS.model_copy(update={"zone": zone, "prices_cron": cron})
    runs = follow(lambda now: products.next_cron(now, settings), zone, on)
    usual = {"0": HOUR, "*": 20 * MINUTE}.get(cron[0], DAY) if cron[:3] != "30 " else DAY
    gaps = {after - before for before, after in pairwise(runs)}
    assert max(gaps) <= usual + HOUR
    # Never twice for one time of day: that would be a burst of one hour.
    assert min(gaps) >= min(usual, DAY - HOUR)


@pytest.fixture
async def lite(databases: Databases) -> SqlStore:
    """An empty store on SQLite: what is promised here is decided before SQL."""
    store = open_store(databases.fresh("sqlite"), VirtualClock())
    await upgrade(store.database)
    return store


@around_a_change
async def test_each_hour_is_in_the_sum_of_one_day(lite: SqlStore, name: str, on: date) -> None:
    zone = ZoneInfo(name)
    ip = await add_ip(lite)
    start, end = span_around(zone, on)
    flow = flow_values(Flow(inflow=1, outflow=2, prices=rules.summarize([])))
    rows = [
        {
            "ip_id": ip.id,
            "hour_at": start + n * HOUR,
            **flow,
            "inflow_total": n + 1,
            "outflow_total": 2 * n + 2,
        }
        for n in range((end - start) // HOUR)
    ]
    async with lite.edit() as tx:
        await tx.save(hours, rows, ("inflow",))
    summed: list[rollups.Span] = []
    last: str | None = None
    now = start
    while now < end + DAY:
        # The sums are made at their time, each time for the days that are over by then.
        now = rollups.next_run(now, zone)
        async with lite.read() as reader:
            found = await rollups.list_days(reader, last, now, zone)
        async with lite.edit() as tx:
            for span in found:
                await rollups.fold(tx, span, [ip.id])
        summed += found
        last = summed[-1].first.isoformat() if summed else None
    async with lite.read() as reader:
        kept = (await reader.execute(days.select().order_by(days.c.start_at))).all()
    assert all(after.first - before.first == DAY for before, after in pairwise(summed))
    assert sum(row.hours for row in kept) == sum(row.inflow for row in kept) == len(rows)
    lasted = {
        span.first: (span.end_at - span.start_at) / HOUR for span in summed if span.first == on
    }
    assert lasted[on] in {23, 23.5, 24, 24.5, 25}
    await lite.close()


@around_a_change
async def test_the_quota_of_each_day_is_used_up_and_never_overdrawn(
    lite: SqlStore, name: str, on: date
) -> None:
    zone = ZoneInfo(name)
    settings = DEFAULTS.model_copy(update={"zone": zone, "books_calls": 3})
    now, end = span_around(zone, on)
    made: Counter[date] = Counter()
    while now < end:
        if await quota.reserve(lite, settings, now) is None:
            # Who is refused comes again when the next day is said to begin.
            now = quota.next_day(now, settings)
            continue
        made[now.astimezone(zone).date()] += 1
        now += 10 * MINUTE
    assert set(made.values()) == {3}
    assert len(made) >= 5
    await lite.close()


@around_a_change
async def test_each_sale_is_on_the_day_of_its_zone(lite: SqlStore, name: str, on: date) -> None:
    zone = ZoneInfo(name)
    product = await add_product(lite)
    start, end = span_around(zone, on)
    midnights = [datetime.combine(on + n * DAY, time(), zone).astimezone(UTC) for n in (0, 1)]
    times = [at + n * 15 * MINUTE for at in midnights for n in range(-6, 7)] + [start, end]
    await apply(lite, product, 0, *(found(f"s{n}", 1000, sold=True) for n in range(len(times))))
    rows = await kept(lite)
    for number, at in enumerate(times):
        row, one = rows[f"s{number}"], found(f"s{number}", 1000, sold=True)
        async with lite.edit() as tx:
            await sync.save_detail(tx, row, one, write_stamp(at), at)
    async with lite.read() as reader:
        settings = DEFAULTS.model_copy(update={"zone": zone})
        there = await market.find_market(reader, product.id, 30, end, settings)
    counts = {day.on: day.figures.count for day in there.days if day.figures}
    assert counts == Counter(at.astimezone(zone).date() for at in times)
    await lite.close()
