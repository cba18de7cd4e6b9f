"""What the API of monitors takes and answers, as its description has it."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mimawari.kernel.job import End, State
from mimawari.watches.streams import sync
from mimawari.watches.streams.models import Config, EventType, Notice, Status, Step, StreamStatus
from mimawari.watches.streams.models import State as Standing
from mimawari.watches.streams.runner import member_of
from tests.app.ground import check_guards, until
from tests.conftest import Databases
from tests.streams.api_ground import (
    CALLBACK,
    MONITORS,
    NOON,
    Desk,
    body_of,
    open_desk,
    url_of,
)

MINUTE = timedelta(minutes=1)
FULL = {
    "stream_url": url_of(1),
    "callback_url": CALLBACK,
    "config": {
        "check_interval_sec": 5,
        "blackout_threshold_sec": 20,
        "silence_threshold_sec": 40,
        "silence_db_threshold": -45.5,
        "scheduled_start_time": "2026-06-01T20:00:00+09:00",
        "start_delay_tolerance_sec": 120,
    },
    "metadata": {"channel_name": "例", "stream_title": "配信", "custom_data": {"a": [1, None]}},
}


@pytest.fixture
async def desk(databases: Databases, tmp_path: Path) -> AsyncIterator[Desk]:
    async with open_desk(await databases.ready(), tmp_path) as opened:
        yield opened


async def keep(desk: Desk, monitor_id: str, step: Step) -> None:
    """Keep what a check found."""
    async with desk.api.store.edit() as tx:
        found = await sync.find_active(tx, monitor_id)
        assert found is not None
        zone = desk.api.system.settings.zone
        assert await sync.keep_step(tx, found[0], step, desk.clock.now(), zone)


def step_of(status: Status, **given: object) -> Step:
    """Make up what a check found."""
    facts = {"stream_status": StreamStatus.LIVE, "state": Standing(), "next_at": NOON, **given}
    return Step(status=status, reason="so told", **facts)  # type: ignore[arg-type]


async def test_a_monitor_is_added_with_nothing_but_two_addresses(desk: Desk) -> None:
    response = await desk.post(body_of(1))
    assert response.status_code == 201
    check_guards(response)
    added = response.json()
    assert sorted(added) == ["created_at", "monitor_id", "status"]
    assert re.fullmatch(r"mon-[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}", added["monitor_id"])
    assert added["status"] == "initializing"
    assert added["created_at"] == "2026-06-01T12:00:00+09:00"


async def test_what_is_not_said_has_its_default(desk: Desk) -> None:
    monitor_id = await desk.add(1)
    async with desk.api.store.read() as reader:
        found = await sync.find_active(reader, monitor_id)
    assert found is not None
    monitor = found[0]
    assert monitor.config == Config()
    assert (monitor.config.check_interval_sec, monitor.config.start_delay_tolerance_sec) == (
        10,
        300,
    )
    assert (monitor.config.blackout_threshold_sec, monitor.config.silence_threshold_sec) == (30, 30)
    assert (monitor.config.silence_db_threshold, monitor.metadata) == (-50, {})
    assert monitor.config.scheduled_start_time is None


async def test_all_that_may_be_said_is_kept(desk: Desk) -> None:
    response = await desk.post(FULL)
    assert response.status_code == 201, response.text
    async with desk.api.store.read() as reader:
        found = await sync.find_active(reader, response.json()["monitor_id"])
    assert found is not None
    monitor = found[0]
    assert monitor.metadata == FULL["metadata"]
    assert monitor.config.scheduled_start_time == NOON + timedelta(hours=8)
    assert (monitor.config.check_interval_sec, monitor.config.silence_db_threshold) == (5, -45.5)


async def test_a_monitor_that_was_added_is_on_the_schedule(desk: Desk) -> None:
    monitor_id = await desk.add(1, config={"check_interval_sec": 7})
    (entry,) = await desk.api.store.schedule.list(10)
    assert (entry.member, entry.every) == (member_of(monitor_id), timedelta(seconds=7))


async def test_a_new_monitor_is_shown_as_one_that_knows_nothing_yet(desk: Desk) -> None:
    monitor_id = await desk.add(1)
    assert await desk.get(f"/{monitor_id}") == {
        "monitor_id": monitor_id,
        "stream_url": url_of(1),
        "status": "initializing",
        "stream_status": "unknown",
        "health": {"video": "unknown", "audio": "unknown", "last_check_at": None},
        "statistics": {"total_segments_analyzed": 0, "blackout_events": 0, "silence_events": 0},
        "created_at": "2026-06-01T12:00:00+09:00",
    }


async def test_a_monitor_shows_what_its_last_check_found(desk: Desk) -> None:
    monitor_id = await desk.add(1)
    await desk.clock.advance(MINUTE)
    await keep(desk, monitor_id, step_of(Status.MONITORING))
    shown = await desk.get(f"/{monitor_id}")
    assert (shown["status"], shown["stream_status"]) == ("monitoring", "live")
    assert shown["health"]["last_check_at"] == "2026-06-01T12:01:00+09:00"
    assert "reason" not in shown


async def test_a_monitor_that_is_over_says_why(desk: Desk) -> None:
    monitor_id = await desk.add(1)
    await keep(desk, monitor_id, step_of(Status.COMPLETED))
    shown = await desk.get(f"/{monitor_id}")
    assert (shown["status"], shown["reason"]) == ("completed", "so told")


async def test_monitors_are_listed_newest_first(desk: Desk) -> None:
    ids = [await desk.add(number) for number in range(3)]
    listed = await desk.get()
    assert [one["monitor_id"] for one in listed["monitors"]] == ids[::-1]
    assert listed["pagination"] == {"total": 3, "limit": 50, "offset": 0}
    assert listed["monitors"][0] == {
        "monitor_id": ids[-1],
        "stream_url": url_of(2),
        "status": "initializing",
        "created_at": "2026-06-01T12:00:00+09:00",
    }


async def test_a_list_comes_in_pages(desk: Desk) -> None:
    ids = [await desk.add(number) for number in range(5)][::-1]
    page = await desk.get(limit=2, offset=1)
    assert [one["monitor_id"] for one in page["monitors"]] == ids[1:3]
    assert page["pagination"] == {"total": 5, "limit": 2, "offset": 1}
    beyond = await desk.get(offset=5)
    assert (beyond["monitors"], beyond["pagination"]["total"]) == ([], 5)


@pytest.mark.parametrize("status", list(Status))
async def test_a_list_is_of_one_status_where_one_is_named(desk: Desk, status: Status) -> None:
    by_status = {Status.INITIALIZING: await desk.add(0)}
    for number, other in enumerate((Status.WAITING, Status.MONITORING, Status.COMPLETED), 1):
        by_status[other] = await desk.add(number)
        await keep(desk, by_status[other], step_of(other))
    by_status[Status.STOPPED] = await desk.add(4)
    await desk.stop(by_status[Status.STOPPED])
    by_status[Status.ERROR] = await desk.add(5)
    await keep(desk, by_status[Status.ERROR], step_of(Status.ERROR))
    listed = await desk.get(status=status)
    assert [one["monitor_id"] for one in listed["monitors"]] == [by_status[status]]
    assert listed["pagination"]["total"] == 1


async def test_a_monitor_is_stopped_and_off_the_schedule(desk: Desk) -> None:
    monitor_id = await desk.add(1)
    await desk.clock.advance(MINUTE)
    assert await desk.stop(monitor_id) == {
        "monitor_id": monitor_id,
        "status": "stopped",
        "stopped_at": "2026-06-01T12:01:00+09:00",
    }
    assert await desk.api.store.schedule.list(10) == []
    shown = await desk.get(f"/{monitor_id}")
    assert (shown["status"], shown["reason"]) == ("stopped", "stopped by request")


async def test_a_monitor_that_is_over_stays_as_it_is_when_it_is_stopped(desk: Desk) -> None:
    monitor_id = await desk.add(1)
    await keep(desk, monitor_id, step_of(Status.COMPLETED))
    await desk.clock.advance(MINUTE)
    answers = [await desk.stop(monitor_id) for _ in range(2)]
    over = {"status": "completed", "stopped_at": "2026-06-01T12:00:00+09:00"}
    assert answers == [{"monitor_id": monitor_id, **over}] * 2


async def passes_until_done(desk: Desk, asked: asyncio.Task[Any]) -> bool:
    """Let a second pass whenever what was asked for waits, and say whether it is answered."""
    if desk.clock.sleeping:
        await desk.clock.advance(timedelta(seconds=1))
    return asked.done()


async def test_stopping_waits_until_a_check_under_way_is_over(desk: Desk) -> None:
    monitor_id = await desk.add(1)
    job = await desk.claim(monitor_id)
    stopping = asyncio.create_task(desk.stop(monitor_id))

    async def is_waiting() -> bool:
        return desk.clock.sleeping > 0

    await until(is_waiting)
    assert (await desk.get(f"/{monitor_id}"))["status"] == "stopped"
    await desk.clock.advance(timedelta(seconds=20))
    assert not stopping.done()
    end = End(id=job.id, token=job.token, state=State.DONE)
    await desk.api.store.queue.turn([end], (), "test")
    await until(partial(passes_until_done, desk, stopping))
    assert (await stopping)["status"] == "stopped"
    assert desk.clock.now() - NOON <= timedelta(seconds=24)


async def test_stopping_waits_for_half_a_minute_at_the_most(desk: Desk) -> None:
    monitor_id = await desk.add(1)
    await desk.claim(monitor_id)
    stopping = asyncio.create_task(desk.stop(monitor_id))
    await until(partial(passes_until_done, desk, stopping))
    assert (await stopping)["status"] == "stopped"
    assert desk.clock.now() - NOON <= timedelta(seconds=32)


async def test_events_are_listed_newest_first_with_what_became_of_them(desk: Desk) -> None:
    monitor_id = await desk.add(1, metadata={"channel_name": "例"})
    for number in range(3):
        at = NOON + number * MINUTE
        notice = Notice(type=EventType.STARTED, at=at, data={"started_at": at})
        await keep(desk, monitor_id, step_of(Status.MONITORING, notices=(notice,)))
    await desk.add(2)
    listed = await desk.get(f"/{monitor_id}/events", limit=2)
    assert listed["pagination"] == {"total": 3, "limit": 2, "offset": 0}
    assert [one["created_at"][11:16] for one in listed["events"]] == ["12:02", "12:01"]
    newest = listed["events"][0]
    assert newest["payload"] == {
        "event_type": "stream.started",
        "monitor_id": monitor_id,
        "stream_url": url_of(1),
        "timestamp": "2026-06-01T12:02:00+09:00",
        "data": {"started_at": "2026-06-01T12:02:00.000+09:00"},
        "metadata": {"channel_name": "例"},
    }
    assert (newest["webhook_status"], newest["webhook_attempts"]) == ("pending", 0)
    assert (newest["webhook_last_error"], newest["sent_at"]) == (None, None)


async def test_the_same_prefix_with_a_slash_behind_it_is_no_route(desk: Desk) -> None:
    assert (await desk.http.get(f"{MONITORS}/")).status_code == 404
