"""What is read from the page of a property, and never from the others below it."""

# ruff: noqa: RUF001 - pages write wide signs, and so do these tests

from decimal import Decimal
from typing import Any

import pytest

from mimawari.errors import Invalid
from mimawari.sites.yahoo_realestate import Property, parse_detail
from mimawari.sites.yen import Access
from tests.sites.yahoo_pages import (
    DETAIL_ID,
    DETAIL_URL,
    GONE,
    HEAD,
    HEADING,
    IMAGE,
    OTHER_ID,
    RENT,
    SHOWN,
    TITLE,
    make_property,
    write_detail,
    write_others,
    write_table,
)

WHOLE = Property(
    property_id=DETAIL_ID,
    detail_url=DETAIL_URL,
    title="新宿夏目坂コート (2階/1K)",
    building_name="新宿夏目坂コート",
    rent_yen=105_000,
    rent_note=None,
    fee_yen=8_000,
    deposit_yen=105_000,
    key_money_yen=0,
    layout="1K",
    area_m2=Decimal("25.68"),
    floor=2,
    years_old=6,
    built_on="2019-03",
    address="東京都新宿区喜久井町",
    stations=(Access("早稲田駅", "東京メトロ東西線", 6),),
    images=(
        "https://realestate-pctr.c.yimg.jp/outside",
        "https://realestate-pctr.c.yimg.jp/inside",
    ),
)
NOTHING = '<p class="DetailSummary__note"></p>'


def read(found: Any = GONE, **parts: Any) -> Property:
    return parse_detail(write_detail(found, **parts), DETAIL_URL)


def test_the_context_and_the_page_say_the_same() -> None:
    assert read(make_property()) == WHOLE
    assert read(make_property(), summary=NOTHING) == WHOLE
    assert read() == WHOLE


@pytest.mark.parametrize(
    "found", [None, [], "text", 5, {}, {"Price": {}}, {"StructureView": 5, "Transports": "a"}]
)
def test_the_page_is_read_where_the_context_is_broken(found: Any) -> None:
    assert read(found) == WHOLE


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"Price": 98_000}, {"rent_yen": 98_000}),
        ({"Price": 0}, {"rent_yen": 105_000}),
        ({"Price": "?", "PriceLabel": "9.8万円"}, {"rent_yen": 98_000}),
        ({"MonthlyManagementCostLabel": "-"}, {"fee_yen": 0}),
        ({"SecurityDepositLabel": "2ヶ月"}, {"deposit_yen": 210_000}),
        ({"SecurityDepositLabel": "8万円 ※"}, {"deposit_yen": 80_000}),
        ({"KeyMoneyLabel": "1.5ヶ月"}, {"key_money_yen": 157_500}),
        ({"MonopolyArea": 3050}, {"area_m2": Decimal("30.50")}),
        ({"MonopolyArea": None}, {"area_m2": Decimal("25.68")}),
        ({"MonopolyArea": 0, "MonopolyAreaLabel": "30.5m²"}, {"area_m2": Decimal("30.50")}),
        ({"BuiltOn": "1999-12"}, {"built_on": "1999-12"}),
        ({"YearsOld": 0}, {"years_old": 0}),
        ({"StructureView__FloorNum": "B1"}, {"floor": -1}),
        ({"DetailsView__RoomLayoutBreakdown": "ワンルーム(洋室8)"}, {"layout": "1R"}),
        ({"DetailsView__RoomLayoutBreakdown": "2LDK (和室6 洋室6)"}, {"layout": "2LDK"}),
        ({"LocationView__AddressName": "東京都港区"}, {"address": "東京都港区"}),
        ({"Transports": []}, {"stations": WHOLE.stations}),
    ],
)
def test_the_context_goes_before_the_page(
    changes: dict[str, Any], expected: dict[str, Any]
) -> None:
    found = read(make_property(**changes))
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("Price", True),
        ("Price", -5),
        ("Price", 10**13),
        ("Price", 1.5),
        ("MonthlyManagementCostLabel", "?"),
        ("SecurityDepositLabel", 5),
        ("KeyMoneyLabel", []),
        ("MonopolyArea", -1),
        ("MonopolyArea", 10**12),
        ("BuiltOn", "2019-13"),
        ("BuiltOn", "0000-01"),
        ("BuiltOn", 2019),
        ("BuiltOn", "昔"),
        ("YearsOld", -1),
        ("YearsOld", 10**6),
        ("StructureView__FloorNum", "?3"),
        ("StructureView__BuildingName", 5),
        ("DetailsView__RoomLayoutBreakdown", "洋室7.5"),
        ("LocationView__AddressName", {}),
        ("Transports", [5]),
    ],
)
def test_a_wrong_value_in_the_context_leaves_the_word_to_the_page(key: str, value: Any) -> None:
    assert read(make_property(**{key: value})) == WHOLE


OPTIONAL = (
    *("building_name", "fee_yen", "deposit_yen", "key_money_yen", "layout", "area_m2"),
    *("floor", "years_old", "built_on", "address"),
)


@pytest.mark.parametrize(
    "tag",
    [
        '<section class="DetailRecommend">',
        "<section>",
        "<div>",
        '<div class="DetailSummary">',
        "<aside>",
    ],
)
def test_nothing_is_ever_taken_from_another_property(tag: str) -> None:
    bare = make_property()
    bare = {"PropertyId": DETAIL_ID, "Price": bare["Price"]}
    head = f"<title>{TITLE}</title>"
    others = write_others(tag) * 3
    found = read(bare, summary=NOTHING, others=others, head=head)
    assert found.rent_yen == 105_000
    assert [getattr(found, name) for name in OPTIONAL] == [None] * len(OPTIONAL)
    assert found.stations == ()
    assert found.images == ()
    assert read(others=others) == WHOLE
    with pytest.raises(Invalid, match="no rent"):
        read(summary=NOTHING, others=others)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ('<div class="DetailRecommend__item">', "</div>"),
        ("<aside>", "</aside>"),
        ("<footer>", "</footer>"),
        ("<div><h2>この物件を見た人はこんな物件も見ています</h2>", "</div>"),
        (f'<div><a href="/rent/detail/{OTHER_ID}/">詳細</a>', "</div>"),
        (f'<div><div><a href="/rent/detail/{OTHER_ID}/">詳細</a></div><div>', "</div></div>"),
    ],
)
def test_another_property_is_known_by_any_of_its_signs(start: str, end: str) -> None:
    others = f"{start}{RENT.replace('10.5', '66.6')}{end}"
    with pytest.raises(Invalid, match="no rent"):
        read(summary=NOTHING, others=others)
    ours = f"<div>{RENT.replace('10.5', '66.6')}</div>"
    assert read(summary=NOTHING, others=ours).rent_yen == 666_000


def test_a_second_table_that_says_otherwise_is_of_another_property() -> None:
    rows = {name: SHOWN[name] for name in ("間取り", "所在地")}
    other = write_table({"間取り": "6LDK", "専有面積": "66m2", "敷金/礼金": "6ヶ月 / 6ヶ月"})
    found = read(summary=RENT + write_table(rows), others=other)
    assert (found.layout, found.area_m2, found.deposit_yen) == ("1K", None, None)


def test_a_second_table_that_agrees_is_read_on() -> None:
    rows = {name: SHOWN[name] for name in ("間取り", "所在地")}
    more = write_table({"間取り": "1K", "専有面積": "25.68m2"})
    found = read(summary=RENT + write_table(rows) + more)
    assert (found.layout, found.area_m2) == ("1K", Decimal("25.68"))


def test_the_summary_may_name_the_deposits_in_a_list() -> None:
    summary = (
        f"<dl><dt>賃料</dt>{RENT}<dt>敷金：</dt><dd>8万円 ※</dd><dt>礼金：</dt><dd>なし</dd></dl>"
    )
    found = read(summary=summary)
    assert (found.rent_yen, found.deposit_yen, found.key_money_yen) == (105_000, 80_000, 0)


def test_a_rent_is_found_in_the_table_where_the_summary_has_none() -> None:
    assert read(summary=IMAGE + write_table(SHOWN)) == WHOLE


@pytest.mark.parametrize(
    ("head", "title"),
    [
        (HEAD, "新宿夏目坂コート (2階/1K)"),
        ('<meta property="og:title" content="一"><meta name="twitter:title" content="二">', "一"),
        ('<meta name="twitter:title" content="二"><title>三</title>', "二"),
        ('<meta property="og:title" content=" "><title>三</title>', "三"),
        ("<title>三</title>", "三"),
        ("", "新宿夏目坂コート"),
        ('<meta property="og:title" content="【Yahoo!不動産】"><title>三</title>', "三"),
        ('<meta property="og:title" content="Yahoo!不動産"><title>三</title>', "三"),
        ('<meta property="og:title" content="【Yahoo!不動産】の賃貸物件詳細">', "新宿夏目坂コート"),
        ("<title>夏目坂コートの賃貸物件詳細【Yahoo!不動産】</title>", "夏目坂コート"),
        ("<title>夏目坂コートの賃貸物件詳細 - Yahoo!不動産</title>", "夏目坂コート"),
        ("<title>夏目坂コート｜Yahoo！不動産</title>", "夏目坂コート"),
        ("<title>【新築】夏目坂コート</title>", "【新築】夏目坂コート"),
        ("<title>A &amp; &lt;B&gt;\n C</title>", "A & <B> C"),
    ],
)
def test_the_title_is_the_first_that_says_something(head: str, title: str) -> None:
    assert read(make_property(), head=head).title == title


@pytest.mark.parametrize("head", ["", "<title>Yahoo!不動産</title>", "<title>【】</title>"])
def test_a_page_without_a_title_is_drift_with_the_page_kept(head: str) -> None:
    body = write_detail(make_property(), head=head, heading="<h1></h1>", others="")
    with pytest.raises(Invalid, match="no title") as caught:
        parse_detail(body, DETAIL_URL)
    assert caught.value.page == body


def test_a_page_without_a_rent_is_drift_with_the_page_kept() -> None:
    body = write_detail(make_property(Price=None, PriceLabel=None), summary=NOTHING)
    with pytest.raises(Invalid, match="no rent") as caught:
        parse_detail(body, DETAIL_URL)
    assert caught.value.page == body


@pytest.mark.parametrize("words", ["応談", "要問合せ", "未定"])
def test_a_rent_to_be_asked_for_is_kept_in_the_sites_words(words: str) -> None:
    found = read(make_property(Price=0, PriceLabel=words), summary=NOTHING)
    assert (found.rent_yen, found.rent_note, found.deposit_yen) == (None, words, None)
    shown = RENT.replace("10.5<span>万円</span>", words)
    by_page = read(summary=shown + IMAGE + write_table({"間取り": "1K"}))
    assert (by_page.rent_yen, by_page.rent_note) == (None, words)


@pytest.mark.parametrize(
    ("text", "years_old", "built_on"),
    [
        ("築6年（2019年03月）", 6, "2019-03"),
        ("築6年(2019年3月)", 6, "2019-03"),
        ("新築（2026年11月）", 0, "2026-11"),
        ("築1年未満", 0, None),
        ("築12年", 12, None),
        ("新築", 0, None),
        ("-", None, None),
    ],
)
def test_the_age_and_the_month_stand_together(
    text: str, years_old: int | None, built_on: str | None
) -> None:
    found = read(summary=RENT + write_table({"築年数": text}))
    assert (found.years_old, found.built_on) == (years_old, built_on)


@pytest.mark.parametrize(
    ("images", "expected"),
    [
        (["https://a.test/1.jpg"], ["https://a.test/1.jpg"]),
        (["//a.test/1.jpg"], ["https://a.test/1.jpg"]),
        (["/1.jpg"], ["https://realestate.yahoo.co.jp/1.jpg"]),
        (["https://a.test/1.jpg", "https://a.test/1.jpg"], ["https://a.test/1.jpg"]),
        (["https://a.test/1.jpg", "http://a.test/2.jpg"], ["https://a.test/1.jpg"]),
        (["https://a.test/1.jpg", "javascript:alert(1)"], ["https://a.test/1.jpg"]),
        (["https://a.test/1.jpg", "data:image/png;base64,AA"], ["https://a.test/1.jpg"]),
        (["https://a.test/1.jpg", "https://[", "https://", "https:///x"], ["https://a.test/1.jpg"]),
        (
            ["https://a.test/1.jpg", "https://a.test/a b", "https://a.test/\n"],
            ["https://a.test/1.jpg"],
        ),
        (["https://a.test/1.jpg", 5, None, {}, []], ["https://a.test/1.jpg"]),
        (["https://a.test/" + "a" * 5000, "https://a.test/1.jpg"], ["https://a.test/1.jpg"]),
        (
            ["https://s.yimg.jp/images/realestate/icon.png", "https://a.test/1"],
            ["https://a.test/1"],
        ),
        (
            [f"https://a.test/{number}" for number in range(99)],
            [f"https://a.test/{number}" for number in range(50)],
        ),
    ],
)
def test_images_are_absolute_and_secure(images: list[Any], expected: list[str]) -> None:
    found = make_property(
        ExternalImageUrl=None, ResizedExternalImageUrls=[{"Url": image} for image in images]
    )
    assert read(found).images == tuple(expected)
    assert read(found | {"ResizedExternalImageUrls": images}).images == tuple(expected)


@pytest.mark.parametrize("images", [None, 5, [], [5], ["http://a.test/1.jpg"], {}])
def test_images_are_taken_from_the_page_where_the_context_has_none(images: Any) -> None:
    found = make_property(ExternalImageUrl=images, ResizedExternalImageUrls=images)
    assert read(found).images == WHOLE.images


def test_a_context_of_another_property_is_drift() -> None:
    with pytest.raises(Invalid, match=OTHER_ID):
        read(make_property(PropertyId=OTHER_ID))


def test_an_id_may_be_written_with_or_without_its_sign() -> None:
    url = DETAIL_URL.replace(DETAIL_ID, f"_{DETAIL_ID}")
    link = f'<a href="/rent/detail/{DETAIL_ID}/">この物件</a>'
    by_page = parse_detail(write_detail(summary=link + RENT + write_table(SHOWN)), url)
    assert by_page.layout == "1K"
    found = parse_detail(write_detail(make_property()), url)
    assert (found.property_id, found.detail_url) == (f"_{DETAIL_ID}", url)
    assert found.rent_yen == 105_000


def test_the_address_is_kept_as_the_site_writes_it() -> None:
    found = parse_detail(write_detail(make_property()), f"{DETAIL_URL[:-1]}?from=mail#top")
    assert found == WHOLE


@pytest.mark.parametrize(
    "url",
    [
        "https://realestate.yahoo.co.jp/rent/",
        "https://realestate.yahoo.co.jp/rent/search/03/13/13104/",
        f"https://realestate.yahoo.co.jp/rent/detail/{'a' * 40}/",
        f"https://realestate.yahoo.co.jp/rent/detail/{DETAIL_ID}/print/",
        "nowhere",
    ],
)
def test_a_reply_from_another_page_is_drift(url: str) -> None:
    with pytest.raises(Invalid):
        parse_detail(write_detail(make_property()), url)


def test_without_its_heading_a_page_shows_nothing_that_is_surely_of_its_property() -> None:
    with pytest.raises(Invalid, match="no rent"):
        read(heading="<h1>新宿夏目坂コート</h1>")


def test_a_heading_inside_the_main_block_changes_nothing() -> None:
    inner = f"<div><div>{RENT}</div>{IMAGE}</div><section>{write_table(SHOWN)}</section>"
    heading = f"<main><header>{HEADING}</header>"
    assert read(heading=heading, summary=inner, others=f"{write_others('<div>')}</main>") == WHOLE
