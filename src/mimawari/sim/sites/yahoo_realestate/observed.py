"""What somebody who looked at the rentals site could have seen change, from its truth and log."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode

from mimawari.sim.sites.yahoo_realestate.names import Room
from mimawari.sim.sites.yahoo_realestate.site import DETAIL, Town, count_pages, cut_page, parse_page

SHOWN = frozenset({200, 304})
GONE = frozenset({404, 410})
ACTIVE, ENDED = "active", "ended"
MISSED_TO_END = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """That a property was not as it had been seen before."""

    property_id: str
    at: datetime
    kind: str
    before: str | None
    after: str | None


@dataclass(slots=True)
class _Known:
    """A property as it was seen last; its pictures are known once its own page was read."""

    terms: dict[str, str]
    images: str | None = None
    status: str = ACTIVE


@dataclass(slots=True)
class _List:
    """A list that is walked over: what it has shown, and how many walks have missed it since."""

    missed: dict[str, int] = field(default_factory=dict)
    page: int = 0
    found: set[str] = field(default_factory=set)


class Looks:
    """Every look at the site, made again on a town of the same seed.

    Only a page that was given is a look. A walk over a list begins at its first page and goes on
    with the next one after the last; it is whole when it has read the last page there is. Two
    walks in a row have missed a room if it was seen nowhere else between them. What buildings
    are never changes, so of what only a room's own page tells just the pictures do.
    """

    def __init__(self, seed: int, requests: Iterable[Mapping[str, Any]]) -> None:
        self.changes: list[Change] = []
        self._town = Town(seed)
        self._known: dict[str, _Known] = {}
        self._gone: set[str] = set()
        self._lists: dict[str, _List] = {}
        for seen in requests:
            self._look(seen, datetime.fromisoformat(seen["at"]))

    @property
    def properties(self) -> int:
        """How many properties were seen."""
        return len(self._known)

    def _look(self, seen: Mapping[str, Any], at: datetime) -> None:
        self._town.advance(at)
        status, detail = seen["status"], DETAIL.fullmatch(seen["path"])
        if detail and status in GONE:
            self._end(detail[1], at)
            self._gone.add(detail[1])
        # What is answered by order is not what is so.
        if seen["method"] != "GET" or seen["order"] or status not in SHOWN:
            return
        if detail:
            self._see(self._town.listed[detail[1]], at, on_own_page=True)
        else:
            self._look_at_list(seen, at)

    def _look_at_list(self, seen: Mapping[str, Any], at: datetime) -> None:
        asked = dict(parse_qsl(seen["query"]))
        number = parse_page(asked.pop("page", ""))
        found = self._town.find_list(seen["path"])
        if found is None:
            return
        one = self._lists.setdefault(f"{seen['path']}?{urlencode(asked)}", _List())
        if number == 1:
            one.found.clear()
        # A page out of its turn is seen, but belongs to no walk.
        one.page = number if number in {1, one.page + 1} else 0
        for building in cut_page(found[1], number):
            for room in self._town.rooms_of(building):
                one.found.add(room.id)
                one.missed[room.id] = 0
                self._see(room, at)
        if one.page == count_pages(found[1]):
            self._finish(one, at)

    def _finish(self, one: _List, at: datetime) -> None:
        """Count what a whole walk has missed, and end what two in a row have."""
        for room_id in one.missed.keys() - one.found:
            one.missed[room_id] += 1
            if one.missed[room_id] >= MISSED_TO_END:
                self._end(room_id, at)
        one.page = 0

    def _see(self, room: Room, at: datetime, *, on_own_page: bool = False) -> None:
        if room.id in self._gone:
            return
        for one in self._lists.values():
            if room.id in one.missed:
                one.missed[room.id] = 0
        known = self._known.get(room.id)
        if known is None:
            known = self._known[room.id] = _Known(_terms(room))
            self._tell(room.id, at, "new", None, ACTIVE)
        if known.status == ENDED:
            self._tell(room.id, at, "status", ENDED, ACTIVE)
            known.status = ACTIVE
        for kind, after in _terms(room).items():
            if known.terms[kind] != after:
                self._tell(room.id, at, kind, known.terms[kind], after)
                known.terms[kind] = after
        if on_own_page:
            images = json.dumps(room.picture_paths)
            if known.images not in {None, images}:
                self._tell(room.id, at, "image", known.images, images)
            known.images = images

    def _end(self, room_id: str, at: datetime) -> None:
        known = self._known.get(room_id)
        if known is not None and known.status == ACTIVE:
            self._tell(room_id, at, "status", ACTIVE, ENDED)
            known.status = ENDED

    def _tell(self, room_id: str, at: datetime, kind: str, before: str | None, after: str) -> None:
        self.changes.append(
            Change(property_id=room_id, at=at, kind=kind, before=before, after=after)
        )


def _terms(room: Room) -> dict[str, str]:
    """Tell what both a list and a room's own page say of it, as changes write it."""
    return {
        "rent": str(room.rent_yen),
        "fee": str(room.fee_yen),
        "deposit": str(round(room.rent_yen * room.deposit_months)),
        "key_money": str(round(room.rent_yen * room.key_money_months)),
        "layout": room.layout,
        "area": f"{room.hundredths_m2 / 100:.2f}",
    }
