"""What the simulated rentals site promises: one truth by seed and time, and its addresses."""

import json
import re
from collections import Counter
from datetime import UTC, datetime, timedelta

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from mimawari.errors import BadInput
from mimawari.kernel.clock import VirtualClock
from mimawari.sim.sites.yahoo_realestate.names import LAYOUTS
from mimawari.sim.sites.yahoo_realestate.site import ORIGIN_AT, Rentals, Town
from tests.sim.asking import AREAS, BIG, ask, embedded, html_of, rooms_in, running

BLOCKED = "ご覧になろうとしているページは現在表示できません"
MONTH = timedelta(days=30)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(ORIGIN_AT + timedelta(days=3))


@pytest.fixture
def site(clock: VirtualClock) -> Rentals:
    return Rentals(clock, 7)


def test_there_are_about_150_buildings_with_one_to_six_rooms_in_several_areas(
    site: Rentals, clock: VirtualClock
) -> None:
    clock.step(2 * MONTH)
    rooms = site.truth({})["rooms"]
    counts: dict[str, int] = {}
    for room in rooms:
        counts[room["structure_id"]] = counts.get(room["structure_id"], 0) + 1
    assert len(counts) == 150
    assert set(counts.values()) == {1, 2, 3, 4, 5, 6}
    assert {room["area"] for room in rooms} == set(AREAS) == set(site.truth({})["areas"])


@given(
    steps=st.lists(st.integers(0, 40_000), max_size=12),
    area=st.sampled_from(AREAS),
)
@settings(max_examples=15, deadline=None)
async def test_how_often_it_is_asked_changes_nothing(steps: list[int], area: str) -> None:
    busy_clock, end = VirtualClock(ORIGIN_AT), ORIGIN_AT + timedelta(minutes=sum(steps) / 20)
    busy, calm = Rentals(busy_clock, 3), Rentals(VirtualClock(end), 3)
    for step in steps:
        busy_clock.step(timedelta(minutes=step / 20))
        await ask(busy, f"/rent/search/{area}/?page={step % 3}")
        busy.truth({"area": area})
    busy_clock.step(end - busy_clock.now())
    assert busy.truth({"since": "2025-01-01"}) == calm.truth({"since": "2025-01-01"})
    for path in (f"/rent/search/{area}/", f"/rent/detail/{calm.truth({})['rooms'][5]['id']}/"):
        assert (await ask(busy, path)).body == (await ask(calm, path)).body


def test_another_seed_is_another_town(clock: VirtualClock) -> None:
    one, other = Rentals(clock, 1).truth({}), Rentals(clock, 2).truth({})
    assert not rooms_in(one).keys() & rooms_in(other).keys()


def test_before_its_history_begins_nothing_has_happened() -> None:
    early = Rentals(VirtualClock(datetime(2020, 1, 1, tzinfo=UTC)), 7)
    assert early.truth({"since": "2000-01-01"})["events"] == []
    assert early.truth({})["rooms"] == Rentals(VirtualClock(ORIGIN_AT), 7).truth({})["rooms"]


def test_ids_are_44_hex_digits_and_some_have_a_mark_before_them(site: Rentals) -> None:
    ids = rooms_in(site.truth({}))
    assert all(re.fullmatch(r"_?[0-9a-f]{44}", room_id) for room_id in ids)
    assert 0.05 < sum(room_id.startswith("_") for room_id in ids) / len(ids) < 0.3


def test_events_lead_from_one_truth_to_the_next(site: Rentals, clock: VirtualClock) -> None:
    before = site.truth({})
    rooms = rooms_in(before)
    clock.step(MONTH)
    after = site.truth({"since": before["now"]})
    times = [event["at"] for event in after["events"]]
    assert times == sorted(times)
    assert before["now"] < times[0]
    assert times[-1] <= after["now"]
    for event in after["events"]:
        if event["kind"] == "listed":
            rooms[event["id"]] = event["room"]
        elif event["kind"] == "delisted":
            del rooms[event["id"]]
        else:
            assert event["changes"]
            for name, change in event["changes"].items():
                assert rooms[event["id"]][name] == change["old"] != change["new"]
            new = {name: change["new"] for name, change in event["changes"].items()}
            rooms[event["id"]] |= new | {"updated_at": event["at"]}
    assert rooms == rooms_in(after)
    assert {event["kind"] for event in after["events"]} == {"listed", "changed", "delisted"}


def test_everything_about_a_room_changes_and_most_often_its_rent(
    site: Rentals, clock: VirtualClock
) -> None:
    clock.step(2 * MONTH)
    events = site.truth({"since": ORIGIN_AT.isoformat()})["events"]
    changed = [frozenset(event["changes"]) for event in events if event["kind"] == "changed"]
    counts = Counter(name for names in changed for name in names)
    assert counts.keys() == {
        *("rent_yen", "fee_yen", "deposit_months", "deposit_yen"),
        *("key_money_months", "key_money_yen", "layout", "area_m2", "images"),
    }
    assert 0.5 < counts["rent_yen"] / len(changed) < 0.7
    for name in ("layout", "area_m2", "images"):
        assert 0.02 < counts[name] / len(changed) < 0.1
        assert {names for names in changed if name in names} == {frozenset({name})}


def test_a_room_is_measured_anew_by_little(site: Rentals, clock: VirtualClock) -> None:
    clock.step(2 * MONTH)
    events = site.truth({"since": ORIGIN_AT.isoformat()})["events"]
    for event in events:
        changes = event.get("changes", {})
        if area := changes.get("area_m2"):
            assert 0.03 < abs(area["new"] - area["old"]) < 0.61
        if layout := changes.get("layout"):
            places = LAYOUTS.index(layout["old"]), LAYOUTS.index(layout["new"])
            assert abs(places[0] - places[1]) == 1
        if images := changes.get("images"):
            assert 1 <= len(set(images["new"])) == len(images["new"]) <= 4


@pytest.mark.parametrize("seed", [1, 7])
def test_a_door_is_on_the_list_once_and_known_again_however_it_was_measured(seed: int) -> None:
    town = Town(seed)
    town.advance(ORIGIN_AT + 4 * MONTH)
    doors = [(room.building.id, room.unit) for room in town.listed.values()]
    assert len(set(doors)) == len(doors)
    measured = {
        event.room.id
        for event in town.events
        if event.before and event.room.layout != event.before.layout and event.kind == "changed"
    }
    again = [
        event
        for event in town.events
        if event.kind == "listed" and event.before and event.before.id in measured
    ]
    assert len(again) > 3
    for event in again:
        assert event.before is not None
        assert event.room.unit == event.before.unit
        assert event.room.id != event.before.id
        assert event.before.id in town.gone


def test_some_rooms_come_back_under_a_new_id(site: Rentals, clock: VirtualClock) -> None:
    clock.step(2 * MONTH)
    events = site.truth({"since": ORIGIN_AT.isoformat()})["events"]
    gone = {event["id"] for event in events if event["kind"] == "delisted"}
    again = [event for event in events if event.get("relisted_from") in gone]
    assert len(again) > 20
    assert all(event["id"] != event["relisted_from"] for event in again)


async def test_a_delisted_room_is_gone_for_good_under_one_of_two_statuses(
    site: Rentals, clock: VirtualClock
) -> None:
    clock.step(MONTH)
    events = site.truth({"since": ORIGIN_AT.isoformat()})["events"]
    gone = [event for event in events if event["kind"] == "delisted"]
    for event in gone[:60]:
        response = await ask(site, f"/rent/detail/{event['id']}/")
        assert response.status_code == event["status"]
    assert {event["status"] for event in gone} == {404, 410}
    assert not rooms_in(site.truth({})).keys() & {event["id"] for event in gone}


def test_truth_is_told_by_area_and_by_id(site: Rentals, clock: VirtualClock) -> None:
    since = site.truth({})["now"]
    clock.step(MONTH)
    whole = site.truth({"since": since})
    part = site.truth({"since": since, "area": f"/{AREAS[1]}/"})
    assert part["rooms"] == [room for room in whole["rooms"] if room["area"] == AREAS[1]]
    assert 0 < len(part["events"]) < len(whole["events"])
    room = part["rooms"][0]
    alone = site.truth({"id": room["id"], "since": "2000-01-01"})
    assert alone["rooms"] == [room]
    assert {event["id"] for event in alone["events"]} <= {room["id"]}
    assert site.truth({"id": "none"})["rooms"] == []
    assert site.truth({})["events"] == []
    json.dumps(whole)


@pytest.mark.parametrize("given", ["yesterday", "2026-13-01", "1", "\x00", "\uff10"])
def test_a_time_that_is_none_is_refused(site: Rentals, given: str) -> None:
    with pytest.raises(BadInput):
        site.truth({"since": given})


def test_an_area_that_there_is_not_is_refused(site: Rentals) -> None:
    with pytest.raises(BadInput):
        site.truth({"area": "03/13/13101"})


def test_a_plus_sign_that_became_a_space_still_makes_a_time(
    site: Rentals, clock: VirtualClock
) -> None:
    clock.step(MONTH)
    quoted, spaced = "2026-01-05T00:00:00+00:00", "2026-01-05T00:00:00 00:00"
    assert site.truth({"since": quoted}) == site.truth({"since": spaced})
    assert site.truth({"since": "2026-01-05 00:00:00"}) == site.truth({"since": quoted})


@pytest.mark.parametrize("number", ["", "0", "-1", "abc", "1.5", "2", "%EF%BC%92", "9" * 5000])
async def test_a_page_number_that_is_none_means_the_first(site: Rentals, number: str) -> None:
    page = embedded(html_of(await ask(site, f"/rent/search/{BIG}/?page={number}")))
    assert page["paginationContext"]["currentPage"] == (2 if number == "2" else 1)


@pytest.mark.parametrize("number", [4, 99, 999_999])
async def test_past_the_end_a_list_says_that_it_is_empty(site: Rentals, number: int) -> None:
    response = await ask(site, f"/rent/search/{BIG}/?page={number}")
    html = html_of(response)
    assert response.status_code == 200
    assert embedded(html)["properties"] == []
    assert embedded(html)["paginationContext"]["nextPageUrl"] is None
    assert "該当する物件がありません" in html


@pytest.mark.parametrize(
    "path", ["/rent", f"/rent/search/{BIG}", "/rent/detail/{id}", "/rent/nowhere"]
)
async def test_an_address_without_its_slash_leads_to_the_one_with_it(
    site: Rentals, path: str
) -> None:
    path = path.format(id=site.truth({})["rooms"][0]["id"])
    response = await ask(site, f"{path}?page=2")
    assert response.status_code == 301
    assert response.headers["location"] == f"http://rentals.test{path}/?page=2"


@pytest.mark.parametrize(
    "path",
    [
        *("/rent/search/03/13/13101/", "/rent/search/", "/rent/search/s/000000000000/"),
        *("/rent/detail/", f"/rent/detail/{'0' * 44}/", f"/rent/detail/{'0' * 40}/"),
        *("/rent/detail/%3Cscript%3E/", "/_rent/image/000000000000/1.svg", "/_rent/"),
        *("/rent/detail/\u3042/", "/rent//", f"/rent/{'x' * 5000}/"),
    ],
)
async def test_what_there_is_not_is_404_with_the_words_of_a_block(site: Rentals, path: str) -> None:
    response = await ask(site, path)
    assert response.status_code == 404
    assert BLOCKED in html_of(response)


async def test_an_id_is_taken_as_it_is_written(site: Rentals) -> None:
    room_id = next(key for key in rooms_in(site.truth({})) if key.startswith("_"))
    for other in (room_id[1:], room_id[:41], room_id.upper(), f"_{room_id}", f"{room_id}0"):
        assert (await ask(site, f"/rent/detail/{other}/")).status_code == 404


@given(path=st.text(max_size=60), query=st.text(max_size=30))
@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_no_address_breaks_it(site: Rentals, path: str, query: str) -> None:
    url = f"/rent/{path.replace('?', '')}?page={query.encode('utf-8', 'replace').hex()}"
    response = await ask(site, url.encode("utf-8", "replace").decode())
    assert response.status_code in {200, 301, 404}


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
async def test_only_reading_is_answered(site: Rentals, method: str) -> None:
    assert (await ask(site, f"/rent/search/{BIG}/", method=method)).status_code == 405
    assert (await ask(site, f"/rent/search/{BIG}/", method="HEAD")).status_code == 200


def test_a_refusal_is_the_real_sites(site: Rentals) -> None:
    response = site.refusal()
    html = html_of(response)
    assert response.status_code == 500
    assert f"<title>Yahoo! JAPAN - {BLOCKED}</title>" in html
    assert "一時的なエラーですので、しばらく時間をおいてから再度お試しください" in html
    assert 4500 < len(html.encode()) < 5500


def test_it_owns_its_own_paths_and_no_others(site: Rentals) -> None:
    assert site.name == "rentals"
    assert all(
        map(
            site.owns,
            ("/rent", "/rent/", "/_rent/image/", f"/rent/search/{BIG}/", "/rent/detail/x"),
        )
    )
    assert not any(map(site.owns, ("/", "/rental", "/books/v1/volumes", "/search", "")))


async def test_over_a_real_socket_its_front_page_leads_to_every_room(site: Rentals) -> None:
    found: set[str] = set()
    async with (
        running(site) as address,
        httpx2.AsyncClient(follow_redirects=True, trust_env=False, timeout=60) as client,
    ):
        front = LexborHTMLParser((await client.get(f"{address}/rent")).text)
        paths = [str(node.attributes["href"]) for node in front.css("main a")]
        for path in paths:
            page = embedded((await client.get(address + path)).text)
            blocks = [building["GroupProperties"] for building in page["properties"]]
            found |= {room["PropertyId"] for rooms in blocks for room in rooms}
            following = page["paginationContext"]["nextPageUrl"]
            paths += [following] if following else []
    assert found == rooms_in(site.truth({})).keys()
