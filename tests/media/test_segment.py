"""Segments are looked into, whatever they are; what cannot be is refused with a sentence."""

from dataclasses import replace

import pytest

from mimawari.errors import Invalid
from mimawari.media.findings import Findings, Look, Span
from mimawari.media.segment import LEAST_SILENCE_SECONDS, Unreadable, analyse
from mimawari.net.reader import Reader
from tests.media.making import Making, make_segment

USUAL = Making(seconds=1.0, black=((0.4, 1.0),), silent=((0.0, 0.3),))


def test_black_and_silence_are_told_in_the_segment_s_own_time() -> None:
    found = analyse(make_segment(USUAL))
    assert found.picture is not None
    assert found.sound is not None
    assert found.picture.whole == Span(start=10.0, end=11.0)
    (black,) = found.picture.bad
    assert (black.start, black.end) == pytest.approx((10.4, 11.0), abs=0.001)
    (silent,) = found.sound.bad
    assert (silent.start, silent.end) == pytest.approx((9.98, 10.3), abs=0.03)
    assert (found.frame_seconds, found.bad_packets) == (0.04, 0)


def test_the_header_of_fmp4_is_put_in_front_of_its_segments() -> None:
    whole = make_segment(replace(USUAL, container="mp4"))
    cut = whole.index(b"moof") - 4
    assert analyse(whole[cut:], whole[:cut]) == analyse(whole)
    with pytest.raises(Unreadable):
        analyse(whole[cut:])


@pytest.mark.parametrize(("has_picture", "has_sound"), [(True, False), (False, True)])
def test_a_track_that_is_not_there_is_told_as_none(*, has_picture: bool, has_sound: bool) -> None:
    found = analyse(make_segment(replace(USUAL, has_picture=has_picture, has_sound=has_sound)))
    assert (found.picture is not None, found.sound is not None) == (has_picture, has_sound)


@pytest.mark.parametrize(("db", "is_silent"), [(-50.0, True), (-70.0, False)])
def test_how_quiet_silence_is_can_be_set(db: float, *, is_silent: bool) -> None:
    making = Making(seconds=1.0, silent=((0.0, 1.0),), hiss=0.001)
    sound = analyse(make_segment(making), look=Look(silence_db=db)).sound
    assert sound is not None
    assert any(one.seconds >= LEAST_SILENCE_SECONDS for one in sound.bad) is is_silent


def test_near_black_is_black_and_dark_grey_is_not() -> None:
    for dark, is_black in ((16, True), (30, True), (60, False)):
        making = Making(seconds=0.4, black=((0.0, 0.4),), dark=dark)
        picture = analyse(make_segment(making)).picture
        assert picture is not None
        assert bool(picture.bad) is is_black


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "an empty segment"),
        (b"<!DOCTYPE html><html>Sorry</html>", "a web page"),
        (b"not media at all" * 50, "no media"),
        (b"\0\0\0\x18ftypmp42" + bytes(400), "cannot be decoded"),
        ((b"\x47" + bytes(187)) * 20, "segment"),
    ],
)
def test_what_is_no_segment_is_refused(body: bytes, words: str) -> None:
    with pytest.raises(Unreadable, match=words):
        analyse(body)


def test_a_hole_in_a_segment_is_counted_and_the_rest_is_seen() -> None:
    body = bytearray(make_segment(Making(seconds=2.0, width=256, height=144)))
    middle = len(body) // 2 // 188 * 188
    body[middle : middle + 188 * 6] = bytes(188 * 6)
    found = analyse(bytes(body))
    assert found.picture is not None
    assert found.picture.whole.seconds > 1.0


async def test_segments_are_read_in_a_process_of_their_own() -> None:
    reader = Reader()
    try:
        found = await reader.read(analyse, make_segment(USUAL))
        assert isinstance(found, Findings)
        with pytest.raises(Invalid, match="a web page"):
            await reader.read(analyse, b"<html>")
    finally:
        await reader.close()
