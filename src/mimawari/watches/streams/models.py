"""What is monitored, how it stands, and what whoever asked for it is told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from mimawari.media.timeline import Place, Run

Quality = Literal["lowest", "360p", "best"]


class Status(StrEnum):
    """Where a monitor stands."""

    INITIALIZING = "initializing"
    WAITING = "waiting"
    MONITORING = "monitoring"
    COMPLETED = "completed"
    STOPPED = "stopped"
    ERROR = "error"


ACTIVE = (Status.INITIALIZING, Status.WAITING, Status.MONITORING)


class StreamStatus(StrEnum):
    """How the stream itself stands, as far as is known."""

    UNKNOWN = "unknown"
    UPCOMING = "upcoming"
    LIVE = "live"
    ENDED = "ended"


class Sense(StrEnum):
    """What may go on for too long, in the words of the events."""

    BLACKOUT = "blackout"
    SILENCE = "silence"
    FREEZE = "freeze"
    BARS = "bars"
    LOUDNESS = "loudness"


PICTURE = (Sense.BLACKOUT, Sense.FREEZE, Sense.BARS)
SOUND = (Sense.SILENCE, Sense.LOUDNESS)


class EventType(StrEnum):
    """What whoever asked for a monitor is told."""

    STARTED = "stream.started"
    ENDED = "stream.ended"
    DELAYED = "stream.delayed"
    BLACKOUT = "alert.blackout"
    BLACKOUT_RECOVERED = "alert.blackout_recovered"
    SILENCE = "alert.silence"
    SILENCE_RECOVERED = "alert.silence_recovered"
    FREEZE = "alert.freeze"
    FREEZE_RECOVERED = "alert.freeze_recovered"
    BARS = "alert.bars"
    BARS_RECOVERED = "alert.bars_recovered"
    LOUDNESS = "alert.loudness"
    LOUDNESS_RECOVERED = "alert.loudness_recovered"
    SEGMENT_ERROR = "alert.segment_error"
    ERROR = "monitor.error"

    @classmethod
    def of(cls, sense: Sense, *, is_over: bool) -> "EventType":
        """Name the alert of a sense, or its end."""
        return cls(f"alert.{sense}_recovered" if is_over else f"alert.{sense}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """From when to when something is expected, and nobody is told of it."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """How a stream is monitored; a sense without a threshold is off."""

    check_interval_sec: int = 10
    blackout_threshold_sec: int = 30
    silence_threshold_sec: int = 30
    silence_db_threshold: float = -50.0
    scheduled_start_time: datetime | None = None
    start_delay_tolerance_sec: int = 300
    quality: Quality = "lowest"
    missing_audio_is_silence: bool = True
    freeze_threshold_sec: int | None = None
    bars_threshold_sec: int | None = None
    loudness_threshold_sec: int | None = None
    loudness_min_lufs: float = -40.0
    loudness_max_lufs: float = -5.0
    snapshot: bool = False
    maintenance: tuple[Window, ...] = ()

    def threshold(self, sense: Sense) -> int | None:
        """Tell how long something may go on before it is told; None means for ever."""
        found: int | None = getattr(self, f"{sense}_threshold_sec")
        return found

    def is_expected(self, at: datetime) -> bool:
        """Say whether a moment lies in a window of maintenance."""
        return any(window.start <= at < window.end for window in self.maintenance)


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitor:
    """A stream that is monitored, and for whom."""

    id: str
    stream_url: str
    callback_url: str
    config: Config
    metadata: Mapping[str, Any]
    status: Status
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the stream is, how long that is good, and when it was last asked how it stands."""

    manifest_url: str | None = None
    good_until: datetime | None = None
    list_url: str | None = None
    """The one of several lists that is read."""
    is_refused: bool = False
    """Whether the address was answered with 403, 404 or 410: a new one is asked for as soon as that
    is permitted, and until then this one is tried again."""
    ask_at: datetime | None = None
    """When to ask again whether it is live still."""
    not_before: datetime | None = None
    """Before this time nobody asks, whatever for."""
    held_by: str | None = None
    """What is waited for until then."""
    failures: int = 0
    """How many answers in a row said nothing."""
    ends: int = 0
    """How many clean answers in a row said that it is over."""
    release_at: datetime | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How far the list has been read, and when something new was last in it."""

    sequence: int | None = None
    url: str | None = None
    below: int | None = None
    """The last sequence of a list that stood behind what was read, seen once."""
    trying: int | None = None
    tries: int = 0
    """How often a segment could not be had."""
    missed: float = 0.0
    """Seconds that were skipped since the last segment that was looked into."""
    has_break: bool = False
    new_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A spell of failures: since when, of what, and whether it was told."""

    what: Literal["manifest", "segment", "stale_playlist"]
    since: datetime
    count: int
    words: str
    is_told: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A run that was told of: when it began by the clock on the wall."""

    started_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All that a monitor goes on from, after a crash too."""

    source: Source = field(default_factory=Source)
    reading: Reading = field(default_factory=Reading)
    place: Place = field(default_factory=Place)
    anchor_at: datetime | None = None
    """When the programme's first moment was, by the clock on the wall."""
    runs: Mapping[Sense, Run] = field(default_factory=dict)
    began: Mapping[Sense, datetime] = field(default_factory=dict)
    """When each run began by the clock on the wall, which a programme may fall behind meanwhile."""
    told: Mapping[Sense, Told] = field(default_factory=dict)
    fault: Fault | None = None
    is_delay_told: bool = False
    is_encrypted_told: bool = False
    heard_seconds: float | None = None
    """The programme's second up to which it was measured last how loud it is."""
    started_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """What was counted."""

    segments: int = 0
    blackouts: int = 0
    silences: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something to tell: what, when, and the facts of it."""

    type: EventType
    at: datetime
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """How loud a segment was, up to when; silence is as quiet as a loudness can be."""

    at: datetime
    lufs: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one check found: how the monitor stands now, what to tell, and when to look again."""

    status: Status
    stream_status: StreamStatus
    state: State
    next_at: datetime
    reason: str
    notices: tuple[Notice, ...] = ()
    stats: Stats = field(default_factory=Stats)
    """What came to the counts."""
    heard: tuple[Heard, ...] = ()

    @property
    def is_end(self) -> bool:
        """Whether there is nothing more to look at."""
        return self.status not in ACTIVE
