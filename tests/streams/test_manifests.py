"""Finding a stream, by the rows of §5.4, §7.2, §10.2 and §10.3: who asks again, and who ends."""

from typing import Any

import pytest

from mimawari.sim.sites.youtube.programme import Upset
from mimawari.watches.streams.models import Status
from tests.streams.scene import OTHER, RESOLVER, VIDEO, Scene, at

MASTER = f"/live/{VIDEO}/master.m3u8"
LIST = f"/live/{VIDEO}/144p.m3u8"
NEVER_ENDS = ("bot", "rate", "region", "members", "network")


async def test_5_4_the_first_manifest_is_fetched_at_once(scene: Scene) -> None:
    scene.put(starts_at=at(-60))
    await scene.add()
    await scene.pass_time(0.1)
    assert (scene.times(MASTER), scene.times(LIST)) == ([0], [0])


async def test_5_4_a_list_is_read_again_every_interval(scene: Scene) -> None:
    scene.put(starts_at=at(-60))
    await scene.add(check_interval_sec=10)
    await scene.pass_time(35)
    assert scene.times(LIST) == [0, 10, 20, 30]
    assert scene.times(MASTER) == [0]


async def test_5_4_a_manifest_that_failed_is_fetched_again_after_5_s(scene: Scene) -> None:
    scene.put(starts_at=at(-60))
    scene.order(path=MASTER, do="status", code=500, times=1)
    await scene.add()
    await scene.pass_time(7)
    assert scene.times(MASTER) == [0, 5]
    assert scene.told() == ["stream.started"]


@pytest.mark.parametrize("path", [MASTER, LIST])
@pytest.mark.parametrize("code", [403, 404, 410])
async def test_5_4_a_manifest_that_is_not_there_yet_at_the_start_is_tried_again_after_5_s(
    scene: Scene, path: str, code: int
) -> None:
    scene.put(starts_at=at(30), scheduled_at=at(30))
    scene.order(path=path, do="status", code=code, times=1)
    await scene.add(scheduled_start_time=at(30).isoformat())
    await scene.pass_time(50)
    # It began at 30; nobody is asked a second time for what works again by itself.
    assert scene.times(MASTER) == [30, 35]
    assert scene.segments()[0] >= 0
    assert scene.times(RESOLVER) == [0, 30]


async def test_10_2_a_manifest_that_stays_away_is_tried_on_and_a_new_address_is_asked_for(
    scene: Scene,
) -> None:
    scene.put(starts_at=at(-60))
    scene.order(path=MASTER, do="status", code=404, for_s=60)
    await scene.add()
    await scene.pass_time(70)
    assert scene.times(MASTER)[:4] == [0, 5, 15, 35]
    # The first answer is a moment old until 15 s have passed, and so is each one after it.
    assert scene.times(RESOLVER)[:2] == [0, 15]
    assert scene.segments()


@pytest.mark.parametrize("scene", [{"streams_resolves": 1}], indirect=True)
async def test_10_2_a_manifest_that_is_back_is_read_though_nobody_may_ask_for_a_new_address(
    scene: Scene,
) -> None:
    scene.put(starts_at=at(-60))
    scene.order(path=MASTER, do="status", code=404, for_s=20)
    await scene.add()
    await scene.pass_time(50)
    assert scene.times(RESOLVER) == [0]
    assert scene.times(MASTER) == [0, 5, 15, 35]
    assert scene.segments()


async def test_7_2_not_begun_is_waited_for_as_long_as_it_takes(scene: Scene) -> None:
    line = f'{{"error": "ERROR: [youtube] {VIDEO}: This live event will begin in 5 minutes."}}'
    scene.order(path=RESOLVER, do="status", code=200, body=line, type="application/json")
    monitor = await scene.add()
    await scene.pass_time(125)
    view = await scene.show(monitor)
    assert (view.monitor.status, view.stream_status) == (Status.WAITING, "upcoming")
    assert scene.times(RESOLVER) == [0, 60, 120]
    assert scene.told() == []


@pytest.mark.parametrize(
    "order",
    [{"do": "status", "code": 503}, {"do": "gone"}, {"do": "garbage"}, {"do": "empty"}],
    ids=lambda order: order["do"],
)
async def test_7_2_network_error_is_retried_with_exponential_backoff_up_to_60_s(
    scene: Scene, order: dict[str, Any]
) -> None:
    scene.put(starts_at=at(-100))
    number = scene.order(path=RESOLVER, **order)
    monitor = await scene.add()
    await scene.pass_time(200)
    assert scene.times(RESOLVER) == [0, 5, 15, 35, 75, 135, 195]
    view = await scene.show(monitor)
    assert view.monitor.status is Status.WAITING
    assert view.reason is not None
    assert view.reason.startswith("network: ")
    scene.world.orders.remove(number)
    await scene.pass_time(60)
    assert scene.told() == ["stream.started"]


async def test_7_2_network_error_that_the_resolver_tells_of_is_waited_for_the_same_way(
    scene: Scene,
) -> None:
    scene.put(Upset(what="network", start=-1, end=70))
    await scene.add()
    await scene.pass_time(80)
    assert scene.times(RESOLVER) == [0, 5, 15, 35, 75]
    assert scene.told() == ["stream.started"]


@pytest.mark.parametrize("trouble", ["private", "removed"])
async def test_7_2_removed_or_private_is_monitor_error_and_the_end(
    scene: Scene, trouble: str
) -> None:
    scene.put(Upset(what=trouble, start=-1))
    monitor = await scene.add()
    await scene.pass_time(120)
    assert scene.told() == ["monitor.error"]
    assert scene.body("monitor.error")["data"]["reason"] == trouble
    view = await scene.show(monitor)
    assert view.monitor.status is Status.ERROR
    assert view.reason is not None
    assert view.reason.startswith(f"{trouble}: ")
    assert view.ended_at == at(0)
    assert scene.times(RESOLVER) == [0]
    assert not await scene.is_scheduled(monitor)


async def test_7_2_unavailable_is_monitor_error_and_the_end(scene: Scene) -> None:
    monitor = await scene.add(OTHER)
    await scene.pass_time(60)
    assert scene.told() == ["monitor.error"]
    data = scene.body("monitor.error")["data"]
    assert data["reason"] == "unavailable"
    assert data["error_details"] == f"ERROR: [youtube] {OTHER}: Video unavailable"
    assert (await scene.show(monitor)).monitor.status is Status.ERROR


async def test_7_2_a_stream_that_is_made_private_while_it_is_watched_ends_its_monitor(
    scene: Scene,
) -> None:
    scene.put(Upset(what="private", start=10), Upset(what="gap", start=10))
    monitor = await scene.add()
    await scene.pass_time(310)
    assert scene.told() == ["stream.started", "monitor.error"]
    assert scene.body("monitor.error")["data"]["previous_status"] == "monitoring"
    assert (await scene.show(monitor)).monitor.status is Status.ERROR


@pytest.mark.parametrize("trouble", NEVER_ENDS)
async def test_7_2_who_is_refused_while_waiting_waits_on(scene: Scene, trouble: str) -> None:
    scene.put(Upset(what=trouble, start=-1, end=850), Upset(what="gap", start=0))
    monitor = await scene.add()
    await scene.pass_time(800)
    view = await scene.show(monitor)
    assert view.monitor.status is Status.WAITING
    assert scene.told() == []
    await scene.pass_time(150)
    assert scene.told() == ["stream.started"]


@pytest.mark.parametrize("trouble", NEVER_ENDS)
async def test_7_6_who_is_refused_while_watching_watches_on(scene: Scene, trouble: str) -> None:
    scene.put(Upset(what=trouble, start=10), Upset(what="gap", start=4), window=60)
    monitor = await scene.add(check_interval_sec=60)
    await scene.pass_time(1500)
    view = await scene.show(monitor)
    assert (view.monitor.status, view.stream_status) == (Status.MONITORING, "live")
    assert scene.told() == ["stream.started"]
    # It is asked for again, but seldom.
    assert 2 < len(scene.times(RESOLVER)) < 30


async def test_7_2_an_archive_is_told_as_ended_and_never_watched(scene: Scene) -> None:
    scene.put(starts_at=at(-5000), seconds=100)
    monitor = await scene.add()
    await scene.pass_time(60)
    assert scene.told() == ["stream.ended"]
    assert scene.times("/live/") == []
    assert (await scene.show(monitor)).monitor.status is Status.COMPLETED


async def test_10_1_a_temporary_error_is_retried_and_nobody_is_told(scene: Scene) -> None:
    scene.put(starts_at=at(-60))
    await scene.add()
    await scene.pass_time(5)
    scene.order(path="/live/", do="status", code=503, for_s=30)
    await scene.pass_time(60)
    assert scene.told() == ["stream.started"]
    assert scene.segments()[-1] > 50


async def test_10_2_a_manifest_is_tried_after_5_10_20_and_40_s(scene: Scene) -> None:
    scene.put(starts_at=at(-60))
    monitor = await scene.add()
    await scene.pass_time(5)
    scene.order(path="/live/", do="status", code=500)
    await scene.pass_time(52)
    # The list is tried first, then the master that names it.
    assert scene.times("/live/")[-4:] == [10, 15, 25, 45]
    view = await scene.show(monitor)
    assert view.reason == "manifest: the playlist was answered with 500"


async def test_10_3_after_5_failures_there_is_a_pause_of_30_s_and_then_one_try(
    scene: Scene,
) -> None:
    scene.put(starts_at=at(-60))
    await scene.add()
    await scene.pass_time(5)
    number = scene.order(path="/live/", do="status", code=500)
    await scene.pass_time(130)
    assert scene.times("/live/")[-7:] == [10, 15, 25, 45, 70, 100, 130]
    scene.world.orders.remove(number)
    await scene.pass_time(50)
    # One that works ends the pause: every interval again.
    assert scene.times(LIST)[-3:] == [160, 170, 180]


async def test_10_3_a_resolver_that_fails_5_times_is_left_alone_for_30_s_by_all(
    scene: Scene,
) -> None:
    scene.put(Upset(what="gap", start=0))
    scene.put(Upset(what="gap", start=0), video_id=OTHER)
    number = scene.order(path=RESOLVER, do="status", code=503)
    await scene.add()
    await scene.add(OTHER)
    await scene.pass_time(60)
    first = scene.times(RESOLVER)
    assert first[5] - first[4] >= 30
    scene.world.orders.remove(number)
    await scene.pass_time(120)
    assert scene.told() == ["stream.started"] * 2


async def test_7_2_an_address_that_is_refused_is_asked_for_anew(scene: Scene) -> None:
    scene.put(Upset(what="forbidden", start=22))
    monitor = await scene.add()
    await scene.pass_time(60)
    assert [one["status"] for one in scene.seen(LIST)].count(403) == 1
    assert len(scene.times(RESOLVER)) == 2
    assert scene.told() == ["stream.started"]
    # Nothing was lost over it.
    taken = scene.segments()
    assert taken == list(range(taken[0], taken[-1] + 1))
    assert (await scene.show(monitor)).segments == len(taken)


async def test_5_4_an_address_is_renewed_before_it_runs_out(scene: Scene) -> None:
    scene.put(Upset(what="gap", start=0), segment_seconds=60, window=20)
    await scene.add(check_interval_sec=300)
    await scene.pass_time(6 * 3600 + 600)
    assert 403 not in {one["status"] for one in scene.seen("/live/")}
    masters = scene.times(MASTER)
    assert len(masters) == 2
    assert 5 * 3600 < masters[1] < 6 * 3600


async def test_6_5_a_playlist_that_is_none_is_a_failure_and_never_the_end(scene: Scene) -> None:
    scene.put(Upset(what="not_playlist", start=20, end=40))
    monitor = await scene.add()
    await scene.pass_time(30)
    view = await scene.show(monitor)
    assert view.reason is not None
    assert view.reason.startswith("manifest: no playlist: it begins with '<!DOCTYPE html>")
    await scene.pass_time(40)
    assert (await scene.show(monitor)).monitor.status is Status.MONITORING
    assert scene.told() == ["stream.started"]
    assert scene.segments()[-1] >= 27
