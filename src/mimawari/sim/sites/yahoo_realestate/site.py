"""A simulated rentals site: rooms are listed, change and go as time passes, by its seed alone."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from html import escape
from typing import Any, TypeVar
from zlib import crc32

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from mimawari.errors import BadInput
from mimawari.kernel.ports import Clock
from mimawari.sim.chance import chance_of, is_lucky
from mimawari.sim.sites.yahoo_realestate import pages
from mimawari.sim.sites.yahoo_realestate.changes import change_room
from mimawari.sim.sites.yahoo_realestate.names import (
    AREAS,
    Building,
    Room,
    Unit,
    draw_building,
    make_buildings,
    make_room,
)
from mimawari.text import one_line

T = TypeVar("T")

ORIGIN_AT = datetime(2026, 1, 1, tzinfo=UTC)
"""The site's history begins here, so that its state depends on nothing but seed and time."""
BUILDINGS_A_PAGE = 30
MOST_ROOMS = 6
RECOMMENDED = 4
PAUSE_FOR = timedelta(minutes=12)
_KINDS, _SHARES = ("listed", "changed", "delisted"), (30, 40, 30)
DETAIL = re.compile(r"/rent/detail/(_?[0-9a-f]{44})/")
_SEARCH = re.compile(r"/rent/search/([0-9]{2}/[0-9]{2}/[0-9]{5})/")
_BUILDING = re.compile(r"/rent/search/s/([0-9]{12})/")
_IMAGE = re.compile(r"/_rent/image/([0-9]{12})/([0-9])\.svg")
_PAGE = re.compile(r"[1-9][0-9]{0,5}")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a room, what there was before it, and its page's status since."""

    at: datetime
    kind: str
    room: Room
    before: Room | None = None
    status: int = 200


class Town:
    """All buildings with their rooms, which move on in time and are never asked to move back."""

    def __init__(self, seed: int) -> None:
        self._chance = chance_of("rentals", seed)
        self.buildings = {building.id: building for building in make_buildings(self._chance)}
        self.listed: dict[str, Room] = {}
        self.gone: dict[str, Event] = {}
        self.events: list[Event] = []
        self._ids: dict[str, list[str]] = {key: [] for key in self.buildings}
        self._last_let: dict[tuple[str, Unit], Room] = {}
        for building in self.buildings.values():
            self._open(building)
        self._next_at = ORIGIN_AT + self._pause()

    def advance(self, now: datetime) -> None:
        """Let everything happen that was to happen by now, in its order."""
        buildings = tuple(self.buildings.values())
        while self._next_at <= now:
            building = self._chance.choice(buildings)
            match self._chance.choices(_KINDS, _SHARES)[0]:
                case "listed" if len(self._ids[building.id]) < MOST_ROOMS:
                    self._list_room(building, self._next_at)
                case "delisted" if len(self._ids[building.id]) > 1:
                    self._delist_room(building, self._next_at)
                case "changed":
                    self._change_room(building, self._next_at)
            self._next_at += self._pause()

    def rooms_of(self, building: Building) -> list[Room]:
        """List a building's rooms, the one listed first before the others."""
        return [self.listed[room_id] for room_id in self._ids[building.id]]

    def find_list(self, path: str) -> tuple[str, list[Building]] | None:
        """Find the title and the buildings of the list at an address; None if there is none."""
        if search := _SEARCH.fullmatch(path):
            title = next((area.name for area in AREAS if area.path == search[1]), "")
            return (title, self._list_buildings(search[1])) if title else None
        one = _BUILDING.fullmatch(path)
        building = self.buildings.get(one[1]) if one else None
        return (building.name, [building]) if building else None

    def _list_buildings(self, path: str) -> list[Building]:
        """List an area's buildings, the one with the newest room first."""
        found = [building for building in self.buildings.values() if building.area.path == path]

        def newest(building: Building) -> tuple[datetime, str]:
            return max(room.listed_at for room in self.rooms_of(building)), building.id

        return sorted(found, key=newest, reverse=True)

    def _pause(self) -> timedelta:
        seconds = self._chance.expovariate(1 / PAUSE_FOR.total_seconds())
        return timedelta(seconds=1 + round(seconds))

    def _open(self, building: Building) -> None:
        """Fill a building as if it had been on the site for a while."""
        days = sorted(self._chance.uniform(0, 30) for _ in range(self._chance.randint(1, 6)))
        for day in reversed(days):
            at = (ORIGIN_AT - timedelta(days=day)).replace(microsecond=0)
            self._list_room(building, at)
        self.events.clear()

    def _list_room(self, building: Building, at: datetime) -> None:
        taken = [room.unit for room in self.rooms_of(building)]
        unit = self._chance.choice([unit for unit in building.units if unit not in taken])
        room = make_room(self._chance, building, unit, at)
        before = self._last_let.get((building.id, unit))
        self.listed[room.id] = self._last_let[building.id, unit] = room
        self._ids[building.id].append(room.id)
        self.events.append(Event(at, "listed", room, before))

    def remove(self, share: float, at: datetime) -> list[str]:
        """Let a share of each building's rooms go, but not its last one; return their ids."""
        before = set(self.gone)
        for building in self.buildings.values():
            rooms = len(self._ids[building.id])
            for _ in range(min(round(rooms * share), rooms - 1)):
                self._delist_room(building, at)
        return sorted(set(self.gone) - before)

    def _delist_room(self, building: Building, at: datetime) -> None:
        room_id = self._chance.choice(self._ids[building.id])
        self._ids[building.id].remove(room_id)
        status = 410 if is_lucky(self._chance, 0.2) else 404
        event = Event(at, "delisted", self.listed.pop(room_id), status=status)
        self.gone[room_id] = event
        self.events.append(event)

    def _change_room(self, building: Building, at: datetime) -> None:
        before = self.listed[self._chance.choice(self._ids[building.id])]
        room = replace(change_room(self._chance, before), updated_at=at)
        self.listed[room.id] = room
        self.events.append(Event(at, "changed", room, before))


class Rentals:
    """A rentals site whose state follows from its seed and the time, however it is asked."""

    name = "rentals"

    def __init__(self, clock: Clock, seed: int) -> None:
        self._clock = clock
        self._town = Town(seed)
        # The months that have passed are caught up with here, so that no request waits for it.
        self._town.advance(clock.now())

    def owns(self, path: str) -> bool:
        """Say whether a path is this site's."""
        return path == "/rent" or path.startswith(("/rent/", "/_rent/"))

    async def answer(self, request: Request) -> Response:
        """Answer one request as the real site would."""
        if request.method not in {"GET", "HEAD"}:
            return HTMLResponse(pages.gone_page(), 405, {"allow": "GET, HEAD"})
        self._town.advance(self._clock.now())
        path = request.url.path
        if image := _IMAGE.fullmatch(path):
            return self._answer_image(image[1], int(image[2]))
        if not path.endswith("/"):
            return RedirectResponse(request.url.replace(path=f"{path}/"), 301)
        status, html = self._answer_page(request, path)
        if getattr(request.state, "changed_layout", False):
            html = pages.change_layout(html)
        return HTMLResponse(html, status)

    def truth(self, query: Mapping[str, str]) -> Any:
        """Tell the rooms as they are now, and what happened after `since`; by `area` or `id`."""
        now = self._clock.now()
        self._town.advance(now)
        areas = {area.path: area.name for area in AREAS}
        path, room_id = query.get("area", "").strip("/"), query.get("id", "")
        if path and path not in areas:
            raise BadInput(f"area {one_line(path, most=40)!r} is none of {', '.join(areas)}")
        since = _parse_time(query["since"]) if query.get("since") else now

        def is_asked(room: Room) -> bool:
            return path in {"", room.building.area.path} and room_id in {"", room.id}

        events = self._town.events
        after = events[bisect_right(events, since, key=lambda event: event.at) :]
        return {
            "now": now.isoformat(),
            "areas": areas,
            "rooms": [_tell(room) for room in self._town.listed.values() if is_asked(room)],
            "events": [_tell_event(event) for event in after if is_asked(event.room)],
        }

    def remove_rooms(self, share: float) -> list[str]:
        """Let a share of all rooms go at once, as when a company ends its listings."""
        self._town.advance(self._clock.now())
        return self._town.remove(share, self._clock.now())

    def refusal(self) -> Response:
        """Make the page this site shows when it blocks somebody."""
        return HTMLResponse(pages.refusal_page(), 500)

    def _answer_page(self, request: Request, path: str) -> tuple[int, str]:
        if detail := DETAIL.fullmatch(path):
            return self._answer_detail(request, detail[1])
        if path == "/rent/":
            return 200, pages.front_page(AREAS)
        found = self._town.find_list(path)
        return (200, self._draw_list(request, *found)) if found else (404, pages.gone_page())

    def _draw_list(self, request: Request, title: str, found: Sequence[Building]) -> str:
        number = parse_page(request.query_params.get("page", ""))
        blocks = [(building, self._town.rooms_of(building)) for building in found]
        leaf = pages.Leaf(
            title=title,
            path=request.url.path,
            number=number,
            last=count_pages(found),
            rooms=sum(len(rooms) for _, rooms in blocks),
        )
        view = pages.View(_origin(request), self._clock.now())
        return pages.list_page(view, leaf, cut_page(blocks, number))

    def _answer_detail(self, request: Request, room_id: str) -> tuple[int, str]:
        room = self._town.listed.get(room_id)
        if room is None:
            gone = self._town.gone.get(room_id)
            return gone.status if gone else 404, pages.gone_page()
        view = pages.View(_origin(request), self._clock.now())
        return 200, pages.detail_page(view, room, _recommend(room, self._town.listed.values()))

    def _answer_image(self, structure_id: str, number: int) -> Response:
        building = self._town.buildings.get(structure_id)
        if building is None:
            return HTMLResponse(pages.gone_page(), 404)
        return Response(draw_building(building, number), media_type="image/svg+xml")


def parse_page(given: str) -> int:
    """Read the number of a list's page; what is none means the first."""
    return int(given) if _PAGE.fullmatch(given) else 1


def cut_page(found: Sequence[T], number: int) -> Sequence[T]:
    """Return what stands on one page of a list."""
    start = (number - 1) * BUILDINGS_A_PAGE
    return found[start : start + BUILDINGS_A_PAGE]


def count_pages(found: Sequence[Building]) -> int:
    """Count the pages of a list."""
    return -(-len(found) // BUILDINGS_A_PAGE)


def _origin(request: Request) -> str:
    return escape(str(request.base_url).rstrip("/"))


def _recommend(room: Room, listed: Iterable[Room]) -> list[Room]:
    """Choose rooms nearby, the same ones for as long as they are there."""
    others = [
        other
        for other in listed
        if other.building.area == room.building.area and other.building != room.building
    ]
    return sorted(others, key=lambda other: crc32((room.id + other.id).encode()))[:RECOMMENDED]


def _parse_time(text: str) -> datetime:
    # A plus sign that nobody quoted reaches us as a space.
    mended = re.sub(r"(T\S{1,60}) ([0-9:]{1,20})$", r"\1+\2", text.strip())
    try:
        at = datetime.fromisoformat(mended)
    except ValueError as error:
        raise BadInput(f"since={one_line(text, most=40)!r} is no time like {ORIGIN_AT}") from error
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _tell(room: Room) -> dict[str, Any]:
    building, unit = room.building, room.unit
    return {
        "id": room.id,
        "path": f"/rent/detail/{room.id}/",
        "structure_id": building.id,
        "area": building.area.path,
        "building_name": building.name,
        "address": building.address,
        "kind": building.kind,
        "structure": building.structure,
        "floors": building.floors,
        "built_on": building.built_on,
        "latitude": building.place[0],
        "longitude": building.place[1],
        "stations": [
            {
                "station": stop.station,
                "line": stop.line,
                "walk_minutes": stop.walk_minutes,
                "bus_minutes": stop.bus_minutes,
            }
            for stop in building.stops
        ],
        "floor": unit.floor,
        "layout": room.layout,
        "area_m2": room.hundredths_m2 / 100,
        "direction": unit.direction,
        "images": list(room.picture_paths),
        "rent_yen": room.rent_yen,
        "fee_yen": room.fee_yen,
        "deposit_months": room.deposit_months,
        "deposit_yen": round(room.rent_yen * room.deposit_months),
        "key_money_months": room.key_money_months,
        "key_money_yen": round(room.rent_yen * room.key_money_months),
        "listed_at": room.listed_at.isoformat(),
        "updated_at": room.updated_at.isoformat(),
    }


def _tell_event(event: Event) -> dict[str, Any]:
    told: dict[str, Any] = {"at": event.at.isoformat(), "kind": event.kind, "id": event.room.id}
    now = _tell(event.room)
    if event.kind == "listed":
        return told | {"room": now, "relisted_from": event.before.id if event.before else None}
    if event.before is None:
        return told | {"status": event.status}
    old = _tell(event.before)
    changed = [key for key in now if key != "updated_at" and now[key] != old[key]]
    return told | {"changes": {key: {"old": old[key], "new": now[key]} for key in changed}}
