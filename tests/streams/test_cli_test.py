"""The command that looks once: at simulated streams over real sockets, and at files."""

import asyncio
import math
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from mimawari.kernel.clock import VirtualClock
from mimawari.sim.sites.youtube.programme import Programme, Shot, Upset
from mimawari.sim.sites.youtube.site import Live
from mimawari.sim.world import World
from tests.app.screen import Screen
from tests.app.terminal import Said
from tests.faults.world import running_site
from tests.media.making import Making, make_segment

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BEGAN = NOW - timedelta(seconds=60)
"""Of what is live the last 30 seconds are to be seen: those from 30 to 60."""
HOSTILE = "[red]a[/] \x1b[31mb\x07 日本\n\u202e:x"


def programme(name: str, *shots: Shot, **given: Any) -> Programme:
    """Make up a programme that is live unless it is said otherwise."""
    usual = {"title": name, "starts_at": BEGAN, "shots": shots}
    return Programme(video_id=name.ljust(11, "_"), **{**usual, **given})


PROGRAMMES = (
    programme(
        "bad",
        Shot(what="black", start=35.0, end=41.0),
        Shot(what="bars", start=42.0, end=48.0),
        Shot(what="freeze", start=50.0, end=56.0),
        Shot(what="silence", start=33.0, end=44.5),
        title=HOSTILE,
    ),
    programme("fine", container="fmp4"),
    programme("mute", Shot(what="mute_track", start=0.0)),
    programme("quiet", Shot(what="quiet", start=0.0)),
    programme("gap", upsets=(Upset(what="garbage", start=40.0, end=44.0),)),
    programme("secret", upsets=(Upset(what="encrypted", start=0.0),)),
    programme("later", starts_at=NOW + timedelta(hours=2), scheduled_at=NOW + timedelta(hours=2)),
    programme("over", starts_at=NOW - timedelta(hours=2), seconds=60.0),
    programme("members", upsets=(Upset(what="members", start=0.0),)),
    programme("bot", upsets=(Upset(what="bot", start=0.0),)),
    programme("private", upsets=(Upset(what="private", start=0.0),)),
    programme("page", upsets=(Upset(what="not_playlist", start=0.0),)),
)


@dataclass(frozen=True, slots=True)
class Desk:
    """A screen before a world whose time stands still."""

    address: str
    screen: Screen

    async def run(self, name: str, *words: str, **more: str) -> Said:
        """Look once at one of the world's videos."""
        url = f"https://www.youtube.com/watch?v={name.ljust(11, '_')}"
        return await self.test(url, *words, **more)

    async def test(self, target: str, *words: str, **more: str) -> Said:
        """Look once at anything."""
        return await asyncio.to_thread(self.screen.run, "test", target, *words, **more)


@pytest.fixture(scope="module")
async def address() -> AsyncIterator[str]:
    """Serve the streams."""
    clock = VirtualClock(NOW)
    live = Live(clock, 1, has_catalogue=False)
    for one in PROGRAMMES:
        live.put(one)
    async with running_site(World(clock, (live,), 1)) as found:
        yield found


@pytest.fixture
def desk(address: str, tmp_path: Path) -> Desk:
    """A screen that leads to the world, without a key to sign with."""
    variables = {
        "MIMAWARI_STREAMS_RESOLVER_URL": f"{address}/resolve",
        "MIMAWARI_ALLOW_HOSTS": "127.0.0.1",
        "MIMAWARI_ZONE": "Asia/Tokyo",
    }
    return Desk(address, Screen(tmp_path / "data", "streams", variables))


def runs(told: Any, lane: str) -> list[tuple[str, float, float]]:
    """List what is bad in a lane, each to the tenth of a second."""
    return [(one["what"], round(one["from"], 1), round(one["to"], 1)) for one in told[lane]]


async def test_a_live_stream_is_looked_at_as_far_as_its_list_goes_back(desk: Desk) -> None:
    told = (await desk.run("bad", "--json")).json()
    assert (told["kind"], told["pieces"]) == ("live stream", 15)
    assert math.isclose(told["seconds"], 30.0, abs_tol=0.05)
    assert runs(told, "sound") == [("silent", 3.0, 14.5)]
    black, bars, still = told["picture"]
    assert (black["what"], black["from"], black["to"]) == ("black", 5.0, 11.0)
    assert (bars["what"], still["what"]) == ("bars", "frozen")
    for one, start, end in ((bars, 12.0, 18.0), (still, 20.0, 26.0)):
        assert math.isclose(one["from"], start, abs_tol=0.45)
        assert math.isclose(one["to"], end, abs_tol=0.45)
    assert told["frames_a_second"] == 25
    assert datetime.fromisoformat(told["begins_at"]) == NOW - timedelta(seconds=30)
    assert (told["unseen"], told["bad_packets"]) == ([], 0)


async def test_a_timeline_is_drawn_in_80_columns_with_what_each_mark_means(desk: Desk) -> None:
    said = await desk.run("bad")
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    picture, sound, loudness = (
        next(line.removeprefix(name).strip() for line in lines if line.startswith(f"{name}  ")
             and line.strip()[-1] in "█░▒▚▁▂▃▄▅▆▇")
        for name in ("picture", "sound", "loudness")
    )  # fmt: skip
    assert len(picture) == len(sound) == 70
    assert set(picture) == set("█░▒▚")
    assert set(sound) == set("█░")
    assert sound.startswith("█" * 6)
    assert sound.count("░" * 27) == 1
    assert sound.endswith("█" * 35)
    assert " " * 20 in loudness
    for words in ("█ ok", "░ black", "▒ frozen", "▚ bars", "░ silent", "0s", "25s"):
        assert words in said.out
    assert any(line.split() == ["black", "5.00", "11.00", "6.00"] for line in lines)
    assert "LUFS" in said.out
    assert "times as fast as it plays" in said.out
    assert max(map(cell_len, lines[4:])) <= 80


async def test_a_title_cannot_write_to_the_terminal(desk: Desk) -> None:
    shown = (await desk.run("bad")).out
    assert "[red]a[/]" in shown
    assert not set(shown) & {"\x1b", "\x07", "\u202e"}


async def test_nothing_wrong_is_said_so(desk: Desk) -> None:
    said = await desk.run("fine", "--quality", "best", "--seconds", "6")
    assert (said.code, "Nothing is wrong with it." in said.out) == (0, True)
    told = (await desk.run("fine", "--json", "--seconds", "6")).json()
    assert (told["pieces"], told["picture"], told["sound"]) == (3, [], [])


@pytest.mark.parametrize(("name", "what"), [("mute", "no track"), ("quiet", "too quiet")])
async def test_sound_that_is_not_there_or_too_low_is_told(desk: Desk, name: str, what: str) -> None:
    told = (await desk.run(name, "--json", "--seconds", "8")).json()
    assert [one["what"] for one in told["sound"]] == [what]
    assert math.isclose(told["sound"][0]["seconds"], 8.0, abs_tol=0.1)
    assert what in (await desk.run(name, "--seconds", "8")).out


async def test_what_is_silent_depends_on_what_is_asked_for(desk: Desk) -> None:
    told = (await desk.run("quiet", "--json", "--silence-db", "-20", "--seconds", "4")).json()
    assert "silent" in {one["what"] for one in told["sound"]}


async def test_segments_that_cannot_be_read_are_not_seen_and_the_others_are(desk: Desk) -> None:
    told = (await desk.run("gap", "--json")).json()
    assert runs(told, "unseen") == [("not seen", 10.0, 14.0)]
    assert (told["pieces"], told["unseen_seconds"]) == (13, 4.0)
    assert math.isclose(told["seconds"], 30.0, abs_tol=0.05)
    assert told["words"]
    assert "· not seen" in (await desk.run("gap")).out


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("later", "it has not begun; it is announced for 01-01 11:00:00"),
        ("over", "it is not live (was_live)"),
        ("members", "only members of its channel may watch it"),
        ("bot", "YouTube takes us for a robot"),
        ("private", "the video is gone: private"),
        ("nobody", "the video is gone: unavailable"),
        ("page", "no playlist: it begins with"),
        ("secret", "segments are encrypted, which is not supported"),
    ],
)
async def test_what_cannot_be_seen_is_said_with_what_to_do(
    desk: Desk, name: str, says: str
) -> None:
    said = (await desk.run(name)).refused(code=1)
    assert says in said
    assert ";" in said


@pytest.mark.parametrize(
    ("target", "code", "says"),
    [
        ("http://nobody.invalid/a.m3u8", 1, "does not resolve"),
        ("http://10.0.0.1/a.m3u8", 2, "is not public"),
        ("https://www.youtube.com/@channel", 2, "names no single video"),
        ("no-such-file.ts", 2, "there is no file 'no-such-file.ts'; give"),
        ("{address}/live/", 1, "a web page in place of a segment; give"),
        ("{address}/live/fine_______/master.m3u8", 1, "the playlist was answered with 403"),
        ("{address}/live/nothing.ts", 1, "the segment was answered with 404"),
    ],
)
async def test_what_is_not_there_is_refused_with_what_to_give(
    desk: Desk, target: str, code: int, says: str
) -> None:
    said = (await desk.test(target.format(address=desk.address))).refused(code=code)
    assert says in said


async def test_asking_too_often_is_refused_until_when(desk: Desk) -> None:
    few = {"MIMAWARI_STREAMS_RESOLVES": "1"}
    assert (await desk.run("fine", "--seconds", "1", **few)).code == 0
    said = (await desk.run("fine", "--seconds", "1", **few)).refused(code=1)
    assert said.startswith("nobody may ask how it stands before ")


BLACK, SILENT, SECONDS = ((3.0, 5.0),), ((1.0, 9.0),), 12.0


def recording(container: str, **given: Any) -> bytes:
    """Make a recording that is black and silent for a while."""
    usual: dict[str, Any] = {"seconds": SECONDS, "black": BLACK, "silent": SILENT}
    return make_segment(Making(container=container, **{**usual, **given}))


@pytest.mark.parametrize(("container", "name"), [("mpegts", "a.ts"), ("mp4", "a.mp4")])
async def test_a_file_is_looked_into(desk: Desk, container: str, name: str) -> None:
    path = desk.screen.written(name, recording(container))
    told = (await desk.test(path, "--json")).json()
    assert (told["kind"], told["title"], told["begins_at"]) == ("file", None, None)
    assert math.isclose(told["seconds"], SECONDS, abs_tol=0.1)
    assert runs(told, "picture") == [("black", 3.0, 5.0)]
    assert runs(told, "sound") == [("silent", 1.0, 9.0)]


async def test_files_one_behind_the_other_are_one_although_the_clock_jumps(desk: Desk) -> None:
    parts = [recording("mpegts", start=start, black=(), silent=()) for start in (10.0, 900.0, 5.0)]
    told = (await desk.test(desk.screen.written("a.ts", b"".join(parts)), "--json")).json()
    assert math.isclose(told["seconds"], 3 * SECONDS, abs_tol=0.3)
    assert (told["picture"], told["sound"]) == ([], [])


async def test_a_playlist_is_read_with_the_files_beside_it(desk: Desk) -> None:
    for number in range(3):
        making = Making(seconds=2.0, start=10.0 + 2 * number, black=((0.0, 2.0),) * (number == 1))
        desk.screen.written(f"s{number}.ts", make_segment(making))
    names = "".join(f"#EXTINF:2,\ns{number}.ts\n" for number in (0, 1, 2, 7))
    hidden = "#EXTINF:2,\n../../etc/passwd\n#EXTINF:2,\nhttp://127.0.0.1:1/a.ts\n"
    head = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n"
    path = desk.screen.written("a.m3u8", f"{head}{names}{hidden}#EXT-X-ENDLIST\n")
    told = (await desk.test(path, "--json")).json()
    assert (told["kind"], told["pieces"]) == ("playlist", 3)
    assert runs(told, "picture") == [("black", 2.0, 4.0)]
    assert runs(told, "unseen") == [("not seen", 6.0, 12.0)]
    assert told["words"] == [
        "there is no file 's7.ts' beside the playlist",
        "there is no file 'etc/passwd' beside the playlist",
        "the playlist names addresses of the web; give its own address instead",
    ]


async def test_only_so_much_of_a_file_is_looked_into(desk: Desk) -> None:
    second = [recording("mpegts", seconds=2.0, start=10.0 + 2 * n, silent=()) for n in range(10)]
    path = desk.screen.written("a.ts", b"".join(second))
    assert (await desk.test(path, "--json", "--seconds", "5")).json()["seconds"] <= 8.0


@pytest.mark.parametrize(
    "content",
    [b"", b"\0" * 5000, b"#EXTM3U\n", b"<html>", b"\x47" + b"\0" * 187, b"\0\0\0\x08moof" * 9],
)
async def test_a_file_that_is_no_media_is_refused_with_a_sentence(
    desk: Desk, content: bytes
) -> None:
    said = (await desk.test(desk.screen.written("a.ts", content))).refused(code=1)
    assert said
