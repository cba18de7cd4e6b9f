"""Applying a crawl: counted once, whatever comes twice, late or out of order."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event, func, select

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.job import State
from mimawari.kernel.rounds import Rounds
from mimawari.kernel.watch import Watches
from mimawari.settings import Settings
from mimawari.store.sql import SqlStore
from mimawari.watches.hot import franchises, queries, watch
from mimawari.watches.hot.models import Coverage, Crawl, Ip, Status
from mimawari.watches.hot.queries import Window
from mimawari.watches.hot.tables import alerts, crawls, hours, items
from tests.hot.crawling import (
    HOUR,
    NOON,
    add_ip,
    apply_job,
    crawl_of,
    find_ip,
    flows,
    kept,
    on_sale,
    seen,
    settings_with,
    sold,
    story,
)
from tests.kernel.rounds import Remembered

Made = Callable[..., "Ground"]


class Ground:
    """A store, a worker of the hot watch, and a clock that starts at noon."""

    def __init__(self, store: SqlStore, clock: VirtualClock, settings: Settings) -> None:
        self.store = store
        self.clock = clock
        self.told = Remembered()
        watches = Watches([watch], settings)
        self.rounds = Rounds(store, clock, watches, {"tell": self.told})

    async def apply(self, *found: Crawl) -> None:
        """Apply crawls as the worker does, each at its own time at the earliest."""
        for crawl in found:
            if crawl.crawled_at > self.clock.now():
                await self.clock.advance(crawl.crawled_at - self.clock.now())
            [job_id] = await self.store.queue.put([apply_job(crawl)])
            await self.rounds.work()
            view = await self.store.queue.find(job_id)
            assert view is not None
            assert view.state is State.DONE, view.reason

    async def count(self, table: Any) -> int:
        """Count the rows of a table."""
        async with self.store.read() as reader:
            rows = await reader.execute(select(func.count()).select_from(table))
        return int(rows.scalar_one())


@pytest.fixture
async def make(store: SqlStore, clock: VirtualClock) -> Made:
    def made(**given: Any) -> Ground:
        return Ground(store, clock, settings_with(**given))

    return made


@pytest.fixture
async def ground(make: Made) -> Ground:
    return make()


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(NOON)


async def baseline(ground: Ground, *found: Any) -> Ip:
    """Keep an IP that was crawled once, an hour before the tests' own crawls."""
    ip = await add_ip(ground.store)
    await ground.apply(crawl_of(ip, NOON, found))
    return await find_ip(ground.store, ip.id)


def after(count: float) -> datetime:
    return NOON + HOUR * count


async def test_a_first_crawl_stores_everything_and_counts_nothing(ground: Ground) -> None:
    ip = await baseline(ground, *on_sale("a", "b"), *sold("c"))
    assert await flows(ground.store, ip) == []
    assert await ground.count(items) == 3
    assert (await kept(ground.store, ip, "c")).status == Status.SOLD
    assert (ip.baseline_at, ip.last_crawled_at, ip.weight) == (NOON, NOON, 1.0)
    assert await story(ground.store, ip, "a") == []


async def test_a_second_crawl_counts_what_came_and_went(ground: Ground) -> None:
    ip = await baseline(ground, *on_sale("a", "b"), *sold("c"))
    await ground.apply(crawl_of(ip, after(1), [*on_sale("a", "d"), *sold("b", "c", "e")]))
    assert await flows(ground.store, ip) == [(1, 2)]
    assert await story(ground.store, ip, "b") == ["sold"]
    assert await story(ground.store, ip, "d") == ["new_listing"]
    assert await story(ground.store, ip, "e") == ["new_sold"]
    assert (await kept(ground.store, ip, "b")).sold_at == after(1)


async def test_an_item_that_is_sold_and_then_gone_counts_once(ground: Ground) -> None:
    ip = await baseline(ground, *on_sale("a"))
    await ground.apply(
        crawl_of(ip, after(1), sold("a")),
        crawl_of(ip, after(2), []),
        crawl_of(ip, after(3), on_sale("b")),
    )
    assert await flows(ground.store, ip) == [(0, 1), (0, 0), (1, 0)]
    assert (await kept(ground.store, ip, "a")).last_seen_at == after(1)


async def test_a_relisted_item_counts_nothing_until_it_is_sold_again(ground: Ground) -> None:
    ip = await baseline(ground, *on_sale("a"))
    await ground.apply(
        crawl_of(ip, after(1), sold("a")),
        crawl_of(ip, after(2), on_sale("a", price=900)),
        crawl_of(ip, after(3), sold("a", price=900)),
    )
    assert await flows(ground.store, ip) == [(0, 1), (0, 0), (0, 1)]
    assert await story(ground.store, ip, "a") == ["sold", "relisted", "sold"]


async def test_a_sale_that_is_called_off_is_no_second_listing(ground: Ground) -> None:
    # An item in trade is shown among the sold ones; called off, it is on sale again.
    ip = await baseline(ground)
    await ground.apply(
        crawl_of(ip, after(1), on_sale("a")),
        crawl_of(ip, after(2), sold("a")),
        crawl_of(ip, after(3), on_sale("a")),
    )
    assert await flows(ground.store, ip) == [(1, 0), (0, 1), (0, 0)]


async def test_a_new_price_counts_nothing_and_is_remembered(ground: Ground) -> None:
    ip = await baseline(ground, seen("a", 1000))
    await ground.apply(crawl_of(ip, after(1), [seen("a", 800)]))
    assert await flows(ground.store, ip) == [(0, 0)]
    assert await story(ground.store, ip, "a") == ["price_change"]
    assert (await kept(ground.store, ip, "a")).price_yen == 800


async def test_an_item_seen_again_after_25_hours_is_not_counted_again(ground: Ground) -> None:
    ip = await baseline(ground, *on_sale("a"), *sold("b"))
    await ground.apply(
        crawl_of(ip, after(1), []),
        crawl_of(ip, after(26), [*on_sale("a"), *sold("b")]),
        crawl_of(ip, after(80), [*on_sale("a"), *sold("b")]),
    )
    assert await flows(ground.store, ip) == [(0, 0)] * 3
    assert (await kept(ground.store, ip, "a")).first_seen_at == NOON


async def test_an_item_of_two_ips_counts_in_each(ground: Ground) -> None:
    one = await baseline(ground)
    two = await add_ip(ground.store, "ビリリカ")
    await ground.apply(crawl_of(two, NOON, []))
    await ground.apply(*(crawl_of(ip, after(1), on_sale("a")) for ip in (one, two)))
    await ground.apply(*(crawl_of(ip, after(2), sold("a")) for ip in (one, two)))
    for ip in (one, two):
        assert await flows(ground.store, ip) == [(1, 0), (0, 1)]


async def test_an_item_without_a_price_counts_but_is_no_sample(ground: Ground) -> None:
    ip = await baseline(ground, *on_sale("a", price=None))
    await ground.apply(
        crawl_of(ip, after(1), [*sold("a", price=None), seen("b", None), *sold("c", price=700)])
    )
    assert await flows(ground.store, ip) == [(1, 2)]
    async with ground.store.read() as reader:
        (row,) = (await reader.execute(select(hours))).all()
    assert (row.samples, row.average_yen, row.least_yen, row.most_yen) == (1, 700, 700, 700)


async def test_a_task_that_was_applied_is_not_applied_again(ground: Ground) -> None:
    ip = await baseline(ground)
    crawl = crawl_of(ip, after(1), on_sale("a"))
    await ground.apply(crawl, crawl, crawl)
    assert await flows(ground.store, ip) == [(1, 0)]
    assert await ground.count(crawls) == 2


async def test_several_crawls_of_one_hour_are_one_row(ground: Ground) -> None:
    ip = await baseline(ground)
    await ground.apply(
        crawl_of(ip, after(1), sold("a", price=1000)),
        crawl_of(ip, after(1.5), sold("a", "b", price=2000)),
        crawl_of(ip, after(1.9), [*on_sale("c"), *sold("d", price=6000)]),
    )
    assert await flows(ground.store, ip) == [(1, 3)]
    async with ground.store.read() as reader:
        (row,) = (await reader.execute(select(hours))).all()
    assert (row.samples, row.median_yen, row.average_yen) == (3, 2000, 3000)
    assert row.hour_at == after(1)


async def test_a_result_with_an_error_changes_no_count(ground: Ground) -> None:
    ip = await baseline(ground, *on_sale("a"))
    failed = crawl_of(ip, after(1), sold("a"), error="no page could be read")
    await ground.apply(failed, failed)
    found = await find_ip(ground.store, ip.id)
    assert await flows(ground.store, ip) == []
    assert (found.failures, found.last_error) == (1, "no page could be read")
    assert (found.weight, found.last_crawled_at) == (1.0, NOON)
    assert (await kept(ground.store, ip, "a")).status == Status.AVAILABLE
    await ground.apply(crawl_of(ip, after(2), sold("a")))
    found = await find_ip(ground.store, ip.id)
    assert (found.failures, found.last_error) == (0, "")
    assert await flows(ground.store, ip) == [(0, 1)]


async def test_an_ip_whose_first_crawl_missed_a_page_counts_from_the_first_whole_one(
    ground: Ground,
) -> None:
    ip = await add_ip(ground.store)
    torn = Coverage(pages_asked=10, pages_read=9, page_errors=("on_sale page 3: 502",))
    await ground.apply(crawl_of(ip, NOON, on_sale("a"), coverage=torn))
    await ground.apply(crawl_of(ip, after(1), on_sale("a", "b")))
    assert await flows(ground.store, ip) == []
    await ground.apply(crawl_of(ip, after(2), on_sale("a", "b", "c")))
    assert await flows(ground.store, ip) == [(1, 0)]


async def test_how_much_a_crawl_could_see_is_kept(ground: Ground) -> None:
    ip = await baseline(ground)
    torn = Coverage(
        pages_asked=10, pages_read=8, capped_sold=True, page_errors=("sold page 2: 502",) * 2
    )
    await ground.apply(crawl_of(ip, after(1), [], coverage=torn))
    assert (await find_ip(ground.store, ip.id)).coverage == torn
    async with ground.store.read() as reader:
        (last, _) = await queries.list_crawls(reader, ip.id, 9)
    assert (last.pages_asked, last.pages_read, last.capped_sold) == (10, 8, True)


async def test_an_older_crawl_that_comes_late_changes_only_what_was_not_known(
    ground: Ground,
) -> None:
    ip = await baseline(ground, *on_sale("a"))
    early = crawl_of(ip, after(1), [*on_sale("a", "b", "gone")])
    await ground.apply(crawl_of(ip, after(2), [*sold("a"), *on_sale("b")]))
    await ground.apply(early)
    assert await flows(ground.store, ip) == [(1, 0), (1, 1)]
    assert await story(ground.store, ip, "a") == ["sold"]
    assert (await find_ip(ground.store, ip.id)).last_crawled_at == after(2)


async def test_a_window_is_the_difference_of_totals_also_after_a_late_crawl(
    ground: Ground,
) -> None:
    ip = await baseline(ground)
    # The last one comes after more hours than are looked along for all IPs at once.
    for number in (1, 2, 4, 9):
        await ground.apply(crawl_of(ip, after(number), on_sale(*(f"{number}{n}" for n in "ab"))))
    await ground.apply(crawl_of(ip, after(3), [*on_sale("late"), *sold("x", "y", "z")]))
    for first in range(10):
        for last in range(first, 11):
            window = Window(start_at=after(first), end_at=after(last))
            async with ground.store.read() as reader:
                query = select(
                    func.sum(hours.c.inflow).label("inflow"), func.sum(hours.c.outflow)
                ).where(hours.c.hour_at >= window.start_at, hours.c.hour_at < window.end_at)
                truth: Any = (await reader.execute(query)).one()
                [found] = await queries.list_standings(reader, window)
                [named] = await queries.list_standings(reader, window, ip_ids=[ip.id])
            assert named == found
            ours = [(one.inflow, one.outflow) for one in found]
            assert ours == ([tuple(map(int, truth))] if any(truth) else [])


async def test_a_thousand_items_take_a_handful_of_statements(ground: Ground) -> None:
    ip = await baseline(ground, *on_sale(*(f"m{n}" for n in range(500))))
    said: list[str] = []
    engine: Any = ground.store.database.link.engine

    def hear(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        said.append(statement)

    new = on_sale(*(f"n{n}" for n in range(500)))
    gone = sold(*(f"m{n}" for n in range(500)))
    event.listen(engine, "before_cursor_execute", hear)
    await ground.apply(crawl_of(ip, after(1), [*new, *gone]))
    event.remove(engine, "before_cursor_execute", hear)
    assert await flows(ground.store, ip) == [(500, 500)]
    assert sum("item_" in statement for statement in said) <= 4
    assert len(said) < 60


async def test_the_commit_sets_the_next_time_from_the_new_weight(make: Made) -> None:
    ground = make(hot_pages_on_sale=1, hot_pages_sold=1)
    ip = await baseline(ground)
    busy = on_sale(*(f"m{n}" for n in range(101)))
    await ground.apply(crawl_of(ip, after(1), busy))
    entry = await ground.store.schedule.find(franchises.member_of(ip.id))
    assert entry is not None
    assert (await find_ip(ground.store, ip.id)).weight == 1.25
    assert entry.every == timedelta(hours=1.6)
    assert entry.next_at == after(1) + timedelta(hours=1.6)
    assert entry.reason == "every 1h36m at weight 1.25"
    assert entry.args == {
        "ipId": str(ip.id), "keyword": ip.keyword, "pagesOnSale": 1, "pagesSold": 1
    }  # fmt: skip


async def test_an_ip_that_was_removed_meanwhile_is_left_alone(ground: Ground) -> None:
    ip = await baseline(ground, *on_sale("a"))
    async with ground.store.edit() as tx:
        assert await franchises.remove_ip(tx, ip.id)
    await ground.apply(crawl_of(ip, after(1), sold("a")))
    assert await ground.count(items) == await ground.count(crawls) == 0
    assert await ground.store.schedule.find(franchises.member_of(ip.id)) is None


async def test_an_ip_that_was_put_to_rest_meanwhile_is_counted_and_not_scheduled(
    ground: Ground,
) -> None:
    ip = await baseline(ground, *on_sale("a"))
    resting = await add_ip(ground.store, "resting", active=False)
    await ground.apply(crawl_of(resting, after(1), []), crawl_of(resting, after(2), on_sale("b")))
    assert await flows(ground.store, resting) == [(1, 0)]
    assert await ground.store.schedule.find(franchises.member_of(resting.id)) is None
    assert await ground.store.schedule.find(franchises.member_of(ip.id)) is not None


async def test_a_message_that_nobody_can_read_is_a_dead_letter(ground: Ground) -> None:
    job = apply_job(Crawl(ip_id=1, task_id="t", crawled_at=NOON))
    args = {**job.args, "items": "all of them"}
    [job_id] = await ground.store.queue.put([type(job)(kind=job.kind, args=args)])
    await ground.rounds.work()
    view = await ground.store.queue.find(job_id)
    assert view is not None
    assert view.state is State.FAILED
    assert "CrawlResponse" in (view.reason or "")


async def list_alerts(ground: Ground) -> list[tuple[str, bool]]:
    async with ground.store.read() as reader:
        rows = (await reader.execute(select(alerts).order_by(alerts.c.id))).all()
    return [(row.kind, row.closed_at is None) for row in rows]


async def test_an_alert_is_opened_once_and_closed_when_it_is_over(make: Made) -> None:
    ground = make(hot_alert_outflow=2, hot_alert_liquidity_low=0.0)
    ip = await baseline(ground)
    await ground.apply(crawl_of(ip, after(1), sold("a", "b")))
    await ground.apply(crawl_of(ip, after(2), sold("c", "d", "e")))
    assert await list_alerts(ground) == [("high_outflow", True)]
    await ground.apply(crawl_of(ip, after(3), sold("f")))
    assert await list_alerts(ground) == [("high_outflow", False)]
    await ground.apply(crawl_of(ip, after(4), sold("g", "h")))
    assert await list_alerts(ground) == [("high_outflow", False), ("high_outflow", True)]
    await ground.rounds.settle()
    kinds = [event.kind for event in ground.told.events]
    assert kinds == ["hot.alert_opened", "hot.alert_closed", "hot.alert_opened"]
    assert ground.told.events[0].body["message"].startswith("2 items sold in an hour")


async def test_a_price_drop_is_noticed_against_the_week_before(make: Made) -> None:
    ground = make(hot_alert_outflow=1000, hot_alert_samples=5)
    ip = await baseline(ground)
    for number in range(1, 6):
        usual = sold(*(f"{number}-{n}" for n in range(5)), price=2000)
        listed = on_sale(*(f"{number}+{n}" for n in range(5)))
        await ground.apply(crawl_of(ip, after(number), [*listed, *usual]))
    assert await list_alerts(ground) == []
    cheap = sold(*(f"cheap-{n}" for n in range(5)), price=1500)
    await ground.apply(crawl_of(ip, after(6), [*on_sale("x", "y", "z"), *cheap]))
    assert await list_alerts(ground) == [("price_drop", True)]
