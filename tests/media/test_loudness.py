"""Loudness is what EBU R128 says, of one segment and of many."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mimawari.media.findings import Look, Loudness, combine
from mimawari.media.segment import analyse
from tests.media.making import Making, make_segment

LOUD = Look(has_loudness=True)
_INTEGRATED = re.compile(r"I: +(-[0-9.]+) LUFS")


def listen(making: Making) -> Loudness:
    """Listen to a segment that has no picture."""
    loudness = analyse(make_segment(making), look=LOUD).loudness
    assert loudness is not None
    return loudness


def sound(level: float, seconds: float = 2.0, start: float = 10.0) -> Making:
    """Make up a tone."""
    return Making(seconds=seconds, level=level, start=start, has_picture=False)


def test_half_the_amplitude_is_6_lu_less() -> None:
    loud, half = (listen(sound(level)).integrated for level in (0.4, 0.2))
    assert loud is not None
    assert half is not None
    assert loud - half == pytest.approx(6.0, abs=0.2)


def test_silence_has_no_loudness_but_was_measured() -> None:
    found = listen(sound(0.0))
    assert (found.integrated, found.momentary, found.short_term) == (None, None, None)
    assert set(found.moments) == {-70.0}
    assert found.seconds == pytest.approx(1.7, abs=0.11)


def test_a_segment_of_less_than_3_seconds_has_no_short_term_loudness() -> None:
    assert listen(sound(0.3)).short_term is None
    found = listen(sound(0.3, seconds=3.3))
    assert found.short_term == pytest.approx(found.integrated, abs=0.2)
    assert found.momentary == pytest.approx(found.integrated, abs=0.3)


def test_a_segment_that_is_too_short_to_be_measured_has_none() -> None:
    found = listen(sound(0.3, seconds=0.2))
    assert (found.moments, found.integrated, found.seconds) == ((), None, 0.0)


def test_a_segment_without_sound_has_no_loudness() -> None:
    body = make_segment(Making(seconds=0.4, has_sound=False))
    assert analyse(body, look=LOUD).loudness is None


def test_what_is_far_quieter_than_the_rest_does_not_count() -> None:
    loud = Loudness(moments=(-20.0,) * 10, short_term=None)
    quiet = Loudness(moments=(-45.0,) * 10, short_term=None)
    near = Loudness(moments=(-26.0,) * 10, short_term=None)
    assert combine([loud, quiet]) == pytest.approx(-20.0)
    assert combine([loud, near]) == pytest.approx(-22.04, abs=0.01)
    assert combine([quiet]) == pytest.approx(-45.0)
    assert combine([]) is None


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")
@pytest.mark.parametrize("levels", [(0.3, 0.3, 0.3, 0.3), (0.5, 0.01, 0.2, 0.0, 0.1)])
def test_segments_together_are_as_loud_as_ffmpeg_hears_them(
    levels: tuple[float, ...], tmp_path: Path
) -> None:
    segments = [
        make_segment(sound(level, start=10.0 + 2 * number)) for number, level in enumerate(levels)
    ]
    path = tmp_path / "all.ts"
    path.write_bytes(b"".join(segments))
    command = ["ffmpeg", "-nostdin", "-i", str(path), "-af", "ebur128", "-f", "null", "-"]
    said = subprocess.run(command, capture_output=True, check=True, text=True).stderr
    theirs = float(_INTEGRATED.findall(said)[-1])
    ours = combine([found for one in segments if (found := analyse(one, look=LOUD).loudness)])
    assert ours == pytest.approx(theirs, abs=1.0)
