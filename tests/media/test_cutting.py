"""Files that are cut into pieces show the same as the whole, and nothing is cut away."""

import math
from functools import lru_cache

import pytest

from mimawari.errors import Invalid
from mimawari.media.cut_mp4 import cut_mp4
from mimawari.media.cut_ts import PACKET, TsCutter
from mimawari.media.segment import Findings, analyse
from tests.media.making import Making, make_segment

PARTS = 6
FRAME = 0.04
BAD = {1: ((0.5, 2.0),), 2: ((0.0, 1.0),)}
"""Black and silent over the edge of two segments."""


@lru_cache
def stream() -> bytes:
    """Make a stream with a key frame every two seconds, as a player joins its segments."""
    return b"".join(
        make_segment(
            Making(start=10.0 + 2 * number, black=BAD.get(number, ()), silent=BAD.get(number, ()))
        )
        for number in range(PARTS)
    )


def cut(body: bytes, step: int) -> list[bytes]:
    """Cut a stream that is read in steps."""
    cutter = TsCutter()
    pieces = [
        piece for at in range(0, len(body), step) for piece in cutter.feed(body[at : at + step])
    ]
    return [*pieces, *cutter.finish()]


def seconds_of(found: list[Findings]) -> tuple[float, float]:
    """Add up how long picture and sound are."""
    pictures = sum(one.picture.whole.seconds for one in found if one.picture)
    return pictures, sum(one.sound.whole.seconds for one in found if one.sound)


@pytest.mark.parametrize("step", [1000, PACKET, 1 << 20])
def test_a_stream_is_cut_at_its_key_frames_whatever_it_is_read_in(step: int) -> None:
    pieces = cut(stream(), step)
    assert len(pieces) == PARTS
    found = [analyse(piece) for piece in pieces]
    assert all(one.bad_packets == 0 for one in found)
    pictures, sounds = seconds_of(found)
    assert math.isclose(pictures, 2.0 * PARTS, abs_tol=FRAME)
    assert math.isclose(sounds, 2.0 * PARTS, abs_tol=0.3)
    black = sum(span.seconds for one in found if one.picture for span in one.picture.bad)
    assert math.isclose(black, 2.5, abs_tol=2 * FRAME)


def test_bytes_between_packets_are_passed_over() -> None:
    body = stream()
    middle = len(body) // 2 // PACKET * PACKET
    found = [analyse(piece) for piece in cut(body[:middle] + b"\x47junk" * 9 + body[middle:], 5000)]
    pictures, _ = seconds_of(found)
    assert math.isclose(pictures, 2.0 * PARTS, abs_tol=2 * FRAME)


def test_a_clock_that_jumps_begins_a_new_piece() -> None:
    body = b"".join(make_segment(Making(seconds=1.0, start=start)) for start in (10.0, 500.0, 3.0))
    assert len(cut(body, 4096)) == 3


def test_sound_alone_is_cut_by_its_own_clock() -> None:
    body = make_segment(Making(seconds=9.0, has_picture=False))
    found = [analyse(piece) for piece in cut(body, 4096)]
    assert len(found) >= 3
    assert math.isclose(seconds_of(found)[1], 9.0, abs_tol=0.1)


def test_what_is_no_stream_gives_no_piece_to_stumble_over() -> None:
    assert cut(b"", 100) == []
    assert cut(b"\x00" * 5000, 100) == []
    for piece in cut(b"\x47" + b"\xff" * 187 + b"\x47" * 188 * 20, 100):
        with pytest.raises(Invalid):
            analyse(piece)


@pytest.mark.parametrize("has_picture", [True, False])
def test_a_file_is_cut_with_its_header_apart(*, has_picture: bool) -> None:
    body = make_segment(Making(seconds=9.0, container="mp4", has_picture=has_picture))
    parts = cut_mp4(body, 60.0)
    assert parts.header[4:8] == b"ftyp"
    found = [analyse(piece, parts.header) for piece in parts.pieces]
    assert len(found) >= (1 if has_picture else 3)
    assert math.isclose(seconds_of(found)[1], 9.0, abs_tol=0.1)


def test_only_the_beginning_of_a_long_file_is_cut() -> None:
    body = make_segment(Making(seconds=9.0, container="mp4", has_picture=False))
    parts = cut_mp4(body, 2.0)
    seconds = seconds_of([analyse(piece, parts.header) for piece in parts.pieces])[1]
    assert 1.9 <= seconds <= 4.5


@pytest.mark.parametrize("body", [b"", b"\0\0\0\x08moof" * 9, b"\0\0\0\x10ftypisom\0\0\0\0"])
def test_a_file_without_a_header_is_refused_with_what_to_give(body: bytes) -> None:
    with pytest.raises(Invalid, match=r"give the playlist|neither picture nor sound"):
        cut_mp4(body, 60.0)
