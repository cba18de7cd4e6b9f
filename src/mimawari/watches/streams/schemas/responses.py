"""What the routes of the streams watch answer with."""

from datetime import datetime, tzinfo
from typing import Any

from pydantic import BaseModel, Field

from mimawari.watches.streams.events import write_moment
from mimawari.watches.streams.models import ACTIVE, Monitor, Status
from mimawari.watches.streams.pods.claims import Claim
from mimawari.watches.streams.queries import Sending, View
from mimawari.watches.streams.state import write_config, write_state


class AddedOut(BaseModel):
    """A monitor that was just added."""

    monitor_id: str
    status: str
    created_at: str

    @classmethod
    def of(cls, monitor: Monitor, zone: tzinfo) -> "AddedOut":
        """Show a monitor."""
        created_at = write_moment(monitor.created_at, zone)
        return cls(monitor_id=monitor.id, status=monitor.status, created_at=created_at)


class StoppedOut(BaseModel):
    """A monitor that is over."""

    monitor_id: str
    status: str
    stopped_at: str | None

    @classmethod
    def of(cls, view: View, zone: tzinfo) -> "StoppedOut":
        """Show a monitor."""
        ended_at = view.ended_at
        return cls(
            monitor_id=view.monitor.id,
            status=view.monitor.status,
            stopped_at=write_moment(ended_at, zone) if ended_at else None,
        )


class HealthOut(BaseModel):
    """How picture and sound are, and when they were last looked at."""

    video: str
    audio: str
    last_check_at: str | None


class StatisticsOut(BaseModel):
    """What was counted."""

    total_segments_analyzed: int
    blackout_events: int
    silence_events: int


class MonitorOut(BaseModel):
    """A monitor."""

    monitor_id: str
    stream_url: str
    status: str
    stream_status: str
    health: HealthOut
    statistics: StatisticsOut
    created_at: str
    reason: str | None = Field(
        default=None, description="Why it is over, or why it does not start."
    )

    @classmethod
    def of(cls, view: View, zone: tzinfo) -> "MonitorOut":
        """Show a monitor."""
        monitor, last = view.monitor, view.last_check_at
        is_told = monitor.status not in ACTIVE or monitor.status is Status.INITIALIZING
        return cls(
            monitor_id=monitor.id,
            stream_url=monitor.stream_url,
            status=monitor.status,
            stream_status=view.stream_status,
            health=HealthOut(
                video=view.video,
                audio=view.audio,
                last_check_at=write_moment(last, zone) if last else None,
            ),
            statistics=StatisticsOut(
                total_segments_analyzed=view.segments,
                blackout_events=view.blackouts,
                silence_events=view.silences,
            ),
            created_at=write_moment(monitor.created_at, zone),
            **({"reason": view.reason} if is_told and view.reason is not None else {}),
        )


class ListedOut(BaseModel):
    """A monitor in a list."""

    monitor_id: str
    stream_url: str
    status: str
    created_at: str

    @classmethod
    def of(cls, view: View, zone: tzinfo) -> "ListedOut":
        """Show a monitor."""
        monitor = view.monitor
        return cls(
            monitor_id=monitor.id,
            stream_url=monitor.stream_url,
            status=monitor.status,
            created_at=write_moment(monitor.created_at, zone),
        )


class PaginationOut(BaseModel):
    """Which part of a list this is."""

    total: int
    limit: int
    offset: int


class MonitorsOut(BaseModel):
    """Some monitors, newest first."""

    monitors: list[ListedOut]
    pagination: PaginationOut


class EventOut(BaseModel):
    """Something that was told, and what became of the telling."""

    id: str
    monitor_id: str
    event_type: str
    payload: dict[str, Any]
    webhook_status: str
    webhook_attempts: int
    webhook_last_error: str | None
    created_at: str
    sent_at: str | None

    @classmethod
    def of(cls, event: Sending, zone: tzinfo) -> "EventOut":
        """Show an event."""
        return cls(
            id=event.id,
            monitor_id=event.monitor_id,
            event_type=event.event_type,
            payload=event.payload,
            webhook_status=event.status,
            webhook_attempts=event.attempts,
            webhook_last_error=event.last_error,
            created_at=write_moment(event.created_at, zone),
            sent_at=write_moment(event.sent_at, zone) if event.sent_at else None,
        )


class EventsOut(BaseModel):
    """Some events, newest first."""

    events: list[EventOut]
    pagination: PaginationOut


class ReportedOut(BaseModel):
    """That a report was taken."""

    monitor_id: str
    status: str
    version: int | None = Field(default=None, description="What the next report of a check says.")


class PodMonitorsOut(BaseModel):
    """The monitors that a pod is to run."""

    monitors: list[str]


class ClaimOut(BaseModel):
    """A monitor that a pod has now, and what it goes on from."""

    monitor_id: str
    stream_url: str
    callback_url: str
    config: dict[str, Any]
    metadata: dict[str, Any]
    status: str
    created_at: datetime
    state: str
    statistics: StatisticsOut
    version: int
    zone: str

    @classmethod
    def of(cls, claim: Claim, zone: tzinfo) -> "ClaimOut":
        """Show what was claimed."""
        monitor, counted = claim.monitor, claim.stats
        return cls(
            monitor_id=monitor.id,
            stream_url=monitor.stream_url,
            callback_url=monitor.callback_url,
            config=write_config(monitor.config),
            metadata=dict(monitor.metadata),
            status=monitor.status,
            created_at=monitor.created_at,
            state=write_state(claim.state),
            statistics=StatisticsOut(
                total_segments_analyzed=counted.segments,
                blackout_events=counted.blackouts,
                silence_events=counted.silences,
            ),
            version=claim.version,
            zone=str(zone),
        )
