"""Reads the playlist of a stream, and looks into every segment that is new in it."""

from dataclasses import dataclass, field, replace
from datetime import datetime

import structlog

from mimawari.errors import BadInput, Invalid, JobError
from mimawari.media.playlist import Master, NotPlaylist, Playlist, Segment, choose_variant
from mimawari.sites.hls import Refused
from mimawari.text import one_line
from mimawari.watches.streams import intervals, rules
from mimawari.watches.streams.intervals import Seen
from mimawari.watches.streams.models import (
    Config,
    EventType,
    Fault,
    Heard,
    Notice,
    Reading,
    State,
    Stats,
)
from mimawari.watches.streams.outside import Outside

UNREADABLE = (Invalid, BadInput)
"""Raised of what is there, but nobody can look into it: another try would give the same."""

log = structlog.get_logger(component="segment_analyzer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What one look at a playlist gave."""

    state: State
    next_at: datetime
    reason: str
    is_over: bool = False
    notices: tuple[Notice, ...] = ()
    stats: Stats = field(default_factory=Stats)
    heard: tuple[Heard, ...] = ()


async def read(config: Config, state: State, outside: Outside) -> Read:
    """Look once at the playlist, and into what is new in it."""
    look = _Look(config, state, outside)
    try:
        playlist = await look.fetch()
    except (JobError, BadInput) as error:
        return look.fail_list(error)
    return await look.go_through(playlist)


class _Look:
    """One look at a playlist, and what it has found so far."""

    def __init__(self, config: Config, state: State, outside: Outside) -> None:
        self._config = config
        self._state = state
        self._outside = outside
        self._began_at = self._seen_at = outside.now()
        self._notices: list[Notice] = []
        self._segments = self._blackouts = self._silences = 0
        self._heard: list[Heard] = []
        self._lost = 0.0
        self._is_bad = False

    async def fetch(self) -> Playlist:
        """Fetch the playlist of the quality that is asked for."""
        source = self._state.source
        url = source.list_url or source.manifest_url or ""
        found = await self._outside.fetch_playlist(url)
        if isinstance(found, Master):
            url = choose_variant(found, self._config.quality).url
            found = await self._outside.fetch_playlist(url)
            if isinstance(found, Master):
                raise NotPlaylist("the playlist names lists that name lists")
        self._state = replace(self._state, source=replace(source, list_url=url, is_refused=False))
        self._seen_at = self._outside.now()
        return found

    def fail_list(self, error: Exception) -> Read:
        """Count that the playlist could not be had; a refused address is to be replaced."""
        is_refused = isinstance(error, Refused) and error.is_over
        source = replace(self._state.source, list_url=None, is_refused=is_refused)
        self._state = replace(self._state, source=source)
        return self._fail("manifest", error)

    def _fail(self, what: rules.FaultKind, error: Exception) -> Read:
        fault = self._count_fault(what, error)
        next_at = self._outside.now() + rules.retry_after(what, fault.count)
        return self._ended(next_at, f"{what}: {fault.words}")

    def _count_fault(self, what: rules.FaultKind, error: Exception) -> Fault:
        words = one_line(str(error), most=300)
        fault = rules.fail(self._state.fault, what, words, self._outside.now())
        self._state = replace(self._state, fault=fault)
        return fault

    async def go_through(self, playlist: Playlist) -> Read:
        """Look into the segments that are new, in their order."""
        choice = rules.choose(playlist, self._state.reading)
        if rules.is_pausing(self._state.fault):
            # Older ones may well be gone for good; whether it works again the newest one tells.
            choice = rules.take_newest(choice, playlist.target_seconds)
        self._note(choice, playlist)
        target = playlist.target_seconds
        first = choice.segments[0].sequence if choice.segments else 0
        left = rules.total_seconds(
            (one for one in playlist.segments if one.sequence >= first), target
        )
        for segment in choice.segments:
            left -= rules.sane_seconds(segment, target)
            error = await self._take(segment, left, target)
            if error is not None:
                return self._fail("segment", error)
        if playlist.is_ended and not choice.has_more:
            return replace(self._ended(self._began_at, "over"), is_over=True)
        if choice.has_more:
            return self._ended(self._outside.now(), "more segments are there")
        return self._rest(playlist, has_new=bool(choice.segments))

    def _note(self, choice: rules.Choice, playlist: Playlist) -> None:
        """Remember what lies between the last segment and those that come."""
        reading = self._state.reading
        below = playlist.segments[-1].sequence if choice.is_behind else None
        if choice.skipped:
            log.warning(
                "fell behind", result="skipped", segments=choice.skipped, seconds=choice.missed,
                next=choice.segments[0].sequence,
            )  # fmt: skip
        reading = replace(reading, below=below)
        self._lost = choice.missed
        if choice.is_restart:
            first = choice.segments[0].sequence
            reading = replace(reading, sequence=first - 1, has_break=True)
        self._state = replace(self._state, reading=reading)

    async def _take(self, segment: Segment, left: float, target: float) -> Exception | None:
        """Look into one segment; return what went wrong if it is to be tried again."""
        seconds = rules.sane_seconds(segment, target)
        if segment.is_encrypted:
            self._tell_encrypted(segment)
        if segment.has_gap or segment.is_encrypted:
            self._pass_by(segment, seconds)
            return None
        try:
            found = await self._outside.look(
                segment.piece, segment.header, intervals.look_for(self._config, self._state)
            )
        except (JobError, BadInput) as error:
            if self._is_worth_trying(segment, error):
                return error
            # What comes behind it is there, and must not wait for it any longer.
            self._pass_by(segment, seconds)
            self._bear(error)
            return None
        is_break = segment.has_break or self._state.reading.has_break
        seen = Seen(segment=segment, found=found, missed=self._missed(), is_break=is_break)
        self._sense(seen, left, target)
        return None

    def _is_worth_trying(self, segment: Segment, error: Exception) -> bool:
        """Count a try of a segment, and say whether there may be another one."""
        if isinstance(error, UNREADABLE):
            return False
        reading = self._state.reading
        tries = reading.tries + 1 if reading.trying == segment.sequence else 1
        self._read_to(replace(reading, trying=segment.sequence, tries=tries))
        return tries <= rules.SEGMENT_TRIES

    def _bear(self, error: Exception) -> None:
        """Go on behind a segment that could not be looked into, and remember that."""
        now, words = self._outside.now(), one_line(str(error), most=300)
        count = rules.bear if isinstance(error, UNREADABLE) else rules.fail
        fault = count(self._state.fault, "segment", words, now)
        self._state = replace(self._state, fault=fault)
        self._is_bad = True

    def _missed(self) -> float:
        """Tell how much lies between the last segment that was seen and the next one, once."""
        lost, self._lost = self._lost, 0.0
        return self._state.reading.missed + lost

    def _sense(self, seen: Seen, left: float, target: float) -> None:
        before = self._state.place.end + seen.missed
        state = intervals.place(self._state, seen)
        anchor = rules.anchor(state.anchor_at, self._seen_at, state.place.end + left, target)
        if seen.segment.at is not None:
            anchor = seen.segment.at - before * rules.SECOND
        state = replace(state, anchor_at=anchor, fault=None)
        state, heard = intervals.hear(state, seen)
        self._heard += [heard] if heard else []
        sensed = intervals.sense(self._config, state, seen, self._outside.now())
        self._state = sensed.state
        self._notices += sensed.notices
        self._segments += sensed.stats.segments
        self._blackouts += sensed.stats.blackouts
        self._silences += sensed.stats.silences
        self._read_to(
            Reading(
                sequence=seen.segment.sequence,
                url=seen.segment.piece.url,
                new_at=self._seen_at,
            )
        )

    def _pass_by(self, segment: Segment, seconds: float) -> None:
        """Go on behind a segment of which nothing can be said."""
        reading = self._state.reading
        self._read_to(
            replace(
                reading,
                sequence=segment.sequence,
                url=segment.piece.url,
                trying=None,
                tries=0,
                missed=self._missed() + seconds,
                has_break=reading.has_break or segment.has_break,
                new_at=self._seen_at,
            )
        )

    def _read_to(self, reading: Reading) -> None:
        self._state = replace(self._state, reading=reading)

    def _tell_encrypted(self, segment: Segment) -> None:
        if self._state.is_encrypted_told:
            return
        self._state = replace(self._state, is_encrypted_told=True)
        now = self._outside.now()
        data = {
            "reason": "encrypted_unsupported",
            "duration_sec": 0,
            "started_at": now,
            "error_details": f"segment {segment.sequence} is encrypted; nothing is seen of it",
        }
        self._notices.append(Notice(type=EventType.SEGMENT_ERROR, at=now, data=data))

    def _rest(self, playlist: Playlist, *, has_new: bool) -> Read:
        """Wait until something new is to be expected; a list that stands still is a fault."""
        reading, now = self._state.reading, self._outside.now()
        next_at = max(self._began_at + rules.look_every(self._config, playlist), now)
        if has_new:
            if not self._is_bad:
                # A list that goes on is well, even where there is nothing to be seen in it.
                self._state = replace(self._state, fault=None)
            return self._ended(next_at, "interval")
        if self._state.fault is not None and self._state.fault.what == "manifest":
            self._state = replace(self._state, fault=None)
        new_at = reading.new_at or self._began_at
        self._read_to(replace(reading, new_at=new_at))
        if now - new_at < rules.FAULT_TOLD_AFTER:
            return self._ended(next_at, "nothing new in its playlist")
        fault = rules.fail(self._state.fault, "stale_playlist", "nothing new in the playlist", now)
        self._state = replace(self._state, fault=replace(fault, since=new_at))
        return self._ended(next_at, "its playlist stands still")

    def _ended(self, next_at: datetime, reason: str) -> Read:
        return Read(
            state=self._state,
            next_at=next_at,
            reason=reason,
            notices=tuple(self._notices),
            stats=Stats(
                segments=self._segments, blackouts=self._blackouts, silences=self._silences
            ),
            heard=tuple(self._heard),
        )
