"""Over all IPs, over the API: the leaderboard, alerts, and how the watch stands."""

from typing import Any

import pytest

from mimawari.kernel.values import BreakerPolicy
from mimawari.watches.hot import tasks
from tests.app.ground import check_error
from tests.hot.api_ground import CAPPED, HOUR, Hot, listed


async def ranked(hot: Hot, **params: Any) -> list[str]:
    return [entry["name"] for entry in (await hot.get("/leaderboard", **params))["entries"]]


async def test_each_leaderboard_ranks_by_its_own_figure(hot: Hot) -> None:
    await hot.flow("much in", inflow=9, outflow=1)
    await hot.flow("much out", inflow=7, outflow=8)
    await hot.flow("fast", inflow=1, outflow=6)
    assert await ranked(hot, hours=1) == []
    await hot.clock.advance(HOUR)
    assert await ranked(hot, type="hot", hours=1) == ["fast", "much out", "much in"]
    assert await ranked(hot, type="inflow", hours=24) == ["much in", "much out", "fast"]
    assert await ranked(hot, type="outflow", hours=168) == ["much out", "fast", "much in"]
    assert await ranked(hot, type="outflow", hours=168, limit=1) == ["much out"]


async def test_a_leaderboard_tells_its_window_and_every_figure(hot: Hot) -> None:
    ip_id = await hot.flow("a", inflow=2, outflow=1)
    await hot.crawl(ip_id, listed("x", 0), coverage=CAPPED)
    await hot.clock.advance(HOUR * 1.5)
    found = await hot.get("/leaderboard", hours=1)
    assert found["window"] == {"start_at": "2026-01-05T12:00:00Z", "end_at": "2026-01-05T13:00:00Z"}
    assert found["generated_at"] == "2026-01-05T13:30:00Z"
    assert (found["type"], found["hours"]) == ("hot", 1)
    (entry,) = found["entries"]
    assert entry["coverage"]["capped_sold"] is True
    assert "may be higher" in entry["note"]
    assert (entry["rank"], entry["ip_id"], entry["name"]) == (1, ip_id, "a")
    assert (entry["inflow"], entry["outflow"], entry["liquidity"]) == (2, 1, 0.5)
    assert entry["score"] == pytest.approx(2 / 3 * 0.6931471806)


async def test_a_rank_stands_beside_the_one_of_the_window_before(hot: Hot) -> None:
    first = await hot.flow("falls", inflow=0, outflow=5)
    second = await hot.flow("rises", inflow=0, outflow=3)
    await hot.clock.advance(HOUR)
    await hot.bring(first, inflow=0, outflow=1)
    await hot.bring(second, inflow=0, outflow=4)
    await hot.flow("new", inflow=0, outflow=2)
    await hot.clock.advance(HOUR)
    entries = (await hot.get("/leaderboard", type="outflow", hours=1))["entries"]
    assert [(e["name"], e["rank"], e["previous_rank"]) for e in entries] == [
        ("rises", 1, 2),
        ("new", 2, None),
        ("falls", 3, 1),
    ]


async def test_an_ip_that_is_not_active_is_not_ranked(hot: Hot) -> None:
    ip_id = await hot.flow("a", inflow=1, outflow=1)
    await hot.clock.advance(HOUR)
    assert await ranked(hot) == ["a"]
    await hot.http.patch(f"/api/v1/ips/{ip_id}", json={"name": "b"})
    assert await ranked(hot) == ["b"]
    await hot.http.patch(f"/api/v1/ips/{ip_id}", json={"active": False})
    assert await ranked(hot) == []


@pytest.mark.parametrize(
    "params", [{"type": "cold"}, {"hours": "12"}, {"limit": "101"}, {"limit": "0"}, {"page": "2"}]
)
async def test_a_leaderboard_that_makes_no_sense_is_not_allowed(calm: Hot, params: Any) -> None:
    check_error(await calm.http.get("/api/v1/leaderboard", params=params), 422, "bad_input")


async def alarm(hot: Hot, *names: str) -> list[int]:
    """Have IPs watched that sell so much at once that it is worth an alert."""
    ids = await hot.named(*names)
    for ip_id in ids:
        await hot.work(ip_id)
        await hot.work(ip_id, listed(f"s{ip_id}x", 50, sold=True))
    return ids


async def test_alerts_come_newest_first_a_page_at_a_time_each_once(hot: Hot) -> None:
    ids = await alarm(hot, *"abc")
    found: list[str] = []
    params: dict[str, Any] = {"limit": 2}
    while True:
        page = await hot.get("/alerts", **params)
        found += [alert["name"] for alert in page["alerts"]]
        if page["next"] is None:
            break
        params["before"] = page["next"]
    assert found == ["c", "b", "a"]
    (only,) = (await hot.get("/alerts", ip_id=ids[1]))["alerts"]
    assert only.pop("id") > 0
    assert only == {
        "ip_id": ids[1],
        "name": "b",
        "kind": "high_outflow",
        "level": "warning",
        "message": "50 items sold in an hour (50 or more is high)",
        "value": 50.0,
        "threshold": 50.0,
        "samples": 50,
        "is_open": True,
        "opened_at": "2026-01-05T12:00:00Z",
        "closed_at": None,
        "acknowledged_at": None,
    }


async def test_an_alert_that_is_over_is_found_among_the_closed(hot: Hot) -> None:
    (ip_id,) = await alarm(hot, "a")
    await hot.clock.advance(HOUR)
    await hot.work(ip_id)
    assert (await hot.get("/alerts"))["alerts"] == []
    for state in ("closed", "all"):
        (alert,) = (await hot.get("/alerts", state=state))["alerts"]
        assert (alert["is_open"], alert["closed_at"]) == (False, "2026-01-05T13:00:00Z")


async def test_the_first_acknowledgement_of_an_alert_counts(hot: Hot) -> None:
    await alarm(hot, "a")
    (alert,) = (await hot.get("/alerts"))["alerts"]
    for _ in range(2):
        response = await hot.http.post(f"/api/v1/alerts/{alert['id']}/ack")
        assert response.status_code == 200
        assert response.json() == {**alert, "acknowledged_at": "2026-01-05T12:00:00Z"}
        await hot.clock.advance(HOUR)
    check_error(await hot.http.post("/api/v1/alerts/99/ack"), 404, "not_found")
    check_error(await hot.http.post("/api/v1/alerts/x/ack"), 422, "bad_input")


@pytest.mark.parametrize("params", [{"state": "old"}, {"ip_id": "0"}, {"before": "x"}])
async def test_alerts_that_make_no_sense_are_not_allowed(calm: Hot, params: Any) -> None:
    check_error(await calm.http.get("/api/v1/alerts", params=params), 422, "bad_input")


async def test_the_status_of_an_empty_watch_is_all_zeros(calm: Hot) -> None:
    found = await calm.get("/system/status")
    jobs = found.pop("jobs")
    assert [job["kind"] for job in jobs] == sorted(task.kind for task in hot_tasks())
    assert {job[name] for job in jobs for name in ("due", "pending", "processing", "failed")} == {0}
    assert found == {
        "ips": 0,
        "active": 0,
        "failing": 0,
        "items": 0,
        "open_alerts": 0,
        "next_at": None,
        "breaker": {"name": "mercari", "state": "closed", "until": None, "reason": None},
        "limit": {"name": "hot.crawl", "state": "free", "until": None, "reason": None},
        "zone": "Asia/Tokyo",
        "pages_on_sale": 5,
        "pages_sold": 5,
    }


def hot_tasks() -> list[Any]:
    return [tasks.crawl, tasks.apply, tasks.rollup, tasks.fold, tasks.forget]


async def test_the_status_tells_what_is_due_and_what_stands_in_the_way(hot: Hot) -> None:
    ids = await alarm(hot, "a", "b")
    for ip_id in ids:
        await hot.http.post(f"/api/v1/ips/{ip_id}/trigger")
    await hot.crawl(ids[0], error="slow")
    store, watches = hot.api.store, hot.api.system.watches
    await store.breaker.failed("mercari", BreakerPolicy(failures=1, cool_for=HOUR), "403 again")
    await store.limiter.acquire(watches.limit("hot.crawl"), "test")
    found = await hot.get("/system/status")
    assert (found["ips"], found["active"], found["failing"]) == (2, 2, 1)
    assert (found["items"], found["open_alerts"]) == (100, 2)
    (crawls,) = [job for job in found["jobs"] if job["kind"] == "hot.crawl"]
    assert (crawls["due"], crawls["pending"], crawls["processing"]) == (2, 2, 0)
    assert found["next_at"] is not None
    assert found["breaker"] == {
        "name": "mercari",
        "state": "open",
        "until": "2026-01-05T13:00:00Z",
        "reason": "403 again",
    }
    assert found["limit"]["state"] == "waiting"
    assert found["limit"]["until"] == "2026-01-05T12:00:03Z"
