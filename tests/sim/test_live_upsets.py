"""What goes wrong with simulated streams: each upset as it is named, and only while it lasts."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from mimawari.media.playlist import NotPlaylist, Playlist
from mimawari.media.segment import Unreadable, analyse
from mimawari.sim.sites.youtube.programme import Programme, Shot, Upset
from mimawari.sites.youtube import Trouble, parse_answer
from tests.sim.viewing import PROGRAMME, STARTS_AT, Viewer, told, watching


def upset(*upsets: Upset) -> Programme:
    return replace(PROGRAMME, upsets=upsets)


def sequences(listed: Playlist) -> list[int]:
    return [one.sequence for one in listed.segments]


async def statuses(viewer: Viewer) -> list[int]:
    listed = await viewer.read_list()
    return [(await viewer.fetch(one)).status_code for one in listed.segments]


async def test_in_a_stall_nothing_is_produced_and_then_the_programme_goes_on() -> None:
    programme = replace(
        upset(Upset(what="stall", start=5, end=35)),
        shots=(Shot(what="black", start=5, end=7),),
        seconds=10.0,
    )
    async with watching(programme) as viewer:
        counts = []
        for seconds in (5, 34.9, 35.9, 36, 38):
            await viewer.wait(seconds)
            counts.append(len((await viewer.read_list()).segments))
        assert counts == [2, 2, 2, 3, 4]
        segments = (await viewer.read_list()).segments
        found = [(await viewer.look(one)).picture for one in segments]
        assert [one.at for one in segments[2:]] == [
            STARTS_AT + timedelta(seconds=seconds) for seconds in (4, 36)
        ]
        shot, stall = told(viewer.live, "black"), told(viewer.live, "stall")
        [truth] = viewer.live.truth({})["programmes"]
    assert [one.whole.start for one in found if one] == pytest.approx([10, 12, 14, 16])
    assert since(shot["from"]) == 35
    assert since(shot["to"]) == 37
    assert (stall["start"], stall["end"]) == (5, 5)
    assert since(truth["ends_at"]) == 40


def since(at: str) -> float:
    return (datetime.fromisoformat(at) - STARTS_AT).total_seconds()


async def test_a_stall_without_an_end_is_for_ever() -> None:
    programme = replace(upset(Upset(what="stall", start=4)), seconds=60.0)
    async with watching(programme) as viewer:
        await viewer.wait(100)
        listed = await viewer.read_list()
        assert (sequences(listed), listed.is_ended) == ([0, 1], False)
        assert (await viewer.resolve())["live_status"] == "is_live"
        [truth] = viewer.live.truth({})["programmes"]
        assert truth["ends_at"] is None
        assert (told(viewer.live, "stall")["end"], told(viewer.live, "stall")["to"]) == (4, None)


async def test_a_stale_list_is_the_one_of_when_it_became_so() -> None:
    async with watching(upset(Upset(what="stale", start=6, end=20))) as viewer:
        seen = []
        for seconds in (5.9, 6, 19.9, 20):
            await viewer.wait(seconds)
            seen.append(sequences(await viewer.read_list()))
    assert seen == [[0, 1], [0, 1, 2], [0, 1, 2], list(range(10))]


async def test_a_gap_is_listed_as_one_and_there_is_nothing_there() -> None:
    async with watching(upset(Upset(what="gap", start=3, end=6))) as viewer:
        await viewer.wait(10)
        listed = await viewer.read_list()
        assert [one.has_gap for one in listed.segments] == [False, True, True, False, False]
        assert await statuses(viewer) == [200, 404, 404, 200, 200]
        assert (told(viewer.live, "gap")["start"], told(viewer.live, "gap")["end"]) == (2, 6)


async def test_what_is_missing_is_listed_as_if_it_were_there() -> None:
    async with watching(upset(Upset(what="missing", start=4, end=6))) as viewer:
        await viewer.wait(10)
        assert not any(one.has_gap for one in (await viewer.read_list()).segments)
        assert await statuses(viewer) == [200, 200, 404, 200, 200]


async def test_with_a_break_the_media_clock_jumps() -> None:
    programme = replace(upset(Upset(what="break", start=3)), window=3)
    async with watching(programme) as viewer:
        await viewer.wait(8)
        segments = (await viewer.read_list()).segments
        assert [(one.sequence, one.has_break) for one in segments] == [
            *((1, False), (2, True), (3, False))
        ]
        found = [(await viewer.look(one)).picture for one in segments]
        assert [one.whole.start for one in found if one] == pytest.approx([12, 1014, 1016])
        assert told(viewer.live, "break")["start"] == 4
        await viewer.wait(12)
        reply = await viewer.fetch_list()
        assert b"#EXT-X-DISCONTINUITY\n" not in reply.content
        assert b"#EXT-X-DISCONTINUITY-SEQUENCE:1\n" in reply.content


async def test_a_forbidden_address_is_refused_and_a_new_one_works() -> None:
    async with watching(upset(Upset(what="forbidden", start=5))) as viewer:
        await viewer.wait(4.9)
        [_, segment] = (await viewer.read_list()).segments
        await viewer.wait(5)
        assert (await viewer.fetch_list()).status_code == 403
        assert (await viewer.fetch(segment)).status_code == 403
        await viewer.resolve()
        assert sequences(await viewer.read_list()) == [0, 1]
        assert set(await statuses(viewer)) == {200}


async def test_garbage_is_a_page_or_noise_and_never_media() -> None:
    async with watching(upset(Upset(what="garbage", start=2, end=6))) as viewer:
        await viewer.wait(8)
        [good, noise, page, last] = (await viewer.read_list()).segments
        for one in (good, last):
            assert (await viewer.look(one)).picture is not None
        with pytest.raises(Unreadable, match="no media"):
            await viewer.look(noise)
        with pytest.raises(Unreadable, match="a web page"):
            await viewer.look(page)


async def test_what_is_encrypted_is_listed_so_and_cannot_be_looked_into() -> None:
    async with watching(upset(Upset(what="encrypted", start=2, end=4))) as viewer:
        await viewer.wait(6)
        segments = (await viewer.read_list()).segments
        assert [one.is_encrypted for one in segments] == [False, True, False]
        with pytest.raises(Unreadable):
            analyse((await viewer.fetch(segments[1])).content)


async def test_a_page_may_come_in_place_of_a_playlist() -> None:
    async with watching(upset(Upset(what="not_playlist", start=2, end=6))) as viewer:
        await viewer.resolve()
        await viewer.wait(4)
        reply = await viewer.fetch_list()
        assert (reply.status_code, reply.headers["content-type"][:9]) == (200, "text/html")
        with pytest.raises(NotPlaylist):
            await viewer.read_list()
        await viewer.wait(6)
        assert sequences(await viewer.read_list()) == [0, 1, 2]


async def test_with_a_restart_sequences_begin_again_and_name_what_is_new() -> None:
    async with watching(upset(Upset(what="restart", start=6))) as viewer:
        await viewer.wait(6)
        old = (await viewer.read_list()).segments
        assert [one.sequence for one in old] == [0, 1, 2]
        await viewer.wait(10)
        new = (await viewer.read_list()).segments
        assert [(one.sequence, one.has_break) for one in new] == [(0, False), (1, False)]
        assert [one.piece.url for one in new] == [one.piece.url for one in old[:2]]
        found = [(await viewer.look(one)).picture for one in (*new, old[2])]
        assert [one.whole.start for one in found if one] == pytest.approx([1016, 1018, 14])


@pytest.mark.parametrize(
    ("what", "trouble"),
    [
        ("private", Trouble.PRIVATE),
        ("removed", Trouble.REMOVED),
        ("members", Trouble.MEMBERS_ONLY),
        ("region", Trouble.REGION),
        ("bot", Trouble.BOT_CHALLENGE),
        ("rate", Trouble.RATE_LIMITED),
        ("network", Trouble.NETWORK),
    ],
)
async def test_a_trouble_of_the_resolver_is_said_in_the_real_words(
    what: str, trouble: Trouble
) -> None:
    async with watching(upset(Upset(what=what, start=10, end=20))) as viewer:
        said = []
        for seconds in (9, 10, 19, 20):
            await viewer.wait(seconds)
            said.append(parse_answer(await viewer.resolve()).trouble)
    assert said == [None, trouble, trouble, None]


async def test_nobody_knows_an_unknown_video() -> None:
    async with watching(PROGRAMME) as viewer:
        said = await viewer.resolve("nobody-here")
        assert said == {"error": "ERROR: [youtube] nobody-here: Video unavailable"}
        assert parse_answer(said).trouble is Trouble.UNAVAILABLE


async def test_the_truth_tells_nothing_of_what_would_come_after_the_end() -> None:
    programme = replace(
        PROGRAMME,
        seconds=7.0,
        shots=(Shot(what="black", start=5), Shot(what="silence", start=9, end=10)),
        upsets=(Upset(what="gap", start=6.5, end=6.6), Upset(what="bot", start=5)),
    )
    async with watching(programme) as viewer:
        found = [told(viewer.live, what) for what in ("black", "silence", "gap", "bot")]
    assert [(one["start"], one["end"]) for one in found] == [(5, 7), (7, 7), (6, 7), (5, 7)]
    assert [since(one["to"]) for one in found[:3]] == [7, 7, 7]


async def test_the_truth_tells_when_each_thing_is_produced() -> None:
    programme = replace(
        PROGRAMME,
        shots=(Shot(what="hum", start=3), Shot(what="mute_track", start=5, end=5.5)),
        upsets=(Upset(what="bot", start=-60, end=7), Upset(what="garbage", start=8.5)),
    )
    async with watching(programme) as viewer:
        found = {
            what: tuple(told(viewer.live, what)[name] for name in ("start", "end", "from", "to"))
            for what in ("hum", "mute_track", "bot", "garbage")
        }
        assert viewer.live.truth({"v": "other"})["programmes"] == []
    at = {second: (STARTS_AT + timedelta(seconds=second)).isoformat() for second in range(-60, 10)}
    assert found == {
        "hum": (3, None, at[3], None),
        "mute_track": (4, 6, at[4], at[6]),
        "bot": (0, 7, at[-60], at[7]),
        "garbage": (8, None, at[8], None),
    }
