"""What a product is worth, from what crawls and single pages left behind."""

import asyncio
import random
from collections import Counter, defaultdict
from datetime import UTC, date, datetime, timedelta
from statistics import median
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import select

from mimawari.columns.stamps import write_stamp
from mimawari.settings import DEFAULTS
from mimawari.store.sql import SqlStore
from mimawari.watches.prices import daily_sales, figures, market, sync
from mimawari.watches.prices.market import Market
from mimawari.watches.prices.models import Product
from mimawari.watches.prices.tables import sightings
from tests.prices.crawling import HOUR, NOON, add_product, apply, change, found, kept

TOKYO = ZoneInfo("Asia/Tokyo")
KOLKATA = ZoneInfo("Asia/Kolkata")
DAY = timedelta(days=1)


async def worth(
    store: SqlStore, product: Product, now: datetime = NOON, zone: ZoneInfo = TOKYO
) -> Market:
    """Read what a product is worth, and see that every day's sales are packed as they are."""
    async with store.read() as reader:
        packed = await daily_sales.list_days(reader, product.id, 0)
        query = select(sightings).where(sightings.c.sold_quarter.is_not(None))
        rows = (await reader.execute(query)).all()
        found = await market.find_market(
            reader, product.id, 30, now, DEFAULTS.model_copy(update={"zone": zone})
        )
    there = Counter((row.sold_quarter // 96, row.sold_yen, row.sold_after_hours) for row in rows)
    assert there == Counter(
        (one.day, price, None if hours == daily_sales.UNKNOWN else hours)
        for one in packed
        for price, hours in zip(one.prices, one.hours, strict=True)
    )
    assert all(sum(one.counts) == len(one.prices) > 0 for one in packed)
    return found


async def sell(store: SqlStore, external_id: str, price: int, at: datetime) -> None:
    """Have an item's own page say that it was sold."""
    row = (await kept(store))[external_id]
    one = found(external_id, price, sold=True)
    async with store.edit() as tx:
        await sync.save_detail(tx, row, one, write_stamp(at), at)


async def sell_many(store: SqlStore, product: Product, sales: list[tuple[int, datetime]]) -> None:
    """Have many items seen as sold, and their pages say when."""
    items = [found(f"s{number}", price, sold=True) for number, (price, _) in enumerate(sales)]
    await apply(store, product, 0, *items)
    for number, (price, at) in enumerate(sales):
        await sell(store, f"s{number}", price, at)


async def test_what_was_sold_is_told_by_the_day_of_the_zone(store: SqlStore) -> None:
    product = await add_product(store)
    midnight = datetime(2026, 5, 30, 15, tzinfo=UTC)
    sales = [(1000, midnight - HOUR), (1200, midnight), (1400, midnight + HOUR)]
    await sell_many(store, product, sales)
    there = await worth(store, product)
    assert [(day.on, day.figures.count) for day in there.days if day.figures] == [
        (date(2026, 5, 30), 1),
        (date(2026, 5, 31), 2),
    ]
    assert there.sold is not None
    assert (there.sold.count, there.sold.median_yen) == (3, 1200)
    elsewhere = await worth(store, product, zone=KOLKATA)
    assert [day.on for day in elsewhere.days] == [date(2026, 5, 30)]


async def test_a_zone_half_an_hour_off_has_days_of_its_own(store: SqlStore) -> None:
    product = await add_product(store)
    midnight = datetime(2026, 5, 30, 18, 30, tzinfo=UTC)
    await sell_many(store, product, [(1000, midnight - HOUR / 4), (1200, midnight + HOUR / 4)])
    found_days = (await worth(store, product, zone=KOLKATA)).days
    assert [day.on for day in found_days] == [date(2026, 5, 30), date(2026, 5, 31)]


async def test_figures_equal_those_of_the_rows_whatever_happened(store: SqlStore) -> None:
    product = await add_product(store)
    chance = random.Random(7)
    sales = [
        (int(2000 * chance.lognormvariate(0, 0.3)), NOON - chance.uniform(0, 20) * DAY)
        for _ in range(60)
    ]
    await sell_many(store, product, [*sales, (9_999_999, NOON - DAY)])
    there = await worth(store, product)
    by_day: dict[date, list[int]] = defaultdict(list)
    for price, at in sales:
        by_day[at.astimezone(TOKYO).date()].append(price)
    medians = {day.on: day.figures.median_yen for day in there.days if day.figures}
    assert medians == {on: median(prices) for on, prices in by_day.items()}
    assert (there.outliers, sum(day.outliers for day in there.days)) == (1, 1)


async def test_what_is_older_than_asked_for_is_left_out(store: SqlStore) -> None:
    product = await add_product(store)
    await sell_many(store, product, [(1000, NOON - 29 * DAY), (5000, NOON - 31 * DAY)])
    there = await worth(store, product)
    assert there.sold is not None
    assert (there.sold.count, there.sold.max_yen) == (1, 1000)


async def test_the_cheapest_on_sale_is_measured_by_the_median(store: SqlStore) -> None:
    product = await add_product(store)
    sales = [(price, NOON - DAY) for price in (900, 950, 1000, 1000, 1000, 1000, 1050, 1100)]
    await sell_many(store, product, sales)
    await apply(store, product, 1, found("junk", 10), found("a", 800), found("b", 1500))
    there = await worth(store, product)
    assert there.on_sale == 3
    assert there.cheapest is not None
    assert (there.cheapest.external_id, there.cheapest.percent_under_median) == ("a", 20)


async def test_a_price_that_is_only_asked_is_not_the_cheapest(store: SqlStore) -> None:
    product = await add_product(store)
    await sell_many(store, product, [(1000, NOON - DAY)] * 8)
    await apply(store, product, 1, found("dear", 9_999_999))
    assert (await worth(store, product)).cheapest is None


async def test_days_to_sell_count_from_the_listing(store: SqlStore) -> None:
    product = await add_product(store)
    await apply(store, product, 0, found("a", listed_at=NOON - 3 * DAY), found("b", listed_at=None))
    for one in ("a", "b"):
        await sell(store, one, 1000, NOON - DAY)
    there = (await worth(store, product)).days_to_sell
    assert there is not None
    assert (there.count, there.median_days) == (1, 2)


async def test_what_is_taken_out_leaves_the_figures_and_comes_back_with_them(
    store: SqlStore,
) -> None:
    product = await add_product(store)
    await sell_many(store, product, [(1000, NOON - DAY), (5000, NOON - DAY)])
    await apply(store, product, 1, found("a", 4000))
    before = await worth(store, product)
    await change(store, product, max_price=2000)
    await apply(store, product, 2)
    narrow = await worth(store, product)
    assert narrow.sold is not None
    assert (narrow.sold.count, narrow.on_sale, narrow.cheapest) == (1, 0, None)
    await change(store, product)
    await apply(store, product, 3)
    assert await worth(store, product) == before


async def test_what_was_sold_is_no_longer_on_sale(store: SqlStore) -> None:
    product = await add_product(store)
    await apply(store, product, 0, found("a", 900))
    assert (await worth(store, product)).on_sale == 1
    await sell(store, "a", 850, NOON)
    there = await worth(store, product)
    assert (there.on_sale, there.cheapest) == (0, None)
    assert there.sold is not None
    assert there.sold.median_yen == 850


async def test_sales_that_are_kept_at_the_same_moment_are_all_counted(store: SqlStore) -> None:
    product = await add_product(store)
    await apply(store, product, 0, *(found(f"s{number}", sold=True) for number in range(8)))
    rows = await kept(store)

    async def keep(external_id: str) -> None:
        async with store.edit() as tx:
            row = await sync.hold_result(tx, rows[external_id].id)
            one = found(external_id, 1000, sold=True)
            await sync.save_detail(tx, row, one, write_stamp(NOON - DAY), NOON)

    await asyncio.gather(*map(keep, rows))
    there = await worth(store, product)
    assert there.sold is not None
    assert there.sold.count == 8


async def test_of_nothing_nothing_is_said(store: SqlStore) -> None:
    product = await add_product(store)
    there = await worth(store, product)
    assert (there.days, there.sold, there.cheapest, there.days_to_sell) == ((), None, None, None)
    assert there.bounds == figures.find_bounds([])


@pytest.mark.parametrize(("text", "hour"), [("2026-05-31", 12), ("2026-05-31 23:59:00", 23)])
async def test_a_day_without_a_time_counts_as_that_day(
    store: SqlStore, text: str, hour: int
) -> None:
    product = await add_product(store)
    await apply(store, product, 0, found("a", sold=True))
    row = (await kept(store))["a"]
    async with store.edit() as tx:
        await sync.save_detail(tx, row, found("a", sold=True), text, NOON)
    [day] = (await worth(store, product, zone=ZoneInfo("UTC"))).days
    assert day.on == datetime(2026, 5, 31, hour, tzinfo=UTC).date()


async def test_what_was_not_seen_for_a_day_is_no_cheapest_and_counts_as_unseen(
    store: SqlStore,
) -> None:
    product = await add_product(store)
    await apply(store, product, 0, found("old", 500), found("new", 900))
    await apply(store, product, 20, found("new", 900))
    there = await worth(store, product, NOON + 24 * HOUR)
    assert (there.cheapest and there.cheapest.external_id, there.unseen) == ("old", 0)
    there = await worth(store, product, NOON + 25 * HOUR)
    assert (there.cheapest and there.cheapest.external_id, there.unseen) == ("new", 1)
    assert there.on_sale == 2
    await apply(store, product, 26, found("old", 500))
    there = await worth(store, product, NOON + 26 * HOUR)
    assert (there.cheapest and there.cheapest.external_id, there.unseen) == ("old", 0)


async def test_what_is_cheaper_than_all_that_counts_is_told_apart_as_doubtful(
    store: SqlStore,
) -> None:
    product = await add_product(store)
    await sell_many(store, product, [(1000, NOON - DAY)] * 8)
    await apply(store, product, 1, found("junk", 10), found("real", 900))
    there = await worth(store, product, NOON + HOUR)
    assert there.cheapest is not None
    assert there.doubtful is not None
    assert (there.cheapest.external_id, there.cheapest.outlier) == ("real", None)
    assert (there.doubtful.external_id, there.doubtful.outlier is None) == ("junk", False)
