"""What anybody can know of a simulated stream who sees every segment that it publishes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from mimawari.sim.sites.youtube.programme import FPS, PICTURES, SOUNDS, Programme, cut

BLACK = frozenset({"black"})
HIDDEN = ("gap", "missing", "garbage", "encrypted")
"""Segments with one of these are published, and show nothing."""
# The peaks of each sound; what is no louder than a threshold is silent by it.
_PEAKS_DB = {"silence": -200.0, "noise": -50.0, "quiet": -41.0, "hum": -36.0, "loud": 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """A run of what is bad, in frames, as the segments show it.

    One that shows nothing neither lengthens a run nor ends it.
    """

    first: int
    seen: int
    """How many frames of it are to be seen."""
    enough: int | None = None
    """Behind which frame it has lasted for so long that it is told; None if it never has."""
    end: int | None = None
    """The first frame that is good again; None if there is none."""


def silent_kinds(silence_db: float) -> frozenset[str]:
    """Name the sounds that are silent by a threshold in dB."""
    return frozenset(name for name, peak_db in _PEAKS_DB.items() if peak_db <= silence_db)


def list_incidents(programme: Programme, bad: frozenset[str], threshold: int) -> list[Incident]:
    """List every run of some pictures or some sounds, however short, with what is told of it."""
    found: list[Incident] = []
    run: Incident | None = None
    for what, first, last in _list_seen(programme, PICTURES if bad <= PICTURES else SOUNDS):
        if what in bad:
            run = _lengthen(run or Incident(first=first, seen=0), first, last, threshold)
        elif run is not None:
            found.append(replace(run, end=first))
            run = None
    return found if run is None else [*found, run]


def _lengthen(run: Incident, first: int, last: int, threshold: int) -> Incident:
    seen, lacks = run.seen + last - first, threshold * FPS - run.seen
    enough = first + lacks if run.enough is None and last - first >= lacks else run.enough
    return replace(run, seen=seen, enough=enough)


def _list_seen(programme: Programme, kinds: frozenset[str]) -> Iterator[tuple[str, int, int]]:
    """Yield what the segments show in their order; where there is no sound it is silent."""
    for number in range(programme.find_next(programme.seconds or 0.0)):
        if any(programme.is_upset(number, what) for what in HIDDEN):
            continue
        first, last = programme.span(number)
        if kinds is SOUNDS and not programme.has_sound(number):
            yield "silence", first, last
            continue
        for part in cut(programme.shots, kinds, FPS, first, last):
            yield part.what, part.first, part.last
