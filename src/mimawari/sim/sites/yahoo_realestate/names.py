"""The made-up towns, buildings and rooms of the simulated rentals site, and how it writes them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from zlib import crc32

from mimawari.sim.chance import Chance, is_lucky

LAYOUTS = (
    *("1R", "1K", "1DK", "1LDK", "2K", "2DK", "2LDK"),
    *("3K", "3DK", "3LDK", "4K", "4DK", "4LDK"),
)
"""Layouts in the order of the site's own numbers for them, which start at 1."""
_M2 = {
    "1R": (15, 22),
    "1K": (19, 29),
    "1DK": (27, 36),
    "1LDK": (34, 50),
    "2K": (31, 39),
    "2DK": (38, 50),
    "2LDK": (50, 66),
    "3DK": (53, 64),
    "3LDK": (62, 88),
}
_OFTEN = (12, 30, 10, 18, 4, 9, 11, 3, 6)
_DIRECTIONS = ("南", "南東", "南西", "東", "西", "北東", "北")
_BUILT = (
    ("マンション", "鉄筋コンクリート", (3, 15)),
    ("マンション", "鉄骨鉄筋コンクリート", (8, 21)),
    ("マンション", "鉄骨造", (3, 6)),
    ("アパート", "木造", (2, 2)),
    ("アパート", "軽量鉄骨", (2, 3)),
)
_SHARES = (40, 8, 12, 26, 14)
_FRONT = (
    *("メゾン", "コーポ", "ヴィラ", "カーサ", "レジデンス", "フラッツ", "シャトー", "プチコート"),
    *("L'Aube ", "Rosa & Ivy ", "サンテラス", "ルミエ"),
)
_CORE = (
    *("汐見", "白樺", "若葉", "朝凪", "木漏れ日", "三日月", "巡り坂", "すずかぜ", "鈴懸", "月見台"),
    *("茜", "柊", "蓮華", "灯台前", "花水木", "青嵐", "夕映え", "小春", "千草", "雲雀丘"),
)
_BACK = ("", "", "", "", " Ⅱ", " 弐番館", " A棟", "第3")
UNITS_A_BUILDING = 9
PICTURES = 10
"""How many pictures there are of a building; each room's page shows some of them."""
_WALLS = ("#c9b79c", "#b7c4cf", "#d8cfc4", "#a9b8a2", "#cbb0ab", "#bdbccb")
# The wide forms of digits, full stop and comma stand in Unicode in the same order.
_WIDE = {ord(sign): ord(sign) + 0xFEE0 for sign in "0123456789.,"}


@dataclass(frozen=True, slots=True)
class Area:
    """A city of the site, with its path below /rent/search/ and what rents are like there."""

    path: str
    prefecture: str
    city: str
    towns: tuple[str, ...]
    lines: tuple[tuple[str, tuple[str, ...]], ...]
    middle: tuple[float, float]
    level: float
    buildings: int

    @property
    def name(self) -> str:
        """The city with its prefecture."""
        return self.prefecture + self.city


AREAS = (
    Area(
        "03/13/13991",
        "東京都",
        "瑞巡市",
        ("桜坂", "灯町", "北見回", "南見回", "鈴懸台", "水車前"),
        (("巡回線", ("瑞巡", "桜坂上", "灯町", "鈴懸台")), ("東都環状線", ("北見回", "水車前"))),
        (35.7012, 139.4821),
        1.25,
        76,
    ),
    Area(
        "03/14/14991",
        "神奈川県",
        "汐見原市",
        ("港通", "汐風町", "白波", "丘の手"),
        (("汐見鉄道", ("汐見原", "港通", "白波海岸")), ("湾岸新線", ("丘の手", "汐風"))),
        (35.4127, 139.6013),
        1.1,
        34,
    ),
    Area(
        "03/11/11991",
        "埼玉県",
        "緑野台市",
        ("若葉台", "杉戸前", "三ツ池"),
        (("緑野線", ("緑野台", "若葉台北", "三ツ池公園")),),
        (35.9344, 139.5502),
        0.85,
        20,
    ),
    Area(
        "03/12/12991",
        "千葉県",
        "灯ヶ浜市",
        ("浜町", "松葉", "貝塚前"),
        (("灯ヶ浜線", ("灯ヶ浜", "松葉", "貝塚前")),),
        (35.6218, 140.0641),
        0.8,
        12,
    ),
    Area(
        "06/27/27991",
        "大阪府",
        "川縁市",
        ("橋本通", "堤町", "舟入"),
        (("川縁電鉄", ("川縁", "橋本通", "舟入")),),
        (34.7103, 135.5607),
        0.9,
        8,
    ),
)


@dataclass(frozen=True, slots=True)
class Stop:
    """A station and how far a building is from it."""

    station: str
    line: str
    walk_minutes: int
    bus_minutes: int = 0

    @property
    def label(self) -> str:
        """The way as the site writes it."""
        bus = f"バス{self.bus_minutes}分 " if self.bus_minutes else ""
        return f"{self.station}駅/{self.line} {bus}徒歩{self.walk_minutes}分"


@dataclass(frozen=True, slots=True)
class Unit:
    """A door of a building as it was built; it stays the same however often it is let."""

    floor: int
    layout: str
    hundredths_m2: int
    direction: str


@dataclass(frozen=True, slots=True)
class Building:
    """A building, which never changes."""

    id: str
    area: Area
    name: str
    is_named: bool
    kind: str
    structure: str
    floors: int
    built_on: str
    town: str
    block: str
    stops: tuple[Stop, ...]
    place: tuple[float, float]
    units: tuple[Unit, ...]

    @property
    def address(self) -> str:
        """The whole address."""
        return f"{self.area.name}{self.town}{self.block}"

    def picture_path(self, number: int) -> str:
        """Tell where one of its pictures is."""
        return f"/_rent/image/{self.id}/{number}.svg"

    def years_old(self, now: datetime) -> int:
        """Count the full years since it was built."""
        year, month = map(int, self.built_on.split("-"))
        return max(0, now.year - year - (now.month < month))


@dataclass(frozen=True, slots=True)
class Style:
    """How the agent of a room writes amounts."""

    wide: bool
    dash: bool
    in_yen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A room as it is listed now; its door knows how it was built, its agent how he measures."""

    id: str
    building: Building
    unit: Unit
    layout: str
    hundredths_m2: int
    pictures: tuple[int, ...]
    rent_yen: int
    fee_yen: int
    deposit_months: float
    key_money_months: float
    style: Style
    listed_at: datetime
    updated_at: datetime

    @property
    def rent_label(self) -> str:
        """The rent as the site writes it."""
        return self._spell(_man(self.rent_yen))

    @property
    def fee_label(self) -> str:
        """The fee a month as the site writes it."""
        return self._spell(f"{self.fee_yen:,}円") if self.fee_yen else self._none

    @property
    def deposit_label(self) -> str:
        """The deposit as the site writes it."""
        return self._dues(self.deposit_months)

    @property
    def key_money_label(self) -> str:
        """The key money as the site writes it."""
        return self._dues(self.key_money_months)

    @property
    def layout_label(self) -> str:
        """The layout as the site writes it."""
        return "ワンルーム" if self.layout == "1R" else self.layout

    @property
    def m2_label(self) -> str:
        """The size as the site writes it, in HTML."""
        return f"{self.hundredths_m2 / 100:g}m<sup>2</sup>"

    @property
    def picture_paths(self) -> tuple[str, ...]:
        """Where the pictures of its own page are, in their order."""
        return tuple(map(self.building.picture_path, self.pictures))

    @property
    def floor_label(self) -> str:
        """The floor as the site writes it."""
        return f"{self.unit.floor}階"

    @property
    def storeys_label(self) -> str:
        """The floor and how many there are, as the site writes it."""
        return f"地上{self.building.floors}階建て/{self.unit.floor}階部分"

    @property
    def _none(self) -> str:
        return "-" if self.style.dash else "なし"

    def _dues(self, months: float) -> str:
        if not months:
            return self._none
        yen = round(self.rent_yen * months)
        return self._spell(_man(yen) if self.style.in_yen else f"{months:g}ヶ月")

    def _spell(self, text: str) -> str:
        return text.translate(_WIDE) if self.style.wide else text


def make_buildings(chance: Chance) -> Iterator[Building]:
    """Make all buildings of all areas."""
    names = [f"{front}{core}" for front, core in product(_FRONT, _CORE)]
    chance.shuffle(names)
    number = chance.randrange(10_000, 90_000)
    for area in AREAS:
        for _ in range(area.buildings):
            number += chance.randrange(1, 40)
            yield _make_building(chance, area, f"{number:012d}", names.pop())


def make_room(chance: Chance, building: Building, unit: Unit, at: datetime) -> Room:
    """List a unit anew, under an id of its own and at today's price."""
    mark = "_" if is_lucky(chance, 0.15) else ""
    m2 = unit.hundredths_m2 / 100
    age = building.years_old(at)
    worth = (14_000 + 2_350 * m2) * building.area.level * max(0.6, 1.1 - age / 100)
    return Room(
        id=f"{mark}{building.id}{chance.getrandbits(128):032x}",
        building=building,
        unit=unit,
        layout=unit.layout,
        hundredths_m2=unit.hundredths_m2,
        pictures=(0, 1, 2),
        rent_yen=round(worth * chance.uniform(0.93, 1.07) / 500) * 500,
        fee_yen=chance.choice((0, 0, 2000, 3000, 3500, 5000, 5000, 8000, 10_000, 12_000)),
        deposit_months=chance.choice((0, 0, 1, 1, 1, 1.5, 2)),
        key_money_months=chance.choice((0, 0, 0, 1, 1, 2)),
        style=Style(
            wide=is_lucky(chance, 0.08),
            dash=is_lucky(chance, 0.5),
            in_yen=is_lucky(chance, 0.35),
        ),
        listed_at=at,
        updated_at=at,
    )


def draw_building(building: Building, side: int) -> str:
    """Draw a building from one of its sides, as an SVG."""
    wall = _WALLS[(crc32(building.id.encode()) + side) % len(_WALLS)]
    floors, doors = min(building.floors, 10), 4 + side % 3
    height, width = 170 // floors, 200 // doors
    top = 200 - floors * height
    windows = "".join(
        f'<rect x="{105 + door * width}" y="{208 - floor * height}" width="{width - 12}"'
        f' height="{max(6, height - 9)}" fill="{"#f7e9a8" if (floor * 3 + door) % 4 else "#567"}"/>'
        for floor in range(1, floors + 1)
        for door in range(doors)
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 290">'
        '<rect width="400" height="290" fill="#cfe3ee"/>'
        '<rect y="230" width="400" height="60" fill="#9aa58c"/>'
        f'<rect x="92" y="{top}" width="216" height="{250 - top}" fill="{wall}"/>'
        f'{windows}<rect x="185" y="214" width="30" height="36" fill="#5a4636"/></svg>'
    )


def _man(yen: int) -> str:
    return f"{yen / 10_000:g}万円"


def _make_building(chance: Chance, area: Area, structure_id: str, name: str) -> Building:
    kind, structure, (low, high) = chance.choices(_BUILT, _SHARES)[0]
    floors = chance.randint(low, high)
    stops = tuple(_make_stops(chance, area))
    is_named = is_lucky(chance, 0.9)
    # Where the owner keeps the name to himself, the site makes one up from the way and the size.
    first = stops[0]
    way = f"{first.line} {first.station}駅 徒歩{first.walk_minutes}分 地上{floors}階建て"
    block = f"{chance.randint(1, 6)}丁目"
    return Building(
        id=structure_id,
        area=area,
        name=name + chance.choice(_BACK) if is_named else way,
        is_named=is_named,
        kind=kind,
        structure=structure,
        floors=floors,
        built_on=f"{chance.randint(1974, 2025)}-{chance.randint(1, 12):02d}",
        town=chance.choice(area.towns),
        block=block if is_lucky(chance, 0.8) else f"{block}{chance.randint(1, 30)}",
        stops=stops,
        place=(
            round(area.middle[0] + chance.gauss(0, 0.012), 6),
            round(area.middle[1] + chance.gauss(0, 0.015), 6),
        ),
        units=tuple(_make_units(chance, floors)),
    )


def _make_stops(chance: Chance, area: Area) -> Iterator[Stop]:
    ways = [(line, station) for line, stations in area.lines for station in stations]
    for number, (line, station) in enumerate(chance.sample(ways, chance.randint(1, 3))):
        bus = chance.choice((0, 0, 0, 8, 15)) if number else 0
        yield Stop(station, line, chance.randint(1, 6 if bus else 18), bus)


def _make_units(chance: Chance, floors: int) -> Iterator[Unit]:
    layouts: Sequence[str] = chance.choices(tuple(_M2), _OFTEN, k=2)
    for _ in range(UNITS_A_BUILDING):
        layout = chance.choice(layouts)
        low, high = _M2[layout]
        size = chance.randint(low * 100, high * 100)
        # Agents give the size to the hundredth, to the tenth or in whole numbers.
        step = chance.choice((1, 1, 10, 100))
        yield Unit(
            floor=chance.randint(1, floors),
            layout=layout,
            hundredths_m2=size // step * step,
            direction=chance.choice(_DIRECTIONS),
        )
