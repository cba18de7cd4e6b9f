"""Each event of the table in §4.1 is told, with the fields of §4.2 and §4.3."""

from datetime import datetime

import pytest

from mimawari.sim.sites.youtube.programme import Shot, Upset
from tests.streams.making import FRAME
from tests.streams.scene import LEAST, VIDEO, Scene, at, since

EXACT = FRAME + 0.001
"""A frame, and the thousandth of a second that times are written to."""


async def test_4_1_stream_started_is_told_once_when_a_stream_is_live(scene: Scene) -> None:
    scene.put()
    await scene.add()
    await scene.pass_time(30)
    assert scene.told() == ["stream.started"]
    data = scene.body("stream.started")["data"]
    assert data == {"started_at": "2026-06-01T20:00:00.000+09:00", "title": "夜の配信"}


async def test_4_1_stream_started_says_how_late_a_stream_is(scene: Scene) -> None:
    scene.put(starts_at=at(70), scheduled_at=at(60))
    await scene.add(scheduled_start_time=at(60).isoformat())
    await scene.pass_time(100)
    data = scene.body("stream.started")["data"]
    assert data["delay_sec"] == 30
    assert since(data["scheduled_start_time"]) == 60


async def test_4_1_stream_ended_is_told_once_at_the_end(scene: Scene) -> None:
    scene.put(seconds=20)
    monitor = await scene.add()
    await scene.pass_time(60)
    assert scene.told() == ["stream.started", "stream.ended"]
    data = scene.body("stream.ended")["data"]
    assert data["reason"] == "endlist"
    assert 20 <= since(data["ended_at"]) <= 30
    assert (await scene.show(monitor)).stream_status == "ended"


async def test_4_1_stream_delayed_is_told_once_after_the_tolerance(scene: Scene) -> None:
    scene.put(starts_at=at(5000), scheduled_at=at(60))
    await scene.add(scheduled_start_time=at(60).isoformat(), start_delay_tolerance_sec=90)
    await scene.pass_time(150)
    assert scene.told() == []
    await scene.pass_time(300)
    assert scene.told() == ["stream.delayed"]
    data = scene.body("stream.delayed")["data"]
    assert data == {
        "scheduled_start_time": "2026-06-01T20:01:00.000+09:00",
        "delay_sec": 91,
        "tolerance_sec": 90,
    }


async def test_4_1_alert_blackout_and_its_recovery_are_told_with_exact_times(
    scene: Scene,
) -> None:
    scene.put(Shot(what="black", start=20.52, end=35.2))
    monitor = await scene.add(**LEAST)
    await scene.pass_time(60)
    assert scene.told() == ["stream.started", "alert.blackout", "alert.blackout_recovered"]
    data = scene.body("alert.blackout")["data"]
    assert since(data["started_at"]) == pytest.approx(20.52, abs=EXACT)
    assert data["threshold_sec"] == 6
    assert data["duration_sec"] >= 6
    # The segment with which it became long enough: the one from 26 s on.
    assert data["segment_info"] == {"sequence": 13, "duration": 2.0}
    over = scene.body("alert.blackout_recovered")["data"]
    assert over.keys() == {"total_duration_sec", "started_at", "recovered_at"}
    assert over["started_at"] == data["started_at"]
    assert over["total_duration_sec"] == pytest.approx(14.68, abs=EXACT)
    assert since(over["recovered_at"]) == pytest.approx(35.2, abs=EXACT)
    view = await scene.show(monitor)
    assert (view.blackouts, view.silences, view.video) == (1, 0, "ok")


async def test_4_1_alert_blackout_comes_within_an_interval_and_a_segment(scene: Scene) -> None:
    scene.put(Shot(what="black", start=20.52))
    await scene.add(**LEAST)
    await scene.pass_time(60)
    alert = scene.body("alert.blackout")
    assert 26.52 <= since(alert["timestamp"]) <= 26.52 + 10 + 2


async def test_4_1_alert_silence_and_its_recovery_are_told_with_exact_times(scene: Scene) -> None:
    scene.put(Shot(what="silence", start=20.5, end=35.25))
    monitor = await scene.add(**LEAST)
    await scene.pass_time(60)
    assert scene.told() == ["stream.started", "alert.silence", "alert.silence_recovered"]
    data = scene.body("alert.silence")["data"]
    assert data.keys() == {"duration_sec", "started_at", "threshold_sec", "segment_info"}
    assert since(data["started_at"]) == pytest.approx(20.5, abs=0.05)
    over = scene.body("alert.silence_recovered")["data"]
    assert over.keys() == {"total_duration_sec", "started_at", "recovered_at"}
    assert since(over["recovered_at"]) == pytest.approx(35.25, abs=0.05)
    view = await scene.show(monitor)
    assert (view.blackouts, view.silences, view.audio) == (0, 1, "ok")


async def test_4_1_alert_segment_error_is_told_once_a_spell(scene: Scene) -> None:
    scene.put(Upset(what="missing", start=20))
    await scene.add()
    await scene.pass_time(600)
    assert scene.told() == ["stream.started", "alert.segment_error"]
    data = scene.body("alert.segment_error")["data"]
    assert data.keys() == {"reason", "duration_sec", "started_at", "error_details"}
    assert data["reason"] == "segment"
    assert data["duration_sec"] >= 60
    assert data["error_details"] == "the segment was answered with 404"


async def test_4_1_monitor_error_is_told_where_a_video_is_gone(scene: Scene) -> None:
    scene.put(Upset(what="removed", start=-1))
    await scene.add()
    await scene.pass_time(60)
    assert scene.told() == ["monitor.error"]
    data = scene.body("monitor.error")["data"]
    assert data["reason"] == "removed"
    assert data["previous_status"] == "initializing"
    assert "removed by the uploader" in data["error_details"]


async def test_4_2_a_payload_has_its_fields_in_their_order_and_all_that_was_given(
    scene: Scene,
) -> None:
    scene.put()
    monitor = await scene.add()
    await scene.pass_time(5)
    [body] = [one["body"] for one in scene.received()]
    fields = ["event_type", "monitor_id", "stream_url", "timestamp", "data", "metadata"]
    assert list(body) == fields
    assert body["monitor_id"] == monitor.id
    assert body["stream_url"] == f"https://www.youtube.com/watch?v={VIDEO}"
    assert body["timestamp"] == "2026-06-01T20:00:00+09:00"
    assert datetime.fromisoformat(body["timestamp"]) == at(0)
    assert body["metadata"] == {"channel_name": "星くず", "custom_data": {"n": 1}}


async def test_4_3_times_of_a_stream_that_tells_none_are_right_within_a_segment(
    scene: Scene,
) -> None:
    scene.put(Shot(what="black", start=20.52, end=35.2), is_dated=False)
    await scene.add(**LEAST)
    await scene.pass_time(60)
    over = scene.body("alert.blackout_recovered")["data"]
    assert since(over["started_at"]) == pytest.approx(20.52, abs=2 + EXACT)
    assert over["total_duration_sec"] == pytest.approx(14.68, abs=EXACT)


async def test_6_3_near_black_is_not_black_and_6_4_a_noise_floor_is_silence_but_no_hum(
    scene: Scene,
) -> None:
    scene.put(
        Shot(what="near_black", start=10, end=30),
        Shot(what="noise", start=10, end=20),
        Shot(what="hum", start=24, end=40),
    )
    await scene.add(**LEAST)
    await scene.pass_time(50)
    assert scene.told() == ["stream.started", "alert.silence", "alert.silence_recovered"]
    over = scene.body("alert.silence_recovered")["data"]
    assert over["total_duration_sec"] == pytest.approx(10, abs=0.1)


async def test_colour_bars_are_told_with_a_picture_where_asked_for(scene: Scene) -> None:
    scene.put(Shot(what="bars", start=10, end=20))
    await scene.add(**LEAST, bars_threshold_sec=6, snapshot=True)
    await scene.pass_time(40)
    assert scene.told()[1:] == ["alert.bars", "alert.bars_recovered"]
    assert scene.body("alert.bars")["data"]["snapshot"].startswith("data:image/jpeg;base64,/9j/")


async def test_a_still_picture_and_a_missing_sound_track_are_told_where_asked_for(
    scene: Scene,
) -> None:
    scene.put(Shot(what="freeze", start=10, end=20), Shot(what="mute_track", start=10, end=20))
    await scene.add(**LEAST, freeze_threshold_sec=6)
    await scene.pass_time(40)
    assert sorted(scene.told()[1:]) == [
        "alert.freeze", "alert.freeze_recovered", "alert.silence", "alert.silence_recovered"
    ]  # fmt: skip
    assert scene.body("alert.silence")["data"]["reason"] == "no_audio_track"


async def test_quiet_sound_is_told_with_its_loudness_where_asked_for(scene: Scene) -> None:
    scene.put(Shot(what="quiet", start=10, end=20))
    await scene.add(**LEAST, loudness_threshold_sec=6)
    await scene.pass_time(40)
    assert scene.told()[1:] == ["alert.loudness", "alert.loudness_recovered"]
    assert scene.body("alert.loudness")["data"]["lufs"] < -40


async def test_black_in_a_window_of_maintenance_is_not_told(scene: Scene) -> None:
    scene.put(Shot(what="black", start=10, end=25))
    window = {"from": at(5).isoformat(), "to": at(30).isoformat()}
    monitor = await scene.add(**LEAST, maintenance=[window])
    await scene.pass_time(45)
    assert scene.told() == ["stream.started"]
    assert (await scene.show(monitor)).blackouts == 0
