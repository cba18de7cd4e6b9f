"""A stream is waited for in §7.1's waiting mode, asked for as §7.5 says, and late by §7.3."""

import pytest

from mimawari.kernel.why import why
from mimawari.sim.sites.youtube.programme import Upset
from mimawari.watches.streams.models import Status
from mimawari.watches.streams.runner import member_of
from tests.streams.scene import RESOLVER, Scene, at


async def test_7_1_a_stream_that_has_not_begun_is_waited_for_and_then_monitored(
    scene: Scene,
) -> None:
    scene.put(starts_at=at(45), scheduled_at=at(30))
    monitor = await scene.add()
    assert monitor.status is Status.INITIALIZING
    await scene.pass_time(5)
    waiting = await scene.show(monitor)
    assert (waiting.monitor.status, waiting.stream_status) == (Status.WAITING, "upcoming")
    assert (waiting.video, waiting.audio) == ("unknown", "unknown")
    assert waiting.release_at == at(30)
    await scene.pass_time(85)
    watched = await scene.show(monitor)
    assert (watched.monitor.status, watched.stream_status) == (Status.MONITORING, "live")
    assert (watched.video, watched.audio) == ("ok", "ok")
    assert scene.told() == ["stream.started"]


async def test_7_1_a_stream_that_is_live_is_monitored_at_once(scene: Scene) -> None:
    scene.put(starts_at=at(-100))
    monitor = await scene.add()
    await scene.pass_time(0.1)
    view = await scene.show(monitor)
    assert (view.monitor.status, view.segments) == (Status.MONITORING, 1)
    assert scene.told() == ["stream.started"]


async def test_7_5_before_its_time_a_stream_is_asked_for_every_10_min_then_every_minute(
    scene: Scene,
) -> None:
    scene.put(starts_at=at(1920), scheduled_at=at(1800))
    await scene.add()
    await scene.pass_time(1501)
    assert scene.times(RESOLVER) == [0, 600, 1200, 1260, 1320, 1380, 1440, 1500]


async def test_7_5_after_its_time_a_stream_is_asked_for_every_30_s(scene: Scene) -> None:
    scene.put(starts_at=at(140), scheduled_at=at(50))
    await scene.add()
    await scene.pass_time(160)
    assert scene.times(RESOLVER) == [0, 50, 80, 110, 140]
    assert scene.told() == ["stream.started"]


async def test_7_5_a_stream_without_a_time_is_asked_for_each_minute(scene: Scene) -> None:
    scene.put(starts_at=at(10_000))
    await scene.add()
    await scene.pass_time(185)
    assert scene.times(RESOLVER) == [0, 60, 120, 180]


@pytest.mark.parametrize("scene", [{"streams_resolves": 3}], indirect=True)
async def test_7_5_nobody_asks_more_often_than_the_budget_and_why_names_it(scene: Scene) -> None:
    scene.put(starts_at=at(10_000), scheduled_at=at(-10))
    monitor = await scene.add()
    await scene.pass_time(3500)
    assert len(scene.times(RESOLVER)) == 3
    answer = await why(scene.store, scene.clock, scene.watches, member_of(monitor.id))
    assert answer is not None
    assert answer.reason == "limit streams.resolve: hourly_limit"
    assert answer.next_at == at(3600)
    assert (await scene.show(monitor)).reason == answer.reason


@pytest.mark.parametrize("scene", [{"streams_resolves": 1}], indirect=True)
async def test_7_5_a_stream_that_is_watched_is_watched_on_when_the_budget_is_spent(
    scene: Scene,
) -> None:
    scene.put(Upset(what="gap", start=10, end=330))
    monitor = await scene.add()
    await scene.pass_time(350)
    assert scene.times(RESOLVER) == [0]
    assert scene.segments()[-1] >= 165
    assert (await scene.show(monitor)).monitor.status is Status.MONITORING
    assert scene.told() == ["stream.started"]


async def test_7_3_a_stream_within_its_tolerance_is_not_late(scene: Scene) -> None:
    scene.put(starts_at=at(89), scheduled_at=at(30))
    await scene.add(scheduled_start_time=at(30).isoformat(), start_delay_tolerance_sec=60)
    await scene.pass_time(130)
    assert scene.told() == ["stream.started"]


async def test_7_3_a_late_stream_is_told_as_late_and_as_begun_each_once(scene: Scene) -> None:
    scene.put(starts_at=at(100), scheduled_at=at(30))
    await scene.add(scheduled_start_time=at(30).isoformat(), start_delay_tolerance_sec=60)
    await scene.pass_time(130)
    assert scene.told() == ["stream.delayed", "stream.started"]


async def test_7_3_without_a_time_given_nothing_is_late(scene: Scene) -> None:
    scene.put(starts_at=at(1000), scheduled_at=at(30))
    await scene.add(start_delay_tolerance_sec=0)
    await scene.pass_time(200)
    assert scene.told() == []


async def test_7_3_a_stream_nobody_can_be_asked_about_is_not_called_late_until_it_is_known(
    scene: Scene,
) -> None:
    scene.put(Upset(what="bot", start=-2000, end=-800), starts_at=at(1000), scheduled_at=at(30))
    await scene.add(scheduled_start_time=at(30).isoformat(), start_delay_tolerance_sec=60)
    await scene.pass_time(200)
    assert scene.told() == []
    await scene.pass_time(300)
    assert scene.told() == ["stream.delayed"]


async def test_7_2_in_waiting_mode_a_stream_that_is_over_is_told_as_ended(scene: Scene) -> None:
    scene.put(starts_at=at(-500), seconds=100)
    monitor = await scene.add()
    await scene.pass_time(40)
    assert scene.times(RESOLVER) == [0, 15]
    assert scene.told() == ["stream.ended"]
    assert scene.body("stream.ended")["data"]["reason"] == "not_live"
    view = await scene.show(monitor)
    assert (view.monitor.status, view.stream_status) == (Status.COMPLETED, "ended")
    assert not await scene.is_scheduled(monitor)
