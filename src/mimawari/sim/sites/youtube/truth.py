"""What is really so with simulated streams: every shot and upset with the times it is produced."""

import math
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from mimawari.sim.sites.youtube.programme import NO_SOUND, ON_THE_CLOCK, STARTS, Programme, Upset
from mimawari.sim.sites.youtube.resolver import tell_status

BEHIND_FOR = timedelta(days=1)
AHEAD_FOR = timedelta(hours=1)
"""What comes again and again is told from so long ago until so far ahead."""


def tell_programme(programme: Programme, now: datetime) -> dict[str, Any]:
    """Tell all about a programme: `start` and `end` in its seconds, `from` and `to` in time."""
    return {
        "video_id": programme.video_id,
        "title": programme.title,
        "live_status": tell_status(programme, now),
        "scheduled_at": _iso(programme.scheduled_at),
        "starts_at": _iso(programme.starts_at),
        "ends_at": _iso(programme.ends_at),
        "seconds": programme.seconds,
        "segment_seconds": programme.segment_seconds,
        "shots": list(_tell_shots(programme, now)),
        "upsets": [_tell_upset(programme, upset) for upset in programme.upsets],
    }


def _tell_shots(programme: Programme, now: datetime) -> Iterator[dict[str, Any]]:
    on_clock = (now - programme.starts_at).total_seconds()
    first = programme.moment_of(on_clock - BEHIND_FOR.total_seconds())
    last = programme.moment_of(on_clock + AHEAD_FOR.total_seconds())
    for shot in programme.shots:
        times = shot.list_times(first, last) if shot.every is not None else [(shot.start, shot.end)]
        for start, end in times:
            span = programme.widen(start, end) if shot.what == NO_SOUND else (start, end)
            yield {"what": shot.what, **_tell_span(programme, *span)}


def _tell_upset(programme: Programme, upset: Upset) -> dict[str, Any]:
    if upset.what in ON_THE_CLOCK:
        return {
            "what": upset.what,
            "start": programme.moment_of(upset.start),
            "end": _finite(programme.moment_of(upset.end)),
            "from": _iso(programme.at(upset.start)),
            "to": _iso(programme.at(upset.end)),
        }
    if upset.what in STARTS:
        at = programme.find_next(upset.start) * programme.segment_seconds
        return {"what": upset.what, **_tell_span(programme, at, at)}
    return {"what": upset.what, **_tell_span(programme, *programme.widen(upset.start, upset.end))}


def _tell_span(programme: Programme, start: float, end: float) -> dict[str, Any]:
    # What would come after the end is never produced.
    most = math.inf if programme.seconds is None else programme.seconds
    start, end = min(start, most), min(end, most)
    begins_at = programme.at(programme.clock_of(start, is_end=start == most))
    ends_at = programme.at(programme.clock_of(end, is_end=start < end))
    return {"start": start, "end": _finite(end), "from": _iso(begins_at), "to": _iso(ends_at)}


def _finite(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) else None


def _iso(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
