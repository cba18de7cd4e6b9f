"""What the pages of the simulated rentals site promise: the truth, in the real one's shape."""

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any
from unicodedata import normalize

import pytest
from selectolax.lexbor import LexborHTMLParser, LexborNode

from mimawari.kernel.clock import VirtualClock
from mimawari.sim.sites.yahoo_realestate.site import ORIGIN_AT, Rentals
from tests.sim.asking import (
    AREAS,
    BIG,
    ask,
    embedded,
    html_of,
    label_of,
    layout,
    m2,
    read_list,
    rooms_in,
    text_of,
    yen,
)

LAYOUTS = (
    *("1R", "1K", "1DK", "1LDK", "2K", "2DK", "2LDK"),
    *("3K", "3DK", "3LDK", "4K", "4DK", "4LDK"),
)
MONTH = timedelta(days=30)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(ORIGIN_AT + timedelta(days=3))


@pytest.fixture
def site(clock: VirtualClock) -> Rentals:
    return Rentals(clock, 7)


@pytest.mark.parametrize("area", AREAS)
async def test_the_embedded_lists_hold_every_room_once_and_as_it_is(
    site: Rentals, clock: VirtualClock, area: str
) -> None:
    clock.step(MONTH)
    rooms = rooms_in(site.truth({"area": area}))
    seen = []
    for html in await read_list(site, area):
        for building in embedded(html)["properties"]:
            assert building["PropertyCount"] == len(building["GroupProperties"])
            for listed in building["GroupProperties"]:
                room = rooms[listed["PropertyId"]]
                seen.append(listed["PropertyId"])
                assert_listed_is(building, listed, room)
    assert sorted(seen) == sorted(rooms)


def assert_listed_is(building: Any, listed: Any, room: Any) -> None:
    rent = room["rent_yen"]
    assert building["StructureId"] == listed["StructureId"] == room["structure_id"]
    assert building["BuildingName"] == room["building_name"]
    assert building["LocationView"]["AddressName"] == room["address"]
    assert building["CoordinatesWgs"] == f"{room['latitude']},{room['longitude']}"
    labels = [transport["Label"] for transport in building["Transports"]]
    assert labels == [label_of(stop) for stop in room["stations"]]
    assert yen(listed["PriceLabel"]) == rent
    assert yen(listed["MonthlyManagementCostLabel"]) == room["fee_yen"]
    assert yen(listed["SecurityDepositLabel"], rent) == room["deposit_yen"]
    assert yen(listed["KeyMoneyLabel"], rent) == room["key_money_yen"]
    assert m2(listed["MonopolyAreaLabel"]) == room["area_m2"]
    assert LAYOUTS[listed["DetailRoomLayout"] - 1] == room["layout"]
    assert listed["FloorNum"] == str(room["floor"])
    assert 0 <= 2026 - int(room["built_on"][:4]) - listed["YearsOld"] <= 1


@pytest.mark.parametrize("area", AREAS)
async def test_what_a_list_shows_is_what_it_embeds(
    site: Rentals, clock: VirtualClock, area: str
) -> None:
    clock.step(MONTH)
    rooms = rooms_in(site.truth({"area": area}))
    seen = []
    for html in await read_list(site, area):
        for block in LexborHTMLParser(html).css("li.ListBukken__item[data-structureid]"):
            lines = [text_of(line, "*") for line in block.css("ul.ListCassette__list > li")]
            for row in block.css("li.ListCassetteRoom__item"):
                box = row.css_first("input._propertyCheckbox")
                if box is None:
                    continue
                room = rooms[str(box.attributes["value"])]
                seen.append(room["id"])
                assert block.attributes["data-structureid"] == room["structure_id"]
                assert text_of(block, ".ListCassette__ttl__txt") == room["building_name"]
                assert_lines_are([*lines], block, room)
                assert_row_is(row, room)
    assert sorted(seen) == sorted(rooms)


def assert_lines_are(lines: list[str], block: LexborNode, room: Any) -> None:
    texts = [line.text() for line in block.css("ul.ListCassette__list .ListCassette__txt")]
    assert len(lines) == 3
    assert texts[:-2] == [label_of(stop) for stop in room["stations"]]
    assert texts[-2] == room["address"]
    age, floors, structure = texts[-1].split("/")
    assert re.fullmatch(r"築[0-9]+年|新築", age)
    assert floors == f"地上{room['floors']}階建て"
    assert structure == room["structure"]


def assert_row_is(row: LexborNode, room: Any) -> None:
    price = row.css_first(".ListCassetteRoom__dtl__price")
    assert price is not None
    assert yen(price.text(deep=False)) == room["rent_yen"]
    fee = text_of(price, ".ListCassetteRoom__dtl__price__txtS").removeprefix("管理費等 ")
    assert yen(fee) == room["fee_yen"]
    plan, size = (node.text() for node in row.css(".ListCassetteRoom__dtl__layout"))
    assert layout(plan) == room["layout"]
    assert m2(size) == room["area_m2"]
    dues = [node.text(deep=False) for node in row.css(".ListCassetteRoom__dtl__deposit")]
    assert yen(dues[0], room["rent_yen"]) == room["deposit_yen"]
    assert yen(dues[1], room["rent_yen"]) == room["key_money_yen"]
    assert text_of(row, ".ListCassetteRoom__block--floor") == f"{room['floor']}階"
    link = row.css_first("a.ListCassetteRoom__textLink")
    assert link is not None
    assert link.attributes["href"] == room["path"]


async def test_lists_hold_thirty_buildings_a_page_and_say_where_they_go_on(site: Rentals) -> None:
    found = await read_list(site, BIG)
    for number, html in enumerate(found, 1):
        page = embedded(html)
        following = f"/rent/search/{BIG}/?page={number + 1}" if number < len(found) else None
        assert page["paginationContext"] == {
            "nextPageUrl": following,
            "currentPage": number,
            "lastPage": len(found),
        }
        assert len(page["properties"]) == (30 if following else 16)
        assert following is None or 100_000 < len(html.encode()) < 300_000
    assert len(found) == 3


async def test_the_newest_room_is_on_top(site: Rentals, clock: VirtualClock) -> None:
    clock.step(MONTH)
    rooms = rooms_in(site.truth({"area": BIG}))
    newest = []
    for html in await read_list(site, BIG):
        for building in embedded(html)["properties"]:
            ids = [room["PropertyId"] for room in building["GroupProperties"]]
            newest.append(max(rooms[room_id]["listed_at"] for room_id in ids))
    assert newest == sorted(newest, reverse=True)


async def test_advertisements_and_links_to_more_look_like_rooms_and_are_none(
    site: Rentals,
) -> None:
    tree = LexborHTMLParser(html_of(await ask(site, f"/rent/search/{BIG}/")))
    blocks = tree.css("li.ListBukken__item")
    advertisements = [block for block in blocks if "data-structureid" not in block.attributes]
    assert len(blocks) - len(advertisements) == 30
    assert len(advertisements) >= 3
    assert all(block.css_first("li.ListCassetteRoom__item") for block in advertisements)
    rows = tree.css("li.ListCassetteRoom__item")
    more = [row for row in rows if row.css_first("input._propertyCheckbox") is None]
    assert any("さらに物件を見る" in row.text() for row in more)
    assert not any(row.css_first("a.ListCassetteRoom__textLink") for row in more)


async def test_a_link_to_more_leads_to_the_building_alone(site: Rentals) -> None:
    tree = LexborHTMLParser(html_of(await ask(site, f"/rent/search/{BIG}/")))
    link = tree.css_first("a.ListCassette__ttl__link")
    assert link is not None
    page = embedded(html_of(await ask(site, str(link.attributes["href"]))))
    assert len(page["properties"]) == 1
    assert page["paginationContext"]["nextPageUrl"] is None


def sample(site: Rentals) -> Iterator[Any]:
    rooms = site.truth({})["rooms"]
    marked = [room for room in rooms if room["id"].startswith("_")][:5]
    yield from (*rooms[::17], *marked)


async def test_a_detail_page_shows_its_room(site: Rentals, clock: VirtualClock) -> None:
    clock.step(MONTH)
    for room in sample(site):
        response = await ask(site, room["path"])
        assert response.status_code == 200
        tree = LexborHTMLParser(html_of(response))
        heading = tree.css("h1.DetailHeadingLarge__title")
        assert len(heading) == 1
        assert text_of(heading[0], "span") == room["building_name"]
        rent = text_of(tree, ".DetailSummary__price__rent")
        assert yen(rent) == room["rent_yen"]
        main = tree.css_first(".DetailSummary")
        assert main is not None
        assert_table_is(table_of(main), room)
        access = [node.text() for node in main.css("li.DetailSummaryTable__access")]
        assert access == [label_of(stop) for stop in room["stations"]]


def table_of(block: LexborHTMLParser | LexborNode) -> dict[str, str]:
    cells = {}
    for row in block.css("table.DetailSummaryTable tr"):
        names, values = row.css("th"), row.css("td")
        cells.update({n.text(): v.text() for n, v in zip(names, values, strict=True)})
    return cells


def assert_table_is(cells: dict[str, str], room: Any) -> None:
    rent, fee = cells["賃料/管理費・共益費等"].split(" / ")
    deposit, key_money = cells["敷金/礼金"].split(" / ")
    assert (yen(rent), yen(fee)) == (room["rent_yen"], room["fee_yen"])
    assert yen(deposit, room["rent_yen"]) == room["deposit_yen"]
    assert yen(key_money, room["rent_yen"]) == room["key_money_yen"]
    assert layout(cells["間取り"]) == room["layout"]
    assert m2(cells["専有面積"]) == room["area_m2"]
    assert cells["階建/階"] == f"地上{room['floors']}階建て/{room['floor']}階部分"
    year, month = room["built_on"].split("-")
    assert f"{year}年{month}月" in cells["築年数"]
    assert cells["所在地"] == f"{room['address']}地図を見る"
    assert cells["建物名"] == room["building_name"]


async def test_a_detail_page_names_its_room_in_its_head(site: Rentals) -> None:
    for room in sample(site):
        tree = LexborHTMLParser(html_of(await ask(site, room["path"])))
        plan = "ワンルーム" if room["layout"] == "1R" else room["layout"]
        name = f"{room['building_name']} ({room['floor']}階/{plan})"
        title = f"【Yahoo!不動産】{name}の賃貸物件詳細"
        assert text_of(tree, "title") == title
        for selector in ("meta[property='og:title']", "meta[name='twitter:title']"):
            node = tree.css_first(selector)
            assert node is not None
            assert node.attributes["content"] == title


@pytest.mark.parametrize(("sign", "written"), [("&", "&amp;"), ("'", "&#x27;")])
async def test_signs_in_names_are_written_so_that_they_are_only_read(
    site: Rentals, sign: str, written: str
) -> None:
    room = next(room for room in site.truth({})["rooms"] if sign in room["building_name"])
    html = html_of(await ask(site, room["path"]))
    assert html.split("<script>")[0].count(room["building_name"].replace(sign, written)) >= 5
    assert room["building_name"] not in html.split("<script>")[0]
    assert embedded(html)["property"]["StructureView"]["BuildingName"] == room["building_name"]


async def test_a_detail_page_embeds_its_room(site: Rentals, clock: VirtualClock) -> None:
    clock.step(MONTH)
    for room in sample(site):
        shown = embedded(html_of(await ask(site, room["path"])))["property"]
        assert shown["PropertyId"] == room["id"]
        assert shown["Price"] == room["rent_yen"] == yen(shown["PriceLabel"])
        assert shown["MonopolyArea"] == round(room["area_m2"] * 100)
        assert shown["BuiltOn"] == room["built_on"]
        assert shown["StructureView"]["BuildingName"] == room["building_name"]
        assert shown["LocationView"]["AddressName"] == room["address"]
        plan = shown["DetailsView"]["RoomLayoutBreakdown"].split(" ")[0]
        assert layout(plan) == room["layout"]
        labels = [transport["Label"] for transport in shown["Transports"]]
        assert labels == [label_of(stop) for stop in room["stations"]]
        images = [f"http://rentals.test{path}" for path in room["images"]]
        assert [image["Url"] for image in shown["ResizedExternalImageUrls"]] == images
        assert shown["ExternalImageUrl"] == images[0]


async def test_recommendations_wear_the_dress_of_the_room_itself(site: Rentals) -> None:
    room = site.truth({"area": BIG})["rooms"][3]
    html = html_of(await ask(site, room["path"]))
    page, tree = embedded(html), LexborHTMLParser(html)
    assert [set(other) for other in page["recommend"]] == [set(page["property"])] * 4
    others = {other["PropertyId"]: other for other in page["recommend"]}
    assert {other["LocationView"]["GeoName"] for other in others.values()} == {"瑞巡市"}
    assert room["structure_id"] not in {other["StructureId"] for other in others.values()}
    assert len(tree.css(".DetailSummary")) == len(tree.css("table.DetailSummaryTable")) == 5
    below = tree.css(".DetailRecommend .DetailSummary__price__rent")
    assert [yen(node.text()) for node in below] == [other["Price"] for other in others.values()]
    now = rooms_in(site.truth({}))
    assert all(other["Price"] == now[key]["rent_yen"] for key, other in others.items())


READ: dict[str, Callable[[Any], Any]] = {
    "rent_yen": lambda shown: shown["Price"],
    "layout": lambda shown: LAYOUTS[shown["DetailRoomLayout"] - 1],
    "area_m2": lambda shown: shown["MonopolyArea"] / 100,
    "images": lambda shown: [
        image["Url"].removeprefix("http://rentals.test")
        for image in shown["ResizedExternalImageUrls"]
    ],
}


@pytest.mark.parametrize("field", READ)
async def test_a_change_is_seen_on_the_page_when_it_happens(
    site: Rentals, clock: VirtualClock, field: str
) -> None:
    clock.step(MONTH)
    events = site.truth({"since": ORIGIN_AT.isoformat()})["events"]
    event = [e for e in events if field in e.get("changes", {})][-1]
    at = datetime.fromisoformat(event["at"])
    for moment, which in ((at - timedelta(seconds=1), "old"), (at, "new")):
        page = embedded(html_of(await ask(Rentals(VirtualClock(moment), 7), path_of(event))))
        assert READ[field](page["property"]) == event["changes"][field][which]


def path_of(event: Any) -> str:
    return f"/rent/detail/{event['id']}/"


async def test_amounts_are_written_in_all_of_the_sites_ways(site: Rentals) -> None:
    found = set()
    for area in AREAS:
        for html in await read_list(site, area):
            for building in embedded(html)["properties"]:
                for room in building["GroupProperties"]:
                    found |= {value for key, value in room.items() if key.endswith("Label")}
    shapes = {re.sub(r"[0-9.,]+", "9", label) for label in found}
    assert {"9万円", "9円", "-", "なし", "9ヶ月"} <= shapes
    assert any(label != normalize("NFKC", label) for label in found)
    assert any(re.fullmatch(r"[0-9]+\.[0-9]{2}万円", label) for label in found)


async def test_some_buildings_keep_their_name_to_themselves(site: Rentals) -> None:
    page = embedded(html_of(await ask(site, f"/rent/search/{BIG}/")))
    hidden = [b for b in page["properties"] if not b["CanDisplayBuildingName"]]
    assert 0 < len(hidden) < 15
    assert all("駅 徒歩" in building["BuildingName"] for building in hidden)


@pytest.mark.parametrize("kind", ["list", "detail"])
async def test_a_changed_layout_keeps_the_words_and_no_class_and_no_key(
    site: Rentals, kind: str
) -> None:
    room = site.truth({})["rooms"][0]
    path = f"/rent/search/{BIG}/" if kind == "list" else room["path"]
    before = html_of(await ask(site, path, changed=False))
    response = await ask(site, path, changed=True)
    after = html_of(response)
    assert response.status_code == 200
    assert not classes(before) & classes(after)
    assert not keys(embedded(before)) & set(re.findall(r'"([A-Za-z]+)": ', after))
    assert ", page: {" not in after
    assert "data-structureid" not in after
    assert words(before) == words(after)
    assert before == html_of(await ask(site, path))


def classes(html: str) -> set[str]:
    nodes = LexborHTMLParser(html).css("[class]")
    return {name for node in nodes for name in str(node.attributes["class"]).split()}


def keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(keys, value.values()))
    return set().union(*map(keys, value)) if isinstance(value, list) else set()


def words(html: str) -> str:
    tree = LexborHTMLParser(html)
    tree.strip_tags(["script", "style"])
    return str(tree.text())


@pytest.mark.parametrize("is_changed", [False, True])
async def test_every_image_of_a_page_is_there(site: Rentals, *, is_changed: bool) -> None:
    rooms = site.truth({})["rooms"]
    room = next(room for room in rooms if (len(room["images"]) != 3) == is_changed)
    tree = LexborHTMLParser(html_of(await ask(site, room["path"])))
    sources = [
        str(node.attributes["src"]).removeprefix("http://rentals.test") for node in tree.css("img")
    ]
    assert sources[: len(room["images"])] == room["images"]
    assert len(sources) >= len(room["images"]) + 4
    for source in sources:
        response = await ask(site, source)
        assert response.media_type == "image/svg+xml"
        assert bytes(response.body).startswith(b"<svg ")


async def test_a_list_shows_the_building_whatever_the_pictures_of_its_rooms(
    site: Rentals, clock: VirtualClock
) -> None:
    clock.step(MONTH)
    for html in await read_list(site, BIG):
        for building in embedded(html)["properties"]:
            path = f"/_rent/image/{building['StructureId']}/0.svg"
            assert building["ExternalImageUrl"] == f"http://rentals.test{path}"
