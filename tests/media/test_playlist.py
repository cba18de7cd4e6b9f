"""Playlists are read for what they say; what is none is never taken for an empty one."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from mimawari.media.playlist import (
    Master,
    NotPlaylist,
    Piece,
    Playlist,
    Range,
    Variant,
    choose_variant,
    parse_playlist,
)

URL = "https://origin.example/live/list.m3u8?token=1"
FIXTURES = Path(__file__).parents[3] / "shared" / "fixtures" / "hls"
LIVE = """#EXTM3U
#EXT-X-VERSION:3
#EXT-X-TARGETDURATION:5
#EXT-X-MEDIA-SEQUENCE:7001
#EXT-X-PROGRAM-DATE-TIME:2026-06-01T12:00:00.500+09:00
#EXTINF:4.0,
seg/7001.ts
#EXTINF:4.04,
seg/7002.ts
#EXT-X-GAP
#EXTINF:4.0,
seg/7003.ts
#EXT-X-DISCONTINUITY
#EXTINF:3.5,
/other/7004.ts?x=index.m3u8
"""


def read(text: str) -> Playlist:
    """Read a list of segments."""
    found = parse_playlist(text.encode(), URL)
    assert isinstance(found, Playlist)
    return found


def test_a_live_list_tells_its_segments_by_sequence() -> None:
    found = read(LIVE)
    assert [one.sequence for one in found.segments] == [7001, 7002, 7003, 7004]
    assert [one.seconds for one in found.segments] == [4.0, 4.04, 4.0, 3.5]
    assert [one.has_gap for one in found.segments] == [False, False, True, False]
    assert [one.has_break for one in found.segments] == [False, False, False, True]
    assert found.segments[0].piece == Piece(url="https://origin.example/live/seg/7001.ts")
    assert found.segments[3].piece.url == "https://origin.example/other/7004.ts?x=index.m3u8"
    assert found.segments[0].at == datetime(2026, 6, 1, 3, 0, 0, 500_000, tzinfo=UTC)
    assert (found.target_seconds, found.is_ended) == (5.0, False)


def test_an_ended_list_says_so() -> None:
    assert read(LIVE + "#EXT-X-ENDLIST\n").is_ended


def test_a_list_without_a_sequence_begins_at_0() -> None:
    assert read("#EXTM3U\n#EXTINF:2,\na.ts\n").segments[0].sequence == 0


def test_segments_that_a_shortened_list_leaves_out_keep_their_numbers() -> None:
    text = "#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:10\n#EXT-X-SKIP:SKIPPED-SEGMENTS=3\n#EXTINF:2,\na.ts\n"
    assert read(text).segments[0].sequence == 13


def test_parts_of_one_file_follow_each_other() -> None:
    text = (
        '#EXTM3U\n#EXT-X-MAP:URI="all.mp4",BYTERANGE="800@0"\n'
        "#EXTINF:2,\n#EXT-X-BYTERANGE:1000@800\nall.mp4\n"
        "#EXTINF:2,\n#EXT-X-BYTERANGE:500\nall.mp4\n"
    )
    first, second = read(text).segments
    assert first.header == Piece(
        url="https://origin.example/live/all.mp4", range=Range(start=0, size=800)
    )
    assert first.piece.range == Range(start=800, size=1000)
    assert second.piece.range == Range(start=1800, size=500)
    assert second.header == first.header


@pytest.mark.parametrize(
    ("key", "is_encrypted"),
    [
        ('#EXT-X-KEY:METHOD=AES-128,URI="k"', True),
        ('#EXT-X-KEY:METHOD=SAMPLE-AES,URI="k"', True),
        ("#EXT-X-KEY:METHOD=NONE", False),
    ],
)
def test_encrypted_segments_are_known_as_such(key: str, *, is_encrypted: bool) -> None:
    assert read(f"#EXTM3U\n{key}\n#EXTINF:2,\na.ts\n").segments[0].is_encrypted is is_encrypted


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"   \n",
        b"<!DOCTYPE html><html><body>Sorry</body></html>",
        b'{"error": "gone"}',
        b"#EXTINF:2,\na.ts\n",
        b"\x47" * 188,
        b"#EXTM3U8\n#EXTINF:2,\na.ts\n",
        b"#EXTM3U\n#EXTINF:abc,\na.ts\n",
        b"#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:many\n#EXTINF:2,\na.ts\n",
        b"#EXTM3U\n" + b"#EXTINF:2,\na\n" * 100_001,
        b"#EXTM3U\n" + b"#" * 5_000_000,
    ],
)
def test_what_is_no_playlist_is_refused(body: bytes) -> None:
    with pytest.raises(NotPlaylist):
        parse_playlist(body, URL)


@pytest.mark.parametrize(
    ("told", "seconds"), [("0", 0.0), ("1000000000", 1e9), ("1e300", 1e9), ("-5", 0.0)]
)
def test_lengths_that_cannot_be_are_bounded(told: str, seconds: float) -> None:
    assert read(f"#EXTM3U\n#EXTINF:{told},\na.ts\n").segments[0].seconds == seconds


def test_segments_that_are_not_of_the_web_are_left_out_and_keep_their_numbers() -> None:
    text = "#EXTM3U\n#EXTINF:2,\nfile:///etc/passwd\n#EXTINF:2,\ndata:,x\n#EXTINF:2,\na.ts\n"
    (left,) = read(text).segments
    assert left.sequence == 2


MASTER = """#EXTM3U
#EXT-X-STREAM-INF:BANDWIDTH=2000000,RESOLUTION=1280x720
hd.m3u8
#EXT-X-STREAM-INF:BANDWIDTH=150000,RESOLUTION=256x144
https://cdn.example/low.m3u8
#EXT-X-STREAM-INF:BANDWIDTH=700000.5,RESOLUTION=640x360
mid.m3u8
"""


@pytest.mark.parametrize(
    ("quality", "end"), [("lowest", "low"), ("best", "hd"), ("360p", "mid"), ("480p", "mid")]
)
def test_a_variant_is_chosen_by_its_quality(quality: str, end: str) -> None:
    found = parse_playlist(MASTER.encode(), URL)
    assert isinstance(found, Master)
    assert choose_variant(found, quality).url.endswith(f"/{end}.m3u8")


def test_a_list_that_names_itself_is_refused_and_beside_others_left_out() -> None:
    itself = f"#EXT-X-STREAM-INF:BANDWIDTH=1\n{URL}\n"
    with pytest.raises(NotPlaylist, match="but itself"):
        parse_playlist(f"#EXTM3U\n{itself}".encode(), URL)
    found = parse_playlist((MASTER + itself).encode(), URL)
    assert isinstance(found, Master)
    assert len(found.variants) == 3
    assert all(isinstance(one, Variant) and one.url != URL for one in found.variants)


def test_real_playlists_are_read_without_a_crash() -> None:
    """Those that are broken are refused with a sentence, all others tell segments or variants."""
    if not FIXTURES.is_dir():
        pytest.skip(f"{FIXTURES} is not here")
    refused = {}
    for path in sorted(FIXTURES.rglob("*.m3u8")):
        try:
            found = parse_playlist(path.read_bytes(), URL)
        except NotPlaylist as error:
            refused[path.stem] = str(error)
            continue
        if isinstance(found, Playlist):
            sequences = [one.sequence for one in found.segments]
            assert sequences == sorted(set(sequences)), path
    assert refused == {}


@pytest.mark.parametrize(
    "line",
    [
        f"#EXT-X-MEDIA-SEQUENCE:{'9' * 400}",
        f"#EXT-X-MEDIA-SEQUENCE:{2**53}",
        f"#EXT-X-BYTERANGE:{'9' * 400}@0",
        f"#EXT-X-BYTERANGE:1@{'9' * 400}",
        f"#EXT-X-SKIP:SKIPPED-SEGMENTS={'9' * 400}",
    ],
)
def test_a_number_that_nothing_can_hold_makes_the_list_unreadable(line: str) -> None:
    with pytest.raises(NotPlaylist):
        read(f"#EXTM3U\n{line}\n#EXTINF:4,\nseg.ts\n")
