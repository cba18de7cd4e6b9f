"""Routes of the properties: read one now, list them, their history and what changed."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse, Response

from mimawari.edges import csv_export, pagination
from mimawari.edges.pagination import Listing
from mimawari.edges.routes import SystemOf
from mimawari.edges.system import System
from mimawari.errors import NotFound
from mimawari.kernel.ports import Reader
from mimawari.watches.rentals import actions, queries
from mimawari.watches.rentals.queries import Place
from mimawari.watches.rentals.schemas.requests import (
    ChangesAsked,
    DetailIn,
    HistoryAsked,
    PropertiesAsked,
    PropertyId,
    read_place,
    write_place,
)
from mimawari.watches.rentals.schemas.responses import (
    ChangeOut,
    ChangesOut,
    DetailLaterOut,
    HistoryOut,
    PropertiesOut,
    PropertyDetailOut,
    PropertyOut,
    PropertyRow,
    SnapshotOut,
)

properties_router = APIRouter()
WAIT_FOR = timedelta(seconds=40)
_LATER: dict[int | str, dict[str, Any]] = {
    202: {"model": DetailLaterOut, "description": "It is in the queue and read in its turn."}
}


async def _find_known(reader: Reader, property_id: str) -> Any:
    row = await queries.find_property(reader, property_id)
    if row is None:
        raise NotFound(f"no property goes by the id {property_id}; GET /api/properties lists them")
    return row


async def _show(system: System, property_id: str) -> PropertyDetailOut:
    async with system.store.read() as reader:
        row = await _find_known(reader, property_id)
    return PropertyDetailOut.on(row, await actions.find_waiting(system, property_id))


@properties_router.post("/scrape", response_model=PropertyDetailOut, responses=_LATER)
async def read_property(system: SystemOf, given: DetailIn) -> PropertyDetailOut | JSONResponse:
    """Read a property's own page if the limit gives leave now, else when its turn comes."""
    until = system.clock.now() + WAIT_FOR
    property_id, later = await actions.ask_for_detail(system, given.url, "api", until)
    if later is None:
        return await _show(system, property_id)
    shown = DetailLaterOut.on(later, property_id)
    return JSONResponse(shown.model_dump(mode="json"), 202)


@properties_router.get("/properties", response_model=PropertiesOut, responses=csv_export.CSV)
async def list_properties(
    system: SystemOf, given: Annotated[PropertiesAsked, Query()]
) -> PropertiesOut | Response:
    """List properties in the order asked for."""
    listing = properties_listing(system, given)
    if given.format == "csv":
        return await download_properties(listing, given.limit)
    shown, more = await pagination.find_page(listing, given.page)
    following = write_place(queries.place_of(shown[-1], given.sort)) if more else None
    return PropertiesOut(properties=shown, next=following)


def properties_listing(
    system: System, given: PropertiesAsked
) -> Listing[PropertyOut, Place | None]:
    """Make the list of the properties that are asked for."""

    async def fetch(after: Place | None, most: int) -> Sequence[PropertyOut]:
        async with system.store.read() as reader:
            rows = await queries.list_properties(reader, given.wanted, most, after)
        return [PropertyOut.of(row) for row in rows]

    return Listing(
        fetch=fetch,
        start=None if given.after is None else read_place(given.after, given.sort),
        place_of=lambda one: queries.place_of(one, given.sort),
    )


async def download_properties(
    listing: Listing[PropertyOut, Place | None], most: int | None
) -> Response:
    """Answer with a file of properties."""
    pieces = _rows(pagination.walk(listing, most))
    return await csv_export.download("properties", list(PropertyRow.model_fields), pieces)


async def _rows(
    pieces: AsyncIterator[Sequence[PropertyOut]],
) -> AsyncIterator[Sequence[PropertyRow]]:
    async for piece in pieces:
        yield [PropertyRow.of(one) for one in piece]


@properties_router.get("/properties/{property_id}")
async def show_property(system: SystemOf, property_id: PropertyId) -> PropertyDetailOut:
    """Show everything that is known of a property, and what it waits for if it is in the queue."""
    return await _show(system, property_id)


@properties_router.get("/properties/{property_id}/history")
async def show_history(
    system: SystemOf, property_id: PropertyId, given: Annotated[HistoryAsked, Query()]
) -> HistoryOut:
    """Show how a property was, and what changed about it."""
    most = given.limit
    async with system.store.read() as reader:
        await _find_known(reader, property_id)
        snapshots = await queries.list_snapshots(reader, property_id, most + 1)
        changes = await queries.list_changes(reader, most + 1, property_id=property_id)
    return HistoryOut(
        property_id=property_id,
        snapshots=[SnapshotOut.of(row) for row in snapshots[:most]],
        changes=[ChangeOut.of(row) for row in reversed(changes[:most])],
        is_cut=len(snapshots) > most or len(changes) > most,
    )


@properties_router.get("/changes/recent", response_model=ChangesOut, responses=csv_export.CSV)
async def list_changes(
    system: SystemOf, given: Annotated[ChangesAsked, Query()]
) -> ChangesOut | Response:
    """List what changed, newest first."""
    listing = changes_listing(system, given)
    if given.format == "csv":
        return await download_changes(listing, given.limit)
    shown, more = await pagination.find_page(listing, given.page)
    return ChangesOut(changes=shown, next=shown[-1].id if more else None)


def changes_listing(system: System, given: ChangesAsked) -> Listing[ChangeOut, int | None]:
    """Make the list of the changes that are asked for."""

    async def fetch(before: int | None, most: int) -> Sequence[ChangeOut]:
        async with system.store.read() as reader:
            rows = await queries.list_changes(
                reader, most, before=before, property_id=given.property_id, kind=given.kind
            )
        return [ChangeOut.of(row) for row in rows]

    return Listing(fetch=fetch, start=given.before, place_of=lambda change: change.id)


async def download_changes(listing: Listing[ChangeOut, int | None], most: int | None) -> Response:
    """Answer with a file of changes."""
    pieces = pagination.walk(listing, most)
    return await csv_export.download("changes", list(ChangeOut.model_fields), pieces)
