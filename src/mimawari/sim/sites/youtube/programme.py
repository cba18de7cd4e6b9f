"""Live programmes: what is shown when, what goes wrong, and when each moment of them is produced.

Shots, and upsets of the material, are told in seconds of the programme. What happens to those who
ask, and to production itself, is told in seconds of the clock since the programme started.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count, pairwise
from typing import Literal

from mimawari.errors import BadInput

Container = Literal["ts", "fmp4"]

FPS = 25
PICTURES = frozenset({"black", "near_black", "bars", "freeze"})
SOUNDS = frozenset({"silence", "noise", "hum", "quiet", "loud"})
NO_SOUND = "mute_track"
"""Segments that this touches have no sound track at all."""
TROUBLES = frozenset({"private", "removed", "members", "region", "bot", "rate", "network"})
"""What the resolver says in place of an answer."""
ON_THE_CLOCK = TROUBLES | {"stall", "stale", "forbidden", "not_playlist"}
IN_THE_MATERIAL = frozenset({"gap", "missing", "garbage", "encrypted", "break", "restart"})
STARTS = frozenset({"break", "restart"})
"""These happen once, with the first segment that begins by their start."""
# Seconds that are not exact in binary are on the side that is meant.
_NEARLY = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """Something else than usual to see or hear, perhaps again every so many seconds.

    Of shots of one sort that overlap, the last one named is on.
    """

    what: str
    start: float
    end: float = math.inf
    every: float | None = None

    def __post_init__(self) -> None:
        """Refuse what nobody can show."""
        if self.what not in PICTURES | SOUNDS | {NO_SOUND}:
            raise BadInput(f"there is no shot {self.what!r}")
        _check_span(self.start, self.end)
        if self.every is not None and not 0 < self.end - self.start <= self.every:
            raise BadInput("what comes again is over before it does")

    def list_times(self, start: float, end: float) -> Iterator[tuple[float, float]]:
        """Yield from when to when it is on, each time that touches a span."""
        if self.every is None:
            if self.start < end and self.end > start:
                yield self.start, self.end
            return
        for number in count(max(0, math.floor((start - self.end) / self.every) + 1)):
            moved = number * self.every
            if self.start + moved >= end:
                return
            yield self.start + moved, self.end + moved


@dataclass(frozen=True, slots=True, kw_only=True)
class Upset:
    """Something that goes wrong.

    Of a `stall`, `stale`, `forbidden`, `not_playlist` and all troubles of the resolver the times
    are seconds of the clock since the start; of the others they are seconds of the programme, and
    concern every segment that they touch.
    """

    what: str
    start: float
    end: float = math.inf

    def __post_init__(self) -> None:
        """Refuse what cannot happen."""
        if self.what not in ON_THE_CLOCK | IN_THE_MATERIAL:
            raise BadInput(f"there is no upset {self.what!r}")
        _check_span(self.start, self.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A part of the programme in which one thing is on, in frames or samples."""

    what: str
    since: int
    """When it was first on, maybe before this part."""
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Programme:
    """A live stream from its announcement to its end; without `seconds` it never ends."""

    video_id: str
    title: str
    starts_at: datetime
    scheduled_at: datetime | None = None
    seconds: float | None = None
    shots: tuple[Shot, ...] = ()
    upsets: tuple[Upset, ...] = ()
    segment_seconds: float = 2.0
    container: Container = "ts"
    is_dated: bool = True
    """Whether its lists tell when each segment was produced."""
    window: int = 15
    """How many segments a list names."""
    ending: Literal["endlist", "vanish"] = "endlist"
    """Whether its lists say that it is over, or are gone with it."""

    def __post_init__(self) -> None:
        """Refuse lengths that are no whole number of frames, and stalls within stalls."""
        whole = self.segment_seconds if self.seconds is None else self.seconds
        for seconds in (self.segment_seconds, whole):
            frames = seconds * FPS
            if frames < 1 or abs(frames - round(frames)) > _NEARLY:
                raise BadInput(f"{seconds:g} s are no whole number of frames of {1 / FPS} s")
        stalls = self.list_upsets("stall")
        if any(after.start < before.end for before, after in pairwise(stalls)):
            raise BadInput("one stall ends before the next begins")
        if stalls and stalls[0].start < 0:
            raise BadInput("nothing stalls before it has started")

    @property
    def frames(self) -> int:
        """How many frames a segment has, unless it is the last one."""
        return round(self.segment_seconds * FPS)

    @property
    def ends_at(self) -> datetime | None:
        """When the last of it is produced."""
        return None if self.seconds is None else self.at(self.clock_of(self.seconds, is_end=True))

    def at(self, on_clock: float) -> datetime | None:
        """Return the time so many seconds after the start; None is never."""
        return self.starts_at + timedelta(seconds=on_clock) if math.isfinite(on_clock) else None

    def list_upsets(self, *kinds: str) -> list[Upset]:
        """List the upsets of some kinds in their order."""
        found = [upset for upset in self.upsets if upset.what in kinds]
        return sorted(found, key=lambda upset: upset.start)

    def find_upset(self, on_clock: float, *kinds: str) -> Upset | None:
        """Find the upset of some kinds that is on at a time of the clock."""
        on = (one for one in self.list_upsets(*kinds) if one.start <= on_clock < one.end)
        return next(on, None)

    def clock_of(self, seconds: float, *, is_end: bool = False) -> float:
        """Return when a moment is produced, in seconds since the start.

        Where production stalls just then, what ends there was before it, and what begins after.
        """
        on_clock = seconds
        for stall in self.list_upsets("stall"):
            if stall.start < on_clock or (stall.start == on_clock and not is_end):
                on_clock += stall.end - stall.start
        return on_clock

    def moment_of(self, on_clock: float) -> float:
        """Return up to which moment the programme is produced at a time of the clock."""
        most = math.inf if self.seconds is None else self.seconds
        moment = since = 0.0
        for stall in self.list_upsets("stall"):
            if on_clock <= stall.start:
                break
            moment, since = moment + stall.start - since, stall.end
            if on_clock <= stall.end:
                return min(moment, most)
        return min(moment + max(0.0, on_clock - since), most)

    def is_over(self, on_clock: float) -> bool:
        """Say whether all of it is produced."""
        return self.seconds is not None and self.moment_of(on_clock) + _NEARLY >= self.seconds

    def count_segments(self, on_clock: float) -> int:
        """Count the segments that are wholly produced."""
        frames = math.floor(self.moment_of(on_clock) * FPS + _NEARLY * FPS)
        whole, rest = divmod(frames, self.frames)
        return whole + bool(rest and self.is_over(on_clock))

    def span(self, number: int) -> tuple[int, int]:
        """Return the first frame of a segment and the one after its last."""
        most = math.inf if self.seconds is None else round(self.seconds * FPS)
        return number * self.frames, int(min((number + 1) * self.frames, most))

    def is_upset(self, number: int, what: str) -> bool:
        """Say whether something of a kind is wrong with a segment."""
        first, last = self.span(number)
        touching = (
            upset.start < last / FPS and upset.end > first / FPS
            for upset in self.upsets
            if upset.what == what
        )
        return any(touching)

    def list_starts(self, *kinds: str) -> list[int]:
        """List the segments with which breaks or restarts come, in order."""
        return [self.find_next(upset.start) for upset in self.list_upsets(*kinds)]

    def find_next(self, seconds: float) -> int:
        """Find the first segment that begins at a moment or after it."""
        return max(0, math.ceil(seconds * FPS / self.frames - _NEARLY))

    def widen(self, start: float, end: float) -> tuple[float, float]:
        """Return a span with all of the segments that it touches."""
        first = max(0, math.floor(start * FPS / self.frames + _NEARLY))
        last = self.find_next(end) if math.isfinite(end) else end
        return first * self.segment_seconds, last * self.segment_seconds

    def has_sound(self, number: int) -> bool:
        """Say whether a segment has a sound track."""
        first, last = (frame / FPS for frame in self.span(number))
        mute = (shot for shot in self.shots if shot.what == NO_SOUND)
        return not any(True for shot in mute for _ in shot.list_times(first, last))


def cut(
    shots: Sequence[Shot], kinds: frozenset[str], rate: int, first: int, last: int
) -> Iterator[Stretch]:
    """Cut a span of frames or samples into what is on; what is as usual has no name."""
    on = [
        (shot.what, _round(start, rate, last), _round(end, rate, last))
        for shot in shots
        if shot.what in kinds
        for start, end in shot.list_times(first / rate, last / rate)
    ]
    edges = {edge for _, start, end in on for edge in (start, end) if first < edge < last}
    for begin, end in pairwise(sorted({first, last} | edges)):
        shown = [one for one in on if one[1] <= begin < one[2]]
        what, since, _ = shown[-1] if shown else ("", 0, 0)
        yield Stretch(what=what, since=since, first=begin, last=end)


def _round(seconds: float, rate: int, most: int) -> int:
    return round(seconds * rate) if seconds * rate < most else most


def _check_span(start: float, end: float) -> None:
    if not (math.isfinite(start) and start <= end):
        raise BadInput(f"nothing lasts from {start:g} to {end:g}")
