"""Routes of the IPs themselves: list, add, change, remove, crawl now, import."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from starlette.exceptions import HTTPException

from mimawari.edges import exporting, paging
from mimawari.edges.paging import Listing
from mimawari.edges.routes import SystemOf
from mimawari.edges.system import System
from mimawari.errors import BadInput, NotFound
from mimawari.kernel.ports import Reader
from mimawari.kernel.why import why
from mimawari.text import one_line
from mimawari.watches.hot import importing, reads, targets
from mimawari.watches.hot.api_models import (
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
from mimawari.watches.hot.asking import IpId, IpsAsked
from mimawari.watches.hot.models import Ip, NewIp
from mimawari.watches.hot.tables import ips

ips_router = APIRouter()
TRIES = 3
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


async def find_known(reader: Reader, ip_id: int) -> Ip:
    """Find an IP, or raise NotFound."""
    ip = await targets.find_ip(reader, ip_id)
    if ip is None:
        raise _unknown(ip_id)
    return ip


def _unknown(ip_id: int) -> NotFound:
    return NotFound(f"no IP goes by the id {ip_id}; GET /api/v1/ips lists them")


@ips_router.get("/ips", response_model=IpsOut, responses=exporting.CSV)
async def list_ips(system: SystemOf, asked: Annotated[IpsAsked, Query()]) -> IpsOut | Response:
    """List IPs by id."""
    active = None if asked.active is None else asked.active == "true"

    async def fetch(after: int, most: int) -> Sequence[IpOut]:
        async with system.store.read() as reader:
            found = await reads.list_ips(reader, most, after, active=active, search=asked.search)
        return [IpOut.of(ip, system.settings) for ip in found]

    listing = Listing(fetch=fetch, start=asked.after, place_of=lambda ip: ip.id)
    if asked.format == "csv":
        pieces = paging.walk(listing, asked.limit)
        return await exporting.download("ips", columns_of(IpOut), pieces)
    shown, more = await paging.find_page(listing, asked.page)
    return IpsOut(ips=shown, next=shown[-1].id if more else None)


@ips_router.post("/ips", status_code=201)
async def add_ip(system: SystemOf, ip: IpIn) -> IpDetailOut:
    """Watch one more IP, from now on."""
    new = ip.to_new()
    try:
        async with system.store.edit() as tx:
            (added,) = await targets.add_ips(tx, [new], system.settings, system.clock.now())
    except IntegrityError as error:
        raise await _taken(system, new) from error
    return await _detail(system, added)


async def _detail(system: System, ip: Ip) -> IpDetailOut:
    entry = await system.store.schedule.find(targets.member_of(ip.id))
    return IpDetailOut.on(entry, ip, system.settings)


async def _taken(system: System, new: NewIp) -> HTTPException:
    async with system.store.read() as reader:
        found = await targets.find_by_keyword(reader, [new.keyword])
    owners = [f"IP {ip.id} ({one_line(ip.name, most=60)})" for ip in found.values()]
    owner = owners[0] if owners else "another IP"
    shown = one_line(new.keyword, most=60)
    return HTTPException(
        409, f"{owner} has the keyword {shown!r} already; change that IP, or take another keyword"
    )


@ips_router.get("/ips/{ip_id}")
async def show_ip(system: SystemOf, ip_id: IpId) -> IpDetailOut:
    """Show one IP, and when it is crawled next."""
    async with system.store.read() as reader:
        ip = await find_known(reader, ip_id)
    return await _detail(system, ip)


@ips_router.put("/ips/{ip_id}")
async def replace_ip(system: SystemOf, ip_id: IpId, ip: IpIn) -> IpDetailOut:
    """Describe an IP anew; what is not said is as for a new one."""
    return await _change(system, ip_id, ip)


@ips_router.patch("/ips/{ip_id}")
async def change_ip(system: SystemOf, ip_id: IpId, ip: IpPatch) -> IpDetailOut:
    """Change some of what is known of an IP."""
    return await _change(system, ip_id, ip)


async def _change(system: System, ip_id: int, given: IpIn | IpPatch) -> IpDetailOut:
    new: NewIp | None = None
    try:
        async with system.store.edit() as tx:
            # Held from here on, so that of two changes at once neither undoes the other.
            await tx.execute(select(ips.c.id).where(ips.c.id == ip_id).with_for_update())
            known = await find_known(tx, ip_id)
            new = given.to_new() if isinstance(given, IpIn) else given.to_new(known)
            changed = await targets.change_ip(tx, ip_id, new, system.settings, system.clock.now())
    except IntegrityError as error:
        if new is None:
            raise
        raise await _taken(system, new) from error
    if changed is None:
        raise _unknown(ip_id)
    await reads.drop_kept(system.store.cache, ip_id)
    return await _detail(system, changed)


@ips_router.delete("/ips/{ip_id}", status_code=204)
async def remove_ip(system: SystemOf, ip_id: IpId) -> None:
    """Forget an IP with all that was kept of it."""
    async with system.store.edit() as tx:
        was_there = await targets.remove_ip(tx, ip_id)
    if not was_there:
        raise _unknown(ip_id)
    await reads.drop_kept(system.store.cache, ip_id)


@ips_router.post("/ips/{ip_id}/trigger", status_code=202)
async def trigger(system: SystemOf, ip_id: IpId) -> TriggeredOut:
    """Crawl an IP now; while one crawl of it is live there is no second."""
    store = system.store
    async with store.read() as reader:
        ip = await find_known(reader, ip_id)
    for _ in range(TRIES):
        new = await store.queue.put([targets.crawl_now(ip, system.settings)])
        name = new[0] if new else targets.member_of(ip_id)
        found = await why(store, system.clock, system.watches, name)
        # A crawl that was live a moment ago may be over by now; then there is room for another.
        if found is not None and found.job_id is not None:
            return TriggeredOut(
                job_id=found.job_id,
                state=found.state,
                next_at=found.next_at,
                reason=found.reason,
                is_new=bool(new),
            )
    raise HTTPException(409, "crawls of this IP end faster than they can be seen; ask again")


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
    parsed = importing.parse(text, form)
    try:
        async with system.store.edit() as tx:
            done = await importing.save(tx, parsed, system.settings, system.clock.now())
    except IntegrityError as error:
        message = "one of these keywords was added by somebody else just now; send the file again"
        raise HTTPException(409, message) from error
    await reads.drop_kept(system.store.cache)
    bad = [BadRowOut(line=row.line, message=row.message) for row in done.bad]
    return ImportedOut(added=done.added, updated=done.updated, bad=bad)
