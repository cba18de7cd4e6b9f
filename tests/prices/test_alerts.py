"""What is told of prices: once, not again for a trifle, and when it is over."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from mimawari.settings import DEFAULTS
from mimawari.store.sql import SqlStore
from mimawari.store.sql.tables import outbox
from mimawari.watches.prices import alerts as alerting
from mimawari.watches.prices import products, queries
from mimawari.watches.prices.models import Found, Product
from mimawari.watches.prices.notifications import TELLINGS
from mimawari.watches.prices.queries import AlertsWanted
from mimawari.watches.prices.tables import alerts
from tests.prices.crawling import HOUR, NOON, add_product, apply, change, found
from tests.prices.test_market import sell_many

USUAL = [900, 950, 1000, 1000, 1000, 1000, 1050, 1100]


async def look(store: SqlStore, product: Product, hours: float, *items: Found) -> None:
    """Crawl, and tell what there is to tell."""
    await apply(store, product, hours, *items)
    async with store.edit() as tx:
        now = await products.find_product(tx, product.id)
        assert now is not None
        await alerting.sync_alerts(tx, now, DEFAULTS, NOON + hours * HOUR)


async def told(store: SqlStore) -> list[tuple[str, str, int]]:
    """List what was told, in order: the event, the kind and the price."""
    async with store.read() as reader:
        rows: Any = await reader.execute(select(outbox).order_by(outbox.c.id))
        bodies = [(row.kind, json.loads(row.body)) for row in rows]
    return [
        (kind.removeprefix("prices.alert_"), body["kind"], body["price"]) for kind, body in bodies
    ]


async def listed(store: SqlStore) -> list[Any]:
    """List all alerts."""
    async with store.read() as reader:
        return list((await reader.execute(select(alerts).order_by(alerts.c.id))).all())


async def test_a_price_at_the_target_is_told_once_and_when_it_is_over(store: SqlStore) -> None:
    product = await add_product(store, target_price=1000)
    await look(store, product, 0, found("a", 1001))
    assert await told(store) == []
    await look(store, product, 1, found("a", 1000))
    await look(store, product, 2, found("a", 990), found("b", 995))
    assert await told(store) == [("opened", "under_target", 1000)]
    await look(store, product, 3, found("a", 1200), found("b", 1300))
    assert await told(store) == [
        ("opened", "under_target", 1000),
        ("closed", "under_target", 1000),
    ]
    [alert] = await listed(store)
    assert alert.closed_reason == "it costs 1,200 yen now"
    assert alert.closed_at == NOON + 3 * HOUR


async def test_a_price_that_moves_around_the_target_is_not_told_again(store: SqlStore) -> None:
    product = await add_product(store, target_price=1000)
    for hours, price in enumerate((1000, 1015, 999, 1020, 990)):
        await look(store, product, hours, found("a", price))
    assert len(await told(store)) == 1


async def test_each_cheaper_one_is_told_while_the_first_is_there_and_each_is_over_by_itself(
    store: SqlStore,
) -> None:
    product = await add_product(store, target_price=1000)
    await look(store, product, 0, found("a", 900))
    await look(store, product, 1, found("a", 900), found("b", 950))
    assert await told(store) == [("opened", "under_target", 900)]
    await look(store, product, 2, found("a", 900), found("b", 950), found("c", 899))
    assert (await told(store))[1:] == [("opened", "under_target", 899)]
    await look(store, product, 3, found("a", 900), found("b", 950), found("c", 899, sold=True))
    assert (await told(store))[2:] == [("closed", "under_target", 899)]
    # With the first one gone, the next is a first one.
    await look(store, product, 4, found("a", 900, sold=True), found("b", 950))
    assert (await told(store))[3:] == [
        ("closed", "under_target", 900),
        ("opened", "under_target", 950),
    ]


async def test_what_was_told_is_told_again_when_it_is_much_cheaper(store: SqlStore) -> None:
    product = await add_product(store, target_price=1000)
    await look(store, product, 0, found("a", 900))
    await look(store, product, 1, found("a", 890))
    assert len(await told(store)) == 1
    await look(store, product, 2, found("a", 500))
    assert [price for _, _, price in await told(store)] == [900, 900, 500]


@pytest.mark.parametrize("share", [20, 50, 90])
@pytest.mark.parametrize("sales", [0, 7, 200])
async def test_a_target_is_told_whatever_the_median(
    store: SqlStore, share: int, sales: int
) -> None:
    product = await add_product(store, target_price=10 * share)
    await sell_many(store, product, [(1000, NOON - timedelta(days=1))] * sales)
    await look(store, product, 1, found("a", 10 * share + 1))
    assert await told(store) == []
    await look(store, product, 2, found("a", 10 * share + 1), found("b", 10 * share))
    opened = [one for one in await told(store) if one[1] == "under_target"]
    assert opened == [("opened", "under_target", 10 * share)]
    [alert] = [row for row in await listed(store) if row.kind == "under_target"]
    # Prices under some 59 percent of the median are out of line where enough was sold.
    assert (alert.doubt is not None) == (sales == 200 and share < 59)


async def test_a_doubtful_one_is_marked_and_hides_no_bargain(store: SqlStore) -> None:
    product = await add_product(store, target_price=900)
    await sell_many(store, product, [(price, NOON - timedelta(days=1)) for price in USUAL])
    await look(store, product, 1, found("junk", 10))
    assert await told(store) == [("opened", "under_target", 10)]
    [body] = await bodies(store)
    assert body["doubt"].startswith("10 yen is less than 592")
    assert body["message"].endswith(f"; doubtful: {body['doubt']}")
    for language, mark in (("ja", "要確認"), ("en", "doubtful")):
        assert mark in TELLINGS[0].line(body, language)
    await look(store, product, 2, found("junk", 10), found("real", 850))
    assert (await told(store))[1:] == [("opened", "under_target", 850)]
    assert (await bodies(store))[1]["doubt"] is None


async def test_a_share_of_the_median_where_all_is_doubtful_is_told_as_doubtful(
    store: SqlStore,
) -> None:
    product = await add_product(store, median_percent=50)
    await sell_many(store, product, [(price, NOON - timedelta(days=1)) for price in USUAL])
    await look(store, product, 1, found("a", 500))
    assert await told(store) == [("opened", "under_median", 500)]
    assert [row.doubt is None for row in await listed(store)] == [False]


async def test_junk_is_not_far_under_the_median(store: SqlStore) -> None:
    product = await add_product(store, median_percent=20)
    await sell_many(store, product, [(price, NOON - timedelta(days=1)) for price in USUAL])
    await look(store, product, 1, found("junk", 10))
    assert await told(store) == []


async def test_what_was_not_seen_for_a_day_is_over_until_it_is_seen_again(
    store: SqlStore,
) -> None:
    product = await add_product(store, target_price=1000)
    await look(store, product, 0, found("a", 900))
    await look(store, product, 24)
    assert len(await told(store)) == 1
    await look(store, product, 25)
    [alert] = await listed(store)
    assert alert.closed_reason == "it was not seen since 2026-06-01 03:00 UTC"
    await look(store, product, 26, found("a", 900))
    assert [one[0] for one in await told(store)] == ["opened", "closed", "opened"]


async def test_alerts_of_what_is_not_seen_end_while_the_site_cannot_be_asked(
    store: SqlStore,
) -> None:
    product = await add_product(store, target_price=1000)
    await look(store, product, 0, found("a", 900))
    async with store.edit() as tx:
        await alerting.close_unseen(tx, DEFAULTS, NOON + 24 * HOUR)
    assert len(await told(store)) == 1
    async with store.edit() as tx:
        await alerting.close_unseen(tx, DEFAULTS, NOON + 25 * HOUR)
    assert [one[0] for one in await told(store)] == ["opened", "closed"]


async def test_a_list_calls_no_alert_open_whose_item_was_not_seen_for_a_day(
    store: SqlStore,
) -> None:
    product = await add_product(store, target_price=1000)
    await look(store, product, 0, found("a", 900))
    for seen_since, count in ((NOON, 1), (NOON + HOUR, 0)):
        wanted = AlertsWanted(seen_since=seen_since, product_id=product.id, is_open=True)
        async with store.read() as reader:
            rows = await queries.list_alerts(reader, 10, None, wanted)
            assert len(rows) == await queries.count_alerts(reader, wanted) == count
            over = replace(wanted, is_open=False)
            assert await queries.count_alerts(reader, over) == 1 - count


async def bodies(store: SqlStore) -> list[dict[str, Any]]:
    """List the bodies of what was told, in order."""
    async with store.read() as reader:
        rows: Any = await reader.execute(select(outbox).order_by(outbox.c.id))
        return [json.loads(row.body) for row in rows]


async def test_a_target_that_is_taken_back_is_over(store: SqlStore) -> None:
    product = await add_product(store, target_price=1000)
    await look(store, product, 0, found("a", 900))
    await change(store, product)
    await look(store, product, 1, found("a", 900))
    [alert] = await listed(store)
    assert alert.closed_reason == "there is nothing to measure it by any more"


async def test_so_much_under_the_median_is_told(store: SqlStore) -> None:
    product = await add_product(store, median_percent=20)
    sales = [(price, NOON - timedelta(days=1)) for price in USUAL]
    await sell_many(store, product, sales)
    await look(store, product, 1, found("a", 801))
    assert await told(store) == []
    await look(store, product, 2, found("a", 800))
    assert [kind for _, kind, _ in await told(store)] == ["under_median"]
    [alert] = await listed(store)
    assert alert.reason == "20 percent under the median of 1,000 yen of 8 sales"


async def test_before_enough_was_sold_no_median_counts(store: SqlStore) -> None:
    product = await add_product(store, median_percent=20)
    await sell_many(store, product, [(1000, NOON - timedelta(days=1))] * 7)
    await look(store, product, 1, found("a", 500))
    assert await told(store) == []


async def test_a_new_lowest_is_told_and_the_next_only_if_it_is_lower(store: SqlStore) -> None:
    product = await add_product(store)
    await sell_many(store, product, [(price, NOON - timedelta(days=1)) for price in USUAL])
    await look(store, product, 1, found("a", 1000))
    assert await told(store) == []
    await look(store, product, 2, found("a", 1000), found("b", 990))
    assert await told(store) == []
    await look(store, product, 3, found("b", 980))
    assert await told(store) == [("opened", "new_lowest", 980)]
    await look(store, product, 4, found("b", 980), found("c", 900))
    assert await told(store) == [
        ("opened", "new_lowest", 980),
        ("closed", "new_lowest", 980),
        ("opened", "new_lowest", 900),
    ]
    await look(store, product, 5, found("d", 950))
    assert (await told(store))[-1] == ("opened", "new_lowest", 900)


async def test_a_lowest_is_over_when_nothing_is_as_cheap_any_more(store: SqlStore) -> None:
    product = await add_product(store)
    await sell_many(store, product, [(price, NOON - timedelta(days=1)) for price in USUAL])
    await look(store, product, 1, found("a", 1000))
    await look(store, product, 2, found("a", 900))
    await look(store, product, 3, found("a", 1000))
    assert [one[0] for one in await told(store)] == ["opened", "closed"]


async def test_junk_is_no_new_lowest(store: SqlStore) -> None:
    product = await add_product(store)
    await sell_many(store, product, [(price, NOON - timedelta(days=1)) for price in USUAL])
    await look(store, product, 1, found("a", 1000))
    await look(store, product, 2, found("a", 1000), found("junk", 10))
    assert await told(store) == []
