"""Runners report by an API of their own: on its own port, with its own key, ever onwards."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mimawari.app.http.api import make_internal_app
from tests.app.ground import KEY as PUBLIC_KEY
from tests.app.ground import check_error
from tests.conftest import Databases
from tests.sim.ground import serve
from tests.streams.api_ground import MONITORS, Desk, open_desk

KEY = "the-inner-key"
STATISTICS = {"total_segments_analyzed": 150, "blackout_events": 0, "silence_events": 1}
REPORT = {
    "status": "monitoring",
    "health": {"video": "ok", "audio": "silence"},
    "statistics": STATISTICS,
}
BAD: dict[str, Any] = {
    "another status": {"status": "live"},
    "a status that is no word": {"status": 5},
    "an unknown field": {"state": "monitoring"},
    "health in one word": {"health": "ok"},
    "health that is no word": {"health": {"video": "<b>"}},
    "health of something else": {"health": {"picture": "ok"}},
    "half the statistics": {"statistics": {"total_segments_analyzed": 1}},
    "less than nothing": {"statistics": {**STATISTICS, "silence_events": -1}},
    "statistics in words": {"statistics": {**STATISTICS, "silence_events": "1"}},
    "more than can be counted": {"statistics": {**STATISTICS, "silence_events": 2**31}},
    "no object": [],
}


def path_of(monitor_id: str) -> str:
    """Write where a monitor is reported."""
    return f"/internal/v1/monitors/{monitor_id}/status"


@dataclass(frozen=True, slots=True)
class Inside:
    """The internal API, and the desk in front of it."""

    http: httpx2.AsyncClient
    desk: Desk

    async def put(self, monitor_id: str, body: Any) -> httpx2.Response:
        """Report."""
        headers = {"X-Internal-API-Key": KEY}
        return await self.http.put(path_of(monitor_id), json=body, headers=headers)

    async def report(self, monitor_id: str, **body: Any) -> Any:
        """Report and insist that it is taken."""
        response = await self.put(monitor_id, body)
        assert response.status_code == 200, response.text
        return response.json()


@pytest.fixture
async def inside(databases: Databases, tmp_path: Path) -> AsyncIterator[Inside]:
    async with open_desk(await databases.ready(), tmp_path) as desk:
        app = make_internal_app(desk.api.system, KEY.encode())
        async with serve(app) as http:
            yield Inside(http, desk)


async def test_a_report_is_seen_by_whoever_asks(inside: Inside) -> None:
    monitor_id = await inside.desk.add(1)
    await inside.desk.clock.advance(timedelta(minutes=1))
    answer = await inside.report(monitor_id, **REPORT)
    assert answer == {"monitor_id": monitor_id, "status": "monitoring"}
    shown = await inside.desk.get(f"/{monitor_id}")
    assert shown["status"] == "monitoring"
    health = {"video": "ok", "audio": "silence", "last_check_at": "2026-06-01T12:01:00+09:00"}
    assert shown["health"] == health
    assert shown["statistics"] == STATISTICS


async def test_statistics_are_what_was_counted_in_all_and_may_be_told_again(inside: Inside) -> None:
    monitor_id = await inside.desk.add(1)
    for _ in range(2):
        await inside.report(monitor_id, statistics=STATISTICS)
    assert (await inside.desk.get(f"/{monitor_id}"))["statistics"] == STATISTICS
    more = {**STATISTICS, "total_segments_analyzed": 151}
    await inside.report(monitor_id, statistics=more)
    assert (await inside.desk.get(f"/{monitor_id}"))["statistics"] == more


async def test_what_a_report_does_not_name_stays(inside: Inside) -> None:
    monitor_id = await inside.desk.add(1)
    await inside.report(monitor_id, **REPORT)
    await inside.report(monitor_id, health={"video": "blackout"})
    await inside.report(monitor_id)
    shown = await inside.desk.get(f"/{monitor_id}")
    assert (shown["health"]["video"], shown["health"]["audio"]) == ("blackout", "silence")
    assert (shown["status"], shown["statistics"]) == ("monitoring", STATISTICS)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("initializing", "initializing"),
        ("initializing", "waiting"),
        ("initializing", "monitoring"),
        ("waiting", "monitoring"),
        ("monitoring", "monitoring"),
        ("initializing", "error"),
        ("waiting", "completed"),
        ("monitoring", "completed"),
        ("monitoring", "stopped"),
    ],
)
async def test_a_monitor_goes_on_from_status_to_status(
    inside: Inside, before: str, after: str
) -> None:
    monitor_id = await inside.desk.add(1)
    await inside.report(monitor_id, status=before)
    assert (await inside.report(monitor_id, status=after))["status"] == after
    assert (await inside.desk.get(f"/{monitor_id}"))["status"] == after


@pytest.mark.parametrize(
    ("before", "after"),
    [("waiting", "initializing"), ("monitoring", "waiting"), ("monitoring", "initializing")],
)
async def test_a_monitor_does_not_go_back(inside: Inside, before: str, after: str) -> None:
    monitor_id = await inside.desk.add(1)
    await inside.report(monitor_id, status=before)
    late = {"status": after, "health": {"video": "late"}}
    check_error(await inside.put(monitor_id, late), 409, "INVALID_TRANSITION")
    shown = await inside.desk.get(f"/{monitor_id}")
    assert (shown["status"], shown["health"]["video"]) == (before, "unknown")


@pytest.mark.parametrize("status", ["completed", "stopped", "error"])
async def test_of_a_monitor_that_is_over_nothing_is_taken(inside: Inside, status: str) -> None:
    monitor_id = await inside.desk.add(1)
    await inside.report(monitor_id, status=status)
    assert await inside.desk.api.store.schedule.list(10) == []
    before = await inside.desk.get(f"/{monitor_id}")
    assert before["reason"] == "its runner says so"
    check_error(await inside.put(monitor_id, REPORT), 409, "MONITOR_ENDED")
    check_error(await inside.put(monitor_id, {}), 409, "MONITOR_ENDED")
    assert await inside.desk.get(f"/{monitor_id}") == before
    await inside.desk.add(1)


async def test_a_monitor_that_nobody_knows_is_not_found(inside: Inside) -> None:
    for odd in ("mon-0", "%00", "x" * 3000):
        check_error(await inside.put(odd, REPORT), 404, "MONITOR_NOT_FOUND")


@pytest.mark.parametrize("what", BAD)
async def test_a_report_that_cannot_be_used_is_refused(inside: Inside, what: str) -> None:
    monitor_id = await inside.desk.add(1)
    before = await inside.desk.get(f"/{monitor_id}")
    check_error(await inside.put(monitor_id, BAD[what]), 400, "INVALID_CONFIG")
    assert await inside.desk.get(f"/{monitor_id}") == before


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Internal-API-Key": "wrong"},
        {"X-Internal-API-Key": ""},
        {"X-API-Key": PUBLIC_KEY},
        {"X-API-Key": KEY},
        {"X-Internal-API-Key": PUBLIC_KEY},
    ],
)
async def test_only_the_internal_key_opens_it(inside: Inside, headers: dict[str, str]) -> None:
    monitor_id = await inside.desk.add(1)
    response = await inside.http.put(path_of(monitor_id), json=REPORT, headers=headers)
    assert "X-Internal-API-Key" in check_error(response, 401, "UNAUTHORIZED")
    assert (await inside.desk.get(f"/{monitor_id}"))["status"] == "initializing"


async def test_the_public_port_does_not_lead_there(inside: Inside) -> None:
    monitor_id = await inside.desk.add(1)
    both = {"X-API-Key": PUBLIC_KEY, "X-Internal-API-Key": KEY}
    response = await inside.desk.http.put(path_of(monitor_id), json=REPORT, headers=both)
    check_error(response, 404, "not_found")
    async with httpx2.AsyncClient(base_url=inside.desk.api.address) as stranger:
        headers = {"X-Internal-API-Key": KEY}
        response = await stranger.put(path_of(monitor_id), json=REPORT, headers=headers)
        check_error(response, 401, "UNAUTHORIZED")
        paths = (await stranger.get("/openapi.json")).json()["paths"]
    assert not [path for path in paths if "internal" in path]


async def test_the_internal_port_serves_nothing_of_the_public(inside: Inside) -> None:
    headers = {"X-Internal-API-Key": KEY, "X-API-Key": PUBLIC_KEY}
    for path in (MONITORS, "/api/status", "/api/jobs"):
        check_error(await inside.http.get(path, headers=headers), 404, "not_found")
    assert (await inside.http.get("/healthz")).json() == {"status": "alive"}
    assert (await inside.http.get("/readyz")).json() == {"status": "ready"}
