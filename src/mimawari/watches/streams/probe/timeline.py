"""Puts what was seen and heard in one look at a stream or file on one line of time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mimawari.media.findings import Findings, Loudness, Span, Track, combine
from mimawari.media.segment import LEAST_BLACK_SECONDS, LEAST_SILENCE_SECONDS
from mimawari.media.timeline import Place, put_in_place, shift
from mimawari.watches.streams.intervals import SOUND_EDGE_SECONDS, STILL_EDGE_SECONDS
from mimawari.watches.streams.models import Config

BLACK, FROZEN, BARS = "black", "frozen", "bars"
SILENT, NO_TRACK, QUIET, LOUD = "silent", "no track", "too quiet", "too loud"
UNSEEN = "not seen"
PICTURE, SOUND = (BLACK, FROZEN, BARS), (SILENT, NO_TRACK, QUIET, LOUD)
LEAST = {BLACK: LEAST_BLACK_SECONDS, SILENT: LEAST_SILENCE_SECONDS, FROZEN: 0.5}
"""What is shorter is not told, as FFmpeg's own filters have it."""
_EDGES = {FROZEN: STILL_EDGE_SECONDS, BARS: STILL_EDGE_SECONDS, BLACK: 0.021}
# Pieces overlap or lie apart by a few samples.
_LEAST_APART = 0.001
_USUAL = Config()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One piece that was looked into, or of which nothing can be said."""

    found: Findings | None
    seconds: float = 0.0
    """How long it is said to be, where nothing was found."""
    missed: float = 0.0
    """Seconds that lie between it and the one before."""
    is_break: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bad:
    """From when to when something is bad, in seconds from the beginning."""

    what: str
    start: float
    end: float

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.end - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """How loud it is from when to when, a moment after the other."""

    span: Span
    loudness: Loudness


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What one look found."""

    seconds: float
    unseen_seconds: float
    pieces: int
    picture: tuple[Bad, ...]
    sound: tuple[Bad, ...]
    unseen: tuple[Bad, ...]
    has_picture: bool
    has_sound: bool
    frames_a_second: float | None
    bad_packets: int
    lufs: float | None
    levels: tuple[Level, ...]
    words: tuple[str, ...]
    """Why something could not be seen, each reason once."""


@dataclass(slots=True)
class Probing:
    """What was found so far."""

    place: Place = field(default_factory=Place)
    pieces: int = 0
    _spans: dict[str, list[Span]] = field(default_factory=dict)
    _levels: list[Level] = field(default_factory=list)
    _frame_seconds: float = 0.0
    _bad_packets: int = 0
    _has_picture: bool = False
    _has_sound: bool = False
    _missed: float = 0.0
    _is_break: bool = False
    _words: dict[str, None] = field(default_factory=dict)

    def add(self, part: Part) -> None:
        """Go on with one more piece."""
        self._missed += part.missed
        self._is_break = self._is_break or part.is_break
        if part.found is None or (part.found.picture is None and part.found.sound is None):
            self._missed += part.seconds
            self._words[part.why] = None
            return
        begin = self.place.end
        placed = put_in_place(
            self.place, part.found, missed_seconds=self._missed, is_break=self._is_break
        )
        if self._missed:
            self._note(UNSEEN, Span(start=begin, end=begin + self._missed))
        self.place, self._missed, self._is_break = placed.place, 0.0, False
        self.pieces += 1
        self._take(part.found, placed.picture, placed.sound)

    def _take(self, found: Findings, picture: Track | None, sound: Track | None) -> None:
        offset = self.place.offset or 0.0
        self._bad_packets += found.bad_packets
        self._frame_seconds = found.frame_seconds or self._frame_seconds
        dark, bars = _bad(picture), _bad(shift(found.bars, offset))
        still = _bad(shift(found.frozen, offset))
        self._note(BLACK, *dark)
        self._note(BARS, *bars)
        # What is black or bars stands still too, and is told as that.
        told = (*dark, *bars)
        self._note(FROZEN, *(one for one in still if not any(_meet(one, bad) for bad in told)))
        self._has_picture = self._has_picture or picture is not None
        self._has_sound = self._has_sound or sound is not None
        if sound is not None:
            self._note(SILENT, *sound.bad)
            self._hear(sound.whole, found.loudness)
        elif picture is not None:
            self._note(NO_TRACK, picture.whole)

    def _hear(self, whole: Span, loudness: Loudness | None) -> None:
        if loudness is None:
            return
        self._levels.append(Level(span=whole, loudness=loudness))
        level = loudness.integrated
        if level is not None and level < _USUAL.loudness_min_lufs:
            self._note(QUIET, whole)
        elif level is not None and level > _USUAL.loudness_max_lufs:
            self._note(LOUD, whole)

    def _note(self, what: str, *spans: Span) -> None:
        self._spans.setdefault(what, []).extend(spans)

    def finish(self) -> Probed:
        """Tell what was found, from the first piece to the last."""
        if self._missed and self.pieces:
            self._note(UNSEEN, Span(start=self.place.end, end=self.place.end + self._missed))
        unseen = self._join([UNSEEN])
        frame = self._frame_seconds
        return Probed(
            seconds=round(self.place.end + self._missed, 3),
            unseen_seconds=round(sum(one.seconds for one in unseen), 3),
            pieces=self.pieces,
            picture=self._join(PICTURE),
            sound=self._join(SOUND),
            unseen=unseen,
            has_picture=self._has_picture,
            has_sound=self._has_sound,
            frames_a_second=round(1 / frame, 3) if self._has_picture and frame else None,
            bad_packets=self._bad_packets,
            lufs=combine(one.loudness for one in self._levels),
            levels=tuple(self._levels),
            words=tuple(word for word in self._words if word),
        )

    def _join(self, kinds: Iterable[str]) -> tuple[Bad, ...]:
        found = [one for what in kinds for one in join(what, self._spans.get(what, []))]
        return tuple(sorted(found, key=lambda one: (one.start, one.end)))


def join(what: str, spans: Sequence[Span]) -> list[Bad]:
    """Join what goes on over the edges of pieces, and leave out what is too short to tell."""
    edge = _EDGES.get(what, SOUND_EDGE_SECONDS if what in SOUND else _LEAST_APART)
    joined: list[Bad] = []
    for span in sorted(spans, key=lambda one: one.start):
        start, end = round(span.start, 3), round(span.end, 3)
        if joined and start - joined[-1].end <= edge:
            before = joined.pop()
            start, end = before.start, max(before.end, end)
        joined.append(Bad(what=what, start=start, end=end))
    return [one for one in joined if one.seconds >= LEAST.get(what, 0.0)]


def _bad(track: Track | None) -> tuple[Span, ...]:
    return track.bad if track is not None else ()


def _meet(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end
