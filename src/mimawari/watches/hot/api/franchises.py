"""Routes of the IPs themselves: list, add, change, remove, crawl now, import."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from sqlalchemy.exc import IntegrityError
from starlette.exceptions import HTTPException

from mimawari.edges import csv_export, pagination
from mimawari.edges.pagination import Listing
from mimawari.edges.routes import SystemOf
from mimawari.edges.system import System
from mimawari.errors import BadInput
from mimawari.text import one_line
from mimawari.watches.hot import actions, franchises, import_file, queries
from mimawari.watches.hot.actions import Taken
from mimawari.watches.hot.models import Ip, NewIp
from mimawari.watches.hot.schemas.requests import IpId, IpsAsked
from mimawari.watches.hot.schemas.responses import (
    BadRowOut,
    ImportedOut,
    IpDetailOut,
    IpIn,
    IpOut,
    IpPatch,
    IpsOut,
    TriggeredOut,
    columns_of,
)

ips_router = APIRouter()
FORMS = {"application/json": "json", "text/csv": "csv"}
_IMPORT = (
    "Takes IPs from a file; a row that is bad is told with its line, and keeps no good one from"
    " being taken. The file is CSV whose first line names its columns (name, keyword, name_en,"
    " weight, active, tags), as `text/csv`, or a list like"
    ' `[{"name": "葬送のフリーレン", "keyword": "フリーレン", "tags": ["anime"]}]`,'
    " as `application/json`."
)
# JSON is told of in words only: of a list in which any row may be bad, no schema says enough.
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "text/csv": {
                "schema": {"type": "string", "pattern": "^name,keyword\\n"},
                "example": "name,keyword\n鬼滅の刃,鬼滅\n",
            }
        },
    }
}


@contextmanager
def _conflicts() -> Iterator[None]:
    """Tell as a conflict what stands against what is there."""
    try:
        yield
    except Taken as error:
        raise HTTPException(409, str(error)) from error


@ips_router.get("/ips", response_model=IpsOut, responses=csv_export.CSV)
async def list_ips(system: SystemOf, given: Annotated[IpsAsked, Query()]) -> IpsOut | Response:
    """List IPs by id."""
    active = None if given.active is None else given.active == "true"

    async def fetch(after: int, most: int) -> Sequence[IpOut]:
        async with system.store.read() as reader:
            found = await queries.list_ips(reader, most, after, active=active, search=given.search)
        return [IpOut.of(ip, system.settings) for ip in found]

    listing = Listing(fetch=fetch, start=given.after, place_of=lambda ip: ip.id)
    if given.format == "csv":
        pieces = pagination.walk(listing, given.limit)
        return await csv_export.download("ips", columns_of(IpOut), pieces)
    shown, more = await pagination.find_page(listing, given.page)
    return IpsOut(ips=shown, next=shown[-1].id if more else None)


@ips_router.post("/ips", status_code=201)
async def add_ip(system: SystemOf, ip: IpIn) -> IpDetailOut:
    """Watch one more IP, from now on."""
    with _conflicts():
        added = await actions.add_ip(system, ip.to_new())
    return await _detail(system, added)


async def _detail(system: System, ip: Ip) -> IpDetailOut:
    entry = await system.store.schedule.find(franchises.member_of(ip.id))
    return IpDetailOut.on(entry, ip, system.settings)


@ips_router.get("/ips/{ip_id}")
async def show_ip(system: SystemOf, ip_id: IpId) -> IpDetailOut:
    """Show one IP, and when it is crawled next."""
    async with system.store.read() as reader:
        ip = await actions.find_known(reader, ip_id)
    return await _detail(system, ip)


@ips_router.put("/ips/{ip_id}")
async def replace_ip(system: SystemOf, ip_id: IpId, ip: IpIn) -> IpDetailOut:
    """Describe an IP anew; what is not said is as for a new one."""
    return await _change(system, ip_id, lambda _: ip.to_new())


@ips_router.patch("/ips/{ip_id}")
async def change_ip(system: SystemOf, ip_id: IpId, ip: IpPatch) -> IpDetailOut:
    """Change some of what is known of an IP."""
    return await _change(system, ip_id, ip.to_new)


async def _change(system: System, ip_id: int, change: Callable[[Ip], NewIp]) -> IpDetailOut:
    with _conflicts():
        changed = await actions.change_ip(system, ip_id, change)
    return await _detail(system, changed)


@ips_router.delete("/ips/{ip_id}", status_code=204)
async def remove_ip(system: SystemOf, ip_id: IpId) -> None:
    """Forget an IP with all that was kept of it."""
    await actions.remove_ip(system, ip_id)


@ips_router.post("/ips/{ip_id}/trigger", status_code=202)
async def trigger(system: SystemOf, ip_id: IpId) -> TriggeredOut:
    """Crawl an IP now; while one crawl of it is live there is no second."""
    with _conflicts():
        made = await actions.ask_for_crawl(system, ip_id)
    return TriggeredOut(
        job_id=str(made.why.job_id),
        state=made.why.state,
        next_at=made.why.next_at,
        reason=made.why.reason,
        is_new=made.is_new,
    )


@ips_router.post("/admin/import", openapi_extra=_BODY, description=_IMPORT)
async def import_ips(system: SystemOf, request: Request) -> ImportedOut:
    """Take IPs from a file; bad rows are told with their line, good ones kept."""
    given = request.headers.get("content-type", "")
    form = FORMS.get(given.split(";")[0].strip().lower())
    if form is None:
        shown = one_line(given, most=60) or "nothing"
        raise BadInput(f"send the type application/json or text/csv, not {shown}", code="bad_type")
    try:
        text = (await request.body()).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput("the file is not UTF-8; save it as UTF-8 and send it again") from error
    parsed = import_file.parse(text, form)
    try:
        async with system.store.edit() as tx:
            done = await import_file.save(tx, parsed, system.settings, system.clock.now())
    except IntegrityError as error:
        message = "one of these keywords was added by somebody else just now; send the file again"
        raise HTTPException(409, message) from error
    await queries.drop_kept(system.store.cache)
    bad = [BadRowOut(line=row.line, message=row.message) for row in done.bad]
    return ImportedOut(added=done.added, updated=done.updated, bad=bad)
