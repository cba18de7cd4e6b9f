"""What is read from the rentals site's lists where the page is all there is."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from mimawari.errors import Invalid
from mimawari.sites.yahoo_realestate import parse_list
from tests.sites.yahoo_pages import (
    ADVERTISEMENT,
    LIST_URL,
    MORE,
    make_building,
    make_context,
    make_id,
    make_many,
    make_room,
    write_context,
    write_list,
)

NO_SCRIPT = ""
NOTHING_SHOWN = ""


def test_the_context_and_the_page_say_the_same() -> None:
    context, url = make_many(), f"{LIST_URL}?page=2"
    by_context = parse_list(write_list(context, shown=NOTHING_SHOWN), url)
    by_page = parse_list(write_list(context, script=NO_SCRIPT), url)
    assert len(by_context.rooms) == 6
    rooms = tuple(replace(room, coordinates=None) for room in by_context.rooms)
    assert by_page == replace(by_context, rooms=rooms)


def broken_scripts() -> Iterator[str]:
    good = write_context(make_many())
    yield good.replace("__SERVER_SIDE_CONTEXT__", "__OTHER__")
    yield good.replace(", page:", ", view:")
    yield good.replace('"properties"', '"items"')
    yield good[: len(good) // 2]
    yield good.replace('"PriceLabel"', '"Cost"')
    yield good.replace('"PropertyId": "', '"PropertyId": "x')
    yield write_context(make_context())
    yield write_context({"properties": {}})
    yield write_context({"properties": [{"AdType": "pr"}]})
    yield write_context(make_many() | {"paginationContext": {"nextPageUrl": "https://evil.test/"}})
    yield write_context([])


@pytest.mark.parametrize("script", list(broken_scripts()))
def test_the_page_is_read_where_the_context_is_broken(script: str) -> None:
    page = parse_list(write_list(make_many(), script=script), LIST_URL)
    assert len(page.rooms) == 6
    assert page.refused == ()


@pytest.mark.parametrize(
    "shown",
    [
        "",
        "<p>ようこそ</p>",
        ADVERTISEMENT * 3,
        f'<li class="ListBukken__item" data-structureid="1"><ul>{MORE}</ul></li>',
        "<script>const none = '該当する物件がありません'</script>",
        "<template>該当する物件がありません</template>",
    ],
)
def test_a_list_without_rooms_that_does_not_say_so_is_drift(shown: str) -> None:
    body = write_list(make_context(), script=NO_SCRIPT, shown=shown)
    with pytest.raises(Invalid) as caught:
        parse_list(body, LIST_URL)
    assert caught.value.page == body


@pytest.mark.parametrize(
    "words",
    [
        "該当する物件がありません",
        "該当する物件は見つかりませんでした",
        "条件に一致する物件が見つかりませんでした",
    ],
)
def test_a_page_that_says_there_are_no_rooms_is_believed(words: str) -> None:
    body = write_list(make_context(), script=NO_SCRIPT, shown=f"<p>{words}</p>")
    assert parse_list(body, LIST_URL).rooms == ()


def test_a_checkbox_and_a_link_that_disagree_refuse_their_room() -> None:
    body = write_list(make_context(make_building(0, *map(make_room, range(4)))), script="")
    mixed = body.replace(f'value="{make_id(1)}"'.encode(), f'value="{make_id(7)}"'.encode())
    page = parse_list(mixed, LIST_URL)
    assert len(page.rooms) == 3
    assert len(page.refused) == 1


def test_a_room_is_known_by_its_link_where_there_is_no_checkbox() -> None:
    body = write_list(make_context(make_building()), script="")
    page = parse_list(body.replace(b"<input class", b"<i title"), LIST_URL)
    assert [room.property_id for room in page.rooms] == [make_id(0)]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ('<div class="ListCassetteRoom__dtl__layout">2DK / 40.5㎡</div>', ("2DK", Decimal("40.5"))),
        ('<div class="ListCassetteRoom__dtl__layout">ワンルーム</div>', ("1R", None)),
    ],
)
def test_layout_and_area_may_share_a_line(shown: str, expected: tuple[Any, ...]) -> None:
    body = write_list(make_context(make_building(0, make_room(0)), make_building(1)), script="")
    old = (
        '<div class="ListCassetteRoom__dtl__layout">1K</div>\n'
        '<div class="ListCassetteRoom__dtl__layout">25.5m<sup>2</sup></div>'
    )
    room = parse_list(body.replace(old.encode(), shown.encode(), 1), LIST_URL).rooms[0]
    assert (room.layout, room.area_m2) == expected


@pytest.mark.parametrize(
    ("specs", "years"),
    [
        ("新築/地上3階建て", 0),
        ("築1年未満/木造", 0),
        ("築23年/地上3階建て", 23),
        ("地上3階建て", None),
    ],
)
def test_the_age_is_found_among_what_is_said_of_the_building(specs: str, years: int | None) -> None:
    body = write_list(make_context(make_building()), script="").decode()
    shown = body.replace("築7年/地上8階建て/鉄筋コンクリート", specs)
    assert parse_list(shown.encode(), LIST_URL).rooms[0].years_old == years
