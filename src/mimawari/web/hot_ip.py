"""The page of an IP: its hours, days, prices and items, when it is crawled next, and its forms."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from pydantic import BaseModel
from starlette.responses import Response

from mimawari.columns import EPOCH
from mimawari.edges import csv_export, pagination
from mimawari.edges.pagination import Listing
from mimawari.errors import BadInput
from mimawari.kernel.ports import Reader
from mimawari.watches.hot import actions, franchises, queries, rules
from mimawari.watches.hot.models import Ip, NewIp
from mimawari.watches.hot.queries import Place, Standing, Window
from mimawari.watches.hot.rollups import Period
from mimawari.watches.hot.schemas.requests import ItemsAsked, read_place, write_place
from mimawari.watches.hot.schemas.responses import (
    CrawlOut,
    HourOut,
    IpIn,
    ItemOut,
    PeriodOut,
    columns_of,
)
from mimawari.watches.hot.sync import HOUR, hour_of
from mimawari.web import forms, hot_figures
from mimawari.web.hot_telling import explain, find_next, list_alerts
from mimawari.web.visit import Visit

BOUNDS = (rules.LIGHTEST, rules.HEAVIEST)
FIELDS = ("name", "keyword", "name_en", "weight", "tags")
HEAT_HOURS = 24 * (hot_figures.HEAT_DAYS + 1)
SHOWN_DAYS = 14
SHOWN_ITEMS = 25
SHOWN_CRAWLS = 5
SPANS = ("48", "24", "168")


def read_ip(visit: Visit) -> NewIp:
    """Read what a form says of an IP, or refuse it with a sentence."""
    sent = visit.form
    said: dict[str, Any] = {name: sent.get(name, "") for name in ("name", "keyword", "name_en")}
    said["tags"] = forms.read_words(sent.get("tags", ""))
    said["weight"] = forms.read_number(sent.get("weight") or "1")
    return forms.check(IpIn, said, visit.words, "ip").to_new()


def typed(visit: Visit) -> dict[str, str]:
    """Return what was typed into the form of an IP, to be shown again."""
    return {name: visit.form.get(name, "") for name in FIELDS}


async def show(visit: Visit) -> Response:
    """Show an IP, or its items, hours or days as a file."""
    ip_id = forms.id_of(visit)
    async with visit.system.store.read() as reader:
        ip = await actions.find_known(reader, ip_id)
    if visit.text("format") == "csv":
        return await _download(visit, ip)
    return await _show(visit, ip, _described(ip))


def _described(ip: Ip) -> dict[str, str]:
    return {
        "name": ip.name,
        "keyword": ip.keyword,
        "name_en": ip.name_en,
        "weight": f"{ip.weight:g}",
        "tags": ", ".join(ip.tags),
    }


async def _show(visit: Visit, ip: Ip, filled: Mapping[str, str], problem: str = "") -> Response:
    alerts, following = await list_alerts(visit, ip.id)
    return visit.page(
        "hot/ip.html",
        422 if problem else 200,
        **await _find_figures(visit, ip.id),
        **await _find_lists(visit, ip.id),
        ip=ip,
        every=rules.interval(ip.weight, franchises.pace_of(visit.system.settings)),
        waits=await find_next(visit, ip.id),
        notes=explain(visit.words, ip),
        alerts=alerts,
        following=following,
        problem=problem,
        typed=filled,
        bounds=BOUNDS,
    )


async def _find_figures(visit: Visit, ip_id: int) -> dict[str, Any]:
    """Find what is drawn and counted of an IP: hours and spans."""
    span = int(visit.choice("hours", *SPANS))
    measure = visit.choice("heat", "outflow", "inflow")
    end = hour_of(visit.system.clock.now()) + HOUR
    async with visit.system.store.read() as reader:
        rows = await queries.list_hours(reader, ip_id, end - HOUR * HEAT_HOURS, end, HEAT_HOURS)
        standings = await _list_standings(visit, reader, ip_id)
    return {
        "standings": standings,
        "is_observed": bool(rows),
        "span": str(span),
        "flow": hot_figures.draw_flow(visit, rows, end, span),
        "medians": hot_figures.draw_medians(visit, rows, end, span),
        "measure": measure,
        "heat": hot_figures.make_heat(visit, rows, measure),
    }


async def _find_lists(visit: Visit, ip_id: int) -> dict[str, Any]:
    """Find the last days and crawls of an IP, and a page of its items."""
    given = _asked(visit)
    items, more = await pagination.find_page(_items(visit, ip_id, given), SHOWN_ITEMS)
    async with visit.system.store.read() as reader:
        days = await queries.list_periods(reader, ip_id, Period.DAY, SHOWN_DAYS)
        crawls = await queries.list_crawls(reader, ip_id, SHOWN_CRAWLS)
    return {
        "days": days,
        "zone": visit.system.settings.zone,
        "crawls": [CrawlOut.of(row) for row in crawls],
        "items": items,
        "only": given.status or "",
        "below": write_place(_place_of(items[-1])) if more else None,
    }


async def _list_standings(visit: Visit, reader: Reader, ip_id: int) -> dict[int, Standing]:
    now = visit.system.clock.now()
    windows = {hours: Window.before(now, hours) for hours in (24, 168)}
    found = await queries.list_standings(reader, *windows.values(), ip_ids=[ip_id])
    nothing = Standing(ip_id, 0, 0)
    return {hours: some[0] if some else nothing for hours, some in zip(windows, found, strict=True)}


def _asked(visit: Visit) -> ItemsAsked:
    said = {name: given for name in ("status", "below") if (given := visit.text(name))}
    return forms.check(ItemsAsked, said, visit.words, "ip")


def _items(visit: Visit, ip_id: int, given: ItemsAsked) -> Listing[ItemOut, Place | None]:
    async def fetch(below: Place | None, most: int) -> Sequence[ItemOut]:
        async with visit.system.store.read() as reader:
            rows = await queries.list_items(reader, ip_id, most, status=given.status, below=below)
        return [ItemOut.of(row) for row in rows]

    start = None if given.below is None else read_place(given.below)
    return Listing(fetch=fetch, start=start, place_of=_place_of)


def _place_of(item: ItemOut) -> Place:
    return Place(first_seen_at=item.first_seen_at, source_id=item.source_id)


async def _download(visit: Visit, ip: Ip) -> Response:
    """Write the items, the hours or the days of an IP as a file."""
    what = visit.choice("what", "items", "hours", "days")
    listings: dict[str, tuple[type[BaseModel], Listing[Any, Any]]] = {
        "items": (ItemOut, _items(visit, ip.id, _asked(visit))),
        "hours": (HourOut, _hours(visit, ip)),
        "days": (PeriodOut, _days(visit, ip)),
    }
    form, listing = listings[what]
    pieces = pagination.walk(listing, None)
    return await csv_export.download(f"ip-{ip.id}-{what}", columns_of(form), pieces)


def _hours(visit: Visit, ip: Ip) -> Listing[HourOut, datetime]:
    end = visit.system.clock.now() + HOUR

    async def fetch(start: datetime, most: int) -> Sequence[HourOut]:
        async with visit.system.store.read() as reader:
            rows = await queries.list_hours(reader, ip.id, start, end, most)
        return [HourOut.of(row) for row in rows]

    return Listing(fetch=fetch, start=EPOCH, place_of=lambda hour: hour.hour_at + HOUR)


def _days(visit: Visit, ip: Ip) -> Listing[PeriodOut, datetime | None]:
    async def fetch(before: datetime | None, most: int) -> Sequence[PeriodOut]:
        async with visit.system.store.read() as reader:
            rows = await queries.list_periods(reader, ip.id, Period.DAY, most, before)
        return [PeriodOut.of(row) for row in rows]

    return Listing(fetch=fetch, start=None, place_of=lambda day: day.start_at)


async def change(visit: Visit) -> Response:
    """Describe an IP anew; what cannot be taken is told above the form."""
    ip_id = forms.id_of(visit)
    try:
        new = read_ip(visit)
        await actions.change_ip(visit.system, ip_id, lambda ip: replace(new, active=ip.active))
    except BadInput as error:
        async with visit.system.store.read() as reader:
            ip = await actions.find_known(reader, ip_id)
        return await _show(visit, ip, typed(visit), visit.problem(error))
    return visit.go(f"/hot/{ip_id}")


async def switch(visit: Visit) -> Response:
    """Crawl an IP by itself from now on, or no more."""
    is_on = visit.form.get("active") == "true"

    def apply(ip: Ip) -> NewIp:
        return replace(_as_new(ip), active=is_on)

    changed = await actions.change_ip(visit.system, forms.id_of(visit), apply)
    return visit.go(f"/hot/{changed.id}")


def _as_new(ip: Ip) -> NewIp:
    return NewIp(
        name=ip.name, keyword=ip.keyword, name_en=ip.name_en, weight=ip.weight, tags=ip.tags
    )


async def crawl(visit: Visit) -> Response:
    """Have an IP crawled now."""
    ip_id = forms.id_of(visit)
    await actions.ask_for_crawl(visit.system, ip_id)
    return visit.go(f"/hot/{ip_id}")


async def remove(visit: Visit) -> Response:
    """Forget an IP with all that was kept of it."""
    await actions.remove_ip(visit.system, forms.id_of(visit))
    return visit.go("/hot/ips")


PAGES = (
    ("/hot/{id:int}", show, ("GET",)),
    ("/hot/{id:int}", change, ("POST",)),
    ("/hot/{id:int}/switch", switch, ("POST",)),
    ("/hot/{id:int}/crawl", crawl, ("POST",)),
    ("/hot/{id:int}/remove", remove, ("POST",)),
)
