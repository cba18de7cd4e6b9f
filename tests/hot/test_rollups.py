"""Days, weeks and months: summed up when they are over, again when a crawl comes late."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import func, select

from mimawari.errors import BadInput
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.rounds import Rounds
from mimawari.kernel.watch import Watches
from mimawari.store.sql import SqlStore
from mimawari.watches.hot import franchises, rollups, watch
from mimawari.watches.hot.models import Ip
from mimawari.watches.hot.rollups import Period, Span
from mimawari.watches.hot.tables import alerts, changes, crawls, days, hours, items, months, weeks
from tests.hot.crawling import add_ip, apply_job, crawl_of, on_sale, settings_with, sold
from tests.kernel.rounds import Remembered

TOKYO = ZoneInfo("Asia/Tokyo")
BERLIN = ZoneInfo("Europe/Berlin")
# A Thursday, the last of a month, noon in Tokyo: the week ends on Sunday, the month at midnight.
START = datetime(2026, 4, 30, 3, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(START)


class Ground:
    """The hot watch with its worker and scheduler, in Tokyo."""

    def __init__(self, store: SqlStore, clock: VirtualClock, **given: Any) -> None:
        self.store, self.clock = store, clock
        self.settings = settings_with(**given)
        watches = Watches([watch], self.settings)
        self.rounds = Rounds(store, clock, watches, {"tell": Remembered()})

    async def ip(self) -> Ip:
        """Keep an IP that rests, so that nobody crawls it, and its daily sums."""
        ip = await add_ip(self.store, active=False)
        async with self.store.edit() as tx:
            tx.place(rollups.entry(self.clock.now(), self.settings.zone))
        await self.apply(ip, START, [])
        return ip

    async def apply(self, ip: Ip, at: datetime, found: Any) -> None:
        """Apply a crawl that was made at a time, now."""
        await self.store.queue.put([apply_job(crawl_of(ip, at, found))])
        await self.rounds.work()

    async def come_to(self, at: datetime) -> None:
        """Let time pass until then."""
        await self.rounds.pass_time(at - self.clock.now(), step=DAY)

    async def rows(self, table: Any) -> list[tuple[str, int, int, int]]:
        """List the first day, inflow, outflow and observed hours of a table's rows."""
        async with self.store.read() as reader:
            found = await reader.execute(select(table).order_by(table.c.start_at))
            return [
                (
                    f"{row.start_at.astimezone(self.settings.zone):%m-%d}",
                    row.inflow,
                    row.outflow,
                    row.hours,
                )
                for row in found
            ]


@pytest.fixture
async def ground(store: SqlStore, clock: VirtualClock) -> Ground:
    return Ground(store, clock)


async def test_a_day_is_summed_up_in_the_zone_once_it_is_over(ground: Ground) -> None:
    ip = await ground.ip()
    await ground.come_to(START + 11 * HOUR)
    await ground.apply(ip, ground.clock.now(), [*on_sale("a", "b"), *sold("c", price=700)])
    await ground.come_to(START + 12 * HOUR)
    await ground.apply(ip, ground.clock.now(), sold("a", price=300))
    assert await ground.rows(days) == []
    await ground.come_to(START + 13 * HOUR)
    assert await ground.rows(days) == [("04-30", 2, 1, 1)]
    await ground.come_to(START + 37 * HOUR)
    assert await ground.rows(days) == [("04-30", 2, 1, 1), ("05-01", 0, 1, 1)]


async def test_a_month_and_a_week_follow_the_day_that_ends_them(ground: Ground) -> None:
    ip = await ground.ip()
    await ground.come_to(START + HOUR)
    await ground.apply(ip, ground.clock.now(), on_sale("a"))
    await ground.come_to(START + 13 * HOUR)
    assert await ground.rows(months) == [("04-01", 1, 0, 1)]
    assert await ground.rows(weeks) == []
    await ground.come_to(START + 40 * HOUR)
    await ground.apply(ip, ground.clock.now(), sold("a", "b"))
    await ground.come_to(START + 4 * DAY)
    assert await ground.rows(weeks) == [("04-27", 1, 2, 2)]
    assert await ground.rows(months) == [("04-01", 1, 0, 1)]


async def test_a_crawl_that_comes_late_is_summed_up_again(ground: Ground) -> None:
    ip = await ground.ip()
    await ground.come_to(START + HOUR)
    await ground.apply(ip, ground.clock.now(), sold("a", price=1000))
    await ground.come_to(START + 5 * DAY)
    before = await ground.rows(days)
    await ground.apply(ip, START + 2 * HOUR, [*on_sale("b"), *sold("c", price=3000)])
    assert await ground.rows(days) == before
    await ground.come_to(START + 5 * DAY + HOUR)
    assert await ground.rows(days) == [("04-30", 1, 2, 2)]
    assert await ground.rows(weeks) == [("04-27", 1, 2, 2)]
    assert await ground.rows(months) == [("04-01", 1, 2, 2)]
    async with ground.store.read() as reader:
        (row,) = (await reader.execute(select(months))).all()
    assert (row.samples, row.median_yen, row.most_yen) == (2, 2000, 3000)


async def test_days_that_nobody_summed_up_are_made_up_for(ground: Ground) -> None:
    ip = await ground.ip()
    for number in range(1, 6):
        at = START + number * DAY
        await ground.clock.advance(at - ground.clock.now())
        await ground.apply(ip, at, on_sale(f"{number}"))
    await ground.come_to(START + 6 * DAY)
    assert [(row[0], row[1]) for row in await ground.rows(days)] == [
        (f"05-0{number}", 1) for number in range(1, 6)
    ]
    assert await ground.store.cursor.find(rollups.MEMBER) == "2026-05-05"


async def test_many_ips_are_summed_up_some_at_a_time(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollups, "BATCH", 2)
    found = [await add_ip(ground.store, f"ip {number}", active=False) for number in range(5)]
    async with ground.store.edit() as tx:
        tx.place(rollups.entry(START, ground.settings.zone))
    for ip in found:
        await ground.apply(ip, START, [])
        await ground.apply(ip, START + timedelta(minutes=1), on_sale("a"))
    await ground.come_to(START + 13 * HOUR)
    assert await ground.rows(days) == [("04-30", 1, 0, 1)] * 5
    assert await ground.rows(months) == [("04-01", 1, 0, 1)] * 5


async def test_what_was_kept_for_long_enough_is_forgotten(
    store: SqlStore, clock: VirtualClock
) -> None:
    ground = Ground(store, clock, hot_keep_daily=40 * DAY, hot_keep_items=50 * DAY)
    ip = await ground.ip()
    await ground.apply(ip, START + HOUR, [*on_sale("a"), *sold("b")])

    async def counts() -> list[int]:
        tables = (hours, crawls, days, items, changes, months)
        async with store.read() as reader:
            return [
                (await reader.execute(select(func.count()).select_from(table))).scalar_one()
                for table in tables
            ]

    await ground.come_to(START + 20 * DAY)
    assert await counts() == [1, 2, 1, 2, 2, 1]
    await ground.come_to(START + 32 * DAY)
    assert await counts() == [0, 0, 1, 2, 2, 1]
    await ground.come_to(START + 42 * DAY)
    assert await counts() == [0, 0, 0, 2, 2, 1]
    await ground.come_to(START + 52 * DAY)
    assert await counts() == [0, 0, 0, 0, 0, 1]
    async with store.read() as reader:
        assert (await reader.execute(select(alerts))).all() == []
        assert await franchises.find_ip(reader, ip.id) is not None


@pytest.mark.parametrize(
    ("period", "day", "first", "following"),
    [
        (Period.DAY, "2026-05-01", "2026-05-01", "2026-05-02"),
        (Period.WEEK, "2026-05-03", "2026-04-27", "2026-05-04"),
        (Period.WEEK, "2026-05-04", "2026-05-04", "2026-05-11"),
        (Period.MONTH, "2026-12-31", "2026-12-01", "2027-01-01"),
        (Period.MONTH, "2028-02-29", "2028-02-01", "2028-03-01"),
    ],
)
def test_a_period_is_one_of_the_calendar(
    period: Period, day: str, first: str, following: str
) -> None:
    span = rollups.span_of(period, date.fromisoformat(day), TOKYO)
    assert (span.first.isoformat(), span.following.isoformat()) == (first, following)


@pytest.mark.parametrize(
    ("day", "hours_long"), [("2026-03-29", 23), ("2026-10-25", 25), ("2026-06-01", 24)]
)
def test_a_day_on_which_the_clocks_change_is_shorter_or_longer(day: str, hours_long: int) -> None:
    span = Span(Period.DAY, date.fromisoformat(day), BERLIN)
    assert span.end_at - span.start_at == HOUR * hours_long


@pytest.mark.parametrize(
    "args",
    [{}, {"period": "year", "first": "2026-01-01"}, {"period": "day", "first": "soon"},
     {"period": "day", "first": 5}],
    ids=str,
)  # fmt: skip
def test_a_sum_of_no_known_period_is_refused_with_a_sentence(args: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="a sum needs"):
        rollups.parse_span(args, TOKYO)
