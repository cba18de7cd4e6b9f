"""The pictures of simulated streams, encoded once for each pattern of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import av
from av.codec.context import Flags

from mimawari.sim.sites.youtube.programme import FPS, PICTURES, Programme, cut

KEPT = 256
ROUND = 50
"""After so many frames the usual picture moves as before."""
OPTIONS = {
    "preset": "ultrafast",
    "tune": "zerolatency",
    "crf": "30",
    # A segment is one closed group of pictures, and begins with all that a decoder needs.
    "g": "1000",
    "x264-params": "repeat-headers=1:scenecut=0:threads=1",
}
BLACK, NEAR_BLACK = 16, 64
"""Of 16 to 235; nothing is black from a tenth of the way on."""
_GREY = 128
# Luma and both chromas of white, yellow, cyan, green, magenta, red and blue at three quarters.
_BARS = (
    *((180, 128, 128), (162, 44, 142), (131, 156, 44), (112, 72, 58)),
    *((84, 184, 198), (65, 100, 212), (35, 212, 114)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One size of the ladder."""

    width: int
    height: int
    bandwidth: int


LADDER = {
    144: Rung(width=256, height=144, bandwidth=290_000),
    360: Rung(width=640, height=360, bandwidth=960_000),
    720: Rung(width=1280, height=720, bandwidth=2_490_000),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """So many frames of one sort, from where in its movement on."""

    what: str
    phase: int
    count: int


def list_runs(programme: Programme, number: int) -> tuple[Run, ...]:
    """List what a segment shows, such that equal lists look the same."""
    first, last = programme.span(number)
    return tuple(
        Run(
            what=part.what,
            phase={"": part.first, "freeze": part.since}.get(part.what, 0) % ROUND,
            count=part.last - part.first,
        )
        for part in cut(programme.shots, PICTURES, FPS, first, last)
    )


@lru_cache(maxsize=KEPT)
def encode_pictures(height: int, runs: Sequence[Run]) -> tuple[bytes, ...]:
    """Encode frames of a height, each by what was before in these runs only."""
    rung = LADDER[height]
    encoder = av.CodecContext.create("libx264", "w")
    set_up(encoder, rung)
    packets = []
    for number, planes in enumerate(_draw(rung, runs)):
        frame = av.VideoFrame(rung.width, rung.height, "yuv420p")
        for plane, drawn in zip(frame.planes, planes, strict=True):
            # Rows may be kept further apart than they are wide.
            plane.update(drawn.ljust(plane.line_size, b"\0") * plane.height)
        frame.pts, frame.time_base = number, Fraction(1, FPS)
        packets += encoder.encode(frame)
    return tuple(bytes(packet) for packet in (*packets, *encoder.encode(None)))


def set_up(encoder: "av.VideoCodecContext", rung: Rung) -> None:
    """Prepare an encoder; those who are prepared alike write alike."""
    encoder.width, encoder.height, encoder.pix_fmt = rung.width, rung.height, "yuv420p"
    encoder.time_base, encoder.framerate = Fraction(1, FPS), Fraction(FPS)
    encoder.options = dict(OPTIONS)
    encoder.flags |= Flags.global_header


def _draw(rung: Rung, runs: Sequence[Run]) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield one row of each plane for every frame; all rows of a picture are the same."""
    for run in runs:
        for frame in range(run.count):
            moved = run.phase if run.what == "freeze" else (run.phase + frame) % ROUND
            yield _row(rung, run.what, moved if run.what in {"", "freeze"} else 0)


@lru_cache(maxsize=KEPT)
def _row(rung: Rung, what: str, moved: int) -> tuple[bytes, bytes, bytes]:
    width, half = rung.width, rung.width // 2
    grey = bytes([_GREY]) * half
    if what in {"black", "near_black"}:
        light = BLACK if what == "black" else NEAR_BLACK
        return bytes([light]) * width, grey, grey
    if what == "bars":
        wide = [_BARS[x * len(_BARS) // width] for x in range(width)]
        luma, blue, red = (bytes(one[plane] for one in wide) for plane in range(3))
        return luma, blue[::2], red[::2]
    slope = bytes(70 + 130 * x // width for x in range(width))
    shift = moved * width // ROUND
    return slope[shift:] + slope[:shift], grey, grey
