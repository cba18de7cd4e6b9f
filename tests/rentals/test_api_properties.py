"""Properties over the API: in any order, a page at a time, as a file, with their history."""

from collections.abc import AsyncIterator
from datetime import timedelta
from operator import itemgetter
from typing import Any

import pytest

from tests.app.ground import check_error
from tests.conftest import Databases
from tests.rentals.api_ground import START, Rooms, open_rooms
from tests.rentals.seeing import keep, keep_gone, on_list, on_page
from tests.servers import ENGINES

HOUR = timedelta(hours=1)
STATIONS = (
    '[{"station":"桜坂","line":"巡回線","walk_minutes":5,"bus_minutes":0},'
    '{"station":null,"line":null,"walk_minutes":3,"bus_minutes":12}]'
)
GIVEN: tuple[dict[str, Any], ...] = (
    {"rent_yen": 72_000, "area_m2": 25.5, "layout": "1K"},
    {"rent_yen": 98_000, "area_m2": 40.25, "layout": "2LDK", "building_name": "100%_ハイツ"},
    {"rent_yen": 72_000, "area_m2": 19.99, "layout": "1K", "address": "横浜市"},
    {"rent_yen": None, "area_m2": None, "layout": "1R"},
    {"rent_yen": 55_000, "area_m2": 25.5, "layout": "1R", "building_name": "=SUM(A1)"},
    {"rent_yen": 120_000, "area_m2": 61.0, "layout": "3LDK", "stations": STATIONS},
    {"rent_yen": 50_000, "area_m2": 15.0, "layout": "1R"},
)


def name(number: int) -> str:
    """Name a property, some of them in the site's other way."""
    return f"{'_' if number % 2 else ''}{number:044x}"


@pytest.fixture(scope="module", params=ENGINES)
async def town(
    request: pytest.FixtureRequest, databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Rooms]:
    """An API with eight properties: one was read and changed, one ended, one is gone unseen."""
    url = databases.fresh(request.param)
    async with open_rooms(url, tmp_path_factory.mktemp("town")) as rooms:
        store = rooms.api.store
        for number, given in enumerate(GIVEN):
            await keep(store, START + number * HOUR, on_list(name(number), **given))
        await keep(store, START + 8 * HOUR, on_page(name(5), **GIVEN[5]))
        await keep(store, START + 9 * HOUR, on_page(name(5), **{**GIVEN[5], "rent_yen": 110_000}))
        await keep_gone(store, START + 10 * HOUR, [name(6), name(99)])
        yield rooms


async def ids(town: Rooms, **params: Any) -> list[int]:
    shown = (await town.get("/properties", **params))["properties"]
    return [int(one["property_id"].lstrip("_"), 16) for one in shown]


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("newest", [6, 5, 4, 3, 2, 1, 0]),
        ("changed", [6, 5, 4, 3, 2, 1, 0]),
        ("seen", [5, 6, 4, 3, 2, 1, 0]),
        ("rent", [5, 1, 2, 0, 4, 6, 3]),
        ("area", [5, 1, 4, 0, 2, 6, 3]),
    ],
)
async def test_properties_come_in_any_order_a_page_at_a_time_each_once(
    town: Rooms, sort: str, expected: list[int]
) -> None:
    assert await ids(town, sort=sort) == expected
    assert await ids(town, sort=sort, order="asc") == expected[::-1]
    for limit in (1, 2, 3):
        for order, way in (("desc", 1), ("asc", -1)):
            params = {"sort": sort, "order": order, "limit": limit}
            found = await town.pages("/properties", "properties", "after", **params)
            numbers = [int(one["property_id"].lstrip("_"), 16) for one in found]
            assert numbers == expected[::way]


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"status": "active"}, [5, 4, 3, 2, 1, 0]),
        ({"status": "ended"}, [6]),
        ({"min_rent": 72_000}, [5, 2, 1, 0]),
        ({"max_rent": 72_000}, [6, 4, 2, 0]),
        ({"min_rent": 72_000, "max_rent": 72_000, "min_area": 20}, [0]),
        ({"min_area": 25.5}, [5, 4, 1, 0]),
        ({"layout": "1R"}, [6, 4, 3]),
        ({"layout": "1r"}, []),
        ({"search": "横浜"}, [2]),
        ({"search": "桜坂"}, [5]),
        ({"search": "0%_"}, [1]),
        ({"search": "_%"}, []),
        ({"search": "' OR 1=1 --"}, []),
    ],
)
async def test_properties_are_filtered(
    town: Rooms, params: dict[str, Any], expected: list[int]
) -> None:
    assert await ids(town, **params) == expected


@pytest.mark.parametrize(
    "params",
    [
        {"status": "gone"},
        {"min_rent": "-1"},
        {"min_rent": "7万"},
        {"max_rent": str(2**31)},
        {"min_area": "nan"},
        {"min_area": "-0.5"},
        {"layout": "x" * 65},
        {"layout": "1\x00K"},
        {"search": "a\nb"},
        {"search": "x" * 101},
        {"sort": "price"},
        {"order": "up"},
        {"after": "1"},
        {"after": f"1~{'g' * 44}"},
        {"limit": "0"},
        {"limit": "501"},
        {"format": "xml"},
        {"page": "2"},
    ],
)
async def test_a_list_of_properties_that_makes_no_sense_is_refused(
    calm: Rooms, params: dict[str, str]
) -> None:
    check_error(await calm.http.get("/api/properties", params=params), 422, "bad_input")


async def test_a_place_of_another_order_is_some_place_and_no_error(town: Rooms) -> None:
    far = f"{'9' * 16}.99~{name(0)}"
    for sort in ("newest", "changed", "seen", "rent", "area"):
        assert len(await ids(town, sort=sort, after=far)) == 7


async def test_properties_are_a_file_with_their_first_station(town: Rooms) -> None:
    rows = await town.rows("/properties")
    assert [int(row["property_id"].lstrip("_"), 16) for row in rows] == [6, 5, 4, 3, 2, 1, 0]
    assert rows[1]["station"] == "桜坂"
    assert (rows[1]["walk_minutes"], rows[1]["bus_minutes"]) == ("5", "0")
    assert (rows[1]["rent_yen"], rows[1]["area_m2"]) == ("110000", "61.0")
    assert (rows[0]["station"], rows[0]["gone_at"]) == ("", "2026-01-05T22:00:00Z")
    assert rows[2]["building_name"] == "'=SUM(A1)"
    cheap = await town.rows("/properties", sort="rent", order="asc", limit=2, min_rent=1)
    assert [row["rent_yen"] for row in cheap] == ["50000", "55000"]


async def test_a_property_is_shown_with_everything_that_is_known(town: Rooms) -> None:
    assert await town.get(f"/properties/{name(5)}") == {
        "property_id": name(5),
        "url": f"http://rentals.test/rent/detail/{name(5)}/",
        "status": "active",
        "title": "メゾン汐見 (2階/1K)",
        "building_name": "メゾン汐見",
        "rent_yen": 110_000,
        "rent_note": None,
        "fee_yen": 3000,
        "deposit_yen": 72_000,
        "key_money_yen": 0,
        "layout": "3LDK",
        "area_m2": 61.0,
        "floor": 2,
        "years_old": None,
        "built_on": None,
        "address": "東京都新宿区",
        "latitude": None,
        "longitude": None,
        "structure_id": None,
        "first_seen_at": "2026-01-05T17:00:00Z",
        "last_seen_at": "2026-01-05T21:00:00Z",
        "changed_at": "2026-01-05T21:00:00Z",
        "detail_at": "2026-01-05T21:00:00Z",
        "ended_at": None,
        "gone_at": None,
        "stations": [
            {"station": "桜坂", "line": "巡回線", "walk_minutes": 5, "bus_minutes": 0},
            {"station": None, "line": None, "walk_minutes": 3, "bus_minutes": 12},
        ],
        "images": ["a.jpg"],
        "waiting": None,
    }


async def test_one_that_was_gone_before_anybody_saw_it_is_shown_as_gone(town: Rooms) -> None:
    shown = await town.get(f"/properties/{name(99)}")
    assert (shown["status"], shown["gone_at"]) == ("ended", "2026-01-05T22:00:00Z")
    assert (shown["rent_yen"], shown["stations"], shown["images"]) == (None, [], [])


async def test_a_property_that_nobody_knows_is_not_found(town: Rooms) -> None:
    unknown = "f" * 44
    for path in (f"/api/properties/{unknown}", f"/api/properties/{unknown}/history"):
        assert unknown in check_error(await town.http.get(path), 404, "not_found")
    for bad in ("x", "f" * 43, f"__{'f' * 44}"):
        check_error(await town.http.get(f"/api/properties/{bad}"), 422, "bad_input")


async def test_the_history_has_snapshots_newest_first_and_changes_oldest_first(
    town: Rooms,
) -> None:
    found = await town.get(f"/properties/{name(5)}/history")
    assert [(one["at"], one["rent_yen"]) for one in found["snapshots"]] == [
        ("2026-01-05T21:00:00Z", 110_000),
        ("2026-01-05T17:00:00Z", 120_000),
    ]
    assert [(one["kind"], one["before"], one["after"]) for one in found["changes"]] == [
        ("new", None, "active"),
        ("rent", "120000", "110000"),
    ]
    assert [one["source"] for one in found["changes"]] == ["list", "detail"]
    assert found["is_cut"] is False
    cut = await town.get(f"/properties/{name(5)}/history", limit=1)
    assert cut["is_cut"] is True
    assert ([one["kind"] for one in cut["changes"]], len(cut["snapshots"])) == (["rent"], 1)


async def test_changes_come_newest_first_a_page_at_a_time_each_once(town: Rooms) -> None:
    found = await town.pages("/changes/recent", "changes", "before", limit=2)
    kinds = [one["kind"] for one in found]
    assert kinds == ["status", "rent", *["new"] * 7]
    assert [one["id"] for one in found] == sorted(map(itemgetter("id"), found), reverse=True)
    newest = found[0]
    assert newest.pop("id") > 0
    assert newest == {
        "at": "2026-01-05T22:00:00Z",
        "property_id": name(6),
        "building_name": "メゾン汐見",
        "url": f"http://rentals.test/rent/detail/{name(6)}/",
        "kind": "status",
        "before": "active",
        "after": "ended",
        "source": "detail",
    }


async def test_changes_are_filtered_by_kind_and_property(town: Rooms) -> None:
    (rent,) = (await town.get("/changes/recent", kind="rent"))["changes"]
    assert rent["property_id"] == name(5)
    mine = (await town.get("/changes/recent", property_id=name(6)))["changes"]
    assert [one["kind"] for one in mine] == ["status", "new"]
    none = await town.get("/changes/recent", property_id=name(6), kind="rent")
    assert none == {"changes": [], "next": None}


async def test_changes_are_a_file(town: Rooms) -> None:
    rows = await town.rows("/changes/recent")
    assert [row["kind"] for row in rows] == ["status", "rent", *["new"] * 7]
    assert rows[4]["building_name"] == "'=SUM(A1)"
    (row,) = await town.rows("/changes/recent", kind="rent")
    assert (row["before"], row["after"], row["source"]) == ("120000", "110000", "detail")


@pytest.mark.parametrize(
    "params",
    [
        {"kind": "price"},
        {"property_id": "x"},
        {"before": "0"},
        {"before": str(2**53)},
        {"before": "1.0"},
        {"limit": "501"},
        {"after": "1"},
    ],
)
async def test_changes_that_make_no_sense_are_refused(calm: Rooms, params: dict[str, str]) -> None:
    check_error(await calm.http.get("/api/changes/recent", params=params), 422, "bad_input")
