"""What is read from the rentals site's lists, by context and by page, good and bad."""

# ruff: noqa: RUF001 - pages write wide signs, and so do these tests

from decimal import Decimal
from typing import Any

import pytest

from mimawari.errors import Invalid
from mimawari.sites.yahoo_realestate import Coordinates, ListPage, Room, parse_list
from mimawari.sites.yen import Access
from tests.sites.yahoo_pages import (
    GONE,
    LIST_URL,
    make_building,
    make_context,
    make_id,
    make_room,
    write_context,
    write_list,
)

NOTHING_SHOWN = ""


def read(*buildings: Any, **changes: Any) -> ListPage:
    """Read a list from its context alone."""
    return parse_list(
        write_list(make_context(*buildings, **changes), shown=NOTHING_SHOWN), LIST_URL
    )


def read_one(**changes: Any) -> Room:
    """Read the only room of a list, with some of its labels changed."""
    room = {key: value for key, value in make_room(**changes).items() if value is not GONE}
    page = read(make_building(0, room))
    assert page.refused == ()
    return page.rooms[0]


def test_a_room_is_read_in_full() -> None:
    assert read_one() == Room(
        property_id=make_id(0),
        detail_url=f"https://realestate.yahoo.co.jp/rent/detail/{make_id(0)}/",
        structure_id="000000000000",
        building_name="夏目坂コート0",
        rent_yen=85_000,
        fee_yen=5_000,
        deposit_yen=85_000,
        key_money_yen=0,
        layout="1K",
        area_m2=Decimal("25.50"),
        floor=3,
        years_old=7,
        address="東京都新宿区喜久井町1-2",
        stations=(
            Access("早稲田駅", "東京メトロ東西線", 6),
            Access("新宿駅", "山手線", 3, 10),
        ),
        coordinates=Coordinates(35.7034, 139.7175),
    )


@pytest.mark.parametrize("property_id", [make_id(5), make_id(5, prefix="_"), "0" * 43 + "F"])
def test_an_id_is_used_exactly_as_it_is_given(property_id: str) -> None:
    room = read_one(PropertyId=property_id)
    assert room.property_id == property_id
    assert room.detail_url == f"https://realestate.yahoo.co.jp/rent/detail/{property_id}/"


def test_properties_are_on_the_site_that_the_list_is_on() -> None:
    body = write_list(make_context(make_building()))
    page = parse_list(body, "http://127.0.0.1:8085/rent/search/03/13/13104/?page=1")
    assert page.rooms[0].detail_url == f"http://127.0.0.1:8085/rent/detail/{make_id(0)}/"
    assert page.next_url == "http://127.0.0.1:8085/rent/search/03/13/13104/?page=2"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"PriceLabel": "応談"}, {"rent_yen": None, "deposit_yen": None}),
        ({"PriceLabel": "1億2,000万円"}, {"rent_yen": 120_000_000}),
        ({"PriceLabel": "８．５万円"}, {"rent_yen": 85_000}),
        ({"PriceLabel": "<b>8.5</b>万円"}, {"rent_yen": 85_000}),
        ({"MonthlyManagementCostLabel": "-"}, {"fee_yen": 0}),
        ({"MonthlyManagementCostLabel": "なし"}, {"fee_yen": 0}),
        ({"MonthlyManagementCostLabel": "要問合せ"}, {"fee_yen": None}),
        ({"MonthlyManagementCostLabel": ""}, {"fee_yen": None}),
        ({"MonthlyManagementCostLabel": GONE}, {"fee_yen": None}),
        ({"SecurityDepositLabel": "1.5ヶ月"}, {"deposit_yen": 127_500}),
        ({"SecurityDepositLabel": "8.5万円 ※"}, {"deposit_yen": 85_000}),
        ({"SecurityDepositLabel": None}, {"deposit_yen": None}),
        ({"KeyMoneyLabel": "2か月"}, {"key_money_yen": 170_000}),
        ({"MonopolyAreaLabel": "25m&sup2;"}, {"area_m2": Decimal("25.00")}),
        ({"MonopolyAreaLabel": "２５㎡"}, {"area_m2": Decimal("25.00")}),
        ({"MonopolyAreaLabel": None}, {"area_m2": None}),
        ({"DetailRoomLayout": 1}, {"layout": "1R"}),
        ({"DetailRoomLayout": 14}, {"layout": "5K以上"}),
        ({"DetailRoomLayout": "2LDK"}, {"layout": "2LDK"}),
        ({"DetailRoomLayout": "ワンルーム"}, {"layout": "1R"}),
        ({"DetailRoomLayout": "３ＳＬＤＫ"}, {"layout": "3SLDK"}),
        ({"DetailRoomLayout": "その他"}, {"layout": None}),
        ({"FloorNum": 3}, {"floor": 3}),
        ({"FloorNum": "B1"}, {"floor": -1}),
        ({"FloorNum": "-1"}, {"floor": -1}),
        ({"FloorNum": "地下1階"}, {"floor": -1}),
        ({"FloorNum": "1-2階"}, {"floor": 1}),
        ({"FloorNum": "-"}, {"floor": None}),
        ({"FloorNum": None}, {"floor": None}),
        ({"YearsOld": 0}, {"years_old": 0}),
        ({"YearsOld": "12"}, {"years_old": 12}),
        ({"YearsOld": None}, {"years_old": None}),
        ({"YearsOld": GONE}, {"years_old": None}),
    ],
)
def test_labels_are_read_as_the_site_writes_them(
    changes: dict[str, Any], expected: dict[str, Any]
) -> None:
    room = read_one(**changes)
    assert {name: getattr(room, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"BuildingName": None}, {"building_name": None}),
        ({"BuildingName": " A\u0000B\n  C "}, {"building_name": "A\ufffdB C"}),
        ({"LocationView": None}, {"address": None}),
        ({"LocationView": {}}, {"address": None}),
        ({"CoordinatesWgs": None}, {"coordinates": None}),
        ({"YearsOld": 9, "GroupProperties": [make_room() | {"YearsOld": None}]}, {"years_old": 9}),
        ({"Transports": None}, {"stations": ()}),
        ({"Transports": []}, {"stations": ()}),
        ({"Transports": [{"Label": None}, {}]}, {"stations": ()}),
        ({"Transports": [{"Label": "遠方駅/本線 車15分"}]}, {"stations": ()}),
        (
            {"Transports": [{"Label": "近駅/本線 徒歩1分以内"}, {"Label": "近駅/本線 徒歩1分"}]},
            {"stations": (Access("近駅", "本線", 1),)},
        ),
    ],
)
def test_what_a_building_does_not_say_is_not_known(
    changes: dict[str, Any], expected: dict[str, Any]
) -> None:
    room = read(make_building(0, **changes)).rooms[0]
    assert {name: getattr(room, name) for name in expected} == expected


WRONG: list[Any] = [True, 1.5, [], {}, ["8万円"], {"a": 1}]


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("PropertyId", [*WRONG, None, "", 5, "a" * 40, "g" * 44, "a" * 45, "__" + "a" * 44, "a/b"]),
        (
            "PriceLabel",
            [*WRONG, None, "", 85_000, "0円", "8.55555万円", "-8万円", "なし", "8万円台"],
        ),
        ("MonthlyManagementCostLabel", [*WRONG, 5000, "5,00円", "abc"]),
        ("SecurityDepositLabel", [*WRONG, 1, "1000ヶ月", "abc"]),
        ("KeyMoneyLabel", [*WRONG, 1, "abc"]),
        ("MonopolyAreaLabel", [*WRONG, 25, "25坪", "0m2", "abc"]),
        ("DetailRoomLayout", [*WRONG, 0, 15, -1, 10**9]),
        ("FloorNum", [*WRONG, "999", 201, "3F3", "3階4階"]),
        ("YearsOld", [*WRONG, 999, -1, "築1000年", "7か月"]),
    ],
)
def test_a_wrong_value_refuses_its_room_and_no_other(key: str, values: list[Any]) -> None:
    for value in values:
        wrong = make_room(1) | {key: value}
        page = read(make_building(0, make_room(0), wrong, make_room(2)))
        assert [room.property_id for room in page.rooms] == [make_id(0), make_id(2)], value
        assert len(page.refused) == 1, value
        assert page.refused[0].reason


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("BuildingName", [5, [], {}]),
        ("StructureId", [5, [], {}]),
        ("LocationView", [5, [], {"AddressName": 5}]),
        ("Transports", [5, {}, [5], [[]], [{"Label": 5}]]),
        ("CoordinatesWgs", [5, [], "35.7", "a,b", "95.0,139.0", "35.0,181.0", "1_0,2", "nan,nan"]),
        ("GroupProperties", [5, "a", {"a": 1}, None, [5], [None], [[]]]),
    ],
)
def test_a_wrong_value_refuses_its_building_and_no_other(key: str, values: list[Any]) -> None:
    for value in values:
        page = read(make_building(0), make_building(1) | {key: value}, make_building(2))
        assert [room.structure_id for room in page.rooms] == ["0" * 12, f"{2:012d}"], value
        assert len(page.refused) == 1, value


def test_a_refused_room_is_named_with_what_was_wrong() -> None:
    page = read(make_building(0, make_room(0), make_room(1, PriceLabel="8万ドル")))
    assert page.refused[0].id == make_id(1)
    assert "8万ドル" in page.refused[0].reason


def test_advertisements_in_the_context_are_no_rooms() -> None:
    page = read({"AdType": "pr", "Url": "https://example.com"}, make_building())
    assert len(page.rooms) == 1
    assert page.refused == ()


def test_a_room_that_is_listed_twice_is_one() -> None:
    page = read(make_building(0, make_room(0), make_room(0)), make_building(0))
    assert len(page.rooms) == 1


def test_a_context_without_buildings_is_an_empty_list() -> None:
    page = read(page=1, last=1)
    assert page == ListPage(rooms=(), refused=(), next_url=None, current_page=1, last_page=1)


def test_a_list_most_of_whose_rooms_cannot_be_read_is_drift_with_the_page_kept() -> None:
    rooms = [make_room(number, PriceLabel="?") for number in range(3)]
    body = write_list(make_context(make_building(0, make_room(9), *rooms)), shown="")
    with pytest.raises(Invalid, match="3 of 4 items could not be read") as caught:
        parse_list(body, LIST_URL)
    assert caught.value.page == body


@pytest.mark.parametrize("key", ["DetailRoomLayout", "MonopolyAreaLabel"])
def test_a_field_that_is_missing_everywhere_is_drift(key: str) -> None:
    rooms = [make_room(number) | {key: None} for number in range(5)]
    with pytest.raises(Invalid, match="is filled in 0 of 5 items"):
        read(make_building(0, *rooms))
    assert len(read(make_building(0, *rooms[:4])).rooms) == 4


@pytest.mark.parametrize(
    ("paging", "next_url", "pages"),
    [
        ({"nextPageUrl": "?page=2", "currentPage": 1, "lastPage": 9}, f"{LIST_URL}?page=2", (1, 9)),
        ({"nextPageUrl": f"{LIST_URL}?page=2"}, f"{LIST_URL}?page=2", (None, None)),
        ({"nextPageUrl": "?q=" + "x" * 999}, f"{LIST_URL}?q=" + "x" * 999, (None, None)),
        ({"nextPageUrl": "?q=駅"}, f"{LIST_URL}?q=%E9%A7%85", (None, None)),
        ({"nextPageUrl": LIST_URL[:-1] + "?page=2#a"}, f"{LIST_URL}?page=2", (None, None)),
        ({"nextPageUrl": "?page=10", "currentPage": 9, "lastPage": 9}, None, (9, 9)),
        (
            {"nextPageUrl": "?page=4", "currentPage": "3", "lastPage": "9"},
            f"{LIST_URL}?page=4",
            (3, 9),
        ),
        ({"nextPageUrl": None, "currentPage": 1, "lastPage": 1}, None, (1, 1)),
        ({"nextPageUrl": "", "currentPage": True, "lastPage": -1}, None, (None, None)),
        ({"currentPage": 1.5, "lastPage": 10**12}, None, (None, None)),
        ({}, None, (None, None)),
        (None, None, (None, None)),
        ([], None, (None, None)),
    ],
)
def test_the_next_page_is_found(
    paging: Any, next_url: str | None, pages: tuple[int | None, int | None]
) -> None:
    context = make_context(make_building()) | {"paginationContext": paging}
    body = f"<script>{write_context(context)}</script>".encode()
    page = parse_list(body, LIST_URL)
    assert page.next_url == next_url
    assert (page.current_page, page.last_page) == pages


@pytest.mark.parametrize(
    "link",
    [
        "https://evil.test/rent/search/03/",
        "//evil.test/rent/search/03/",
        "http://realestate.yahoo.co.jp/rent/search/03/",
        "https://realestate.yahoo.co.jp:8443/rent/search/03/",
        "https://a@realestate.yahoo.co.jp/rent/search/03/",
        "/rent/search/../../admin/",
        "/rent/detail/",
        "javascript:alert(1)",
        "https://[",
        "/rent/search/ /",
        5,
    ],
)
def test_a_next_page_that_leads_off_the_lists_is_never_followed(link: Any) -> None:
    context = make_context(make_building()) | {"paginationContext": {"nextPageUrl": link}}
    script = f"<script>{write_context(context)}</script>"
    shown = f'<a href="{link}?page=2">2</a>'
    with pytest.raises(Invalid):
        parse_list(script.encode(), LIST_URL)
    body = write_list(make_context(make_building(), last=1), script="").replace(
        b"</body>", f"{shown}</body>".encode()
    )
    assert parse_list(body, LIST_URL).next_url is None
