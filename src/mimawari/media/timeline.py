"""Joins what segments show into runs that go over their edges: pure decisions.

Time is that of the programme: it begins with the first segment that was seen and goes on with
every one, whatever a segment's own clock says. Of what nobody saw nothing is said: a gap neither
lengthens a run nor ends it.
"""

from dataclasses import dataclass, replace

from mimawari.media.findings import Findings, Span, Track

CLOCK_JUMP_SECONDS = 1.0
"""A segment's clock that is further off than this does not go on from the one before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run that is not over: from when on, up to when it is known, and how long it is for sure."""

    start: float
    until: float
    seconds: float
    is_told: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """That a run has become long enough to be told, or that one that was told is over."""

    is_over: bool
    start: float
    at: float
    """When it became long enough, or was over."""
    seconds: float
    """How long it is known to be by now, or was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the programme stands, and how the last segment's clock relates to it."""

    end: float = 0.0
    offset: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A segment's tracks in the time of the programme, and where that stands behind it."""

    picture: Track | None
    sound: Track | None
    place: Place


def put_in_place(place: Place, found: Findings, *, missed_seconds: float, is_break: bool) -> Placed:
    """Give a segment its place behind what was missed since the last one."""
    tracks = [track for track in (found.picture, found.sound) if track is not None]
    if not tracks:
        return Placed(picture=None, sound=None, place=place)
    start = min(track.whole.start for track in tracks)
    begin = place.end + missed_seconds
    offset = begin - start
    if place.offset is not None and not is_break and not missed_seconds:
        is_going_on = abs(start + place.offset - begin) <= CLOCK_JUMP_SECONDS
        offset = place.offset if is_going_on else offset
    end = max(track.whole.end for track in tracks) + offset
    return Placed(
        picture=shift(found.picture, offset),
        sound=shift(found.sound, offset),
        place=Place(end=max(end, begin), offset=offset),
    )


def shift(track: Track | None, offset: float) -> Track | None:
    """Give a track another clock, so much later."""
    if track is None:
        return None
    return Track(
        whole=_move(track.whole, offset), bad=tuple(_move(span, offset) for span in track.bad)
    )


def _move(span: Span, offset: float) -> Span:
    return Span(start=span.start + offset, end=span.end + offset)


def follow(
    run: Run | None, track: Track, threshold: float, least_good: float
) -> tuple[Run | None, list[Change]]:
    """Go on with a run over one more stretch of its track, and tell what changed.

    Something good that is shorter than `least_good` is an edge of what was measured, and so is
    what a run lacks to its threshold.
    """
    changes: list[Change] = []
    at = track.whole.start
    for bad in track.bad:
        if bad.start - at >= least_good:
            run, changes = _end(run, at, changes)
        run = _lengthen(run, bad)
        run, changes = _tell(run, threshold, least_good, changes)
        at = bad.end
    if track.whole.end - at >= least_good:
        run, changes = _end(run, at, changes)
    return run, changes


def _lengthen(run: Run | None, bad: Span) -> Run:
    if run is None:
        return Run(start=bad.start, until=bad.end, seconds=bad.seconds)
    more = bad.end - max(bad.start, run.until)
    return replace(run, until=max(run.until, bad.end), seconds=run.seconds + max(more, 0.0))


def _tell(
    run: Run, threshold: float, edge: float, changes: list[Change]
) -> tuple[Run, list[Change]]:
    if run.is_told or run.seconds < threshold - edge:
        return run, changes
    at = run.until - max(run.seconds - threshold, 0.0)
    told = Change(is_over=False, start=run.start, at=at, seconds=run.seconds)
    return replace(run, is_told=True), [*changes, told]


def _end(run: Run | None, at: float, changes: list[Change]) -> tuple[None, list[Change]]:
    if run is None or not run.is_told:
        return None, changes
    over = Change(is_over=True, start=run.start, at=at, seconds=at - run.start)
    return None, [*changes, over]
