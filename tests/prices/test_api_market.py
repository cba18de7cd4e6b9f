"""What a product is worth, and what is told of it, over the API."""

from datetime import timedelta
from typing import Any

import pytest

from mimawari.settings import DEFAULTS
from mimawari.watches.prices import alerts, queries
from tests.app.ground import check_error
from tests.prices.api_ground import Shop
from tests.prices.crawling import HOUR, NOON, apply, change, found
from tests.prices.test_market import sell

REASON = "3.5 robust deviations around the median of 1,000 yen of 9 sales"
EMPTY = {
    "count": 0,
    "median_yen": None,
    "p25_yen": None,
    "p75_yen": None,
    "min_yen": None,
    "max_yen": None,
}
JUNK: Any = {
    "result_id": 11,
    "external_id": "junk",
    "name": "星くず郵便 junk",
    "price": 10,
    "selling_url": "https://jp.mercari.com/item/junk",
    "image_url": "",
    "percent_under_median": 99.0,
    "last_seen_at": "2026-06-01T03:00:00Z",
    "outlier": f"10 yen is less than 592: {REASON}",
}


async def test_a_market_tells_days_bounds_the_cheapest_and_days_to_sell(shop: Shop) -> None:
    await shop.sold()
    assert await shop.get("/products/1/market") == {
        "product_id": 1,
        "zone": "Asia/Tokyo",
        "since_on": "2026-05-03",
        "until_on": "2026-06-01",
        "days": [
            {
                "on": "2026-06-01",
                "count": 8,
                "median_yen": 1000.0,
                "p25_yen": 987.5,
                "p75_yen": 1012.5,
                "min_yen": 900,
                "max_yen": 1101,
                "outliers": 1,
            }
        ],
        "sold": {
            "count": 8,
            "median_yen": 1000.0,
            "p25_yen": 987.5,
            "p75_yen": 1012.5,
            "min_yen": 900,
            "max_yen": 1101,
        },
        "bounds": {"least_yen": 592, "most_yen": 1690, "reason": REASON},
        "outliers": 1,
        "on_sale": 2,
        "cheapest": {
            "result_id": 10,
            "external_id": "a",
            "name": "星くず郵便 =1+1",
            "price": 800,
            "selling_url": "https://jp.mercari.com/item/a",
            "image_url": "",
            "percent_under_median": 20.0,
            "last_seen_at": "2026-06-01T03:00:00Z",
            "outlier": None,
        },
        "unseen": 0,
        "doubtful": JUNK,
        "days_to_sell": {
            "count": 8,
            "median_days": 0.12,
            "p25_days": 0.04,
            "p75_days": 0.21,
            "steps": [
                {"within_hours": 1, "count": 1},
                {"within_hours": 6, "count": 5},
                {"within_hours": 24, "count": 2},
                {"within_hours": 72, "count": 0},
                {"within_hours": 168, "count": 0},
                {"within_hours": 336, "count": 0},
                {"within_hours": 720, "count": 0},
                {"within_hours": None, "count": 0},
            ],
        },
    }


async def test_a_market_looks_back_as_far_as_asked(shop: Shop) -> None:
    await shop.sold()
    await shop.clock.advance(timedelta(days=40))
    assert (await shop.get("/products/1/market"))["days"] == []
    far = await shop.get("/products/1/market", days=365)
    assert [day["on"] for day in far["days"]] == ["2026-06-01"]
    assert (far["since_on"], far["until_on"]) == ("2025-07-12", "2026-07-11")
    assert (await shop.get("/products/1/market", days=1))["since_on"] == "2026-07-11"


async def test_a_day_of_which_nothing_counts_says_so(shop: Shop) -> None:
    await shop.sold()
    await sell_later(shop, "dear", 5_000_000)
    rows = await shop.rows("/products/1/market")
    assert list(rows[0]) == ["on", "count", "median_yen", "p25_yen", "p75_yen", "min_yen",
                             "max_yen", "outliers"]  # fmt: skip
    assert [(row["on"], row["count"], row["median_yen"], row["outliers"]) for row in rows] == [
        ("2026-06-01", "8", "1000.0", "1"),
        ("2026-06-02", "0", "", "1"),
    ]
    shown = (await shop.get("/products/1/market"))["days"][1]
    assert shown == {"on": "2026-06-02", **EMPTY, "outliers": 1}


async def sell_later(shop: Shop, external_id: str, price: int) -> None:
    """Have one more item sold, a day later."""
    store = shop.api.store
    await shop.clock.advance(timedelta(days=1))
    async with store.read() as reader:
        product = await queries.find_known(reader, 1)
    await apply(store, product, 20, found(external_id, price, sold=True))
    await sell(store, external_id, price, NOON + timedelta(days=1))


async def test_of_nothing_nothing_is_told(shop: Shop) -> None:
    await shop.add("x")
    shown = await shop.get("/products/1/market")
    assert (shown["days"], shown["sold"], shown["cheapest"]) == ([], None, None)
    assert (shown["on_sale"], shown["outliers"], shown["days_to_sell"]) == (0, 0, None)
    assert shown["bounds"] == {
        "least_yen": None,
        "most_yen": None,
        "reason": "all count, as 0 of 8 sales cannot tell what is usual",
    }
    assert await shop.rows("/products/1/market") == []


@pytest.mark.parametrize("query", ["days=0", "days=366", "days=x", "day=5", "format=pdf"])
async def test_words_that_nobody_knows_are_refused(calm: Shop, query: str) -> None:
    check_error(await calm.http.get(f"/api/products/1/market?{query}"), 422, "bad_input")


async def alert(shop: Shop, hours: float, **setting: Any) -> None:
    """Change what is told, and look at what is on sale."""
    store = shop.api.store
    async with store.read() as reader:
        product = await queries.find_known(reader, 1)
    await change(store, product, **setting)
    async with store.edit() as tx:
        known = await queries.find_known(tx, 1)
        await alerts.sync_alerts(tx, known, DEFAULTS, NOON + hours * HOUR)


async def test_alerts_are_listed_newest_first_and_open_ones_with_their_product(
    shop: Shop,
) -> None:
    await shop.sold()
    await alert(shop, 9, target_price=850)
    await alert(shop, 10, target_price=700, median_percent=20)
    newest, junk, oldest = (await shop.get("/prices/alerts"))["alerts"]
    assert newest == {
        "id": 3,
        "product_id": 1,
        "kind": "under_median",
        "external_id": "a",
        "name": "星くず郵便 =1+1",
        "price": 800,
        "threshold": 800,
        "reason": "20 percent under the median of 1,000 yen of 8 sales",
        "doubt": None,
        "is_open": True,
        "last_seen_at": "2026-06-01T03:00:00Z",
        "opened_at": "2026-06-01T13:00:00Z",
        "closed_at": None,
        "closed_reason": None,
    }
    assert (oldest["kind"], oldest["is_open"]) == ("under_target", False)
    assert oldest["closed_reason"] == "it costs 800 yen now"
    assert (junk["price"], junk["doubt"]) == (10, f"10 yen is less than 592: {REASON}")
    assert (await shop.get("/products/1"))["alerts"] == [newest, junk]
    assert (await shop.get("/prices/alerts", open="true"))["alerts"] == [newest, junk]
    assert (await shop.get("/prices/alerts", open="false"))["alerts"] == [oldest]
    assert (await shop.get("/prices/alerts", product_id=1))["alerts"] == [newest, junk, oldest]
    assert (await shop.get("/prices/alerts", product_id=2))["alerts"] == []
    paged = await shop.pages("/prices/alerts", "alerts", "before", limit=1)
    assert paged == [newest, junk, oldest]
    rows = await shop.rows("/prices/alerts", open="true")
    assert [(row["id"], row["is_open"], row["closed_at"]) for row in rows] == [
        ("3", "true", ""),
        ("2", "true", ""),
    ]
    await shop.clock.advance(timedelta(days=1))
    # Nobody has seen it since, so nobody is told that it is there.
    assert (await shop.get("/prices/alerts", open="true"))["alerts"] == []
    assert not any(one["is_open"] for one in (await shop.get("/prices/alerts"))["alerts"])


@pytest.mark.parametrize("query", ["open=1", "is_open=true", "product_id=0", "before=x", "limit=0"])
async def test_words_that_nobody_knows_of_alerts_are_refused(calm: Shop, query: str) -> None:
    check_error(await calm.http.get(f"/api/prices/alerts?{query}"), 422, "bad_input")
