"""What crawls have found and taken out, over the API."""

from typing import Any

import pytest

from mimawari.watches.prices import sync
from tests.app.ground import check_error
from tests.prices.api_ground import SOLD_YEN, Shop
from tests.prices.crawling import NOON, apply, change, found

OUTLIER = "10 yen is less than"


@pytest.fixture(scope="module")
async def sold(calm: Shop) -> Shop:
    """One with a product of which some were sold, and some are on sale."""
    await calm.sold()
    return calm


async def names(shop: Shop, **params: Any) -> list[str]:
    """List the results that are asked for, by the ids of their items."""
    shown = (await shop.get("/crawl/results/1", **params))["results"]
    return [one["external_id"] for one in shown]


async def test_a_result_has_every_column_and_how_it_was_seen(sold: Shop) -> None:
    [one] = (await sold.get("/crawl/results/1", seller="shop"))["results"]
    assert one == {
        "id": 10,
        "product_id": 1,
        "external_id": "a",
        "name": "星くず郵便 =1+1",
        "price": 800,
        "selling_url": "https://jp.mercari.com/item/a",
        "image_url": "",
        "selling_status": 1,
        "seller_type": 2,
        "seller_id": "7",
        "sold_out_at": None,
        "created_at": "2026-06-01T03:00:00Z",
        "updated_at": "2026-06-01T03:00:00Z",
        "listed_at": "2026-06-01T02:00:00Z",
        "last_seen_at": "2026-06-01T03:00:00Z",
        "outlier": None,
    }
    [first] = [
        one
        for one in (await sold.get("/crawl/results/1", status="sold"))["results"]
        if one["external_id"] == "s1"
    ]
    assert (first["selling_status"], first["sold_out_at"]) == (2, "2026-06-01T04:00:00Z")


async def test_a_day_without_a_time_stays_a_day(shop: Shop) -> None:
    product = await shop.sold()
    await apply(shop.api.store, product, 1, found("late", sold=True))
    async with shop.api.store.edit() as tx:
        row = await sync.find_result(tx, 12)
        await sync.date_roughly(tx, row, NOON, NOON)
    [late] = (await shop.get("/crawl/results/1", search="late"))["results"]
    assert late["sold_out_at"] == "2026-06-01"


async def test_why_a_result_is_left_out_of_the_figures_is_said(sold: Shop) -> None:
    out = (await sold.get("/crawl/results/1", outlier="true"))["results"]
    reasons = {one["external_id"]: one["outlier"] for one in out}
    assert sorted(reasons) == ["junk", "s8"]
    assert reasons["junk"].startswith("10 yen is less than ")
    assert reasons["s8"].startswith("9,000,000 yen is more than ")
    assert "robust deviations around the median of 1,000 yen of 9 sales" in reasons["s8"]
    others = (await sold.get("/crawl/results/1", outlier="false"))["results"]
    assert {one["outlier"] for one in others} == {None}
    assert len(others) == 9


async def test_results_are_chosen_by_what_they_are(sold: Shop) -> None:
    assert await names(sold, status="on_sale") == ["junk", "a"]
    assert len(await names(sold, status="sold")) == len(SOLD_YEN)
    assert await names(sold, seller="shop") == ["a"]
    assert len(await names(sold, seller="user")) == 10
    assert await names(sold, min_price=1051) == ["s8", "s7"]
    assert await names(sold, max_price=900) == ["junk", "a", "s0"]
    assert await names(sold, min_price=950, max_price=950) == ["s1"]
    assert await names(sold, search="JUNK") == ["junk"]
    assert await names(sold, search="%") == []
    assert await names(sold, status="sold", max_price=900) == ["s0"]


async def test_results_come_in_the_order_asked_for(sold: Shop) -> None:
    newest = await names(sold)
    assert newest == ["junk", "a", *(f"s{number}" for number in range(8, -1, -1))]
    assert await names(sold, order="asc") == newest[::-1]
    cheapest = await names(sold, sort="price", order="asc", limit=3)
    assert cheapest == ["junk", "a", "s0"]
    assert (await names(sold, sort="price"))[0] == "s8"
    assert (await names(sold, sort="updated"))[:2] == ["s8", "s7"]


@pytest.mark.parametrize("limit", [1, 2, 4, 11, 500])
@pytest.mark.parametrize("sort", ["newest", "price", "updated"])
@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_results_come_a_page_at_a_time_each_once(
    sold: Shop, limit: int, sort: str, order: str
) -> None:
    asked = {"sort": sort, "order": order}
    found_all = await sold.pages("/crawl/results/1", "results", "after", limit=limit, **asked)
    whole = await names(sold, limit=500, **asked)
    assert [one["external_id"] for one in found_all] == whole
    assert len(set(whole)) == 11


async def test_results_are_given_as_a_file_in_which_nothing_is_a_formula(sold: Shop) -> None:
    rows = await sold.rows("/crawl/results/1", sort="price", order="asc")
    assert [row["price"] for row in rows][:3] == ["10", "800", "900"]
    assert rows[0]["outlier"].startswith(OUTLIER)
    assert rows[1]["name"] == "星くず郵便 =1+1"
    assert rows[2]["sold_out_at"] == "2026-06-01T03:00:00Z"
    assert len(await sold.rows("/crawl/results/1", limit=4)) == 4


async def test_of_a_product_without_sales_nothing_is_left_out(shop: Shop) -> None:
    await shop.add("x")
    assert await names(shop, outlier="true") == []
    assert await shop.rows("/crawl/results/1") == []


@pytest.mark.parametrize(
    "query",
    [
        "status=trading",
        "seller=1",
        "min_price=-1",
        "min_price=1e3",
        "max_price=1000000000",
        "outlier=yes",
        "sort=name",
        "order=up",
        "after=1",
        "after=1~",
        "after=x~1",
        "limit=0",
        "format=xml",
        "state=sold",
        f"search={'x' * 101}",
    ],
)
async def test_words_that_nobody_knows_are_refused(sold: Shop, query: str) -> None:
    response = await sold.http.get(f"/api/crawl/results/1?{query}")
    check_error(response, 422, "bad_input")


@pytest.mark.parametrize("sort", ["newest", "price", "updated"])
async def test_a_place_beyond_everything_is_no_error(sold: Shop, sort: str) -> None:
    after = f"{'9' * 16}~{'9' * 10}"
    whole = await names(sold, sort=sort)
    assert await names(sold, sort=sort, after=after) == whole
    assert await names(sold, sort=sort, after=after, order="asc") == []


async def test_what_was_taken_out_is_told_with_its_reason_and_time(shop: Shop) -> None:
    product = await shop.sold()
    await change(shop.api.store, product, max_price=1000)
    await apply(shop.api.store, product, 11)
    removed = (await shop.get("/crawl/removed/1"))["removed"]
    assert [one["external_id"] for one in removed] == ["s8", "s7", "s6"]
    assert removed[1] == {
        "id": 8,
        "product_id": 1,
        "external_id": "s7",
        "name": "星くず郵便 s7",
        "price": 1101,
        "selling_url": "https://jp.mercari.com/item/s7",
        "image_url": "",
        "selling_status": 2,
        "seller_type": 1,
        "seller_id": "7",
        "sold_out_at": "2026-06-01T10:00:00Z",
        "created_at": "2026-06-01T03:00:00Z",
        "updated_at": "2026-06-01T10:00:00Z",
        "kind": "mismatch",
        "reason": "1,101 yen is more than 1,000",
        "removed_at": "2026-06-01T14:00:00Z",
        "last_seen_at": "2026-06-01T10:00:00Z",
    }
    paged = await shop.pages("/crawl/removed/1", "removed", "before", limit=2)
    assert paged == removed
    rows = await shop.rows("/crawl/removed/1")
    assert [(row["external_id"], row["kind"]) for row in rows] == [
        (one["external_id"], "mismatch") for one in removed
    ]
    assert len(await names(shop)) == 8


@pytest.mark.parametrize("query", ["before=0", "before=x", "after=1", "limit=501"])
async def test_words_that_nobody_knows_of_what_was_taken_out_are_refused(
    sold: Shop, query: str
) -> None:
    check_error(await sold.http.get(f"/api/crawl/removed/1?{query}"), 422, "bad_input")
