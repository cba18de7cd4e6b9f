"""What an IP has, over the API: liquidity, hours, days, items and crawls."""

from datetime import timedelta
from typing import Any

import pytest

from mimawari.watches.hot import rollups
from mimawari.watches.hot.models import Coverage
from mimawari.watches.hot.rollups import Period
from tests.app.ground import check_error
from tests.hot.api_ground import CAPPED, HOUR, START, Hot, listed, seen


async def test_liquidity_counts_whole_hours_and_leaves_the_current_one_out(hot: Hot) -> None:
    ip_id = await hot.flow("a", inflow=4, outflow=3)
    now = await hot.get(f"/ips/{ip_id}/liquidity", hours=1)
    assert (now["inflow"], now["outflow"], now["hours_observed"]) == (0, 0, 0)
    assert (now["liquidity"], now["score"]) == (None, 0.0)
    await hot.clock.advance(HOUR)
    later = await hot.get(f"/ips/{ip_id}/liquidity", hours=1)
    assert later.pop("score") == pytest.approx(4 / 5 * 1.3862943611)
    assert later.pop("coverage")["is_whole"] is True
    assert later == {
        "ip_id": ip_id,
        "hours": 1,
        "window": {"start_at": "2026-01-05T12:00:00Z", "end_at": "2026-01-05T13:00:00Z"},
        "inflow": 4,
        "outflow": 3,
        "liquidity": 0.75,
        "hours_observed": 1,
        "note": None,
    }


async def test_liquidity_is_unknown_where_nothing_came_in(hot: Hot) -> None:
    ip_id = await hot.flow("a", inflow=0, outflow=2)
    await hot.clock.advance(HOUR)
    found = await hot.get(f"/ips/{ip_id}/liquidity", hours=24)
    assert (found["inflow"], found["outflow"], found["liquidity"]) == (0, 2, None)


async def test_liquidity_says_what_was_capped(hot: Hot) -> None:
    ip_id = await hot.flow("a", inflow=1, outflow=0)
    await hot.crawl(ip_id, listed("x", 3), coverage=CAPPED)
    note = (await hot.get(f"/ips/{ip_id}/liquidity", hours=168))["note"]
    assert "on sale and sold" in note
    assert "may be higher" in note
    only = Coverage(pages_asked=5, pages_read=5, capped_sold=True)
    await hot.work(ip_id, listed("x", 3), coverage=only)
    note = (await hot.get(f"/ips/{ip_id}/liquidity", hours=168))["note"]
    assert "what is sold;" in note
    assert "on sale" not in note


async def test_liquidity_says_that_nothing_is_counted_before_a_first_whole_crawl(hot: Hot) -> None:
    (ip_id,) = await hot.named("a")
    await hot.crawl(ip_id, listed("m", 3), coverage=Coverage(pages_asked=2, pages_read=1))
    assert "nothing is counted" in (await hot.get(f"/ips/{ip_id}/liquidity"))["note"]


@pytest.mark.parametrize("hours", ["2", "0", "-1", "24.0", "024", "all"])
async def test_a_span_that_is_none_is_not_allowed(calm: Hot, hours: str) -> None:
    response = await calm.http.get("/api/v1/ips/1/liquidity", params={"hours": hours})
    assert "1, 24 or 168" in check_error(response, 422, "bad_input")


async def test_hours_without_a_crawl_have_no_row(hot: Hot) -> None:
    ip_id = await hot.flow("a", inflow=2, outflow=1)
    await hot.clock.advance(3 * HOUR)
    await hot.bring(ip_id, inflow=1, outflow=2)
    found = await hot.get(f"/ips/{ip_id}/stats/hourly")
    assert (found["from_at"], found["to_at"]) == ("2026-01-04T16:00:00Z", "2026-01-05T16:00:00Z")
    assert [hour["hour_at"] for hour in found["hours"]] == [
        "2026-01-05T12:00:00Z",
        "2026-01-05T15:00:00Z",
    ]
    assert found["hours"][0] == {
        "hour_at": "2026-01-05T12:00:00Z",
        "inflow": 2,
        "outflow": 1,
        "liquidity": 0.5,
        "samples": 1,
        "average_yen": 1000,
        "median_yen": 1000,
        "least_yen": 1000,
        "most_yen": 1000,
        "stddev_yen": 0,
    }


async def test_money_is_yen_without_decimals(hot: Hot) -> None:
    ip_id = await hot.flow("a", inflow=0, outflow=0)
    await hot.crawl(ip_id, [seen(f"m{p}", sold=True, price_yen=p) for p in (1000, 1001, 1003)])
    (hour,) = (await hot.get(f"/ips/{ip_id}/stats/hourly"))["hours"]
    assert (hour["average_yen"], hour["median_yen"], hour["stddev_yen"]) == (1001, 1001, 1)


@pytest.mark.parametrize("limit", [1, 2, 5, 500])
async def test_hours_come_oldest_first_a_page_at_a_time_each_once(hot: Hot, limit: int) -> None:
    ip_id = await hot.flow("a", inflow=1, outflow=0)
    for _ in range(4):
        await hot.clock.advance(HOUR)
        await hot.bring(ip_id, inflow=1, outflow=0)
    found, params = [], {"from": "2026-01-05T12:00:00Z", "to": "2026-01-06T00:00:00+09:00"}
    while True:
        page = await hot.get(f"/ips/{ip_id}/stats/hourly", limit=limit, **params)
        assert page["to_at"] == "2026-01-05T15:00:00Z"
        found += [hour["hour_at"] for hour in page["hours"]]
        if page["next"] is None:
            break
        params["from"] = page["next"]
    assert found == [f"2026-01-05T{hour}:00:00Z" for hour in (12, 13, 14)]


@pytest.mark.parametrize(
    "params",
    [
        {"from": "yesterday"},
        {"from": "2026-01-05T12:00:00"},
        {"from": "2026-02-29T12:00:00Z"},
        {"from": "1767614400"},
        {"to": "9999-12-31T23:59:59Z"},
        {"to": "0001-01-01T00:00:00+13:00"},
        {"to": "2026-01-05T24:00:00Z"},
        {"since": "2026-01-05T12:00:00Z"},
    ],
)
async def test_a_time_that_is_none_is_not_allowed(calm: Hot, params: Any) -> None:
    response = await calm.http.get("/api/v1/ips/1/stats/hourly", params=params)
    check_error(response, 422, "bad_input")


@pytest.mark.parametrize(
    "at", ["2024-02-29T00:00Z", "2026-01-31T23:59:59.123456+09:00", "2000-02-29T00:00:00.1Z"]
)
async def test_a_time_may_be_written_as_iso_has_it(hot: Hot, at: str) -> None:
    (ip_id,) = await hot.named("a")
    path = f"/ips/{ip_id}/stats/hourly"
    assert (await hot.get(path, **{"from": at, "to": "2026-01-01T00:00:00Z"}))["hours"] == []


async def test_sums_of_days_weeks_and_months_come_newest_first_in_pages(hot: Hot) -> None:
    ip_id = await hot.flow("a", inflow=2, outflow=1)
    zone = hot.api.system.settings.zone
    days = [(START + timedelta(days=n)).date() for n in range(3)]
    for _ in days:
        await hot.bring(ip_id, inflow=1, outflow=1)
        await hot.clock.advance(timedelta(days=1))
    async with hot.api.store.edit() as tx:
        for day in days:
            for period in Period:
                span = rollups.span_of(period, day, zone)
                await rollups.fold(tx, span, [ip_id])
    first = await hot.get(f"/ips/{ip_id}/stats/daily", limit=2)
    assert (first["zone"], first["ip_id"]) == ("Asia/Tokyo", ip_id)
    assert [day["start_at"] for day in first["periods"]] == [
        "2026-01-06T15:00:00Z",
        "2026-01-05T15:00:00Z",
    ]
    rest = await hot.get(f"/ips/{ip_id}/stats/daily", limit=2, before=first["next"])
    assert rest["next"] is None
    (day,) = rest["periods"]
    assert (day["start_at"], day["inflow"], day["outflow"]) == ("2026-01-04T15:00:00Z", 3, 2)
    assert day["hours_observed"] == 1
    for sums in ("weekly", "monthly"):
        (period,) = (await hot.get(f"/ips/{ip_id}/stats/{sums}"))["periods"]
        assert (period["inflow"], period["outflow"], period["hours_observed"]) == (5, 4, 3)
    response = await hot.http.get(f"/api/v1/ips/{ip_id}/stats/yearly")
    check_error(response, 422, "bad_input")


@pytest.mark.parametrize("limit", [1, 3, 7, 500])
async def test_items_come_newest_first_a_page_at_a_time_each_once(hot: Hot, limit: int) -> None:
    (ip_id,) = await hot.named("a")
    await hot.crawl(ip_id, listed("m", 4))
    await hot.clock.advance(HOUR)
    await hot.crawl(ip_id, listed("n", 3, sold=True))
    found: list[str] = []
    params: dict[str, Any] = {"limit": limit}
    while True:
        page = await hot.get(f"/ips/{ip_id}/items", **params)
        assert 0 < len(page["items"]) <= limit
        found += [item["source_id"] for item in page["items"]]
        if page["next"] is None:
            break
        params["below"] = page["next"]
    assert found == ["n0002", "n0001", "n0000", "m0003", "m0002", "m0001", "m0000"]
    sold = await hot.get(f"/ips/{ip_id}/items", status="sold")
    assert [item["source_id"] for item in sold["items"]] == found[:3]
    on_sale = await hot.get(f"/ips/{ip_id}/items", status="available")
    assert [item["source_id"] for item in on_sale["items"]] == found[3:]


@pytest.mark.parametrize(
    "params",
    [
        {"below": "x"},
        {"below": "1.6"},
        {"below": "99999999999999999."},
        {"below": ""},
        {"status": "lost"},
    ],
)
async def test_a_page_of_items_that_makes_no_sense_is_not_allowed(calm: Hot, params: Any) -> None:
    response = await calm.http.get("/api/v1/ips/1/items", params=params)
    check_error(response, 422, "bad_input")


@pytest.mark.parametrize("below", ["0.", "9999999999999999.ff", "1.00", "1767614400000000.6d"])
async def test_a_place_that_is_nowhere_in_the_list_is_still_a_place(hot: Hot, below: str) -> None:
    (ip_id,) = await hot.named("a")
    assert (await hot.get(f"/ips/{ip_id}/items", below=below))["items"] == []


async def test_an_item_tells_its_life_oldest_first(hot: Hot) -> None:
    ip_id = await hot.flow("a", inflow=0, outflow=0)
    for state in ({}, {"price_yen": 800}, {"sold": True, "price_yen": 800}, {"price_yen": 900}):
        await hot.crawl(ip_id, [seen("m1", title="ぬい", **state)])  # type: ignore[arg-type]
        await hot.clock.advance(HOUR)
    found = await hot.get(f"/ips/{ip_id}/items/m1")
    assert found["is_cut"] is False
    assert (found["item"]["title"], found["item"]["price_yen"]) == ("ぬい", 900)
    assert found["item"]["sold_at"] == "2026-01-05T14:00:00Z"
    assert [(c["kind"], c["price_before_yen"], c["price_yen"]) for c in found["changes"]] == [
        ("new_listing", None, 1000),
        ("price_change", 1000, 800),
        ("sold", 800, 800),
        ("relisted", 800, 900),
    ]
    check_error(await hot.http.get(f"/api/v1/ips/{ip_id}/items/m2"), 404, "not_found")
    check_error(await hot.http.get(f"/api/v1/ips/{ip_id}/items/m%20"), 422, "bad_input")


async def test_crawls_are_listed_newest_first_with_what_they_saw(hot: Hot) -> None:
    (ip_id,) = await hot.named("a")
    await hot.crawl(ip_id, listed("m", 2))
    await hot.clock.advance(HOUR)
    errors = ("sold page 3: slow",)
    part = Coverage(pages_asked=10, pages_read=9, capped_sold=True, page_errors=errors)
    await hot.crawl(ip_id, listed("n", 3), coverage=part)
    last, first = (await hot.get(f"/ips/{ip_id}/crawls"))["crawls"]
    assert (last["items"], last["inflow"], last["error"]) == (3, 3, "")
    assert last["coverage"] == {
        "pages_asked": 10,
        "pages_read": 9,
        "capped_on_sale": False,
        "capped_sold": True,
        "is_whole": False,
        "page_errors": list(errors),
    }
    assert (first["inflow"], first["crawled_at"]) == (0, "2026-01-05T12:00:00Z")
    assert len((await hot.get(f"/ips/{ip_id}/crawls", limit=1))["crawls"]) == 1
