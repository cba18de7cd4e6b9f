"""Segments are seen and heard as the two commands of the description see and hear them."""

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mimawari.media.findings import Span, Track
from mimawari.media.segment import LEAST_BLACK_SECONDS, LEAST_SILENCE_SECONDS, analyse
from tests.faults.world import FULL
from tests.media.making import Bad, Making, make_segment

SIZES = ((128, 72), (256, 144), (426, 240))
CONTAINERS = ("mpegts", "mp4")
EACH = 18 if FULL else 5
PARTS = 4
"""So many segments of each container and size are shared between the tests' workers."""
_BLACK = re.compile(r"black_start:([0-9.]+) black_end:([0-9.]+)")
_SILENCE = re.compile(r"silence_(start|end): (-?[0-9.]+)")
_LENGTH = re.compile(r"time=(\d+):(\d+):([0-9.]+)")


def draw_runs(chance: random.Random, seconds: float) -> Bad:
    """Draw up to two runs, some of them from the beginning and some to the end."""
    edges = sorted(chance.choice((0.0, seconds, chance.uniform(0, seconds))) for _ in range(4))
    return [(a, b) for a, b in ((edges[0], edges[1]), (edges[2], edges[3])) if b - a > 0.2]


def draw_making(number: int, container: str, size: tuple[int, int]) -> Making:
    """Draw a segment."""
    chance = random.Random(f"{number} {container} {size}")
    seconds = chance.choice((1.0, 2.0, 3.2))
    return Making(
        seconds=seconds,
        width=size[0],
        height=size[1],
        fps=chance.choice((15, 25, 30)),
        black=draw_runs(chance, seconds),
        silent=draw_runs(chance, seconds),
        container=container,
        start=chance.choice((0.0, 10.0, 3600.5)),
        hiss=chance.choice((0.0, 0.001)),
        dark=chance.choice((16, 20)),
    )


def run_ffmpeg(path: Path, *options: str) -> str:
    """Run one of the two commands, and return what it says."""
    command = [
        "ffmpeg",
        "-nostdin",
        "-hide_banner",
        "-threads",
        "1",
        "-i",
        str(path),
        *options,
        "-f",
        "null",
        "-",
    ]
    return subprocess.run(command, capture_output=True, check=True, text=True).stderr


def see(path: Path) -> list[Span]:
    """List where ffmpeg sees black."""
    said = run_ffmpeg(path, "-vf", "blackdetect=d=0.1:pix_th=0.10", "-an")
    return [Span(start=float(a), end=float(b)) for a, b in _BLACK.findall(said)]


def hear(path: Path) -> list[Span]:
    """List where ffmpeg hears silence; the last may have no end but the segment's."""
    said = run_ffmpeg(path, "-af", "silencedetect=n=-50dB:d=0.5", "-vn")
    times = [float(at) for _, at in _SILENCE.findall(said)]
    if len(times) % 2:
        hours, minutes, seconds = _LENGTH.findall(said)[-1]
        times.append(int(hours) * 3600 + int(minutes) * 60 + float(seconds))
    return [Span(start=a, end=b) for a, b in zip(times[::2], times[1::2], strict=True)]


def is_alike(ours: list[Span], theirs: list[Span], within: float) -> bool:
    """Say whether both found the same; one as long as the least may be on either side of it."""
    return len(ours) == len(theirs) and all(
        abs(a.start - b.start) <= within and abs(a.end - b.end) <= within
        for a, b in zip(ours, theirs, strict=True)
    )


def list_bad(track: Track | None, least: float) -> list[Span]:
    """List the runs of a track that are long enough, from the track's beginning on."""
    assert track is not None
    zero = track.whole.start
    return [
        Span(start=one.start - zero, end=one.end - zero)
        for one in track.bad
        if one.seconds >= least
    ]


needs_ffmpeg = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")


@needs_ffmpeg
@pytest.mark.parametrize("part", range(PARTS))
def test_the_same_runs_are_found_within_one_frame(part: int, tmp_path: Path) -> None:
    """Over all parts these are 108 segments where everything is tried, and 30 otherwise."""
    everything = [
        draw_making(number, container, size)
        for container in CONTAINERS
        for size in SIZES
        for number in range(EACH)
    ]
    for making in everything[part::PARTS]:
        body = make_segment(making)
        path = tmp_path / "segment"
        path.write_bytes(body)
        found = analyse(body)
        frame = found.frame_seconds + 0.002
        ours = list_bad(found.picture, LEAST_BLACK_SECONDS)
        assert is_alike(ours, see(path), frame), (making, ours, see(path))
        ours = list_bad(found.sound, LEAST_SILENCE_SECONDS)
        assert is_alike(ours, hear(path), frame), (making, ours, hear(path))


@needs_ffmpeg
@pytest.mark.parametrize("source", ["testsrc2", "smptebars", "mandelbrot"])
@pytest.mark.parametrize("size", SIZES)
def test_what_fades_is_black_from_the_same_picture_on(
    source: str, size: tuple[int, int], tmp_path: Path
) -> None:
    drawn = f"{source},fade=t=in:st=0.3:d=0.5,fade=t=out:st=1.1:d=0.5"
    making = Making(seconds=2.0, width=size[0], height=size[1], drawn=drawn, start=3600.5)
    path = tmp_path / "segment"
    path.write_bytes(make_segment(making))
    found = analyse(path.read_bytes())
    ours, theirs = list_bad(found.picture, LEAST_BLACK_SECONDS), see(path)
    assert len(ours) == len(theirs) == 2
    assert ours[0].end == pytest.approx(theirs[0].end, abs=0.002)
    assert ours[1].start == pytest.approx(theirs[1].start, abs=0.002)
