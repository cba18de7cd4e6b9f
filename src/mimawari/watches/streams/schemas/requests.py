"""What may be asked of the streams watch, refused with a sentence."""

import json
import re
from typing import Annotated, Any, Self

from annotated_types import Ge, Le
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from mimawari.edges.request_fields import Asked, Moment, Sent
from mimawari.text import plain_digits
from mimawari.watches.streams.models import (
    Config,
    EventType,
    Quality,
    Status,
    StreamStatus,
    Window,
)

MOST_METADATA = 16 * 1024
MOST_WINDOWS = 50
MOST_STATE = 256 * 1024
MOST_NOTICES = 200
_UNHELD = re.compile(r"[\x00\ud800-\udfff]")


def _held(value: dict[str, Any]) -> dict[str, Any]:
    """Refuse what is too much, or what not every database can hold."""
    written = json.dumps(value, ensure_ascii=False)
    if len(written.encode(errors="surrogatepass")) > MOST_METADATA:
        raise ValueError(f"must be at most {MOST_METADATA} bytes of JSON")
    if "\\u0000" in written or _UNHELD.search(written):
        raise ValueError("must hold no NUL and no half of a character")
    return value


def _clean_facts(value: dict[str, Any]) -> dict[str, Any]:
    """Refuse what not every database can hold."""
    if "\\u0000" in json.dumps(value) or _UNHELD.search(json.dumps(value, ensure_ascii=False)):
        raise ValueError("must hold no NUL and no half of a character")
    return value


Metadata = Annotated[dict[str, Any], AfterValidator(_held)]
Seconds = Annotated[int, Ge(1), Le(86_400)]


class WindowIn(Sent):
    """From when to when something is expected."""

    start: Moment = Field(alias="from")
    end: Moment = Field(alias="to")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.start >= self.end:
            raise ValueError("`from` must come before `to`")
        return self


class ConfigIn(Sent):
    """How a stream is monitored."""

    check_interval_sec: Annotated[int, Ge(1), Le(300)] = 10
    blackout_threshold_sec: Seconds = 30
    silence_threshold_sec: Seconds = 30
    silence_db_threshold: Annotated[float, Ge(-120), Le(0)] = -50
    scheduled_start_time: Moment | None = None
    start_delay_tolerance_sec: Annotated[int, Ge(0), Le(86_400)] = 300
    quality: Quality = Field(default="lowest", description="Which variant is looked at.")
    missing_audio_is_silence: bool = Field(
        default=True, description="Whether a stream without a sound track is told as silent."
    )
    freeze_threshold_sec: Seconds | None = Field(
        default=None, description="Tell of a picture that stands still for so long; null: never."
    )
    bars_threshold_sec: Seconds | None = Field(
        default=None, description="Tell of colour bars for so long; null: never."
    )
    loudness_threshold_sec: Seconds | None = Field(
        default=None, description="Tell of sound too low or too loud for so long; null: never."
    )
    loudness_min_lufs: Annotated[float, Ge(-70), Le(0)] = -40
    loudness_max_lufs: Annotated[float, Ge(-70), Le(0)] = -5
    snapshot: bool = Field(default=False, description="Whether alerts carry a small picture.")
    maintenance: Annotated[list[WindowIn], Field(max_length=MOST_WINDOWS)] = Field(
        default_factory=list, description="When nobody is told of what is seen or heard."
    )

    @model_validator(mode="after")
    def _bounds(self) -> Self:
        if self.loudness_min_lufs >= self.loudness_max_lufs:
            raise ValueError("loudness_min_lufs must be less than loudness_max_lufs")
        return self

    def make(self) -> Config:
        """Make what is kept."""
        windows = tuple(Window(start=one.start, end=one.end) for one in self.maintenance)
        values = self.model_dump(exclude={"maintenance"})
        return Config(**values, maintenance=windows)


class MonitorIn(Sent):
    """A stream to be monitored, and whom to tell."""

    stream_url: str = Field(
        description="The address of one video, like a browser shows it.",
        examples=["https://www.youtube.com/watch?v=XXXXXXXXXXX"],
    )
    callback_url: str = Field(
        description="Where webhooks are sent.",
        examples=["https://example.com/webhook/stream-alert"],
    )
    config: ConfigIn = Field(default_factory=ConfigIn)
    metadata: Metadata = Field(default_factory=dict)


class MonitorsAsked(Asked):
    """Which monitors are listed."""

    status: Status | None = None
    limit: Annotated[int, Ge(1), Le(500), BeforeValidator(plain_digits)] = 50
    offset: Annotated[int, Ge(0), Le(10_000_000), BeforeValidator(plain_digits)] = 0


class EventsAsked(Asked):
    """Which events are listed."""

    limit: Annotated[int, Ge(1), Le(500), BeforeValidator(plain_digits)] = 50
    offset: Annotated[int, Ge(0), Le(10_000_000), BeforeValidator(plain_digits)] = 0


Count = Annotated[int, Ge(0), Le(2**31 - 1)]


class HealthIn(Sent):
    """How picture and sound are."""

    video: Annotated[str, Field(pattern="^[a-z_]{1,20}$")] | None = None
    audio: Annotated[str, Field(pattern="^[a-z_]{1,20}$")] | None = None


class StatisticsIn(Sent):
    """What a runner has counted since its monitor began."""

    total_segments_analyzed: Count
    blackout_events: Count
    silence_events: Count


class NoticeIn(Sent):
    """Something to tell: what, when, and the facts of it."""

    type: Annotated[EventType, Field(strict=False)]
    at: Moment
    data: Annotated[dict[str, Any], AfterValidator(_clean_facts)]


class CheckIn(Sent):
    """What one check of a pod found; taken once, and only from whoever holds the monitor."""

    version: Count = Field(description="What the claim or the last report answered.")
    id: Annotated[str, Field(pattern="^[0-9a-f-]{36}$")] = Field(
        description="The same each time that this report is sent."
    )
    stream_status: Annotated[StreamStatus, Field(strict=False)]
    state: Annotated[str, Field(max_length=MOST_STATE)]
    reason: Annotated[str, Field(max_length=1000)]
    notices: Annotated[list[NoticeIn], Field(max_length=MOST_NOTICES)] = Field(
        default_factory=list, description="What is told of it, by webhooks of the gateway."
    )


class ClaimIn(Sent):
    """Which pod takes a monitor."""

    pod: Annotated[str, Field(pattern="^[a-z0-9-]{1,63}$")]


class PodAsked(Asked):
    """Of which pod the monitors are listed."""

    pod: Annotated[str, Field(pattern="^[a-z0-9-]{1,63}$")]


class ReportIn(Sent):
    """How a monitor stands, as its runner says."""

    # A word of JSON is never one of ours, but names one.
    status: Annotated[Status, Field(strict=False)] | None = None
    health: HealthIn | None = None
    statistics: StatisticsIn | None = None
    check: CheckIn | None = Field(default=None, description="What a pod's check found.")
