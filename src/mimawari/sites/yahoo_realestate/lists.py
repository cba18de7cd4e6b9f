"""Reads the pages of lists: from the embedded context, or else from what the page shows."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any
from urllib.parse import parse_qs, urlsplit

from selectolax.lexbor import LexborHTMLParser

from mimawari.errors import BadInput, Invalid
from mimawari.net.html import parse_html
from mimawari.sites.contract import Contract, Refused
from mimawari.sites.yahoo_realestate import labels
from mimawari.sites.yahoo_realestate.addresses import (
    is_property_id,
    join_list_url,
    make_detail_url,
)
from mimawari.sites.yahoo_realestate.context import find_context
from mimawari.sites.yahoo_realestate.models import ListPage, Room
from mimawari.sites.yahoo_realestate.rows import Row, rows_in_context, rows_on_page
from mimawari.text import one_line

CONTRACT = Contract(
    name="yahoo_realestate list", filled={"address": 0.5, "layout": 0.5, "area_m2": 0.5}
)
FEW_ROOMS = 4
"""So few may well lack a field that a list as a whole never lacks."""
FEW_CONTRACT = replace(CONTRACT, filled={})

MOST_ROWS = 5000
"""More than any page shows; a page may be written to have no end of them."""

_NONE = re.compile(
    r"該当する物件[がは](?:あり|見つかり)ません|条件に一致する物件[がは](?:あり|見つかり)ません"
)
_PAGE = re.compile(r"[1-9][0-9]{0,5}")


@dataclass(frozen=True, slots=True)
class _Paging:
    next_url: str | None
    current_page: int | None
    last_page: int | None


def parse_list(body: bytes, url: str) -> ListPage:
    """Read a list's rooms from its context, or where that is absent or broken from the page."""
    try:
        return _read_context(body, url)
    except Invalid as error:
        broken = error
    try:
        return _read_page(body, url)
    except Invalid as error:
        raise Invalid(f"{error}; its context: {broken}", page=error.page or body) from error


def _read_context(body: bytes, url: str) -> ListPage:
    context = find_context(body.decode("utf-8", "replace"))
    buildings = context.get("properties") if context else None
    if context is None or not isinstance(buildings, list):
        raise Invalid("no buildings to be read", page=body)
    rooms, refused = _collect(rows_in_context(buildings), url)
    is_empty = not rooms and not refused
    if is_empty and (buildings or any(rows_on_page(parse_html(body)))):
        raise Invalid("no rooms in it", page=body)
    try:
        paging = _paging_in_context(context.get("paginationContext"), url)
    except BadInput as error:
        raise Invalid(f"its next page: {error}", page=body) from error
    return _checked(rooms, refused, paging, body)


def _read_page(body: bytes, url: str) -> ListPage:
    tree = parse_html(body)
    rooms, refused = _collect(rows_on_page(tree), url)
    if not rooms and not refused:
        for node in tree.css("script, style, template"):
            node.decompose()
        if not (tree.body and _NONE.search(tree.body.text())):
            raise Invalid("the list shows neither rooms nor that there are none", page=body)
    return _checked(rooms, refused, _paging_on_page(tree, url), body)


def _checked(
    rooms: tuple[Room, ...], refused: tuple[Refused, ...], paging: _Paging, body: bytes
) -> ListPage:
    contract = FEW_CONTRACT if len(rooms) <= FEW_ROOMS else CONTRACT
    contract.check(rooms, refused, body)
    return ListPage(
        rooms=rooms,
        refused=refused,
        next_url=paging.next_url,
        current_page=paging.current_page,
        last_page=paging.last_page,
    )


def _collect(
    rows: Iterable[Row | Refused], url: str
) -> tuple[tuple[Room, ...], tuple[Refused, ...]]:
    """Read each row by itself; a room that stands on the page twice is one."""
    rooms: dict[str, Room] = {}
    refused = []
    for row in islice(rows, MOST_ROWS):
        if isinstance(row, Refused):
            refused.append(row)
            continue
        try:
            room = _read_room(row, url)
        except BadInput as error:
            refused.append(Refused(one_line(str(row.property_id), most=60), str(error)))
            continue
        rooms.setdefault(room.property_id, room)
    return tuple(rooms.values()), tuple(refused)


def _read_room(row: Row, url: str) -> Room:
    if not isinstance(row.property_id, str) or not is_property_id(row.property_id):
        raise BadInput("no id of a property")
    rent_yen = labels.read_rent(row.rent)
    return Room(
        property_id=row.property_id,
        detail_url=make_detail_url(url, row.property_id),
        structure_id=labels.read_text(row.structure_id),
        building_name=labels.read_text(row.name),
        rent_yen=rent_yen,
        fee_yen=labels.read_fee(row.fee),
        deposit_yen=labels.read_deposit(row.deposit, rent_yen),
        key_money_yen=labels.read_deposit(row.key_money, rent_yen),
        layout=labels.read_layout(row.layout),
        area_m2=labels.read_area(row.area),
        floor=labels.read_floor(row.floor),
        years_old=labels.read_years(row.years),
        address=labels.read_text(row.address),
        stations=labels.read_stations(row.stations),
        coordinates=labels.read_coordinates(row.coordinates),
    )


def _paging_in_context(context: Any, url: str) -> _Paging:
    if not isinstance(context, dict):
        return _Paging(None, None, None)
    current, last = _number(context.get("currentPage")), _number(context.get("lastPage"))
    link = context.get("nextPageUrl") or ""
    if not isinstance(link, str):
        raise BadInput(f"{type(link).__name__} in place of an address")
    # The site names a next page on the last one, too.
    is_last = current is not None and last is not None and current >= last
    return _Paging(join_list_url(url, link) if link and not is_last else None, current, last)


def _paging_on_page(tree: LexborHTMLParser, url: str) -> _Paging:
    """Find the page's own number in its address and the others in its links."""
    current = _page_of(url) or 1
    pages = {current: url}
    for node in tree.css('a[href*="page="], link[rel="next"]'):
        try:
            target = join_list_url(url, node.attributes.get("href") or "")
        except BadInput:
            continue
        number = _page_of(target)
        if number is not None and urlsplit(target).path == urlsplit(url).path:
            pages.setdefault(number, target)
    return _Paging(pages.get(current + 1), current, max(pages))


def _page_of(url: str) -> int | None:
    return _number(parse_qs(urlsplit(url).query).get("page", [None])[0])


def _number(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return int(value) if isinstance(value, str) and _PAGE.fullmatch(value) else None
