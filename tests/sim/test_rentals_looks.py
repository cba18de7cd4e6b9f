"""What could be seen change on the rentals site: told from its truth, look by look."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mimawari.kernel.clock import VirtualClock
from mimawari.sim.sites.yahoo_realestate.names import Room
from mimawari.sim.sites.yahoo_realestate.observed import Looks
from mimawari.sim.sites.yahoo_realestate.site import Event, Rentals, Town
from tests.sim.asking import AREAS, BIG, rooms_in

Told = tuple[str, str, str | None, str | None]

SEED = 5
START = datetime(2026, 1, 3, tzinfo=UTC)
SMALL = AREAS[-1]
DAYS, SECOND = timedelta(days=1), timedelta(seconds=1)
WRITTEN: dict[str, tuple[str, Callable[[Any], str]]] = {
    "rent_yen": ("rent", str),
    "fee_yen": ("fee", str),
    "deposit_yen": ("deposit", str),
    "key_money_yen": ("key_money", str),
    "layout": ("layout", str),
    "area_m2": ("area", lambda area: f"{area:.2f}"),
    "images": ("image", json.dumps),
}


def look(at: datetime, path: str, status: int | None = 200, do: str = "") -> dict[str, Any]:
    """Make a line of the log, as the world writes it."""
    path, _, query = path.partition("?")
    order = {"id": 1, "do": do} if do else None
    return {
        "at": at.isoformat(),
        "method": "GET",
        "path": path,
        "query": query,
        "user_agent": "ours",
        "status": status,
        "order": order,
    }


def at_list(at: datetime, area: str = SMALL, page: int = 1, **given: Any) -> dict[str, Any]:
    number = f"?page={page}" if page > 1 else ""
    return look(at, f"/rent/search/{area}/{number}", **given)


def at_room(at: datetime, room_id: str, status: int = 200, **given: Any) -> dict[str, Any]:
    return look(at, f"/rent/detail/{room_id}/", status, **given)


def told(looks: Looks) -> list[Told]:
    return [(one.property_id, one.kind, one.before, one.after) for one in looks.changes]


def truth(at: datetime, area: str = SMALL, since: datetime | None = None) -> Any:
    query = {"area": area} | ({"since": since.isoformat()} if since else {})
    return Rentals(VirtualClock(at), SEED).truth(query)


def new(at: datetime, area: str = SMALL) -> list[Told]:
    return [(key, "new", None, "active") for key in rooms_in(truth(at, area))]


def told_of(event: Any) -> Iterator[Told]:
    """Tell an event of the truth as a change that was seen."""
    if event["kind"] == "listed":
        yield event["id"], "new", None, "active"
    if event["kind"] == "delisted":
        yield event["id"], "status", "active", "ended"
    for field, change in event.get("changes", {}).items():
        if field in WRITTEN:
            kind, write = WRITTEN[field]
            yield event["id"], kind, write(change["old"]), write(change["new"])


def test_who_looks_after_every_event_sees_them_all() -> None:
    end = START + 40 * DAYS
    events = truth(end, since=START)["events"]
    looks = [at_list(START)]
    looks += [at_room(START, key) for key in rooms_in(truth(START))]
    expected: list[Told] = []
    for event in events:
        at = datetime.fromisoformat(event["at"])
        status = event.get("status", 200)
        looks += [at_list(at), at_room(at, event["id"], status)]
        expected += told_of(event)
    seen = Looks(SEED, looks)
    first = new(START)
    assert sorted(told(seen)[: len(first)]) == sorted(first)
    assert sorted(told(seen)) == sorted(first + expected)
    assert {kind for _, kind, _, _ in expected} == {kind for kind, _ in WRITTEN.values()} | {
        "new",
        "status",
    }
    assert seen.properties == len({key for key, _, _, _ in first + expected})


def test_who_looks_seldom_sees_the_difference_and_not_the_way() -> None:
    end = START + 20 * DAYS
    before, after = rooms_in(truth(START)), rooms_in(truth(end))
    expected: list[Told] = [(key, "new", None, "active") for key in after.keys() - before.keys()]
    for key in after.keys() & before.keys():
        for field, (kind, write) in WRITTEN.items():
            old, now = write(before[key][field]), write(after[key][field])
            if old != now and kind != "image":
                expected.append((key, kind, old, now))
    seen = told(Looks(SEED, [at_list(START), at_list(end)]))
    assert sorted(seen) == sorted(new(START) + expected)
    assert len(expected) > 10


def changed_room(field: str) -> tuple[str, datetime]:
    """Find a room that was there at the start and changed since, and when it had."""
    events = truth(START + 120 * DAYS, since=START)["events"]
    there = rooms_in(truth(START))
    event = next(e for e in events if field in e.get("changes", {}) and e["id"] in there)
    return event["id"], datetime.fromisoformat(event["at"])


def test_pictures_are_known_only_from_a_rooms_own_page() -> None:
    room_id, at = changed_room("images")
    both = [at_room(START, room_id), at_room(at, room_id)]
    assert {one[1] for one in told(Looks(SEED, both))} >= {"new", "image"}
    once = [at_list(START), at_list(at), at_room(at, room_id)]
    assert "image" not in {one[1] for one in told(Looks(SEED, once))}


@pytest.mark.parametrize(
    "given",
    [
        {"status": 500, "do": "blocked"},
        {"status": 500, "do": "status"},
        {"status": 200, "do": "changed_layout"},
        {"status": None, "do": "reset"},
        {"status": 404, "do": "gone"},
    ],
)
def test_an_answer_by_order_shows_no_list(given: dict[str, Any]) -> None:
    assert Looks(SEED, [at_list(START, **given)]).changes == []


def test_a_page_that_was_not_modified_is_a_look() -> None:
    assert sorted(told(Looks(SEED, [at_list(START, status=304)]))) == sorted(new(START))


@pytest.mark.parametrize("status", [404, 410])
def test_a_room_whose_page_is_gone_has_ended_for_good(status: int) -> None:
    later = START + DAYS
    room_id = min(rooms_in(truth(START)).keys() & rooms_in(truth(later)).keys())
    gone = at_room(START, room_id, status, do="gone")
    looks = [at_list(START), gone, at_list(later), at_room(later, room_id)]
    assert [one[1:] for one in told(Looks(SEED, looks)) if one[0] == room_id] == [
        ("new", None, "active"),
        ("status", "active", "ended"),
    ]
    assert all(one[0] != room_id for one in told(Looks(SEED, looks[1:])))


def delisted(area: str) -> tuple[str, datetime]:
    events = truth(START + 60 * DAYS, area, START)["events"]
    there = rooms_in(truth(START, area))
    event = next(e for e in events if e["kind"] == "delisted" and e["id"] in there)
    return event["id"], datetime.fromisoformat(event["at"])


def ends(looks: list[dict[str, Any]], room_id: str) -> list[datetime]:
    found = Looks(SEED, looks).changes
    return [one.at for one in found if one.property_id == room_id and one.after == "ended"]


def walk(at: datetime, pages: int = 3) -> list[dict[str, Any]]:
    return [at_list(at + timedelta(seconds=10 * n), BIG, n + 1) for n in range(pages)]


def test_a_room_has_ended_when_two_whole_walks_in_a_row_missed_it() -> None:
    room_id, at = delisted(BIG)
    second = at + timedelta(hours=6)
    assert ends([*walk(START), *walk(at)], room_id) == []
    ended_at = second + timedelta(seconds=20)
    assert ends([*walk(START), *walk(at), *walk(second)], room_id) == [ended_at]
    third = walk(second + timedelta(hours=6))
    assert ends([*walk(START), *walk(at), *walk(second), *third], room_id) == [ended_at]


def test_a_walk_that_is_not_whole_ends_nothing() -> None:
    room_id, at = delisted(BIG)
    second = at + timedelta(hours=6)
    broken = (
        walk(second, 2),
        walk(second)[1:],
        [walk(second)[0], walk(second)[2]],
        [*walk(second, 2), at_list(second, BIG, 3, status=500, do="blocked")],
    )
    for cut in broken:
        assert ends([*walk(START), *walk(at), *cut], room_id) == []
    # A walk that stood still for hours is whole all the same.
    late = [*walk(second, 2), walk(second + timedelta(hours=2))[2]]
    assert len(ends([*walk(START), *walk(at), *late], room_id)) == 1


def test_a_list_says_nothing_of_rooms_that_only_others_have_shown() -> None:
    room_id, at = delisted(BIG)
    looks = [at_room(START, room_id), *walk(at), *walk(at + DAYS)]
    assert ends(looks, room_id) == []


def overtaking(room: Room, events: list[Event]) -> Iterator[datetime]:
    """Tell when a room's building gets from a later page to the first, by a new room of its."""
    town = Town(SEED)
    for event in events:
        town.advance(event.at - SECOND)
        found = town.find_list(f"/rent/search/{BIG}/")
        assert found is not None
        if room.building in found[1][30:] and room.id in town.listed:
            yield event.at


def missed_twice() -> tuple[str, list[datetime]]:
    """Find a room that is always there, but overtakes two walks in a row."""
    town = Town(SEED)
    town.advance(START + 90 * DAYS)
    for room in town.listed.values():
        if room.listed_at < START and room.building.area.path == BIG:
            events = [
                event
                for event in town.events
                if event.kind == "listed"
                and event.room.building == room.building
                and event.at > START
            ]
            times = list(overtaking(room, events))
            if len(times) > 1:
                return room.id, times[:2]
    raise AssertionError("no room overtakes two walks")


def overtaken(at: datetime) -> list[dict[str, Any]]:
    return [at_list(at - SECOND, BIG), at_list(at, BIG, 2), at_list(at, BIG, 3)]


def test_a_room_that_ended_by_mistake_is_active_when_it_is_seen_again() -> None:
    room_id, (first, second) = missed_twice()
    looks = [*walk(START), *overtaken(first), *overtaken(second), *walk(second + SECOND)]
    seen = [one[1:] for one in told(Looks(SEED, looks)) if one[0] == room_id]
    assert [one for one in seen if one[0] == "status"] == [
        ("status", "active", "ended"),
        ("status", "ended", "active"),
    ]
    between = at_room(first + SECOND, room_id)
    assert ends([*walk(START), *overtaken(first), between, *overtaken(second)], room_id) == []
