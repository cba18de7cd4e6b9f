"""The queue over the API: its counts, its limit, and cleaning up."""

from datetime import timedelta
from typing import Any

import pytest

from mimawari.kernel.job import State
from mimawari.kernel.values import BreakerPolicy
from mimawari.sites.yahoo_realestate import SITE
from mimawari.watches.rentals import tasks
from tests.app.ground import check_error
from tests.rentals.api_ground import START, Rooms


async def test_the_stats_are_written_exactly_as_the_spec_prints_them(rooms: Rooms) -> None:
    await rooms.say_alive()
    response = await rooms.http.get("/api/queue/stats")
    expected = (
        '{"pending":0,"processing":0,"done":0,"failed":0,"permanent_fail":0,"is_running":true}'
    )
    assert response.text == expected


async def test_the_stats_count_each_state_and_notice_that_no_worker_runs(rooms: Rooms) -> None:
    await rooms.walk(limit=5)
    await rooms.end_details(State.DONE, State.FAILED, State.PERMANENT_FAIL)
    await rooms.scene.clock.advance(timedelta(minutes=3))
    assert await rooms.get("/queue/stats") == {
        "pending": 2,
        "processing": 0,
        "done": 1,
        "failed": 1,
        "permanent_fail": 1,
        "is_running": False,
    }


async def test_a_dry_run_counts_what_is_old_and_changes_nothing(rooms: Rooms) -> None:
    await rooms.walk(limit=5)
    await rooms.end_details(State.DONE, State.FAILED, State.PERMANENT_FAIL)
    nothing = {"archived": 0, "failed": 0, "permanent_fail": 0}
    for dry_run in (True, False):
        response = await rooms.post("/queue/cleanup", dry_run=dry_run)
        assert response.json() == {"dry_run": dry_run, **nothing}
    await rooms.scene.clock.advance(timedelta(days=31))
    before = await rooms.get("/queue/stats")
    due = {"archived": 1, "failed": 1, "permanent_fail": 1}
    for body in ({"dry_run": True}, {}):
        response = await rooms.post("/queue/cleanup", **body)
        assert response.json() == {"dry_run": True, **due}
    assert await rooms.get("/queue/stats") == before
    done = await rooms.post("/queue/cleanup", dry_run=False)
    assert done.json() == {"dry_run": False, **due}
    assert await rooms.get("/queue/stats") == {
        **before,
        "done": 0,
        "failed": 0,
        "permanent_fail": 0,
    }
    again = await rooms.post("/queue/cleanup", dry_run=False)
    assert again.json() == {"dry_run": False, **nothing}


@pytest.mark.parametrize("body", [{"dry_run": "false"}, {"dry_run": 0}, {"dry": True}])
async def test_a_clean_up_that_is_not_clear_is_refused(calm: Rooms, body: Any) -> None:
    check_error(await calm.post("/queue/cleanup", **body), 422, "bad_input")


async def test_the_gauge_of_an_idle_limit_is_free(calm: Rooms) -> None:
    assert await calm.get("/queue/limiter") == {
        "details_per_hour": 5,
        "used": 0,
        "is_free": True,
        "next_at": None,
        "reason": None,
        "breaker": {"name": "yahoo_realestate", "state": "closed", "until": None, "reason": None},
    }


async def test_the_gauge_tells_what_is_used_and_when_the_next_one_comes(rooms: Rooms) -> None:
    for url in rooms.urls()[:2]:
        await rooms.send("/scrape", {"url": url})
        await rooms.scene.pass_time(minutes=12)
    gauge = await rooms.get("/queue/limiter")
    assert (gauge["used"], gauge["is_free"]) == (2, True)
    await rooms.send("/scrape", {"url": rooms.urls()[2]})
    gauge = await rooms.get("/queue/limiter")
    assert (gauge["used"], gauge["is_free"], gauge["reason"]) == (3, False, "hourly_limit")
    assert gauge["next_at"] == "2026-01-05T12:36:00Z"
    await rooms.scene.clock.advance(timedelta(hours=1))
    assert (await rooms.get("/queue/limiter"))["used"] == 0


async def test_the_gauge_tells_of_a_hold_and_of_the_breaker(rooms: Rooms) -> None:
    for _ in range(2):
        await rooms.api.store.breaker.failed(SITE.name, BreakerPolicy(), "it turned us away")
    await rooms.api.store.limiter.hold(tasks.DETAIL, START + timedelta(hours=2), "a rest")
    gauge = await rooms.get("/queue/limiter")
    assert (gauge["is_free"], gauge["used"]) == (False, 0)
    assert (gauge["next_at"], gauge["reason"]) == ("2026-01-05T14:00:00Z", "a rest")
    assert gauge["breaker"] == {
        "name": "yahoo_realestate",
        "state": "open",
        "until": "2026-01-05T13:00:00Z",
        "reason": "it turned us away",
    }
