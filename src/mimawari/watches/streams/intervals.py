"""Goes on with what is black, silent and so on over one more segment: pure decisions."""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from mimawari.media.findings import QUIETEST_LUFS, Findings, Look, Span, Track
from mimawari.media.playlist import Segment
from mimawari.media.timeline import Change, Run, follow, put_in_place, shift
from mimawari.watches.streams.models import (
    PICTURE,
    SOUND,
    Config,
    EventType,
    Heard,
    Notice,
    Sense,
    State,
    Stats,
    Told,
)

SOUND_EDGE_SECONDS = 0.05
"""A decoder that begins anew with each segment rings for about this long."""
STILL_EDGE_SECONDS = 0.4
"""A still picture that is coded anew moves for a moment; bars are looked for this often."""
HEAR_SECONDS = 10.0
"""How often it is kept how loud it is."""
USUAL_FRAME_SECONDS = 0.04


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensed:
    """How a monitor stands after one more segment, and what is to be told."""

    state: State
    notices: tuple[Notice, ...]
    stats: Stats


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One segment that was looked into, and what lies between it and the one before."""

    segment: Segment
    found: Findings
    missed: float
    is_break: bool


def look_for(config: Config, state: State) -> Look:
    """Tell what to look for in the next segment."""
    return Look(
        silence_db=config.silence_db_threshold,
        has_freeze=config.freeze_threshold_sec is not None,
        has_bars=config.bars_threshold_sec is not None,
        has_loudness=config.loudness_threshold_sec is not None or is_to_hear(state),
        has_snapshot=config.snapshot,
    )


def is_to_hear(state: State) -> bool:
    """Say whether it is to be kept again how loud it is; what it costs is paid now and then."""
    heard = state.heard_seconds
    return heard is None or not heard <= state.place.end < heard + HEAR_SECONDS


def hear(state: State, seen: Seen) -> tuple[State, Heard | None]:
    """Tell how loud a segment that has its place is, where that is to be kept."""
    loudness = seen.found.loudness
    if loudness is None or state.anchor_at is None or not is_to_hear(state):
        return state, None
    end = state.place.end
    level = QUIETEST_LUFS if loudness.integrated is None else loudness.integrated
    heard = Heard(at=state.anchor_at + timedelta(seconds=end), lufs=round(level, 1))
    return replace(state, heard_seconds=end), heard


def place(state: State, seen: Seen) -> State:
    """Give a segment its place in the programme."""
    placed = put_in_place(
        state.place, seen.found, missed_seconds=seen.missed, is_break=seen.is_break
    )
    return replace(state, place=placed.place)


def sense(config: Config, state: State, seen: Seen, now: datetime) -> Sensed:
    """Go on with every run over a segment that has its place, and tell what changed."""
    runs, told, began = dict(state.runs), dict(state.told), dict(state.began)
    notices: list[Notice] = []
    for one, track in _tracks(config, seen.found, state.place.offset or 0.0):
        threshold = config.threshold(one)
        if threshold is None:
            continue
        edge = _edge(one, seen.found)
        run, changes = follow(runs.get(one), track, threshold, edge)
        _keep(runs, one, run)
        telling = _Telling(config, state, seen, one, now)
        _keep(began, one, telling.began(run) if run else None)
        for change in _with_late(run, changes, one in told):
            notice = telling.tell(change, told.get(one))
            if notice is None:
                continue
            notices.append(notice)
            _keep(told, one, None if change.is_over else telling.told(change))
    stats = Stats(
        segments=1,
        blackouts=sum(notice.type is EventType.BLACKOUT for notice in notices),
        silences=sum(notice.type is EventType.SILENCE for notice in notices),
    )
    state = replace(state, runs=runs, told=told, began=began)
    return Sensed(state=state, notices=tuple(notices), stats=stats)


def _edge(one: Sense, found: Findings) -> float:
    """Tell how exact the times of a sense are."""
    if one is Sense.BLACKOUT:
        return (found.frame_seconds or USUAL_FRAME_SECONDS) / 2
    return SOUND_EDGE_SECONDS if one in SOUND else STILL_EDGE_SECONDS


def _keep(kept: dict[Sense, Any], one: Sense, value: Run | Told | datetime | None) -> None:
    if value is None:
        kept.pop(one, None)
    else:
        kept[one] = value


def _with_late(run: Run | None, changes: list[Change], is_told: bool) -> list[Change]:
    """Tell again of what was long enough while it was expected, and is not expected any more."""
    if changes or is_told or run is None or not run.is_told:
        return changes
    return [Change(is_over=False, start=run.start, at=run.until, seconds=run.seconds)]


def _tracks(config: Config, found: Findings, offset: float) -> Iterator[tuple[Sense, Track]]:
    """List where the segment is bad in each way, in the time of the programme."""
    tracks = {
        Sense.BLACKOUT: found.picture,
        Sense.FREEZE: _without(found.frozen, found.picture),
        Sense.BARS: found.bars,
        Sense.SILENCE: _silence(config, found),
        Sense.LOUDNESS: _loudness(config, found),
    }
    for one, track in tracks.items():
        placed = shift(track, offset)
        if placed is not None:
            yield one, placed


def _without(frozen: Track | None, black: Track | None) -> Track | None:
    """Leave out what is black, which stands still too and is told as that."""
    if frozen is None or black is None:
        return frozen
    bad = [span for span in frozen.bad if not any(_meet(span, dark) for dark in black.bad)]
    return Track(whole=frozen.whole, bad=tuple(bad))


def _meet(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end


def _silence(config: Config, found: Findings) -> Track | None:
    if found.sound is None and found.picture is not None and config.missing_audio_is_silence:
        return Track(whole=found.picture.whole, bad=(found.picture.whole,))
    return found.sound


def _loudness(config: Config, found: Findings) -> Track | None:
    if found.sound is None or found.loudness is None:
        return None
    level = found.loudness.integrated
    # Nothing but silence is told as that.
    is_bad = level is not None and not (
        config.loudness_min_lufs <= level <= config.loudness_max_lufs
    )
    return Track(whole=found.sound.whole, bad=(found.sound.whole,) if is_bad else ())


@dataclass(frozen=True, slots=True)
class _Telling:
    """Writes what is told of one sense at one segment."""

    config: Config
    state: State
    seen: Seen
    sense: Sense
    now: datetime

    def told(self, change: Change) -> Told:
        """Remember that it was told."""
        return Told(started_at=self.began(change))

    def began(self, run: Run | Change) -> datetime:
        """Tell when a run began by the clock on the wall, as it was known then."""
        before = self.state.runs.get(self.sense)
        if before is not None and before.start == run.start:
            return self.state.began.get(self.sense) or self._wall(run.start)
        return self._wall(run.start)

    def tell(self, change: Change, told: Told | None) -> Notice | None:
        """Write what to tell of a change; nothing where it is expected, or was never told."""
        if change.is_over:
            return None if told is None else self._over(change, told)
        if self.config.is_expected(self._wall(change.at)):
            return None
        data: dict[str, Any] = {
            "duration_sec": round(change.seconds, 3),
            "started_at": self.began(change),
            "threshold_sec": self.config.threshold(self.sense),
            "segment_info": {
                "sequence": self.seen.segment.sequence,
                "duration": round(self.seen.segment.seconds, 3),
            },
            **self._more(),
        }
        return Notice(type=EventType.of(self.sense, is_over=False), at=self.now, data=data)

    def _over(self, change: Change, told: Told) -> Notice:
        length = timedelta(seconds=round(change.seconds, 3))
        data = {
            "total_duration_sec": length.total_seconds(),
            "started_at": told.started_at,
            "recovered_at": told.started_at + length,
        }
        return Notice(type=EventType.of(self.sense, is_over=True), at=self.now, data=data)

    def _more(self) -> Mapping[str, Any]:
        more: dict[str, Any] = {}
        found = self.seen.found
        if self.sense is Sense.SILENCE and found.sound is None:
            more["reason"] = "no_audio_track"
        if self.sense is Sense.LOUDNESS and found.loudness is not None:
            more["lufs"] = round(found.loudness.integrated or 0.0, 1)
        if self.sense in PICTURE and found.snapshot is not None:
            picture = b64encode(found.snapshot).decode()
            more["snapshot"] = f"data:image/jpeg;base64,{picture}"
        return more

    def _wall(self, seconds: float) -> datetime:
        return (self.state.anchor_at or self.now) + timedelta(seconds=seconds)
