"""What simulated streams promise over their lives: announced, live, over, and whole in between."""

import math
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimawari.errors import BadInput
from mimawari.media.playlist import Master, parse_playlist
from mimawari.media.segment import analyse
from mimawari.sim.sites.youtube.playlists import KEPT_SECONDS
from mimawari.sim.sites.youtube.programme import Container, Programme, Shot, Upset
from mimawari.sim.sites.youtube.segments import make_segment
from mimawari.sites.youtube import parse_answer
from tests.sim.viewing import PROGRAMME, STARTS_AT, VIDEO, watching

MINUTE = timedelta(minutes=1)


async def test_a_life_goes_from_upcoming_over_live_to_a_recording() -> None:
    programme = replace(
        PROGRAMME, scheduled_at=STARTS_AT + MINUTE, starts_at=STARTS_AT + 5 * MINUTE, seconds=120.0
    )
    async with watching(programme) as viewer:
        said = []
        for seconds in (0, 299, 300, 419, 420, 420 + 599, 420 + 600):
            await viewer.wait(seconds)
            said.append(await viewer.resolve())
    statuses = [one["live_status"] for one in said]
    assert statuses == [*["is_upcoming"] * 2, *["is_live"] * 2, *["post_live"] * 2, "was_live"]
    assert [one["is_live"] for one in said] == [status == "is_live" for status in statuses]
    assert [one["manifest_url"] is None for one in said] == [not one["is_live"] for one in said]
    answers = [parse_answer(one) for one in said]
    assert {one.title for one in answers} == {programme.title}
    assert [one.release_at for one in answers[:2]] == [programme.scheduled_at] * 2
    assert [one.release_at for one in answers[2:]] == [programme.starts_at] * 5


async def test_the_ladder_has_three_sizes_in_the_order_of_the_seed() -> None:
    orders = set()
    for number in range(8):
        programme = replace(PROGRAMME, video_id=f"video-{number}")
        async with watching(programme) as viewer:
            url = (await viewer.resolve(programme.video_id))["manifest_url"]
            assert url.startswith(f"http://world.test/live/video-{number}/master.m3u8?")
            master = parse_playlist((await viewer.http.get(url)).content, url)
        assert isinstance(master, Master)
        by_bandwidth = sorted(master.variants, key=lambda one: one.bandwidth)
        assert [one.height for one in by_bandwidth] == [144, 360, 720]
        orders.add(tuple(one.height for one in master.variants))
    assert len(orders) > 1


@pytest.mark.parametrize(("quality", "height"), [("lowest", 144), ("360p", 360), ("best", 720)])
async def test_each_size_shows_the_same_programme(quality: str, height: int) -> None:
    programme = replace(PROGRAMME, shots=(Shot(what="black", start=0.4, end=1.6),))
    async with watching(programme) as viewer:
        await viewer.wait(2)
        [segment] = (await viewer.read_list(quality)).segments
        assert f"/{height}p/" in segment.piece.url
        found = (await viewer.look(segment)).picture
    assert found is not None
    [black] = found.bad
    assert (black.start, black.end) == pytest.approx((10.4, 11.6))


async def test_a_segment_is_there_when_it_is_whole_and_not_before() -> None:
    async with watching(PROGRAMME) as viewer:
        assert (await viewer.read_list()).segments == ()
        await viewer.wait(2)
        [first] = (await viewer.read_list()).segments
        coming = first.piece.url.replace("/0.ts", "/1.ts")
        await viewer.wait(3.999)
        assert (await viewer.http.get(coming)).status_code == 404
        assert len((await viewer.read_list()).segments) == 1
        await viewer.wait(4)
        assert (await viewer.http.get(coming)).status_code == 200
        assert [one.sequence for one in (await viewer.read_list()).segments] == [0, 1]


async def test_a_list_names_the_latest_segments_and_older_ones_stay_for_a_while() -> None:
    async with watching(replace(PROGRAMME, window=5)) as viewer:
        await viewer.wait(20)
        listed = await viewer.read_list()
        assert [one.sequence for one in listed.segments] == [5, 6, 7, 8, 9]
        assert (listed.target_seconds, listed.is_ended) == (2.0, False)
        await viewer.wait(20 + KEPT_SECONDS)
        assert (await viewer.fetch(listed.segments[0])).status_code == 200
        await viewer.wait(20 + KEPT_SECONDS + 2)
        assert (await viewer.fetch(listed.segments[0])).status_code == 404
        assert (await viewer.fetch(listed.segments[1])).status_code == 200


@pytest.mark.parametrize("container", ["ts", "fmp4"])
async def test_segments_join_without_a_hole(container: Container) -> None:
    programme = replace(PROGRAMME, container=container, window=20)
    async with watching(programme) as viewer:
        await viewer.wait(40)
        segments = (await viewer.read_list()).segments
        found = [await viewer.look(one) for one in segments]
        bodies = [(await viewer.fetch(one)).content for one in segments]
    assert [one.at for one in segments] == [STARTS_AT + n * timedelta(seconds=2) for n in range(20)]
    for kind in ("picture", "sound"):
        tracks = [getattr(one, kind).whole for one in found]
        assert tracks[0].start == pytest.approx(10)
        assert tracks[-1].end == pytest.approx(50, abs=0.022)
        assert all(b.start == pytest.approx(a.end, abs=1e-4) for a, b in pairwise(tracks))
    if container == "ts":
        whole = analyse(b"".join(bodies)).sound
        assert whole is not None
        assert whole.whole.seconds == pytest.approx(40, abs=0.022)
        assert whole.bad == ()


async def test_lists_may_tell_no_time() -> None:
    async with watching(replace(PROGRAMME, is_dated=False)) as viewer:
        await viewer.wait(4)
        assert [one.at for one in (await viewer.read_list()).segments] == [None, None]


@pytest.mark.parametrize("container", ["ts", "fmp4"])
async def test_the_last_segment_is_shorter_and_the_list_says_that_it_is_over(
    container: Container,
) -> None:
    programme = replace(PROGRAMME, seconds=5.2, container=container)
    async with watching(programme) as viewer:
        await viewer.wait(5.1)
        assert not (await viewer.read_list()).is_ended
        await viewer.wait(5.2)
        listed = await viewer.read_list()
        assert listed.is_ended
        assert [one.seconds for one in listed.segments] == [2.0, 2.0, 1.2]
        found = await viewer.look(listed.segments[-1])
        assert found.picture is not None
        assert found.picture.whole.seconds == pytest.approx(1.2)
        await viewer.wait(20_000)
        assert (await viewer.read_list()).segments == listed.segments
        assert (await viewer.fetch(listed.segments[0])).status_code == 200


async def test_what_vanishes_is_gone_with_its_end() -> None:
    async with watching(replace(PROGRAMME, seconds=6.0, ending="vanish")) as viewer:
        await viewer.wait(5.9)
        [first, _] = (await viewer.read_list()).segments
        await viewer.wait(6)
        assert (await viewer.fetch_list()).status_code == 404
        assert (await viewer.fetch(first)).status_code == 404
        assert (await viewer.resolve())["live_status"] == "post_live"


async def test_an_address_works_for_six_hours_and_only_as_it_was_given() -> None:
    async with watching(PROGRAMME) as viewer:
        await viewer.resolve()
        bare = viewer.manifest_url.partition("?")[0]
        other = viewer.manifest_url.replace("issued=1", "issued=2")
        for url in (bare, other, f"{bare}?expire=x&issued=y&sig=z"):
            assert (await viewer.http.get(url)).status_code == 403
        await viewer.wait(6 * 3600)
        assert (await viewer.fetch_list()).status_code == 200
        await viewer.wait(6 * 3600 + 1)
        assert (await viewer.fetch_list()).status_code == 403
        await viewer.resolve()
        assert (await viewer.fetch_list()).status_code == 200


async def test_what_is_not_there_is_not_found() -> None:
    async with watching(PROGRAMME) as viewer:
        await viewer.wait(4)
        url = (await viewer.read_list()).segments[0].piece.url
        for old, new in (
            *(("0.ts", "0.m4s"), ("0.ts", "init.mp4"), ("0.ts", "9.ts"), ("144p", "145p")),
            *((VIDEO, "other"), ("144p/0.ts", "key.bin"), ("0.ts", "\uff10.ts")),
        ):
            assert (await viewer.http.get(url.replace(old, new))).status_code == 404, new
        assert (await viewer.http.post(url)).status_code == 405
        assert (await viewer.http.get("/resolve")).status_code == 400


async def test_a_stream_that_is_not_yet_live_has_no_manifest() -> None:
    async with watching(replace(PROGRAMME, starts_at=STARTS_AT + MINUTE)) as viewer:
        said = await viewer.resolve()
        assert said["release_timestamp"] is None
        reply = await viewer.http.get(f"/live/{VIDEO}/master.m3u8")
        assert reply.status_code == 404


def test_a_segment_in_which_the_media_clock_begins_anew_can_be_looked_into() -> None:
    number = math.floor((2**33 / 90_000 - 10) / 2)
    for near in (number, number + 1):
        found = analyse(make_segment(PROGRAMME, near, 144))
        assert found.picture is not None
        assert found.picture.whole.seconds == pytest.approx(2)


spans = st.lists(st.integers(0, 400), min_size=2, max_size=8, unique=True).map(sorted)


@given(edges=spans, moment=st.integers(0, 500))
def test_what_is_produced_at_a_time_was_produced_by_then(edges: list[int], moment: int) -> None:
    stalls = zip(edges[::2], edges[1::2], strict=False)
    upsets = tuple(Upset(what="stall", start=start, end=end) for start, end in stalls)
    programme = replace(PROGRAMME, upsets=upsets)
    on_clock = programme.clock_of(moment, is_end=True)
    assert programme.moment_of(on_clock) == moment
    assert programme.moment_of(on_clock - 0.5) < moment or moment == 0
    assert programme.moment_of(programme.clock_of(moment)) == moment
    assert programme.count_segments(on_clock) == moment // 2


@pytest.mark.parametrize(
    "change",
    [
        {"segment_seconds": 0.0},
        {"segment_seconds": 2.01},
        {"seconds": 3.333},
        {"seconds": 0.0},
        {"upsets": (Upset(what="stall", start=-1, end=1),)},
        {"upsets": tuple(Upset(what="stall", start=at, end=at + 2) for at in (1, 2))},
    ],
)
def test_a_programme_that_cannot_be_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        Programme(video_id=VIDEO, title="", starts_at=STARTS_AT, **change)  # type: ignore[arg-type]


@pytest.mark.parametrize(("what", "start", "end"), [("nothing", 0, 1), ("black", 2, 1)])
def test_a_shot_or_upset_that_cannot_be_is_refused(what: str, start: float, end: float) -> None:
    with pytest.raises(BadInput):
        Shot(what=what, start=start, end=end)
    with pytest.raises(BadInput):
        Upset(what=what, start=start, end=end)


@pytest.mark.parametrize(("end", "every"), [(5, 4), (math.inf, 60), (1, 0), (5, -1)])
def test_a_shot_that_comes_again_before_it_is_over_is_refused(end: float, every: float) -> None:
    with pytest.raises(BadInput):
        Shot(what="black", start=0, end=end, every=every)
