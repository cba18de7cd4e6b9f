"""What the streams promise that are always there: the same by seed and time, and one of each."""

import re
from datetime import UTC, datetime, timedelta

import httpx2
import pytest

from mimawari.kernel.clock import VirtualClock
from mimawari.media.playlist import Playlist, choose_variant, parse_playlist
from mimawari.media.segment import analyse
from mimawari.sim.sites.youtube.catalogue import BLACK_SECONDS, LATE_FOR, SILENT_SECONDS, Catalogue
from mimawari.sim.sites.youtube.programme import Programme
from mimawari.sim.sites.youtube.resolver import tell_status
from mimawari.sim.sites.youtube.site import Live
from mimawari.sim.world import World
from tests.sim.asking import ask, html_of
from tests.sim.viewing import PROGRAMME

AT = datetime(2026, 6, 1, 3, 4, 5, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def listed(at: datetime = AT, seed: int = 1) -> tuple[Programme, ...]:
    return Catalogue(seed).list(at)


def test_there_are_six_streams_with_ids_like_real_ones_and_japanese_titles() -> None:
    ids = [one.video_id for one in listed()]
    assert len(set(ids)) == 6
    assert all(re.fullmatch("[A-Za-z0-9_-]{11}", one) for one in ids)
    assert all(re.search("[ぁ-ん一-龠]", one.title) for one in listed())


def test_they_follow_from_seed_and_time() -> None:
    assert listed() == listed()
    assert {one.video_id for one in listed(AT + 99 * MINUTE)} == {one.video_id for one in listed()}
    assert not {one.video_id for one in listed(seed=2)} & {one.video_id for one in listed()}


def test_over_a_day_each_of_them_does_what_it_is_there_for() -> None:
    seen: list[set[str]] = [set() for _ in range(6)]
    late_for = set()
    for minutes in range(0, 24 * 60, 5):
        now = AT + minutes * MINUTE
        for found, one in zip(seen, listed(now), strict=True):
            found.add(tell_status(one, now))
            if one.scheduled_at is not None:
                late_for.add(one.starts_at - one.scheduled_at)
    *endless, late, ending, upcoming = seen
    assert endless == [{"is_live"}] * 3
    assert late == ending == {"is_upcoming", "is_live", "post_live", "was_live"}
    assert upcoming == {"is_upcoming"}
    assert late_for == {timedelta(0), LATE_FOR}


def test_the_black_and_the_silent_one_come_back_every_few_minutes() -> None:
    live = Live(VirtualClock(AT), 1)
    told = live.truth({})["programmes"]
    assert [len(one["shots"]) > 100 for one in told] == [False, True, True, False, False, False]
    for one, seconds in ((told[1], BLACK_SECONDS), (told[2], SILENT_SECONDS)):
        lengths = {shot["end"] - shot["start"] for shot in one["shots"]}
        assert lengths == {seconds}
        soon = [shot for shot in one["shots"] if shot["from"] > AT.isoformat()]
        assert datetime.fromisoformat(soon[0]["from"]) - AT < 10 * MINUTE


@pytest.mark.parametrize("number", [0, 1, 2])
async def test_what_never_ends_can_be_watched_at_any_time(number: int) -> None:
    clock = VirtualClock(AT)
    inside = httpx2.ASGITransport(app=World(clock, (Live(clock, 1),), 1))
    async with httpx2.AsyncClient(transport=inside, base_url="http://world.test") as http:
        video_id = listed()[number].video_id
        said = (await http.get("/resolve", params={"v": video_id})).json()
        master = parse_playlist(
            (await http.get(said["manifest_url"])).content, said["manifest_url"]
        )
        assert not isinstance(master, Playlist)
        url = choose_variant(master, "lowest").url
        found = parse_playlist((await http.get(url)).content, url)
        assert isinstance(found, Playlist)
        assert len(found.segments) == 15
        body = (await http.get(found.segments[-1].piece.url)).content
    picture = analyse(body).picture
    assert picture is not None
    assert picture.whole.seconds == pytest.approx(2)


async def test_what_is_put_in_stands_beside_them_and_people_see_all() -> None:
    clock = VirtualClock(AT)
    live = Live(clock, 1)
    live.put(PROGRAMME)
    assert len(live.programmes) == 7
    home = html_of(await ask(live, "/live/"))
    assert all(f"/resolve?v={one}" in home for one in live.programmes)
    assert list(Live(clock, 1, has_catalogue=False).programmes) == []
