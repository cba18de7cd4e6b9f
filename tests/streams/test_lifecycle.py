"""A monitor's life as §8.2 to §8.4 draw it: what ends it, and that nothing of it is left."""

from mimawari.sim.sites.youtube.programme import Shot, Upset
from mimawari.watches.streams import actions
from mimawari.watches.streams.models import Status
from tests.streams.scene import LEAST, RESOLVER, Scene, at


async def test_8_2_initializing_becomes_monitoring_where_a_stream_is_live(scene: Scene) -> None:
    scene.put(starts_at=at(-60))
    monitor = await scene.add()
    assert (await scene.show(monitor)).monitor.status is Status.INITIALIZING
    await scene.pass_time(1)
    assert (await scene.show(monitor)).monitor.status is Status.MONITORING


async def test_8_2_initializing_becomes_error_where_there_is_no_such_video(scene: Scene) -> None:
    monitor = await scene.add()
    await scene.pass_time(1)
    assert (await scene.show(monitor)).monitor.status is Status.ERROR


async def test_8_2_monitoring_becomes_completed_at_the_end_of_a_stream(scene: Scene) -> None:
    scene.put(starts_at=at(-60), seconds=65)
    monitor = await scene.add()
    await scene.pass_time(20)
    assert (await scene.show(monitor)).monitor.status is Status.COMPLETED


async def test_8_2_monitoring_becomes_stopped_by_request_and_nobody_is_told(scene: Scene) -> None:
    scene.put(starts_at=at(-60))
    monitor = await scene.add()
    await scene.pass_time(5)
    view = await actions.stop(scene, monitor.id)
    assert (view.monitor.status, view.ended_at) == (Status.STOPPED, at(5))
    await scene.pass_time(60)
    assert scene.told() == ["stream.started"]


async def test_8_2_waiting_becomes_stopped_by_request(scene: Scene) -> None:
    scene.put(starts_at=at(1000))
    monitor = await scene.add()
    await scene.pass_time(5)
    await actions.stop(scene, monitor.id)
    await scene.pass_time(300)
    assert scene.times(RESOLVER) == [0]
    assert (await scene.show(monitor)).monitor.status is Status.STOPPED


async def test_8_2_one_that_is_over_stays_as_it_ended_when_it_is_stopped(scene: Scene) -> None:
    scene.put(starts_at=at(-60), seconds=62)
    monitor = await scene.add()
    await scene.pass_time(20)
    ended = await scene.show(monitor)
    again = await actions.stop(scene, monitor.id)
    assert again == ended
    assert again.monitor.status is Status.COMPLETED


async def test_8_2_a_stopped_stream_may_be_monitored_again_from_its_start(scene: Scene) -> None:
    scene.put(starts_at=at(-60))
    first = await scene.add()
    await scene.pass_time(5)
    await actions.stop(scene, first.id)
    second = await scene.add()
    await scene.pass_time(5)
    assert second.id > first.id
    assert scene.told() == ["stream.started", "stream.started"]
    assert (await scene.show(second)).segments == 1


async def test_8_3_what_was_told_before_a_stop_is_sent_after_it(scene: Scene) -> None:
    scene.put(starts_at=at(-60))
    scene.order("hooks", do="status", code=503, times=1)
    monitor = await scene.add()
    await scene.pass_time(0.5)
    await actions.stop(scene, monitor.id)
    await scene.pass_time(5)
    assert scene.told() == ["stream.started"]


async def test_8_4_whatever_ended_it_nothing_of_a_monitor_runs_on(scene: Scene) -> None:
    scene.put(Upset(what="private", start=0))
    scene.put(starts_at=at(-60), seconds=62, video_id="completed-1")
    scene.put(starts_at=at(-60), video_id="stopped-123")
    monitors = [await scene.add(), await scene.add("completed-1"), await scene.add("stopped-123")]
    await scene.pass_time(20)
    await actions.stop(scene, monitors[2].id)
    views = [await scene.show(one) for one in monitors]
    assert [one.monitor.status for one in views] == ["error", "completed", "stopped"]
    asked_before = len(scene.seen("/"))
    await scene.pass_time(600)
    assert [await scene.is_scheduled(one) for one in monitors] == [False] * 3
    assert len(scene.seen("/")) == asked_before


async def test_8_6_what_is_seen_of_a_monitor_follows_what_it_finds(scene: Scene) -> None:
    scene.put(Shot(what="black", start=60, end=80), starts_at=at(-60))
    monitor = await scene.add(**LEAST)
    await scene.pass_time(12)
    during = await scene.show(monitor)
    assert (during.video, during.audio, during.blackouts) == ("blackout", "ok", 1)
    assert during.last_check_at == at(10)
    await scene.pass_time(20)
    after = await scene.show(monitor)
    assert (after.video, after.audio, after.blackouts) == ("ok", "ok", 1)
    assert after.segments > during.segments
