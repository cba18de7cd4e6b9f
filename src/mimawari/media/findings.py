"""What one segment shows, and what is to be looked for in it: plain values."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

USUAL_SILENCE_DB = -50.0
QUIETEST_LUFS = -70.0
"""What is not louder than this counts as nothing in a loudness, as EBU R128 has it."""
MOMENT_STEP_SECONDS = 0.1
_GATE_LU = 10.0
_OFFSET_LUFS = -0.691
"""Between a mean square and its loudness, as ITU-R BS.1770 has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What to look for beside black and silence."""

    silence_db: float = USUAL_SILENCE_DB
    has_freeze: bool = False
    """Where the picture stands still."""
    has_bars: bool = False
    """Where colour bars stand."""
    has_loudness: bool = False
    """How loud the sound is, by EBU R128."""
    has_snapshot: bool = False
    """A small JPEG of what is black, stands still or is bars."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """From when to when, in seconds of the segment's own clock."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.end - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """One track: from when to when it goes, and where it is bad in one way."""

    whole: Span
    bad: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loudness:
    """How loud a segment is; several can be combined."""

    moments: tuple[float, ...]
    """The loudness of 0.4 seconds each, in LUFS and never under -70; one every 0.1 seconds."""
    short_term: float | None
    """The loudest 3 seconds; None where there are fewer, or nothing but silence."""

    @property
    def momentary(self) -> float | None:
        """The loudest moment in LUFS; None where there is nothing but silence."""
        loudest = max(self.moments, default=QUIETEST_LUFS)
        return loudest if loudest > QUIETEST_LUFS else None

    @property
    def integrated(self) -> float | None:
        """The loudness of the whole segment in LUFS; None where there is nothing but silence."""
        return combine([self])

    @property
    def seconds(self) -> float:
        """How much was measured."""
        return len(self.moments) * MOMENT_STEP_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What one segment shows; a track that it does not have is None, as is all not looked for."""

    picture: Track | None
    """Where it is black."""
    sound: Track | None
    """Where it is silent."""
    frame_seconds: float
    """How long one picture stands, which is how exact the times are."""
    bad_packets: int
    frozen: Track | None = None
    bars: Track | None = None
    loudness: Loudness | None = None
    snapshot: bytes | None = None
    """Shows the longest bad run of the picture; None where there is none."""


def combine(several: Iterable[Loudness]) -> float | None:
    """Return the gated loudness of several segments as one; None where all is silent.

    It is what EBU R128 calls integrated, but for the moments that lie over segments' edges.
    """
    loud = [one for each in several for one in each.moments if one > QUIETEST_LUFS]
    if not loud:
        return None
    least = _mean(loud) - _GATE_LU
    return _mean([one for one in loud if one > least])


def _mean(moments: Sequence[float]) -> float:
    power = sum(10 ** ((one - _OFFSET_LUFS) / 10) for one in moments) / len(moments)
    return _OFFSET_LUFS + 10 * math.log10(power)
