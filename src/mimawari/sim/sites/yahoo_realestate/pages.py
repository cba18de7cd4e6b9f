"""The pages of the simulated rentals site, in the shape of the real one's."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Any
from zlib import crc32

from mimawari.sim.sites.yahoo_realestate.names import LAYOUTS, Area, Building, Room

Blocks = Sequence[tuple[Building, Sequence[Room]]]

BLOCKED = "ご覧になろうとしているページは現在表示できません"
_MANY_ROOMS = 4
_AD_EVERY = 8
_CLASS = re.compile(
    r"\b(?:List|Detail|Site)[A-Z][A-Za-z]*(?:__[A-Za-z]+)*(?:--[a-z]+)?\b"
    r"|\b_propertyCheckbox\b|\b_SummaryStation\b|\broomListItem\b|\bsvg--[a-z-]+"
)
_KEY = re.compile(r'"([A-Za-z]+)": ')
_STYLE = """
body{margin:0;background:#f4f3ef;color:#333;font:14px/1.6 "Noto Sans CJK JP",sans-serif}
a{color:#0a5a8f;text-decoration:none}ul,dl,dd{margin:0;padding:0}li{list-style:none}
.SiteHeader{background:#fff;border-bottom:3px solid #2f7d5b;padding:12px 24px}
.SiteHeader__name{font-size:20px;font-weight:700;color:#2f7d5b;margin-right:12px}
.SiteBody{max-width:980px;margin:0 auto;padding:8px 16px 40px}
.ListSearchTool__count{font-size:24px;font-weight:700;color:#c0392b}
.ListBukken__item,.DetailSummary{background:#fff;border:1px solid #ddd;border-radius:8px;
margin:14px 0;padding:16px}.ListBukken__item--pr{background:#fbf6e6}
.ListCassette{display:flex;gap:18px}.ListCassette__thumb__img{width:180px;height:130px;border-radius:4px;object-fit:cover}
.ListCassette__ttl{margin:0;font-size:18px}.ListCassette__item{display:flex;gap:8px}
.ListCassette__ttl__tag{background:#2f7d5b;color:#fff;font-size:11px;padding:2px 8px}
.ListCassette__txt{display:block}.ListCassetteRoom__list{border-top:1px solid #eee;margin-top:12px}
.ListCassetteRoom__item{border-bottom:1px solid #eee;padding:8px 4px}
.ListCassetteRoom__inner{display:grid;grid-template-columns:24px 60px 150px 130px 130px 1fr;gap:8px;
align-items:center}.ListCassetteRoom__dtl__price{font-size:18px;font-weight:700;color:#c0392b}
.ListCassetteRoom__dtl__price__txtS{display:block;font-size:11px;font-weight:400;color:#666}
.ListCassetteRoom__dtl__deposit__tag{background:#eee;font-size:11px;padding:0 4px;margin-right:6px}
.ListPager{display:flex;gap:10px;justify-content:center;padding:16px}
.ListPager__link{background:#fff;border:1px solid #ccc;border-radius:4px;padding:4px 14px}
.DetailHeadingLarge__title{font-size:22px;margin:16px 0 4px}
.DetailHeadingLarge__note{font-size:14px;font-weight:400;color:#666}
.DetailSummary__images{display:flex;gap:10px}.DetailSummary__image{width:300px;border-radius:4px}
.DetailSummary__price{display:flex;gap:10px;align-items:baseline;margin:14px 0}
.DetailSummary__price__rent{font-size:30px;font-weight:700;color:#c0392b}
.DetailSummary__unit{font-size:15px}.DetailSummaryTable{border-collapse:collapse;width:100%}
.DetailSummaryTable th{background:#f4f3ef;text-align:left;font-weight:400;width:17%}
.DetailSummaryTable th,.DetailSummaryTable td{border:1px solid #e2e0da;padding:7px 10px}
.DetailSummaryTable__textLink{margin-left:12px}.DetailRecommend .DetailSummary__image{width:150px}
.DetailRecommend .DetailHeadingLarge__title{font-size:17px}
"""


@dataclass(frozen=True, slots=True)
class View:
    """Under which address and when a page is looked at."""

    site: str
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One page of a list that may have more."""

    title: str
    path: str
    number: int
    last: int
    rooms: int

    @property
    def next_path(self) -> str | None:
        """The page after this one, if there is one."""
        return f"{self.path}?page={self.number + 1}" if self.number < self.last else None


def list_page(view: View, leaf: Leaf, blocks: Blocks) -> str:
    """Draw a page of a list of buildings with their rooms."""
    context = {
        "properties": [_list_context(view, building, rooms) for building, rooms in blocks],
        "paginationContext": {
            "nextPageUrl": leaf.next_path,
            "currentPage": leaf.number,
            "lastPage": max(1, leaf.last),
        },
        "totalPropertyCount": leaf.rooms,
    }
    items = []
    for number, (building, rooms) in enumerate(blocks):
        items.append(_list_item(view, building, rooms))
        if number % _AD_EVERY == _AD_EVERY // 2:
            items.append(_ADVERTISEMENT)
    title = f"{escape(leaf.title)}の賃貸物件一覧"
    body = f"""<h1 class="ListHeading">{title}</h1>
<p>該当 <span class="ListSearchTool__count">{leaf.rooms:,}<span>件</span></span></p>
<div class="ListBukken"><ul class="ListBukken__list">{"".join(items) or _NOTHING}</ul></div>
{_pager(leaf)}{_script(context)}"""
    return _document(f"<title>{title}【Yahoo!不動産】</title>", body)


def detail_page(view: View, room: Room, others: Sequence[Room]) -> str:
    """Draw the page of a room, and below it other rooms in the same dress."""
    name = escape(room.building.name)
    title = f"【Yahoo!不動産】{name} ({room.floor_label}/{room.layout_label})の賃貸物件詳細"
    head = f"""<title>{title}</title>
<meta property="og:title" content="{title}"><meta name="twitter:title" content="{title}">
<meta property="og:image" content="{_images(view, room)[0]}">
<link rel="canonical" href="{view.site}/rent/detail/{room.id}/">"""
    context = {
        "property": _detail_context(view, room),
        "recommend": [_detail_context(view, other) for other in others],
    }
    nearby = "".join(
        f'<li class="DetailRecommend__item"><a href="/rent/detail/{other.id}/">'
        f"{_heading('h3', other)}</a>{_summary(view, other)}</li>"
        for other in others
    )
    body = f"""<div class="DetailMain">{_heading("h1", room)}{_summary(view, room)}</div>
<section class="DetailRecommend"><h2>おすすめの物件</h2><ul>{nearby}</ul></section>
{_script(context)}"""
    return _document(head, body)


def front_page(areas: Iterable[Area]) -> str:
    """Draw the way to all areas."""
    links = "".join(
        f'<li class="ListBukken__item"><a href="/rent/search/{area.path}/">{area.name}</a></li>'
        for area in areas
    )
    body = f"<h1>エリアから探す</h1><ul>{links}</ul>"
    return _document("<title>賃貸【Yahoo!不動産】</title>", body)


def gone_page() -> str:
    """Draw the page of a room that is not there, which says what a block says, too."""
    body = f"<h1>{BLOCKED}</h1><p>お探しの物件は掲載が終了した可能性があります。</p>"
    return _document("<title>ページが表示できません【Yahoo!不動産】</title>", body)


def refusal_page() -> str:
    """Draw the page that somebody sees who is blocked."""
    rest = "<!-- " + "-" * 60 + " -->\n"
    return f"""<!DOCTYPE html>
<html lang="ja"><head><meta charset="utf-8">
<title>Yahoo! JAPAN - {BLOCKED}</title></head>
<body style="font-family:sans-serif;text-align:center;padding:60px">
<h1>{BLOCKED}</h1>
<p>一時的なエラーですので、しばらく時間をおいてから再度お試しください。</p>
{rest * 63}</body></html>"""


def change_layout(html: str) -> str:
    """Give a page other class names and other keys; people see no difference."""
    html = _KEY.sub(lambda key: f'"{key[1][0].lower()}{key[1][1:]}Value": ', html)
    html = html.replace("= {common: ", "= {shared: ").replace(", page: {", ", view: {")
    html = html.replace("data-structureid", "data-building")
    return _CLASS.sub(lambda name: f"css-{crc32(name[0].encode()):08x}", html)


_MAP = '<a class="DetailSummaryTable__textLink" href="#">地図を見る</a>'
_NOTHING = "<li>条件に一致する物件が見つかりませんでした。該当する物件がありません。</li>"
_ADVERTISEMENT = (
    '<li class="ListBukken__item ListBukken__item--pr"><p>【PR】引越しの見積もりはこちら</p>'
    '<ul class="ListCassetteRoom__list"><li class="ListCassetteRoom__item">'
    '<a href="/rent/">今だけ 3.9万円から</a></li></ul></li>'
)


def _document(head: str, body: str) -> str:
    return f"""<!DOCTYPE html>
<html lang="ja"><head><meta charset="utf-8">{head}
<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>
<body><header class="SiteHeader"><a class="SiteHeader__name" href="/rent/">賃貸さがし</a>
架空の物件の模擬サイト</header>
<main class="SiteBody">{body}</main></body></html>"""


def _script(context: dict[str, Any]) -> str:
    # Less-than signs are written as escapes, so that no text can end the script.
    page = json.dumps(context).replace("<", "\\u003c")
    return (
        "<script>/*<![CDATA[*/\nwindow.__SERVER_SIDE_CONTEXT__ = "
        '{common: {"device": "pc", "isLogin": false}, '
        f'page: {page}, mode: "pc"}};\n/*]]>*/</script>'
    )


def _pager(leaf: Leaf) -> str:
    links = "".join(
        f'<li class="ListPager__link"><a href="{leaf.path}?page={number}">{number}</a></li>'
        for number in range(1, leaf.last + 1)
    )
    following = leaf.next_path
    after = f'<li class="ListPager__link"><a rel="next" href="{following}">次へ</a></li>'
    return f'<ul class="ListPager">{links}{after if following else ""}</ul>'


def _list_item(view: View, building: Building, rooms: Sequence[Room]) -> str:
    stops = "".join(_text(stop.label) for stop in building.stops)
    age = building.years_old(view.now)
    built = f"{f'築{age}年' if age else '新築'}/地上{building.floors}階建て/{building.structure}"
    own = f"/rent/search/s/{building.id}/"
    more = (
        f'<li class="ListCassetteRoom__item"><a href="{own}">さらに物件を見る</a></li>'
        if len(rooms) >= _MANY_ROOMS
        else ""
    )
    return f"""<li class="ListBukken__item" data-structureid="{building.id}">
<div class="ListCassette"><div class="ListCassette__thumb">
<img class="ListCassette__thumb__img" src="{view.site}{building.picture_path(0)}" alt="外観"></div>
<div class="ListCassette__body"><h2 class="ListCassette__ttl">
<a class="ListCassette__ttl__link" href="{own}">
<span class="ListCassette__ttl__txt">{escape(building.name)}</span></a></h2>
<span class="ListCassette__ttl__tag">{building.kind}</span>
<ul class="ListCassette__list">
<li class="ListCassette__item">{_icon("train")}<div>{stops}</div></li>
<li class="ListCassette__item">{_icon("pin")}{_text(building.address)}</li>
<li class="ListCassette__item">{_icon("building")}{_text(built)}</li></ul></div></div>
<ul class="ListCassetteRoom__list">{"".join(map(_list_room, rooms))}{more}</ul></li>"""


def _list_room(room: Room) -> str:
    dues = "".join(
        '<div class="ListCassetteRoom__dtl__deposit">'
        f'<span class="ListCassetteRoom__dtl__deposit__tag">{tag}</span>{label}</div>'
        for tag, label in (("敷", room.deposit_label), ("礼", room.key_money_label))
    )
    return f"""<li class="ListCassetteRoom__item roomListItem"><div class="ListCassetteRoom__inner">
<input class="_propertyCheckbox" type="checkbox" value="{room.id}">
<div class="ListCassetteRoom__block--floor">{room.floor_label}</div>
<div class="ListCassetteRoom__dtl__price">{room.rent_label}
<span class="ListCassetteRoom__dtl__price__txtS">管理費等 {room.fee_label}</span></div>
<div class="ListCassetteRoom__block--layout">
<div class="ListCassetteRoom__dtl__layout">{room.layout_label}</div>
<div class="ListCassetteRoom__dtl__layout">{room.m2_label}</div></div>
<div class="ListCassetteRoom__block--deposit">{dues}</div>
<a class="ListCassetteRoom__textLink" href="/rent/detail/{room.id}/">詳細を見る</a></div></li>"""


def _list_context(view: View, building: Building, rooms: Sequence[Room]) -> dict[str, Any]:
    age = building.years_old(view.now)
    return {
        "StructureId": building.id,
        "BuildingName": building.name,
        "CanDisplayBuildingName": building.is_named,
        "KindName": building.kind,
        "StructureName": building.structure,
        "TotalFloorNum": building.floors,
        "BuiltOn": building.built_on,
        "YearsOld": age,
        "PropertyCount": len(rooms),
        "ExternalImageUrl": view.site + building.picture_path(0),
        **_place(building),
        "GroupProperties": [
            {
                "PropertyId": room.id,
                "StructureId": building.id,
                **_amounts(room),
                "FloorNum": str(room.unit.floor),
                "BuiltOn": building.built_on,
                "YearsOld": age,
            }
            for room in rooms
        ],
    }


def _detail_context(view: View, room: Room) -> dict[str, Any]:
    building = room.building
    return {
        "PropertyId": room.id,
        "StructureId": building.id,
        "Price": room.rent_yen,
        "MonthlyManagementCost": room.fee_yen,
        "MonopolyArea": room.hundredths_m2,
        **_amounts(room),
        "BuiltOn": building.built_on,
        "YearsOld": building.years_old(view.now),
        "KindName": building.kind,
        "StructureName": building.structure,
        "Direction": room.unit.direction,
        "CanDisplayBuildingName": building.is_named,
        "StructureView": {
            "BuildingName": building.name,
            "TotalFloorNum": building.floors,
            "FloorNum": str(room.unit.floor),
            "FloorNameLabel": room.storeys_label,
        },
        **_place(building),
        "DetailsView": {
            "RoomLayoutBreakdown": f"{room.layout_label} (洋室{room.hundredths_m2 / 450:.1f})",
            "ContractPeriod": "普通借家 24ヶ月",
            "Remark": '鍵交換費 22,000円; {詳細は "店頭" で}</script>',
        },
        "ExternalImageUrl": _images(view, room)[0],
        "ResizedExternalImageUrls": [{"Url": image} for image in _images(view, room)],
    }


def _amounts(room: Room) -> dict[str, Any]:
    return {
        "PriceLabel": room.rent_label,
        "MonthlyManagementCostLabel": room.fee_label,
        "SecurityDepositLabel": room.deposit_label,
        "KeyMoneyLabel": room.key_money_label,
        "MonopolyAreaLabel": room.m2_label,
        "DetailRoomLayout": LAYOUTS.index(room.layout) + 1,
    }


def _place(building: Building) -> dict[str, Any]:
    return {
        "LocationView": {
            "PrefectureName": building.area.prefecture,
            "GeoName": building.area.city,
            "OazaName": building.town,
            "AzaName": building.block,
            "AddressName": building.address,
        },
        "CoordinatesWgs": f"{building.place[0]},{building.place[1]}",
        "Transports": [
            {
                "StationName": stop.station,
                "LineName": stop.line,
                "MinutesFromStation": stop.walk_minutes,
                "BusMinutes": stop.bus_minutes or None,
                "Label": stop.label,
            }
            for stop in building.stops
        ],
    }


def _heading(tag: str, room: Room) -> str:
    return (
        f'<{tag} class="DetailHeadingLarge__title"><span>{escape(room.building.name)}</span>'
        '<span class="DetailHeadingLarge__note">'
        f"&#xff08;{room.floor_label}/{room.layout_label}/{room.m2_label}&#xff09;</span></{tag}>"
    )


def _summary(view: View, room: Room) -> str:
    images = "".join(
        f'<img class="DetailSummary__image" src="{image}" alt="外観">'
        for image in _images(view, room)
    )
    amount = room.rent_label.removesuffix("万円")
    return f"""<div class="DetailSummary"><div class="DetailSummary__images">{images}</div>
<dl class="DetailSummary__price"><dt>賃料</dt><dd class="DetailSummary__price__rent">{amount}<span
 class="DetailSummary__unit">万円</span></dd><dt>管理費等&#xff1a;</dt><dd>{room.fee_label}</dd>
<dt>敷金&#xff1a;</dt><dd>{room.deposit_label}</dd>
<dt>礼金&#xff1a;</dt><dd>{room.key_money_label}</dd></dl>{_table(view, room)}</div>"""


def _table(view: View, room: Room) -> str:
    building = room.building
    year, month = building.built_on.split("-")
    stops = "".join(
        '<li class="DetailSummaryTable__access"><a class="_SummaryStation" href="/rent/">'
        f"{stop.station}駅</a>{stop.label.removeprefix(f'{stop.station}駅')}</li>"
        for stop in building.stops
    )
    rows = (
        ("賃料/管理費・共益費等", f"{room.rent_label} / {room.fee_label}"),
        ("敷金/礼金", f"{room.deposit_label} / {room.key_money_label}"),
        ("間取り", room.layout_label),
        ("専有面積", room.m2_label),
        ("階建/階", room.storeys_label),
        ("築年数", f"築{building.years_old(view.now)}年&#xff08;{year}年{month}月&#xff09;"),
        ("所在地", f"{building.address}{_MAP}"),
        ("交通", f"<ul>{stops}</ul>"),
        ("構造", building.structure),
        ("方位", room.unit.direction),
        ("建物名", escape(building.name)),
        ("建物種別", building.kind),
    )
    cells = [f"<th>{name}</th><td>{value}</td>" for name, value in rows]
    lines = "".join(f"<tr>{cells[n]}{cells[n + 1]}</tr>" for n in range(0, len(cells), 2))
    return f'<table class="DetailSummaryTable"><tbody>{lines}</tbody></table>'


def _text(text: str) -> str:
    return f'<span class="ListCassette__txt">{escape(text)}</span>'


def _icon(name: str) -> str:
    return (
        f'<svg class="svg--{name}--simple" width="14" height="20" viewBox="0 0 14 20">'
        '<circle cx="7" cy="10" r="5" fill="#2f7d5b"/></svg>'
    )


def _images(view: View, room: Room) -> list[str]:
    return [view.site + path for path in room.picture_paths]
