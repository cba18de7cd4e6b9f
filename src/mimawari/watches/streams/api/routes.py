"""Routes of the streams watch."""

from typing import Annotated

from fastapi import APIRouter, Query, Request

from mimawari.edges.routes import SystemOf
from mimawari.errors import NotFound
from mimawari.text import clean
from mimawari.watches.streams import actions, queries
from mimawari.watches.streams.actions import Client
from mimawari.watches.streams.api.errors import MonitorRoute
from mimawari.watches.streams.schemas.requests import EventsAsked, MonitorIn, MonitorsAsked
from mimawari.watches.streams.schemas.responses import (
    AddedOut,
    EventOut,
    EventsOut,
    ListedOut,
    MonitorOut,
    MonitorsOut,
    PaginationOut,
    StoppedOut,
)

PREFIX = "/api/v1/monitors"
router = APIRouter(prefix=PREFIX, route_class=MonitorRoute)


@router.post("", status_code=201)
async def add_monitor(system: SystemOf, request: Request, given: MonitorIn) -> AddedOut:
    """Monitor a stream from now on."""
    client = Client(name=request.scope["state"]["client"], is_counted=True)
    return AddedOut.of(await actions.add(system, given, client), system.settings.zone)


@router.get("")
async def list_monitors(system: SystemOf, given: Annotated[MonitorsAsked, Query()]) -> MonitorsOut:
    """List monitors, newest first."""
    async with system.store.read() as reader:
        views, total = await queries.list_views(reader, given.status, given.limit, given.offset)
    listed = [ListedOut.of(view, system.settings.zone) for view in views]
    pagination = PaginationOut(total=total, limit=given.limit, offset=given.offset)
    return MonitorsOut(monitors=listed, pagination=pagination)


@router.get("/{monitor_id}", response_model_exclude_unset=True)
async def show_monitor(system: SystemOf, monitor_id: str) -> MonitorOut:
    """Show a monitor: how it and its stream stand, and what was counted."""
    return MonitorOut.of(await actions.find(system, clean(monitor_id)), system.settings.zone)


@router.delete("/{monitor_id}")
async def stop_monitor(system: SystemOf, monitor_id: str) -> StoppedOut:
    """Stop a monitor, and answer when nothing of it runs any more."""
    return StoppedOut.of(await actions.stop(system, clean(monitor_id)), system.settings.zone)


@router.get("/{monitor_id}/events")
async def list_events(
    system: SystemOf, monitor_id: str, given: Annotated[EventsAsked, Query()]
) -> EventsOut:
    """List what was told of a monitor, newest first, and what became of the telling."""
    name = clean(monitor_id)
    async with system.store.read() as reader:
        if await queries.find_view(reader, name) is None:
            raise NotFound(f"no monitor goes by the id {name!r}")
        found, total = await queries.list_events(reader, name, given.limit, given.offset)
    shown = [EventOut.of(event, system.settings.zone) for event in found]
    pagination = PaginationOut(total=total, limit=given.limit, offset=given.offset)
    return EventsOut(events=shown, pagination=pagination)
