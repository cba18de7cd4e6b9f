"""What the API of the rentals watch gives out."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from mimawari.edges.request_job import Later
from mimawari.edges.site_status import WaitOut
from mimawari.kernel.job import State
from mimawari.text import format_duration
from mimawari.watches.rentals.models import Kind, RentalList, Run, Source, Status


class QueueOut(BaseModel):
    """How many details are in which state, and whether somebody is there to read them."""

    pending: int
    processing: int
    done: int
    failed: int
    permanent_fail: int
    is_running: bool

    @classmethod
    def of(cls, counts: Mapping[State, int], *, is_running: bool) -> "QueueOut":
        """Show the queue."""
        known = {state.value: counts.get(state, 0) for state in State}
        return cls(**known, is_running=is_running)


class LaterOut(BaseModel):
    """That something is on its way, when it will run, and why not now."""

    job_id: str
    next_at: datetime | None = Field(description="When it may run at the earliest.")
    reason: str
    blocked_by: str | None

    @classmethod
    def of(cls, later: Later) -> "LaterOut":
        """Show what something waits for."""
        return cls(**asdict(later))


class DetailLaterOut(LaterOut):
    """A property that will be read when its turn comes."""

    property_id: str

    @classmethod
    def on(cls, later: Later, property_id: str) -> "DetailLaterOut":
        """Show what a property waits for."""
        return cls(**asdict(later), property_id=property_id)


class WalkLaterOut(LaterOut):
    """A walk over a list that is under way."""

    run_id: str = Field(description="GET /api/scrape/list/{run_id} tells how it goes on.")
    queue_status: QueueOut

    @classmethod
    def on(cls, later: Later, run_id: str, queue_status: QueueOut) -> "WalkLaterOut":
        """Show what a walk waits for."""
        return cls(**asdict(later), run_id=run_id, queue_status=queue_status)


class RunOut(BaseModel):
    """What a walk over a list has found."""

    run_id: str
    list_id: int
    pages: int = Field(description="How many pages were read.")
    found: int = Field(description="How many rooms they showed.")
    refused: int = Field(description="How many rooms could not be understood.")
    new_to_queue: int = Field(description="How many were never seen before, and are enqueued.")
    already_known: int
    is_whole: bool = Field(description="Every page was read and nothing was left out.")
    started_at: datetime
    ended_at: datetime | None
    ended_as: str = Field(description="Why it went no further; empty while it is under way.")

    @classmethod
    def of(cls, run: Run) -> "RunOut":
        """Show a walk."""
        return cls(run_id=run.id, **_same(cls, run, "run_id"))


class WalkOut(RunOut):
    """A walk over a list that is over, and how the queue stands now."""

    url: str
    queue_status: QueueOut = Field(description="A worker may have begun with the new ones.")

    @classmethod
    def over(cls, run: Run, url: str, queue_status: QueueOut) -> "WalkOut":
        """Show a walk that is over."""
        return cls(**RunOut.of(run).model_dump(), url=url, queue_status=queue_status)


class SearchOut(BaseModel):
    """A saved search, and how much of it the last walk saw."""

    id: int
    url: str
    limit: int
    every: str
    created_at: datetime
    last_run_at: datetime | None
    gone_at: datetime | None = Field(description="The site said that it is gone.")
    next_at: datetime | None
    last_run: RunOut | None

    @classmethod
    def of(cls, found: RentalList, last: Run | None, next_at: datetime | None) -> "SearchOut":
        """Show a saved search."""
        other = ("every", "next_at", "last_run")
        return cls(
            **_same(cls, found, *other),
            every="" if found.every_for is None else format_duration(found.every_for),
            next_at=next_at,
            last_run=None if last is None else RunOut.of(last),
        )


class SearchesOut(BaseModel):
    """All saved searches."""

    searches: list[SearchOut]


class CleanupOut(BaseModel):
    """What was cleared away, or would be."""

    dry_run: bool
    archived: int
    failed: int
    permanent_fail: int


class GaugeOut(BaseModel):
    """How many details may be read, and when the next one."""

    details_per_hour: int
    used: int = Field(description="How many of them the site may have counted in the last hour.")
    is_free: bool = Field(description="A detail may be read now, as far as the limit goes.")
    next_at: datetime | None = Field(description="When the next one may be read, if not now.")
    reason: str | None = Field(description="`hourly_limit`, or why everybody is held.")
    breaker: WaitOut


class StationOut(BaseModel):
    """A way to a station."""

    station: str | None
    line: str | None
    walk_minutes: int
    bus_minutes: int


class _Plain(BaseModel):
    """A property, but for what it has several of."""

    property_id: str
    url: str
    status: Status
    title: str | None
    building_name: str | None
    rent_yen: int | None
    rent_note: str | None = Field(description="Why there is no rent, in the site's words.")
    fee_yen: int | None
    deposit_yen: int | None
    key_money_yen: int | None
    layout: str | None
    area_m2: float | None
    floor: int | None
    years_old: int | None
    built_on: str | None
    address: str | None
    latitude: float | None
    longitude: float | None
    structure_id: str | None
    first_seen_at: datetime
    last_seen_at: datetime
    changed_at: datetime
    detail_at: datetime | None = Field(description="When its own page was read last.")
    ended_at: datetime | None
    gone_at: datetime | None = Field(description="Its page is gone; it is never asked again.")


class PropertyOut(_Plain):
    """A property as it was seen last."""

    stations: list[StationOut]
    images: list[str]

    @classmethod
    def of(cls, row: Any) -> "PropertyOut":
        """Show a property."""
        return cls(**_shown(row))


def _shown(row: Any) -> dict[str, Any]:
    lists = {name: json.loads(getattr(row, name) or "[]") for name in ("stations", "images")}
    return {**_same(_Plain, row), **lists}


def _same(form: type[BaseModel], row: Any, *without: str) -> dict[str, Any]:
    """Take over what goes by the same names."""
    names = [name for name in form.model_fields if name not in without]
    return {name: getattr(row, name) for name in names}


class PropertyRow(_Plain):
    """A property as a line of a file, with the first of its stations."""

    station: str | None = None
    line: str | None = None
    walk_minutes: int | None = None
    bus_minutes: int | None = None
    images: list[str]

    @classmethod
    def of(cls, shown: PropertyOut) -> "PropertyRow":
        """Write a property in one line."""
        first = shown.stations[0].model_dump() if shown.stations else {}
        return cls(**_same(_Plain, shown), **first, images=shown.images)


class PropertyDetailOut(PropertyOut):
    """Everything that is known of a property, and what it waits for if it is in the queue."""

    waiting: LaterOut | None

    @classmethod
    def on(cls, row: Any, later: Later | None) -> "PropertyDetailOut":
        """Show a property with its place in the queue."""
        return cls(**_shown(row), waiting=None if later is None else LaterOut.of(later))


class PropertiesOut(BaseModel):
    """A page of properties."""

    properties: list[PropertyOut]
    next: str | None = Field(description="Give this as `after` for the next page.")


class SnapshotOut(BaseModel):
    """What a property cost and was at a moment."""

    at: datetime
    source: Source
    status: Status
    rent_yen: int | None
    fee_yen: int | None
    deposit_yen: int | None
    key_money_yen: int | None
    layout: str | None
    area_m2: float | None

    @classmethod
    def of(cls, row: Any) -> "SnapshotOut":
        """Show a snapshot."""
        return cls.model_validate(row, from_attributes=True)


class ChangeOut(BaseModel):
    """That something about a property is not as it was."""

    id: int
    at: datetime
    property_id: str
    building_name: str | None
    url: str
    kind: Kind
    before: str | None = Field(description="Amounts in yen, areas in square metres, lists as JSON.")
    after: str | None
    source: Source = Field(description="Which page showed it.")

    @classmethod
    def of(cls, row: Any) -> "ChangeOut":
        """Show a change."""
        same = _same(cls, row, "before", "after")
        return cls(**same, before=row.old_value, after=row.new_value)


class HistoryOut(BaseModel):
    """A property's history."""

    property_id: str
    snapshots: list[SnapshotOut] = Field(description="Newest first.")
    changes: list[ChangeOut] = Field(description="Oldest first.")
    is_cut: bool = Field(
        description="There is more: older snapshots, or older changes, which"
        " GET /api/changes/recent lists a page at a time."
    )


class ChangesOut(BaseModel):
    """A page of changes, newest first."""

    changes: list[ChangeOut]
    next: int | None = Field(description="Give this as `before` for the next page.")
