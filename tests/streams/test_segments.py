"""Every segment is looked into once and in order, and what nobody saw proves nothing: §6."""

from itertools import pairwise

import pytest
import structlog

from mimawari.sim.sites.youtube.programme import Shot, Upset
from mimawari.watches.streams.models import Status
from tests.streams.making import FRAME
from tests.streams.scene import LEAST, VIDEO, Scene, at, since

MASTER = f"/live/{VIDEO}/master.m3u8"


async def test_6_1_every_new_segment_is_looked_into_once_and_in_order(scene: Scene) -> None:
    scene.put()
    monitor = await scene.add()
    await scene.pass_time(65)
    taken = scene.segments()
    assert taken == list(range(taken[0], taken[0] + len(taken)))
    assert len(taken) > 20
    assert (await scene.show(monitor)).segments == len(taken)


async def test_6_1_the_lowest_variant_is_looked_at_unless_another_is_asked_for(
    scene: Scene,
) -> None:
    scene.put(starts_at=at(-30))
    await scene.add(quality="360p")
    await scene.pass_time(5)
    assert scene.segments() == []
    assert len(scene.seen(f"/live/{VIDEO}/360p/")) == 1


async def test_6_1_fmp4_is_looked_into_with_its_header(scene: Scene) -> None:
    scene.put(Shot(what="black", start=10, end=20), container="fmp4")
    await scene.add(**LEAST)
    await scene.pass_time(40)
    assert scene.told()[1:] == ["alert.blackout", "alert.blackout_recovered"]
    assert scene.body("alert.blackout_recovered")["data"]["total_duration_sec"] == pytest.approx(
        10, abs=FRAME
    )


async def test_6_2_who_is_quick_waits_for_the_interval(scene: Scene) -> None:
    scene.put(starts_at=at(-60))
    await scene.add(check_interval_sec=7)
    await scene.pass_time(22)
    assert scene.times(f"/live/{VIDEO}/144p.m3u8") == [0, 7, 14, 21]


async def test_6_2_who_is_late_goes_on_at_once_and_never_twice_at_a_time(scene: Scene) -> None:
    scene.put(starts_at=at(-60))
    monitor = await scene.add(check_interval_sec=1)
    # Nothing is worked off while the clock moves on: the next check comes late.
    await scene.pass_time(1)
    await scene.clock.advance(at(20) - scene.clock.now())
    await scene.pass_time(3)
    assert scene.times(f"/live/{VIDEO}/144p.m3u8")[-3:] == [20, 21, 22]
    taken = scene.segments()
    assert taken == list(range(taken[0], taken[-1] + 1))
    assert (await scene.show(monitor)).segments == len(taken)


async def test_6_3_black_over_a_gap_is_neither_proved_nor_cleared_by_it(scene: Scene) -> None:
    scene.put(Shot(what="black", start=10, end=40), Upset(what="gap", start=16, end=30))
    await scene.add(blackout_threshold_sec=12, silence_threshold_sec=60)
    await scene.pass_time(70)
    assert scene.told()[1:] == ["alert.blackout", "alert.blackout_recovered"]
    alert = scene.body("alert.blackout")["data"]
    # Six seconds before the gap and six behind it; the gap itself counts for nothing.
    assert alert["duration_sec"] == pytest.approx(12, abs=0.05)
    assert since(alert["started_at"]) == pytest.approx(10, abs=0.05)
    over = scene.body("alert.blackout_recovered")["data"]
    assert since(over["recovered_at"]) == pytest.approx(40, abs=0.05)


async def test_6_3_a_gap_alone_does_not_make_black_long_enough(scene: Scene) -> None:
    scene.put(Shot(what="black", start=10, end=34), Upset(what="gap", start=16, end=30))
    await scene.add(blackout_threshold_sec=12, silence_threshold_sec=60)
    await scene.pass_time(60)
    assert scene.told() == ["stream.started"]


async def test_6_3_black_goes_on_over_a_discontinuity(scene: Scene) -> None:
    scene.put(Shot(what="black", start=10, end=30), Upset(what="break", start=20))
    await scene.add(blackout_threshold_sec=15)
    await scene.pass_time(60)
    assert scene.told()[1:] == ["alert.blackout", "alert.blackout_recovered"]
    over = scene.body("alert.blackout_recovered")["data"]
    assert over["total_duration_sec"] == pytest.approx(20, abs=0.1)


async def test_6_5_a_sequence_that_starts_anew_is_followed(scene: Scene) -> None:
    scene.put(Shot(what="black", start=50, end=70), Upset(what="restart", start=60))
    monitor = await scene.add(blackout_threshold_sec=12)
    await scene.pass_time(110)
    # Of what was black before, the last that was listed was of up to 52 s; the rest was never seen.
    assert scene.told()[1:] == ["alert.blackout", "alert.blackout_recovered"]
    taken = scene.segments()
    anew = taken.index(0)
    assert taken[anew:] == list(range(len(taken) - anew))
    assert (await scene.show(monitor)).segments == len(taken)


async def test_6_1_who_falls_far_behind_goes_on_with_the_newest_and_says_so(scene: Scene) -> None:
    scene.put(Shot(what="black", start=10, end=600), window=300)
    await scene.add(**LEAST)
    await scene.pass_time(30)
    await scene.clock.advance(at(500) - scene.clock.now())
    with structlog.testing.capture_logs() as lines:
        await scene.pass_time(5)
    [line] = [one for one in lines if one["event"] == "fell behind"]
    assert line["log_level"] == "warning"
    assert (line["segments"], line["next"]) == (
        scene.segments()[-1] - scene.segments()[-2] - 1,
        249,
    )
    assert scene.segments()[-1] == 249
    # It was black before and is black now: that is one and the same alert.
    assert scene.told() == ["stream.started", "alert.blackout"]


async def test_6_5_encrypted_segments_are_said_to_be_unsupported_once(scene: Scene) -> None:
    scene.put(Upset(what="encrypted", start=10))
    monitor = await scene.add(**LEAST)
    await scene.pass_time(100)
    assert scene.told() == ["stream.started", "alert.segment_error"]
    data = scene.body("alert.segment_error")["data"]
    assert data["reason"] == "encrypted_unsupported"
    assert scene.segments() == [4]
    assert (await scene.show(monitor)).monitor.status is Status.MONITORING


async def test_6_5_one_failure_of_the_list_is_no_spell_where_nothing_can_be_seen(
    scene: Scene,
) -> None:
    scene.put(Upset(what="gap", start=0))
    scene.order(path=MASTER, do="status", code=500, times=1)
    monitor = await scene.add()
    await scene.pass_time(120)
    assert scene.told() == ["stream.started"]
    assert (await scene.state(monitor)).fault is None


async def test_6_5_garbage_and_pages_in_place_of_segments_are_passed_by(scene: Scene) -> None:
    scene.put(Shot(what="black", start=10, end=40), Upset(what="garbage", start=20, end=23.9))
    monitor = await scene.add(blackout_threshold_sec=20)
    await scene.pass_time(60)
    # The two in the middle, one of HTML and one of noise, are no reason to miss others.
    taken = scene.segments()
    assert taken == list(range(taken[0], taken[-1] + 1))
    assert (await scene.show(monitor)).segments == len(taken) - 2
    assert scene.told()[1:] == ["alert.blackout", "alert.blackout_recovered"]
    over = scene.body("alert.blackout_recovered")["data"]
    assert over["total_duration_sec"] == pytest.approx(30, abs=0.05)
    assert (await scene.state(monitor)).fault is None


async def test_6_6_nothing_but_garbage_for_60_s_is_told_once(scene: Scene) -> None:
    scene.put(Upset(what="garbage", start=20, end=120))
    monitor = await scene.add()
    await scene.pass_time(75)
    assert scene.told() == ["stream.started"]
    await scene.pass_time(40)
    assert scene.told() == ["stream.started", "alert.segment_error"]
    assert scene.body("alert.segment_error")["data"]["reason"] == "segment"
    await scene.pass_time(30)
    assert (await scene.show(monitor)).video == "ok"
    assert len(scene.told()) == 2


async def test_10_2_a_segment_is_tried_again_3_times_after_2_4_and_8_s(scene: Scene) -> None:
    scene.put(Upset(what="missing", start=10, end=11))
    await scene.add()
    await scene.pass_time(60)
    tries = scene.times(f"/live/{VIDEO}/144p/5.ts")
    assert [after - before for before, after in pairwise(tries)] == [2, 4, 8]
    assert scene.told() == ["stream.started"]
    assert scene.segments()[-1] > 20


async def test_10_2_a_segment_that_comes_at_the_second_try_is_not_missed(scene: Scene) -> None:
    scene.put(Shot(what="black", start=10, end=20))
    scene.order(path=f"/live/{VIDEO}/144p/7.ts", do="status", code=503, times=1)
    monitor = await scene.add(blackout_threshold_sec=10)
    await scene.pass_time(50)
    assert scene.told()[1:] == ["alert.blackout", "alert.blackout_recovered"]
    assert (await scene.show(monitor)).segments == len(set(scene.segments()))


@pytest.mark.parametrize("length", ["0", "1000000000", "-5", "1e400"])
async def test_6_5_lengths_that_cannot_be_are_borne(scene: Scene, length: str) -> None:
    scene.put(starts_at=at(-60))
    query = scene.live._make_token(VIDEO)  # noqa: SLF001 - a list with odd lengths must be let in
    lines = ["#EXTM3U", "#EXT-X-TARGETDURATION:2", "#EXT-X-MEDIA-SEQUENCE:5"]
    for number in range(5, 9):
        lines += [f"#EXTINF:{length},", f"144p/{number}.ts?{query}"]
    body = "\n".join(lines)
    scene.order(path=MASTER, do="status", code=200, body=body, type="application/x-mpegurl")
    monitor = await scene.add()
    await scene.pass_time(30)
    assert (await scene.show(monitor)).segments == 1
    assert scene.segments() == [8]


async def test_6_6_40_s_of_missing_segments_are_not_told(scene: Scene) -> None:
    scene.put(Upset(what="missing", start=20, end=60))
    await scene.add()
    await scene.pass_time(150)
    assert scene.told() == ["stream.started"]


async def test_10_3_after_5_failures_there_is_a_pause_of_30_s_and_one_try_of_the_newest(
    scene: Scene,
) -> None:
    scene.put(Upset(what="missing", start=20, end=60))
    await scene.add()
    await scene.pass_time(70)
    asked = scene.seen(f"/live/{VIDEO}/144p/")
    times = scene.times(f"/live/{VIDEO}/144p/")
    failed = [number for number, one in enumerate(asked) if one["status"] == 404]
    again = failed[-1] + 1
    assert len(failed) == 5
    assert times[again] - times[failed[-1]] == 30
    assert scene.segments()[again] == times[again] // 2 - 1
