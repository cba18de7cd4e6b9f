"""Segments as tests make them up: pictures and sounds that are bad where they are told to be."""

import io
import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import av
from av.filter import Graph

RATE = 48_000
SAMPLES = 1024
WAVE = 100
"""So many samples are one wave of a tone of 480 Hz."""
BLACK, USUAL = 16, 90

Bad = Sequence[tuple[float, float]]
"""From when to when, in seconds from the beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """What a segment is like."""

    seconds: float = 2.0
    width: int = 128
    height: int = 72
    fps: int = 25
    black: Bad = ()
    still: Bad = ()
    silent: Bad = ()
    start: float = 10.0
    container: str = "mpegts"
    level: float = 0.3
    """How loud the sound is where it is not silent."""
    hiss: float = 0.0
    """How loud it is where it is."""
    dark: int = BLACK
    drawn: str = ""
    """The sources and filters of FFmpeg that draw the picture, if not we."""
    pixels: str = "yuv420p"
    layout: str = "stereo"
    has_picture: bool = True
    has_sound: bool = True


def _is_in(at: float, bad: Bad) -> bool:
    # A little early, so that a time that is not exact in binary is on the side that is meant.
    return any(start - 1e-6 <= at < end - 1e-6 for start, end in bad)


def make_segment(making: Making) -> bytes:
    """Make a segment; of fMP4 its header is in front."""
    written = io.BytesIO()
    fragmented = {"movflags": "frag_keyframe+empty_moov+default_base_moof"}
    options = fragmented if making.container == "mp4" else {}
    with av.open(written, "w", format=making.container, options=options) as out:
        picture = out.add_stream("libx264", rate=making.fps) if making.has_picture else None
        sound = out.add_stream("aac", rate=RATE, layout=making.layout) if making.has_sound else None
        if picture is not None:
            picture.width, picture.height = making.width, making.height
            picture.pix_fmt = making.pixels
            picture.options = {"preset": "ultrafast", "bf": "0", "g": "1000", "crf": "30"}
            draw = _draw_drawn(making) if making.drawn else partial(_draw, making)
            for number in range(round(making.seconds * making.fps)):
                out.mux(picture.encode(_at(making, number, draw(number))))
            out.mux(picture.encode(None))
        if sound is not None:
            for first in range(0, round(making.seconds * RATE), SAMPLES):
                out.mux(sound.encode(_play(making, first)))
            out.mux(sound.encode(None))
    return written.getvalue()


def _draw(making: Making, number: int) -> av.VideoFrame:
    frame = av.VideoFrame(making.width, making.height, "yuv420p")
    at = number / making.fps
    usual = USUAL if _is_in(at, making.still) else USUAL + 1 + number % 40
    light = making.dark if _is_in(at, making.black) else usual
    for plane, value in zip(frame.planes, (light, 128, 128), strict=True):
        plane.update(bytes([value]) * plane.buffer_size)
    return frame


def _draw_drawn(making: Making) -> Callable[[int], av.VideoFrame]:
    """Draw what FFmpeg draws: a source with its size, and filters."""
    graph = Graph()
    first, *filters = making.drawn.split(",")
    name, _, options = first.partition("=")
    size = f"size={making.width}x{making.height}:rate={making.fps}"
    last = graph.add(name, f"{options}:{size}" if options else size)
    for inner in [*filters, "format=yuv420p", "buffersink"]:
        name, _, options = inner.partition("=")
        following = graph.add(name, options or None)
        last.link_to(following)
        last = following
    graph.configure()

    def draw(_number: int) -> av.VideoFrame:
        frame = graph.pull()
        assert isinstance(frame, av.VideoFrame)
        return frame

    return draw


def _at(making: Making, number: int, frame: av.VideoFrame) -> av.VideoFrame:
    frame.pts, frame.time_base = round(making.start * making.fps) + number, Fraction(1, making.fps)
    return frame


def _play(making: Making, first: int) -> av.AudioFrame:
    frame = av.AudioFrame(format="fltp", layout="stereo", samples=SAMPLES)
    frame.sample_rate = RATE
    wave = _waves(making.level, first)
    for start, end in making.silent:
        a, b = (min(max(round(at * RATE) - first, 0), SAMPLES) for at in (start, end))
        wave[a:b] = _waves(making.hiss, first)[a:b]
    for plane in frame.planes:
        plane.update(wave.tobytes())
    frame.pts, frame.time_base = round(making.start * RATE) + first, Fraction(1, RATE)
    return frame


@lru_cache
def _tone(level: float) -> "array[float]":
    """Make one tone that is longer than a frame by one wave, to begin anywhere in it."""
    return array(
        "f", (level * math.sin(2 * math.pi * number / WAVE) for number in range(SAMPLES + WAVE))
    )


def _waves(level: float, first: int) -> "array[float]":
    return _tone(level)[first % WAVE : first % WAVE + SAMPLES]
