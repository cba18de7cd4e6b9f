"""What is told of prices: once, not again for a trifle, and when it is over."""

import json
from datetime import timedelta
from typing import Any

from sqlalchemy import select

from mimawari.settings import DEFAULTS
from mimawari.store.sql import SqlStore
from mimawari.store.sql.tables import outbox
from mimawari.watches.prices import alerting, products
from mimawari.watches.prices.models import Found, Product
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
    await look(store, product, 2, found("a", 990), found("b", 950))
    assert await told(store) == [("opened", "under_target", 1000)]
    await look(store, product, 3, found("a", 1200), found("b", 1300))
    assert await told(store) == [
        ("opened", "under_target", 1000),
        ("closed", "under_target", 1000),
    ]
    [alert] = await listed(store)
    assert alert.closed_reason == "the cheapest on sale is 1,200 yen now"
    assert alert.closed_at == NOON + 3 * HOUR


async def test_a_price_that_moves_around_the_target_is_not_told_again(store: SqlStore) -> None:
    product = await add_product(store, target_price=1000)
    for hours, price in enumerate((1000, 1015, 999, 1020, 990)):
        await look(store, product, hours, found("a", price))
    assert len(await told(store)) == 1


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
