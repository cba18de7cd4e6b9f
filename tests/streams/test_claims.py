"""A monitor is one pod's at a time: the last to claim it is heard, and each report once."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr
from sqlalchemy import select

from mimawari.app.http.api import make_internal_app
from mimawari.ids import new_id
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.rights import make_token
from mimawari.store.sql import SqlStore
from mimawari.watches.streams import sync
from mimawari.watches.streams.errors import Fenced
from mimawari.watches.streams.models import Config, Monitor, Status
from mimawari.watches.streams.pods import claims
from mimawari.watches.streams.pods.assignments import TEND
from mimawari.watches.streams.pods.spec import name_pod
from mimawari.watches.streams.tables import monitors
from tests.app.ground import check_error
from tests.conftest import Databases
from tests.sim.ground import serve
from tests.streams.api_ground import Desk, open_desk, url_of

KEY = "the-inner-key"
PATH = "/internal/v1/monitors"


def token_of(pod: str) -> dict[str, str]:
    """Return what a pod gives as its key."""
    return {"X-Internal-API-Key": make_token(KEY.encode(), pod)}


@dataclass(frozen=True, slots=True)
class Pods:
    """The internal API as pods see it, and the desk in front of it."""

    http: httpx2.AsyncClient
    desk: Desk

    async def claim(self, monitor_id: str, pod: str = "") -> httpx2.Response:
        """Claim a monitor."""
        body = {"pod": pod or name_pod(monitor_id)}
        headers = token_of(body["pod"])
        return await self.http.post(f"{PATH}/{monitor_id}/claim", json=body, headers=headers)

    async def list_of(self, pod: str) -> httpx2.Response:
        """List what a pod is to run."""
        return await self.http.get(PATH, params={"pod": pod}, headers=token_of(pod))

    async def held(self, monitor_id: str) -> Any:
        """Claim a monitor and insist on it."""
        reply = await self.claim(monitor_id)
        assert reply.status_code == 200, reply.text
        return reply.json()

    async def report(self, monitor_id: str, version: int, **given: Any) -> httpx2.Response:
        """Report a check that has something to tell."""
        notice = {
            "type": "alert.blackout",
            "at": self.desk.clock.now().isoformat(),
            "data": {"duration_sec": 3.5, "started_at": "2026-06-01T12:00:00.000+09:00"},
        }
        check = {
            "version": version, "id": new_id(), "stream_status": "live", "state": "{}",
            "reason": "interval", "notices": [notice], **given.pop("check", {}),
        }  # fmt: skip
        counted = {"total_segments_analyzed": 5, "blackout_events": 1, "silence_events": 0}
        body = {"status": "monitoring", "statistics": counted, "check": check, **given}
        headers = token_of(name_pod(monitor_id))
        return await self.http.put(f"{PATH}/{monitor_id}/status", json=body, headers=headers)

    async def told(self, monitor_id: str) -> list[str]:
        """List what is told of a monitor, oldest first."""
        events = (await self.desk.get(f"/{monitor_id}/events"))["events"]
        return [one["event_type"] for one in events][::-1]

    async def jobs(self) -> list[str]:
        """List the pods that are to be looked at."""
        listed = await self.desk.api.store.queue.list(50, kind=TEND)
        return [str(job.args["pod"]) for job in listed]


@pytest.fixture
async def pods(
    databases: Databases, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Pods]:
    given = {
        "streams_runner": "kubernetes",
        "internal_key": SecretStr(KEY),
        **getattr(request, "param", {}),
    }
    async with open_desk(await databases.ready(), tmp_path, **given) as desk:
        app = make_internal_app(desk.api.system, KEY.encode())
        async with serve(app) as http:
            yield Pods(http, desk)


async def test_whoever_claims_a_monitor_is_told_all_that_it_goes_on_from(pods: Pods) -> None:
    monitor_id = await pods.desk.add(1, config={"check_interval_sec": 7}, metadata={"a": "b"})
    held = await pods.held(monitor_id)
    assert (held["monitor_id"], held["stream_url"]) == (monitor_id, url_of(1))
    assert (held["status"], held["version"], held["state"]) == ("initializing", 1, "{}")
    assert (held["config"]["check_interval_sec"], held["metadata"]) == (7, {"a": "b"})
    assert held["zone"] == "Asia/Tokyo"
    assert held["statistics"]["total_segments_analyzed"] == 0


async def test_a_report_is_kept_whole_with_what_is_told(pods: Pods) -> None:
    monitor_id = await pods.desk.add(1)
    version = (await pods.held(monitor_id))["version"]
    state = '{"source":{"title":"見"},"reading":{"sequence":9}}'
    reply = await pods.report(monitor_id, version, check={"state": state})
    assert reply.json() == {
        "monitor_id": monitor_id, "status": "monitoring", "version": version + 1,
    }  # fmt: skip
    shown = await pods.desk.get(f"/{monitor_id}")
    assert (shown["status"], shown["stream_status"]) == ("monitoring", "live")
    assert shown["health"]["video"] == "ok"
    assert shown["statistics"]["blackout_events"] == 1
    assert await pods.told(monitor_id) == ["alert.blackout"]
    held = await pods.held(monitor_id)
    assert held["statistics"]["total_segments_analyzed"] == 5
    assert '"sequence":9' in held["state"]


async def test_a_report_that_is_sent_again_is_answered_and_not_kept_twice(pods: Pods) -> None:
    monitor_id = await pods.desk.add(1)
    version = (await pods.held(monitor_id))["version"]
    same = {"id": new_id()}
    replies = [await pods.report(monitor_id, version, check=same) for _ in range(3)]
    assert [one.status_code for one in replies] == [200, 200, 200]
    assert {one.json()["version"] for one in replies} == {version + 1}
    assert await pods.told(monitor_id) == ["alert.blackout"]


async def test_a_report_that_is_sent_twice_at_once_is_kept_once(pods: Pods) -> None:
    monitor_id = await pods.desk.add(1)
    version = (await pods.held(monitor_id))["version"]
    same = {"id": new_id()}
    replies = await asyncio.gather(
        *(pods.report(monitor_id, version, check=same) for _ in range(5))
    )
    assert {one.status_code for one in replies} <= {200, 409}
    assert await pods.told(monitor_id) == ["alert.blackout"]


async def test_who_had_a_monitor_before_is_not_heard_any_more(pods: Pods) -> None:
    monitor_id = await pods.desk.add(1)
    stale = (await pods.held(monitor_id))["version"]
    fresh = (await pods.held(monitor_id))["version"]
    check_error(await pods.report(monitor_id, stale), 409, "MONITOR_CLAIMED")
    assert await pods.told(monitor_id) == []
    shown = await pods.desk.get(f"/{monitor_id}")
    assert (shown["status"], shown["statistics"]["blackout_events"]) == ("initializing", 0)
    assert (await pods.report(monitor_id, fresh)).status_code == 200


async def test_a_version_is_good_for_one_report(pods: Pods) -> None:
    monitor_id = await pods.desk.add(1)
    version = (await pods.held(monitor_id))["version"]
    assert (await pods.report(monitor_id, version)).status_code == 200
    check_error(await pods.report(monitor_id, version), 409, "MONITOR_CLAIMED")
    assert await pods.told(monitor_id) == ["alert.blackout"]


async def test_a_monitor_is_given_to_its_own_pod_only(pods: Pods) -> None:
    monitor_id = await pods.desk.add(1)
    check_error(await pods.claim(monitor_id, "stream-monitor-other"), 403, "FORBIDDEN")
    check_error(await pods.claim("mon-unknown", "x"), 403, "FORBIDDEN")
    with pytest.raises(Fenced, match=f"is given to {name_pod(monitor_id)}, not to another"):
        async with pods.desk.api.store.edit() as tx:
            await claims.claim(tx, monitor_id, "another")


async def test_of_a_monitor_that_is_over_nothing_is_taken_and_nobody_has_it(pods: Pods) -> None:
    monitor_id = await pods.desk.add(1)
    version = (await pods.held(monitor_id))["version"]
    reply = await pods.report(monitor_id, version, status="completed")
    assert reply.json()["status"] == "completed"
    check_error(await pods.report(monitor_id, version + 1), 409, "MONITOR_ENDED")
    check_error(await pods.claim(monitor_id), 409, "MONITOR_ENDED")
    assert (await pods.desk.get(f"/{monitor_id}"))["reason"] == "interval"


async def test_the_last_report_may_be_sent_again_too(pods: Pods) -> None:
    monitor_id = await pods.desk.add(1)
    version = (await pods.held(monitor_id))["version"]
    same = {"id": new_id()}
    for _ in range(2):
        reply = await pods.report(monitor_id, version, status="completed", check=same)
        assert reply.json()["status"] == "completed"
    assert await pods.told(monitor_id) == ["alert.blackout"]


async def test_a_pod_is_looked_at_when_its_monitor_comes_and_when_it_goes(pods: Pods) -> None:
    monitor_id = await pods.desk.add(1)
    assert await pods.jobs() == [name_pod(monitor_id)]
    version = (await pods.held(monitor_id))["version"]
    await pods.report(monitor_id, version, status="completed")
    assert await pods.jobs() == [name_pod(monitor_id)] * 2
    assert await pods.desk.api.store.schedule.count() == 0


@pytest.mark.parametrize("pods", [{"streams_per_pod": 2}], indirect=True)
async def test_monitors_share_pods_while_there_is_room(pods: Pods) -> None:
    ids = [await pods.desk.add(number) for number in range(3)]
    async with pods.desk.api.store.read() as reader:
        query = select(monitors.c.id, monitors.c.pod_name)
        given = {row.id: row.pod_name for row in await reader.execute(query)}
    first, third = name_pod(ids[0]), name_pod(ids[2])
    assert given == {ids[0]: first, ids[1]: first, ids[2]: third}
    assert (await pods.list_of(first)).json() == {"monitors": ids[:2]}


@pytest.mark.parametrize(
    "check",
    [
        {"state": "no json"},
        {"state": '{"reading": 5}'},
        {"id": "short"},
        {"version": -1},
        {"stream_status": "gone"},
        {"notices": [{"type": "alert.other", "at": "2026-06-01T00:00:00Z", "data": {}}]},
        {"notices": [{"type": "stream.ended", "at": "2026-06-01T00:00:00Z", "data": {"a": "\0"}}]},
        {"notices": [{"type": "stream.ended", "at": "now", "data": {}}]},
        {"more": 1},
    ],
    ids=str,
)
async def test_a_check_that_cannot_be_used_is_a_sentence(pods: Pods, check: Any) -> None:
    monitor_id = await pods.desk.add(1)
    version = (await pods.held(monitor_id))["version"]
    reply = await pods.report(monitor_id, version, check=check)
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "INVALID_CONFIG")
    assert (await pods.report(monitor_id, version)).status_code == 200


@pytest.mark.parametrize("pods", [{"rate": 1000}], indirect=True)
async def test_each_pod_may_report_ten_times_a_second_and_is_counted_by_itself(pods: Pods) -> None:
    first, second = [name_pod(await pods.desk.add(number)) for number in range(2)]
    for _ in range(1000):
        assert (await pods.list_of(first)).status_code == 200
    check_error(await pods.list_of(first), 429, "RATE_LIMIT_EXCEEDED")
    assert (await pods.list_of(second)).status_code == 200


async def test_the_fence_holds_on_every_engine(store: SqlStore, clock: VirtualClock) -> None:
    monitor = Monitor(
        id=sync.new_monitor_id(), stream_url=url_of(1), callback_url="https://a.test/",
        config=Config(), metadata={}, status=Status.INITIALIZING, created_at=clock.now(),
    )  # fmt: skip
    async with store.edit() as tx:
        await sync.add(tx, monitor, "test")
        await tx.execute(monitors.update().values(pod_name="pod"))
    versions = []
    for _ in range(2):
        async with store.edit() as tx:
            versions.append((await claims.claim(tx, monitor.id, "pod")).version)
    assert versions == [1, 2]

    async def report(version: int) -> bool:
        await clock.advance(timedelta(0))
        try:
            async with store.edit() as tx:
                await claims.pass_fence(tx, monitor.id, version, new_id())
        except Fenced:
            return False
        return True

    assert await report(1) is False
    assert sum(await asyncio.gather(*(report(2) for _ in range(6)))) == 1
