"""The rooms of a list as the site writes them, in the embedded context and on the page."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from mimawari.sites.contract import Refused
from mimawari.sites.yahoo_realestate.addresses import linked_id
from mimawari.text import one_line

_BOX = "input._propertyCheckbox"
_LINK = 'a.ListCassetteRoom__textLink[href*="/rent/detail/"]'
_DEPOSIT = re.compile(r"(?P<kind>敷|礼)金?\s*[:：]?\s*(?P<label>[^敷礼/]+)")  # noqa: RUF001 - wide colon
_AREA = re.compile(r"m2|m²|㎡|平米")
_SPECS = re.compile(r"築\s*[0-9]+年|新築|階建")
_WAY = re.compile(r"駅\s*/|[0-9]\s*分")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A room in the site's own words, none of them looked at yet."""

    property_id: Any
    structure_id: Any
    name: Any
    rent: Any
    fee: Any
    deposit: Any
    key_money: Any
    layout: Any
    area: Any
    floor: Any
    years: Any
    address: Any
    stations: tuple[Any, ...]
    coordinates: Any = None


def rows_in_context(buildings: list[Any]) -> Iterator[Row | Refused]:
    """Yield the rooms of the context's buildings; advertisements are no buildings."""
    for number, building in enumerate(buildings):
        if not isinstance(building, dict):
            yield Refused(f"#{number}", f"{type(building).__name__} in place of a building")
            continue
        rooms = building.get("GroupProperties")
        structure_id = building.get("StructureId")
        if structure_id is None and rooms is None:
            continue
        for room in rooms if isinstance(rooms, list) else [rooms]:
            if isinstance(room, dict):
                yield _row_in_context(building, room)
            else:
                name = one_line(str(structure_id), most=60)
                yield Refused(name, f"{type(room).__name__} in place of a room")


def rows_on_page(tree: LexborHTMLParser) -> Iterator[Row]:
    """Yield the rooms that a page shows; advertisements and the links to more are none."""
    for building in tree.css("li.ListBukken__item[data-structureid]"):
        specs = _specs_on_page(building)
        for room in building.css("li.ListCassetteRoom__item"):
            if room.css_first(f"{_BOX}, {_LINK}"):
                yield _row_on_page(building, room, specs)


def text_of(node: LexborNode | None) -> str | None:
    """Return what a node shows, on one line; None if there is no such node or nothing in it."""
    return None if node is None else one_line(node.text()) or None


def _row_in_context(building: dict[str, Any], room: dict[str, Any]) -> Row:
    place, ways = building.get("LocationView"), building.get("Transports")
    return Row(
        property_id=room.get("PropertyId"),
        structure_id=building.get("StructureId"),
        name=building.get("BuildingName"),
        rent=room.get("PriceLabel"),
        fee=room.get("MonthlyManagementCostLabel"),
        deposit=room.get("SecurityDepositLabel"),
        key_money=room.get("KeyMoneyLabel"),
        layout=room.get("DetailRoomLayout"),
        area=room.get("MonopolyAreaLabel"),
        floor=room.get("FloorNum"),
        years=building.get("YearsOld") if room.get("YearsOld") is None else room["YearsOld"],
        address=place.get("AddressName") if isinstance(place, dict) else place,
        stations=labels_of(ways),
        coordinates=building.get("CoordinatesWgs"),
    )


def labels_of(ways: Any) -> tuple[Any, ...]:
    """Return the labels of the ways to stations; what is none stays to be refused."""
    if not isinstance(ways, list):
        return () if ways is None else (ways,)
    return tuple(way.get("Label") if isinstance(way, dict) else way for way in ways)


@dataclass(frozen=True, slots=True)
class _Specs:
    """What a page says of a building in lines that bear no names."""

    stations: tuple[str, ...]
    address: str | None
    years: str | None


def _specs_on_page(building: LexborNode) -> _Specs:
    stations, address, years = [], None, None
    for item in building.css("ul.ListCassette__list > li"):
        for node in item.css(".ListCassette__txt") or [item]:
            line = text_of(node) or ""
            if _SPECS.search(line):
                years = years or next((part for part in line.split("/") if "築" in part), None)
            elif _WAY.search(line):
                stations.append(line)
            else:
                address = address or line or None
    return _Specs(tuple(stations), address, years)


def _row_on_page(building: LexborNode, room: LexborNode, specs: _Specs) -> Row:
    fee = text_of(room.css_first(".ListCassetteRoom__dtl__price__txtS"))
    price = text_of(room.css_first(".ListCassetteRoom__dtl__price"))
    sizes = [
        part.strip()
        for node in room.css(".ListCassetteRoom__dtl__layout")
        for part in (text_of(node) or "").split("/")
    ]
    deposits = {
        found["kind"]: found["label"]
        for node in room.css(".ListCassetteRoom__dtl__deposit")
        for found in _DEPOSIT.finditer(text_of(node) or "")
    }
    return Row(
        property_id=_id_on_page(room),
        structure_id=building.attributes.get("data-structureid"),
        name=text_of(building.css_first(".ListCassette__ttl__txt")),
        rent=price.replace(fee, "", 1) if price and fee else price,
        fee=fee,
        deposit=deposits.get("敷"),
        key_money=deposits.get("礼"),
        layout=next((size for size in sizes if not _AREA.search(size)), None),
        area=next((size for size in sizes if _AREA.search(size)), None),
        floor=text_of(room.css_first('[class*="__block--floor"], [class*="__dtl__floor"]')),
        years=specs.years,
        address=specs.address,
        stations=specs.stations,
    )


def _id_on_page(room: LexborNode) -> str | None:
    """Return the id that the checkbox and the link agree on; two that differ are none."""
    box, link = room.css_first(_BOX), room.css_first(_LINK)
    given = {
        (box.attributes.get("value") if box else None) or None,
        linked_id((link.attributes.get("href") if link else None) or ""),
    } - {None}
    return given.pop() if len(given) == 1 else None
