"""Pages of the rentals site, made up after what is known of the real ones."""

import json
from copy import deepcopy
from html import escape
from typing import Any

LIST_URL = "https://realestate.yahoo.co.jp/rent/search/03/13/13104/"
BLOCK_WORDS = "ご覧になろうとしているページは現在表示できません"
# A gap in the context that no JSON has, to be left out when it is written.
GONE: Any = ...


def make_id(number: int, *, building: int = 0, prefix: str = "") -> str:
    """Return a property's id: 44 hex digits, the first twelve its building's."""
    return f"{prefix}{building:012d}{number:032x}"


def make_room(number: int = 0, building: int = 0, **changes: Any) -> dict[str, Any]:
    """Return a room as the context of a list has it."""
    return {
        "PropertyId": make_id(number, building=building),
        "PriceLabel": "8.5万円",
        "MonthlyManagementCostLabel": "5,000円",
        "SecurityDepositLabel": "1ヶ月",
        "KeyMoneyLabel": "なし",
        "MonopolyAreaLabel": "25.5m<sup>2</sup>",
        "DetailRoomLayout": 2,
        "FloorNum": "3",
        "YearsOld": 7,
    } | changes


def make_building(building: int = 0, *rooms: Any, **changes: Any) -> dict[str, Any]:
    """Return a building as the context of a list has it, with one room unless told otherwise."""
    return {
        "StructureId": f"{building:012d}",
        "BuildingName": f"夏目坂コート{building}",
        "Transports": [
            {"Label": "早稲田駅/東京メトロ東西線 徒歩6分"},
            {"Label": "新宿駅/山手線 バス10分 徒歩3分"},
        ],
        "LocationView": {"AddressName": "東京都新宿区喜久井町1-2"},
        "CoordinatesWgs": "35.7034,139.7175",
        "GroupProperties": list(rooms) or [make_room(building=building)],
    } | changes


def make_context(*buildings: Any, page: int = 1, last: int = 3, **changes: Any) -> dict[str, Any]:
    """Return the context of a list."""
    return {
        "properties": list(buildings),
        "paginationContext": {
            "nextPageUrl": f"/rent/search/03/13/13104/?page={page + 1}",
            "currentPage": page,
            "lastPage": last,
        },
    } | changes


def make_many() -> dict[str, Any]:
    """Return a context with buildings and rooms of all kinds, none of them with coordinates."""
    rooms = [
        make_room(0),
        make_room(1, PropertyId=make_id(1, prefix="_"), PriceLabel="応談", FloorNum="12"),
        make_room(2, MonthlyManagementCostLabel="-", SecurityDepositLabel="8万円", YearsOld=7),
        make_room(3, KeyMoneyLabel="2ヶ月", DetailRoomLayout=13, MonopolyAreaLabel="100m²"),
    ]
    return make_context(
        make_building(0, *rooms),
        make_building(1, BuildingName="A & <B> 「駅前」", CoordinatesWgs=None),
        make_building(2, LocationView={"AddressName": "東京都中央区築地駅前町3"}, Transports=[]),
        page=2,
        last=4,
    )


def write_context(context: Any, shared: str = '{"crumb": "page: {}, mode"}') -> str:
    """Write a context as the site does: outer keys bare, the page's value strict JSON."""
    text = json.dumps(_without_gaps(context), ensure_ascii=False).replace("</", "<\\/")
    return f'window.__SERVER_SIDE_CONTEXT__ = {{common: {shared}, page: {text}, mode: "pc"}};'


def write_list(context: Any, *, script: str | None = None, shown: str | None = None) -> bytes:
    """Write a list that says the same in its context and on the page."""
    items = [_show_building(one) for one in context["properties"]] if shown is None else [shown]
    paging = context["paginationContext"]
    links = "".join(
        f'<a href="/rent/search/03/13/13104/?page={number}">{number}</a>'
        for number in range(1, paging["lastPage"] + 1)
    )
    return f"""<!DOCTYPE html><html lang="ja"><head><title>新宿区の賃貸物件一覧</title></head><body>
<div class="ListBukken"><ul>{"".join(items)}</ul></div><div class="Pagination">{links}</div>
<script>/*<![CDATA[*/{write_context(context) if script is None else script}/*]]>*/</script>
</body></html>""".encode()


ADVERTISEMENT = f"""<li class="ListBukken__item"><p>PR</p><ul><li class="ListCassetteRoom__item">
<input class="_propertyCheckbox" type="checkbox" value="{make_id(99)}">
<div class="ListCassetteRoom__dtl__price">1.0万円</div></li></ul></li>"""
MORE = """<li class="ListCassetteRoom__item"><a class="ListCassetteRoom__textLink"
 href="/rent/search/s/000000000000/">さらに物件を見る</a></li>"""
PAID = """<li class="ListCassetteRoom__item"><a class="ListCassetteRoom__textLink"
 href="https://example.com/">PR</a><div class="ListCassetteRoom__dtl__price">1.0万円</div></li>"""
LAYOUTS = ("1R", "1K", "1DK", "1LDK", "2K", "2DK", "2LDK", "3K", "3DK", "3LDK", "4K", "4DK", "4LDK")


def _show_building(building: dict[str, Any]) -> str:
    stations = "".join(
        f'<span class="ListCassette__txt">{way["Label"]}</span>' for way in building["Transports"]
    )
    rooms = building["GroupProperties"]
    specs = f"築{rooms[0]['YearsOld']}年/地上8階建て/鉄筋コンクリート"
    return f"""<li class="ListBukken__item" data-structureid="{building["StructureId"]}">
<div class="ListCassette"><h2 class="ListCassette__ttl__txt">{escape(building["BuildingName"])}</h2>
<ul class="ListCassette__list"><li class="ListCassette__item">{stations}</li>
<li class="ListCassette__item">{building["LocationView"]["AddressName"]}</li>
<li class="ListCassette__item"><span class="ListCassette__txt">{specs}</span></li></ul></div>
<ul class="ListCassetteRoom__list">{"".join(map(_show_room, rooms))}{PAID}{MORE}</ul></li>
{ADVERTISEMENT}"""


def _show_room(room: dict[str, Any]) -> str:
    return f"""<li class="ListCassetteRoom__item">
<input class="_propertyCheckbox" type="checkbox" value="{room["PropertyId"]}">
<div class="ListCassetteRoom__block--floor">{room["FloorNum"]}階</div>
<div class="ListCassetteRoom__dtl__price">{room["PriceLabel"]}
<span class="ListCassetteRoom__dtl__price__txtS">管理費等
{room["MonthlyManagementCostLabel"]}</span></div>
<div class="ListCassetteRoom__dtl__layout">{LAYOUTS[room["DetailRoomLayout"] - 1]}</div>
<div class="ListCassetteRoom__dtl__layout">{room["MonopolyAreaLabel"]}</div>
<div class="ListCassetteRoom__dtl__deposit"><span>敷</span> {room["SecurityDepositLabel"]}</div>
<div class="ListCassetteRoom__dtl__deposit"><span>礼</span> {room["KeyMoneyLabel"]}</div>
<a class="ListCassetteRoom__textLink" href="/rent/detail/{room["PropertyId"]}/">詳細</a></li>"""


DETAIL_ID = make_id(1)
DETAIL_URL = f"https://realestate.yahoo.co.jp/rent/detail/{DETAIL_ID}/"
OTHER_ID = make_id(2)
TITLE = "【Yahoo!不動産】新宿夏目坂コート (2階/1K)の賃貸物件詳細"


def make_property(**changes: Any) -> dict[str, Any]:
    """Return a property as the context of its own page has it; A__B is B inside A."""
    found: dict[str, Any] = {
        "PropertyId": DETAIL_ID,
        "Price": 105_000,
        "PriceLabel": "10.5万円",
        "MonthlyManagementCostLabel": "8,000円",
        "SecurityDepositLabel": "1ヶ月",
        "KeyMoneyLabel": "なし",
        "MonopolyArea": 2568,
        "MonopolyAreaLabel": "25.68m<sup>2</sup>",
        "BuiltOn": "2019-03",
        "YearsOld": 6,
        "StructureView": {"BuildingName": "新宿夏目坂コート", "FloorNum": "2"},
        "LocationView": {"AddressName": "東京都新宿区喜久井町"},
        "DetailsView": {"RoomLayoutBreakdown": "1K (洋室7.5)"},
        "Transports": [{"Label": "早稲田駅/東京メトロ東西線 徒歩6分"}],
        "ExternalImageUrl": "https://realestate-pctr.c.yimg.jp/outside",
        "ResizedExternalImageUrls": [
            {"Url": "https://realestate-pctr.c.yimg.jp/outside"},
            {"Url": "//realestate-pctr.c.yimg.jp/inside"},
        ],
    }
    for name, value in changes.items():
        outer, _, inner = name.partition("__")
        if inner:
            found[outer][inner] = value
        else:
            found[outer] = value
    return found


SHOWN = {
    "賃料/管理費・共益費等": "10.5万円 / 8,000円",
    "敷金/礼金": "1ヶ月 / なし",
    "間取り": "1K",
    "専有面積": "25.68m<sup>2</sup>",
    "階建/階": "地上8階建て/2階部分",
    "築年数": "築6年（2019年03月）",  # noqa: RUF001 - as the site writes it
    "所在地": '東京都新宿区喜久井町<a class="DetailSummaryTable__textLink">地図を見る</a>',
    "交通": '<li class="DetailSummaryTable__access"><a>早稲田駅</a>/東京メトロ東西線 徒歩6分</li>',
    "建物名": "新宿夏目坂コート",
}
HEAD = f"""<meta property="og:title" content="{TITLE}"><meta name="twitter:title" content="{TITLE}">
<meta property="og:image" content="https://realestate-pctr.c.yimg.jp/outside"><title>{TITLE}</title>"""
HEADING = '<h1 class="DetailHeadingLarge__title">新宿夏目坂コート</h1>'
RENT = '<dd class="DetailSummary__price__rent">10.5<span>万円</span></dd>'
IMAGE = (
    '<img class="DetailSummary__image" data-src="//realestate-pctr.c.yimg.jp/inside" src="/x.gif">'
)


def write_table(rows: dict[str, str]) -> str:
    """Write rows the way the site does, two names to a line."""
    cells = [f"<th>{name}</th><td>{text}</td>" for name, text in rows.items()]
    lines = "".join(f"<tr>{''.join(cells[at : at + 2])}</tr>" for at in range(0, len(cells), 2))
    return f'<table class="DetailSummaryTable"><tbody>{lines}</tbody></table>'


# Everything differs here from the page's own property, and nothing of it may ever be read.
OTHERS = {
    "賃料/管理費・共益費等": "66.6万円 / 66,666円",
    "敷金/礼金": "6ヶ月 / 6ヶ月",
    "間取り": "6LDK",
    "専有面積": "666m2",
    "階建/階": "地上66階建て/66階部分",
    "築年数": "築66年（1966年06月）",  # noqa: RUF001 - as the site writes it
    "所在地": "大阪府大阪市北区",
    "交通": '<ul><li class="DetailSummaryTable__access">梅田駅/御堂筋線 徒歩66分</li></ul>',
    "建物名": "ほかのコート",
}


def write_others(tag: str = '<section class="DetailRecommend">') -> str:
    """Write the property that is recommended below, in the same dress."""
    end = tag.split(maxsplit=1)[0].strip("<>")
    return f"""{tag}<h3 class="DetailHeadingLarge__title">ほかのコート</h3>
<a href="/rent/detail/{OTHER_ID}/">詳細</a><div class="DetailSummary">
<img class="DetailSummary__image" src="https://realestate-pctr.c.yimg.jp/other">
<dl><dt>賃料</dt><dd class="DetailSummary__price__rent">66.6<span>万円</span></dd></dl>
{write_table(OTHERS)}</div></{end}>"""


def write_detail(
    found: Any = GONE,
    *,
    head: str = HEAD,
    heading: str = HEADING,
    summary: str | None = None,
    others: str | None = None,
) -> bytes:
    """Write a property's own page, with or without its context, and others below it."""
    inner = RENT + IMAGE + write_table(SHOWN) if summary is None else summary
    context = {"property": found, "recommend": [make_property(PropertyId=OTHER_ID, Price=666_000)]}
    below = write_others() if others is None else others
    return f"""<!DOCTYPE html><html lang="ja"><head>{head}</head><body>{heading}
<div class="DetailSummary">{inner}</div>{below}<script>{write_context(context)}</script>
</body></html>""".encode()


def _without_gaps(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_gaps(one) for key, one in value.items() if one is not GONE}
    return [_without_gaps(one) for one in value] if isinstance(value, list) else deepcopy(value)
