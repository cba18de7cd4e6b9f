"""What is looked for beside black and silence is found, and only what is looked for."""

import random
from dataclasses import replace

import av
import pytest

from mimawari.media.eye import BARS_EVERY_SECONDS
from mimawari.media.findings import Findings, Look, Span
from mimawari.media.segment import Unreadable, analyse
from mimawari.media.snapshot import MOST_BYTES, MOST_SIDE
from tests.media.making import Making, make_segment

ALL = Look(has_freeze=True, has_bars=True, has_loudness=True, has_snapshot=True)
USUAL = Making(seconds=1.0)
BARS = Making(seconds=1.0, width=256, height=144, has_sound=False)


def look(making: Making) -> Findings:
    """Look for everything."""
    return analyse(make_segment(making), look=ALL)


def test_what_is_not_looked_for_is_not_told() -> None:
    found = analyse(make_segment(replace(USUAL, still=((0.0, 1.0),))))
    assert (found.frozen, found.bars, found.loudness, found.snapshot) == (None, None, None, None)


def test_looking_for_more_changes_nothing_of_black_and_silence() -> None:
    body = make_segment(replace(USUAL, black=((0.2, 0.6),), silent=((0.3, 0.9),)))
    plain, more = analyse(body), analyse(body, look=ALL)
    assert (plain.picture, plain.sound) == (more.picture, more.sound)


def test_a_picture_that_stands_still_is_told_from_when_to_when() -> None:
    found = look(replace(USUAL, still=((0.2, 0.72),)))
    assert found.frozen is not None
    assert found.frozen.whole == Span(start=10.0, end=11.0)
    (frozen,) = found.frozen.bad
    assert (frozen.start, frozen.end) == pytest.approx((10.2, 10.72), abs=0.001)


def test_a_segment_of_one_picture_all_the_time_is_frozen_from_edge_to_edge() -> None:
    found = look(replace(USUAL, still=((0.0, 1.0),)))
    assert found.frozen is not None
    assert found.frozen.bad == (found.frozen.whole,)


def test_a_picture_that_moves_is_not_frozen_nor_is_one_alone() -> None:
    for making in (USUAL, replace(USUAL, seconds=0.04, still=((0.0, 1.0),))):
        frozen = look(making).frozen
        assert frozen is not None
        assert frozen.bad == ()


@pytest.mark.parametrize("drawn", ["smptebars", "smptehdbars", "pal75bars", "pal100bars"])
@pytest.mark.parametrize("size", [(256, 144), (426, 240)])
def test_colour_bars_are_known(drawn: str, size: tuple[int, int]) -> None:
    found = look(replace(BARS, drawn=drawn, seconds=0.4, width=size[0], height=size[1]))
    assert found.bars is not None
    assert found.bars.bad == (found.bars.whole,)


@pytest.mark.parametrize(
    "drawn",
    [
        *("testsrc", "testsrc2", "rgbtestsrc", "mandelbrot", "color=c=green", "color=c=black"),
        *("smptebars,hflip", "smptebars,hue=h=90", "pal75bars,vflip,transpose,scale=256:144"),
    ],
)
def test_other_pictures_are_no_bars(drawn: str) -> None:
    found = look(replace(BARS, drawn=drawn, seconds=0.4))
    assert found.bars is not None
    assert found.bars.bad == ()


def test_bars_are_told_to_be_over_not_long_after_they_are() -> None:
    bars = make_segment(replace(BARS, drawn="smptebars"))
    rest = make_segment(replace(BARS, drawn="testsrc2", start=11.0))
    found = analyse(bars + rest, look=ALL)
    assert found.bars is not None
    (run,) = found.bars.bad
    assert run.start == pytest.approx(10.0, abs=0.001)
    assert 11.0 <= run.end <= 11.0 + BARS_EVERY_SECONDS


@pytest.mark.parametrize(
    "making",
    [
        replace(USUAL, still=((0.3, 1.0),)),
        replace(USUAL, black=((0.3, 1.0),), width=640, height=360),
        replace(USUAL, black=((0.3, 1.0),), width=90, height=640),
        replace(BARS, drawn="smptebars", width=1280, height=720, seconds=0.4),
        replace(BARS, drawn="rgbtestsrc,noise=alls=100", width=640, height=360, seconds=0.4),
    ],
)
def test_a_snapshot_is_a_small_picture_of_what_is_bad(making: Making) -> None:
    jpeg = look(making).snapshot
    assert jpeg is not None
    assert jpeg.startswith(b"\xff\xd8")
    assert len(jpeg) <= MOST_BYTES
    frame = read_jpeg(jpeg)
    assert max(frame.width, frame.height) <= MOST_SIDE


def read_jpeg(jpeg: bytes) -> av.VideoFrame:
    """Read a picture as anybody would."""
    (frame,) = av.CodecContext.create("mjpeg", "r").decode(av.Packet(jpeg))
    assert isinstance(frame, av.VideoFrame)
    return frame


def test_a_snapshot_shows_what_is_bad_for_longest() -> None:
    jpeg = look(replace(USUAL, still=((0.0, 0.2),), black=((0.4, 1.0),))).snapshot
    assert jpeg is not None
    assert max(bytes(read_jpeg(jpeg).planes[0])) < 5


def test_there_is_no_snapshot_of_what_is_good() -> None:
    assert look(USUAL).snapshot is None


@pytest.mark.parametrize("pixels", ["yuv420p", "yuvj420p", "yuv420p10le", "yuv444p", "gray"])
def test_black_and_stillness_are_seen_in_any_format(pixels: str) -> None:
    found = look(replace(USUAL, pixels=pixels, black=((0.4, 1.0),)))
    assert found.picture is not None
    assert found.frozen is not None
    for track in (found.picture, found.frozen):
        (bad,) = track.bad
        assert (bad.start, bad.end) == pytest.approx((10.4, 11.0), abs=0.001)


@pytest.mark.parametrize(("dark", "is_black"), [(36, True), (37, True), (38, False), (40, False)])
def test_black_is_up_to_a_tenth_of_the_way_to_white(dark: int, *, is_black: bool) -> None:
    found = analyse(make_segment(Making(seconds=0.4, black=((0.0, 0.4),), dark=dark)))
    assert found.picture is not None
    assert bool(found.picture.bad) is is_black


@pytest.mark.parametrize("layout", ["mono", "stereo", "5.1"])
def test_silence_and_loudness_are_heard_with_any_number_of_speakers(layout: str) -> None:
    found = look(replace(USUAL, layout=layout, silent=((0.0, 0.3),)))
    assert found.sound is not None
    assert found.sound.bad[0].end == pytest.approx(10.3, abs=0.03)
    assert found.loudness is not None
    assert found.loudness.integrated is not None


def test_a_pause_within_one_frame_of_sound_is_over_when_it_is() -> None:
    """Its beginning and its end are told by the same frame."""
    for number in range(8):
        start = 0.5 + number * 0.003
        found = look(replace(USUAL, silent=((start, start + 0.025),), has_picture=False))
        assert found.sound is not None
        assert sum(bad.seconds for bad in found.sound.bad) < 0.05


def test_a_picture_that_changes_its_size_is_looked_at_all_the_same() -> None:
    first = make_segment(replace(USUAL, still=((0.0, 1.0),)))
    then = replace(USUAL, still=((0.0, 1.0),), start=11.0, width=256, height=144, layout="mono")
    found = analyse(first + make_segment(then), look=ALL)
    assert found.frozen is not None
    assert found.frozen.whole.seconds == pytest.approx(2.0, abs=0.05)
    assert sum(bad.seconds for bad in found.frozen.bad) == pytest.approx(2.0, abs=0.05)


@pytest.mark.parametrize("container", ["mpegts", "mp4"])
def test_whatever_is_broken_is_looked_into_or_refused(container: str) -> None:
    whole = make_segment(replace(USUAL, container=container, still=((0.2, 0.8),)))
    chance = random.Random(container)
    for _ in range(60):
        body = bytearray(whole)
        for _ in range(chance.choice((1, 5, 40))):
            body[chance.randrange(len(body))] = chance.randrange(256)
        cut = chance.choice((len(body), chance.randrange(len(body))))
        try:
            found = analyse(bytes(body[:cut]), look=ALL)
        except Unreadable:
            continue
        assert isinstance(found, Findings)
