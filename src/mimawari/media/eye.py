"""Sees where a picture is black, stands still or is nothing but colour bars."""

from collections.abc import Sequence
from typing import Protocol

import av
from av.video.reformatter import ColorRange, VideoReformatter

from mimawari.media import bars
from mimawari.media.filters import Filter
from mimawari.media.findings import Look, Track
from mimawari.media.snapshot import make_jpeg
from mimawari.media.taking import Taking

USUAL_FRAME_SECONDS = 0.04
LEAST_BLACK_SHARE = 0.98
"""So much of a picture that is black must be, as the filter `blackdetect` has it."""
FROZEN = "n=-60dB:d=0.1"
BARS_EVERY_SECONDS = 0.4
"""How often is looked for bars, which is how exact their times are."""

# Up to where 10 % of the way from black to white is black.
_DARK, _DARK_OF_ALL = bytes(range(16 + 21 + 1)), bytes(range(25 + 1))
_EIGHT_BITS = {"yuv420p", "yuvj420p", "yuv422p", "yuvj422p", "yuv444p", "yuvj444p", "nv12", "gray"}
"""Formats whose first plane is the light, a byte a pixel."""
_FEW_ROWS = 8
_START, _END = "lavfi.freezedetect.freeze_start", "lavfi.freezedetect.freeze_end"


class Sense(Protocol):
    """Says of one picture after the other whether it is bad."""

    taking: Taking

    def take(self, frame: av.VideoFrame, at: float) -> None:
        """Look at a picture, and note where a bad run begins or ends."""


class Eye:
    """Sees where the picture is black, and what else is asked for."""

    def __init__(self, stream: av.VideoStream, look: Look) -> None:
        # One segment is too short to be worth more than one thread.
        stream.thread_type = "NONE"
        rate = stream.average_rate or stream.guessed_rate
        self.frame_seconds = float(1 / rate) if rate else USUAL_FRAME_SECONDS
        self._black = _Black()
        self._freeze = _Freeze() if look.has_freeze else None
        self._bars = _Bars() if look.has_bars else None
        asked: Sequence[Sense | None] = (self._black, self._freeze, self._bars)
        self._senses = [sense for sense in asked if sense is not None]
        self._worst = _Worst() if look.has_snapshot else None

    def take(self, frame: av.VideoFrame) -> None:
        """Look at one picture."""
        at = frame.time
        if at is None:
            return
        for sense in self._senses:
            sense.taking.pass_by(at, at + self.frame_seconds)
            sense.take(frame, at)
            if self._worst is not None and sense.taking.opened is not None:
                self._worst.note(sense.taking.opened, at, frame)

    def finish(self) -> tuple[Track | None, Track | None, Track | None]:
        """Return where the picture is black, where it stands still and where bars are."""
        black, frozen, shown = (
            sense.taking.finish() if sense is not None else None
            for sense in (self._black, self._freeze, self._bars)
        )
        return black, frozen, shown

    def show(self) -> bytes | None:
        """Draw what is bad for longest, where that was asked for."""
        shown = self._worst.shown if self._worst is not None else None
        return make_jpeg(shown) if shown is not None else None


class _Worst:
    """Keeps a picture of the run that is bad for longest."""

    def __init__(self) -> None:
        self.shown: av.VideoFrame | None = None
        self._start, self._seconds = 0.0, -1.0

    def note(self, start: float, at: float, frame: av.VideoFrame) -> None:
        """Note a picture of a run that began at `start`; of one run the first is kept."""
        if at - start <= self._seconds:
            return
        self._seconds = at - start
        if self.shown is None or start != self._start:
            self._start, self.shown = start, frame


class _Black:
    """Sees what the filter `blackdetect` sees, at a fifth of what the filter costs."""

    def __init__(self) -> None:
        self.taking = Taking()

    def take(self, frame: av.VideoFrame, at: float) -> None:
        """Look whether a picture is black."""
        if is_black(frame):
            self.taking.open(at)
        else:
            self.taking.close(at)


def is_black(frame: av.VideoFrame) -> bool:
    """Say whether enough of a picture is black."""
    plain = frame if frame.format.name in _EIGHT_BITS else frame.reformat(format="yuv420p")
    is_full = plain.format.name.startswith("yuvj") or plain.color_range == ColorRange.JPEG
    dark = _DARK_OF_ALL if is_full else _DARK
    pixels = plain.width * plain.height
    # Mostly a few rows have more bright pixels already than all of a black picture may have.
    return all(
        (pixels - _count_bright(plain, dark, every)) / pixels >= LEAST_BLACK_SHARE
        for every in (_FEW_ROWS, 1)
    )


def _count_bright(frame: av.VideoFrame, dark: bytes, every: int) -> int:
    plane, width = frame.planes[0], frame.width
    light, size = memoryview(plane), plane.line_size
    starts = range(0, frame.height * size, size * every)
    rows = b"".join([light[start : start + width] for start in starts])
    return len(rows.translate(None, dark))


class _Freeze:
    """Sees where the picture stands still; one picture alone does not."""

    def __init__(self) -> None:
        self.taking = Taking()
        self._filter = Filter("freezedetect", FROZEN)

    def take(self, frame: av.VideoFrame, at: float) -> None:
        """Look whether a picture is as those before it."""
        if self._filter.push(frame):
            self.taking.close(at)
        seen = self._filter.pull()
        if seen is None or not (said := seen.metadata):
            return
        # A run that was just long enough begins and ends with the same picture.
        if _START in said:
            self.taking.open(float(said[_START]))
        if _END in said:
            self.taking.close(float(said[_END]))


class _Bars:
    """Sees where colour bars stand, looking at a picture now and then."""

    def __init__(self) -> None:
        self.taking = Taking()
        self._next_at = float("-inf")
        self._reformatter = VideoReformatter()

    def take(self, frame: av.VideoFrame, at: float) -> None:
        """Look whether a picture is colour bars, if it is time to."""
        if at < self._next_at:
            return
        self._next_at = at + BARS_EVERY_SECONDS
        if bars.has_bars(self._shrink(frame)):
            self.taking.open(at)
        else:
            self.taking.close(at)

    def _shrink(self, frame: av.VideoFrame) -> list[bytes]:
        tiny = self._reformatter.reformat(
            frame, bars.WIDTH, bars.HEIGHT, "rgb24", interpolation="AREA"
        )
        plane = tiny.planes[0]
        drawn, size = bytes(plane), plane.line_size
        return [drawn[row * size :][: bars.WIDTH * 3] for row in range(bars.HEIGHT)]
