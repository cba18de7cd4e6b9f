"""What the streams watch decides: pure functions, no I/O."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from mimawari.media.playlist import Playlist, Segment
from mimawari.sites.youtube import Trouble
from mimawari.watches.streams.models import Config, Fault, Reading

SECOND = timedelta(seconds=1)
NEAR_FOR = timedelta(minutes=10)
"""From so long before its time on a stream is asked for often."""
FAR_EVERY, NEAR_EVERY, LATE_EVERY = NEAR_FOR, 60 * SECOND, 30 * SECOND
LIVE_EVERY = timedelta(minutes=5)
"""How often it is asked whether a stream that is watched is live still."""
AGAIN_AFTER = 15 * SECOND
"""An answer that it is over is asked for once more, so much later."""
ENDS_NEEDED = 2
RENEW_BEFORE = timedelta(minutes=10)
"""Addresses of playlists are renewed so long before they run out."""

FAULT_TOLD_AFTER = 60 * SECOND
BREAKER_FAILURES, BREAKER_FOR = 5, 30 * SECOND
SEGMENT_TRIES = 3
CATCH_UP_SECONDS = 300.0
"""Who has fallen further behind than this goes on with what is newest."""
MOST_AT_ONCE = 40
LAG = 10
"""A list may stand so many segments behind another copy of it."""
LONGEST_SEGMENT = 60.0
LOOK_SLACK = 1.0
"""Seconds that a look may take on its way."""

_FIRST_WAIT = {"manifest": 5, "segment": 2, "stale_playlist": 5}
_LONGEST_WAIT = {"manifest": 60, "segment": 30, "stale_playlist": 60}
FaultKind = Literal["manifest", "segment", "stale_playlist"]


def due_at(config: Config, release_at: datetime | None) -> datetime | None:
    """Tell when a stream is to begin: as whoever asked said, else as the site says."""
    return config.scheduled_start_time or release_at


def next_poll(now: datetime, due: datetime | None) -> tuple[datetime, str]:
    """Tell when to ask again whether a stream has begun, and why then."""
    if due is None:
        return now + NEAR_EVERY, "nobody knows when it begins"
    if now >= due:
        return now + LATE_EVERY, "it should have begun"
    if due - now <= NEAR_FOR:
        return min(now + NEAR_EVERY, due), "it begins soon"
    return min(now + FAR_EVERY, due - NEAR_FOR), "it begins later"


def delay_told_at(config: Config) -> datetime | None:
    """Tell when a stream that has not begun by then is late."""
    if config.scheduled_start_time is None:
        return None
    # It is late once more than the tolerance has passed.
    return config.scheduled_start_time + config.start_delay_tolerance_sec * SECOND + SECOND


def unanswered_for(trouble: Trouble, failures: int) -> timedelta:
    """Tell how long to wait after so many answers in a row that said nothing."""
    first, most = (5, 60) if trouble is Trouble.NETWORK else (60, 600)
    return timedelta(seconds=min(first * 2 ** min(failures - 1, 10), most))


def retry_after(what: FaultKind, count: int) -> timedelta:
    """Tell how long to wait after so many failures in a row: longer each time, then a pause."""
    if count >= BREAKER_FAILURES:
        return BREAKER_FOR
    return timedelta(seconds=min(_FIRST_WAIT[what] * 2 ** (count - 1), _LONGEST_WAIT[what]))


def fail(fault: Fault | None, what: FaultKind, words: str, now: datetime) -> Fault:
    """Count one more failure of a spell, or begin one."""
    if fault is None:
        return Fault(what=what, since=now, count=1, words=words)
    return Fault(
        what=what, since=fault.since, count=fault.count + 1, words=words, is_told=fault.is_told
    )


def bear(fault: Fault | None, what: FaultKind, words: str, now: datetime) -> Fault:
    """Go on with a spell, or begin one, over something that is not tried again."""
    count = fault.count if fault else 0
    return replace(fail(fault, what, words, now), count=count)


def is_pausing(fault: Fault | None) -> bool:
    """Say whether so many segments could not be had in a row that one more try is enough."""
    return fault is not None and fault.what == "segment" and fault.count >= BREAKER_FAILURES


def sane_seconds(segment: Segment, target_seconds: float) -> float:
    """Tell how long a segment may be taken for, whatever its list says."""
    usual = target_seconds if 0 < target_seconds <= LONGEST_SEGMENT else LONGEST_SEGMENT
    return min(segment.seconds, usual * 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which segments are looked into next, and what lies between the last one and them."""

    segments: tuple[Segment, ...] = ()
    missed: float = 0.0
    skipped: int = 0
    """How many segments that are there are left out, to be up to date."""
    is_restart: bool = False
    is_behind: bool = False
    has_more: bool = False


def choose(playlist: Playlist, reading: Reading) -> Choice:
    """Choose the segments of a list that were not looked into yet, in their order."""
    listed = playlist.segments
    if not listed:
        return Choice()
    if reading.sequence is None:
        return Choice(segments=listed[-1:])
    last = listed[-1].sequence
    if last < reading.sequence:
        if not _is_restart(listed, reading):
            return Choice(is_behind=True)
        return _bounded(listed, playlist.target_seconds, missed=0.0, is_restart=True)
    new = tuple(one for one in listed if one.sequence > (reading.sequence or 0))
    if not new:
        return Choice()
    lost = new[0].sequence - reading.sequence - 1
    missed = lost * min(playlist.target_seconds or 0.0, LONGEST_SEGMENT)
    return _bounded(new, playlist.target_seconds, missed=missed, is_restart=False)


def _is_restart(listed: tuple[Segment, ...], reading: Reading) -> bool:
    """Say whether a list counts anew: far behind what was read, and growing there."""
    last = listed[-1].sequence
    is_far = (reading.sequence or 0) - last > len(listed) + LAG
    return is_far and reading.below is not None and last > reading.below


def _bounded(new: tuple[Segment, ...], target: float, *, missed: float, is_restart: bool) -> Choice:
    whole = Choice(segments=new, missed=missed, is_restart=is_restart)
    if missed + total_seconds(new, target) > CATCH_UP_SECONDS:
        return take_newest(whole, target)
    return replace(whole, segments=new[:MOST_AT_ONCE], has_more=len(new) > MOST_AT_ONCE)


def take_newest(choice: Choice, target: float) -> Choice:
    """Leave out all but the newest segment."""
    left_out = choice.segments[:-1]
    return replace(
        choice,
        segments=choice.segments[-1:],
        missed=choice.missed + total_seconds(left_out, target),
        skipped=choice.skipped + len(left_out),
        has_more=False,
    )


def total_seconds(segments: Iterable[Segment], target_seconds: float) -> float:
    """Add up how long segments are."""
    return sum(sane_seconds(one, target_seconds) for one in segments)


def look_every(config: Config, playlist: Playlist) -> timedelta:
    """Tell how often to look at a list: as asked for, and before its segments are gone."""
    shown = total_seconds(playlist.segments, playlist.target_seconds)
    asked = float(config.check_interval_sec)
    return (min(asked, max(shown / 2, 1.0)) if shown else asked) * SECOND


def anchor(known: datetime | None, now: datetime, end_seconds: float, target: float) -> datetime:
    """Tell when the programme began by the clock on the wall, from when its end was there.

    What is in a list was made before, so the earliest that was ever seen is the nearest. Whoever
    looks comes up to a segment late; where it is more, the programme itself has stood still.
    """
    seen = now - end_seconds * SECOND
    if known is None or (seen - known).total_seconds() > target + LOOK_SLACK:
        return seen
    return min(known, seen)
