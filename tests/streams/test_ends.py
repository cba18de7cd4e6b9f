"""The end of a stream and the failing of one are told apart by the order of §7.6."""

import pytest

from mimawari.sim.sites.youtube.programme import Shot, Upset
from mimawari.watches.streams.models import Status
from tests.streams.scene import LEAST, RESOLVER, VIDEO, Scene, at, since

LIST = f"/live/{VIDEO}/144p"


async def test_7_6_priority_1_endlist_is_the_end_and_nobody_is_asked(scene: Scene) -> None:
    scene.put(seconds=21)
    monitor = await scene.add()
    await scene.pass_time(60)
    assert scene.told() == ["stream.started", "stream.ended"]
    assert scene.body("stream.ended")["data"]["reason"] == "endlist"
    assert scene.times(RESOLVER) == [0]
    # What came before the end is looked into first, to the last bit of it.
    assert scene.segments()[-1] == 10
    assert (await scene.show(monitor)).monitor.status is Status.COMPLETED


async def test_7_6_priority_2_two_answers_that_it_is_not_live_are_the_end(scene: Scene) -> None:
    scene.put(seconds=20, ending="vanish")
    monitor = await scene.add()
    await scene.pass_time(120)
    assert scene.told() == ["stream.started", "stream.ended"]
    assert scene.body("stream.ended")["data"]["reason"] == "not_live"
    asked = scene.times(RESOLVER)
    assert len(asked) == 3
    assert asked[2] - asked[1] == 15
    view = await scene.show(monitor)
    assert (view.monitor.status, view.stream_status) == (Status.COMPLETED, "ended")


async def test_7_6_priority_2_one_answer_that_it_is_not_live_is_not_the_end(scene: Scene) -> None:
    scene.put(Upset(what="gap", start=10))
    monitor = await scene.add()
    await scene.pass_time(5)
    said = '{"live_status": "was_live"}'
    scene.order(path=RESOLVER, do="status", code=200, body=said, type="application/json", times=1)
    await scene.pass_time(400)
    assert len(scene.times(RESOLVER)) == 3
    assert scene.told() == ["stream.started"]
    assert (await scene.show(monitor)).monitor.status is Status.MONITORING


async def test_7_6_priority_3_segments_failing_for_60_s_while_live_are_an_error_once(
    scene: Scene,
) -> None:
    scene.put(Upset(what="missing", start=20, end=150))
    monitor = await scene.add()
    await scene.pass_time(75)
    assert scene.told() == ["stream.started"]
    await scene.pass_time(25)
    assert scene.told() == ["stream.started", "alert.segment_error"]
    data = scene.body("alert.segment_error")["data"]
    assert data["reason"] == "segment"
    assert 60 <= data["duration_sec"] < 75
    view = await scene.show(monitor)
    assert (view.monitor.status, view.video, view.audio) == (Status.MONITORING, "error", "error")
    await scene.pass_time(200)
    assert scene.told() == ["stream.started", "alert.segment_error"]
    view = await scene.show(monitor)
    assert (view.monitor.status, view.video, view.audio) == (Status.MONITORING, "ok", "ok")


async def test_7_6_priority_3_another_spell_is_another_error(scene: Scene) -> None:
    scene.put(Upset(what="missing", start=20, end=110), Upset(what="missing", start=170))
    await scene.add()
    await scene.pass_time(320)
    assert scene.told() == ["stream.started", "alert.segment_error", "alert.segment_error"]


async def test_7_6_priority_4_a_manifest_failing_for_60_s_while_live_is_an_error_once(
    scene: Scene,
) -> None:
    scene.put()
    monitor = await scene.add()
    await scene.pass_time(15)
    number = scene.order(path=LIST, do="status", code=500)
    await scene.pass_time(59)
    assert scene.told() == ["stream.started"]
    await scene.pass_time(170)
    assert scene.told() == ["stream.started", "alert.segment_error"]
    data = scene.body("alert.segment_error")["data"]
    assert data["reason"] == "manifest"
    assert data["duration_sec"] == 60
    assert data["error_details"] == "the playlist was answered with 500"
    scene.world.orders.remove(number)
    await scene.pass_time(60)
    view = await scene.show(monitor)
    assert (view.monitor.status, view.video) == (Status.MONITORING, "ok")
    assert len(scene.told()) == 2


async def test_7_6_a_list_that_stands_still_for_60_s_while_live_is_an_error_of_its_own(
    scene: Scene,
) -> None:
    scene.put(Upset(what="stale", start=20, end=200))
    await scene.add()
    await scene.pass_time(190)
    assert scene.told() == ["stream.started", "alert.segment_error"]
    data = scene.body("alert.segment_error")["data"]
    assert data["reason"] == "stale_playlist"
    assert 60 <= data["duration_sec"] <= 75
    # Counted from when something new was last seen.
    assert 15 <= since(data["started_at"]) <= 25


async def test_7_6_production_that_stalls_for_less_than_60_s_is_no_error(scene: Scene) -> None:
    scene.put(Upset(what="stall", start=20, end=70))
    await scene.add()
    await scene.pass_time(120)
    assert scene.told() == ["stream.started"]


async def test_7_6_production_that_stalls_is_an_error_and_goes_on_after(scene: Scene) -> None:
    scene.put(Upset(what="stall", start=20, end=110), Shot(what="black", start=30, end=40))
    await scene.add(**LEAST)
    await scene.pass_time(150)
    told = ["stream.started", "alert.segment_error", "alert.blackout", "alert.blackout_recovered"]
    assert scene.told() == told
    over = scene.body("alert.blackout_recovered")["data"]
    assert since(over["started_at"]) == pytest.approx(120, abs=0.05)
    assert over["total_duration_sec"] == pytest.approx(10, abs=0.05)


@pytest.mark.parametrize("what", ["missing", "stale"])
async def test_7_6_failing_is_the_end_where_it_is_not_live(scene: Scene, what: str) -> None:
    scene.put(Upset(what=what, start=20), seconds=60)
    monitor = await scene.add()
    await scene.pass_time(200)
    assert scene.told() == ["stream.started", "stream.ended"]
    assert (await scene.show(monitor)).monitor.status is Status.COMPLETED


async def test_7_6_while_nobody_can_say_whether_it_is_live_no_error_is_told(scene: Scene) -> None:
    scene.put(Upset(what="missing", start=20), Upset(what="bot", start=20, end=150))
    monitor = await scene.add()
    await scene.pass_time(150)
    assert scene.told() == ["stream.started"]
    assert (await scene.show(monitor)).monitor.status is Status.MONITORING
    await scene.pass_time(200)
    assert scene.told() == ["stream.started", "alert.segment_error"]


async def test_7_6_every_5_minutes_it_is_asked_whether_a_stream_is_live(scene: Scene) -> None:
    scene.put(Upset(what="gap", start=4), window=60)
    await scene.add(check_interval_sec=60)
    await scene.pass_time(910)
    assert scene.times(RESOLVER) == [0, 300, 600, 900]


async def test_7_6_at_the_end_the_event_is_told_the_monitor_completed_and_nothing_runs(
    scene: Scene,
) -> None:
    scene.put(seconds=20)
    monitor = await scene.add()
    await scene.pass_time(40)
    ended_at = (await scene.show(monitor)).ended_at
    asked = len(scene.seen("/"))
    assert ended_at is not None
    assert at(20) <= ended_at <= at(31)
    assert not await scene.is_scheduled(monitor)
    await scene.pass_time(3600)
    assert len(scene.seen("/")) == asked
    assert scene.told() == ["stream.started", "stream.ended"]


async def test_7_6_a_stream_that_ends_black_tells_no_recovery(scene: Scene) -> None:
    scene.put(Shot(what="black", start=10), seconds=30)
    await scene.add(**LEAST)
    await scene.pass_time(60)
    assert scene.told() == ["stream.started", "alert.blackout", "stream.ended"]
