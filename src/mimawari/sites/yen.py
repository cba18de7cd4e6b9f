"""Amounts, areas and ways to the station, as Japanese pages write them."""

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from mimawari.errors import BadInput
from mimawari.text import one_line

MOST_YEN = 10**12
MOST_MONTHS = 120
MOST_AREA = 1_000_000
MOST_CHARACTERS = 200

# Only what stands for one plain character each: the Unicode compatibility forms would also turn
# the ² of 8² and the ① of a footnote into digits of the amount.
_PLAIN = str.maketrans(
    {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)}
    | {"\uffe5": "¥", "\u3000": " ", "\uff79": "ケ", "\uff76": "カ"}
)
# The text is on one line by then, where never two spaces follow each other.
_NUMBER = r"(?:[1-9][0-9]{0,2}(?:,[0-9]{3}){1,5}|0|[1-9][0-9]{0,14})(?:\.[0-9]{1,8})?"
_LABEL = re.compile(
    r"(?:賃料|家賃|価格|現在|管理費等?(?:[・/]共益費等?)?|共益費等?|敷金?|礼金?|保証金) ?:? ?"
)
_AMOUNT = re.compile(
    rf"\+? ?(?P<sign>¥)? ?(?:(?P<oku>{_NUMBER}) ?億)? ?(?:(?P<man>{_NUMBER}) ?万)?"
    rf" ?(?P<ones>{_NUMBER})? ?(?P<yen>円)?"
)
_UNITS = {"oku": 10**8, "man": 10**4, "ones": 1}
_DASHES = "[-\u2010-\u2015\u2212\u30fc]{1,3}"
_NONE = re.compile(rf"{_DASHES}|なし|無し?|無料")
_UNKNOWN = re.compile(r"要?お?問い?合わ?せ(?:ください|下さい)?|(?:要|応|ご)?相談|応談|未定")
_MONTHS = re.compile(r"(?P<months>[0-9]{1,4}(?:\.[0-9]{1,4})?) ?[ヶケヵカか箇]月分?")
_AREA = re.compile(rf"(?P<area>{_NUMBER}) ?(?:m2|m²|㎡|平米|平方メートル)")
_WALK = re.compile(r"(?P<where>.*?)(?:徒|停)?歩 ?約? ?(?P<walk>[0-9]{1,3}) ?分(?:以内)?")
_BUS = re.compile(r"(?P<where>.*?)バス ?約? ?(?P<bus>[0-9]{1,3}) ?分.*")
_OTHER_MINUTES = re.compile(r"[0-9] ?分")
_QUOTED = re.compile(r"(?P<line>[^「」]*)「(?P<station>[^「」]+)」駅?")
_STOP = re.compile(r".+(?:駅|停留場|停留所|電停)")


@dataclass(frozen=True, slots=True)
class Access:
    """A way to a station: on foot, or by bus and then on foot."""

    station: str | None
    line: str | None
    walk_minutes: int
    bus_minutes: int = 0

    @property
    def minutes(self) -> int:
        """How long it takes in all."""
        return self.bus_minutes + self.walk_minutes


def parse_yen(text: str) -> int | None:
    """Read a price that must be one; None if the page says that it is to be asked for."""
    words = _words(text)
    return None if _UNKNOWN.fullmatch(words) else _amount(words, text)


def parse_fee(text: str) -> int | None:
    """Read a price as `parse_yen` does, where a dash, なし or 無料 says that there is none: 0."""
    return 0 if _NONE.fullmatch(_words(text)) else parse_yen(text)


def parse_months_or_yen(text: str, rent_yen: int | None) -> int | None:
    """Read a deposit in yen or in months of rent, cut to whole yen; None if it is not known."""
    months = _MONTHS.fullmatch(_words(text))
    if months is None:
        return parse_fee(text)
    count = Decimal(months["months"])
    if count > MOST_MONTHS:
        raise BadInput(f"{_shown(text)} is more than {MOST_MONTHS} months of rent")
    return None if rent_yen is None else _bounded(int(count * rent_yen), text)


def parse_area(text: str) -> Decimal:
    """Read an area in square metres, to the hundredth."""
    found = _AREA.fullmatch(_words(text))
    if found is None:
        raise BadInput(f"{_shown(text)} is no area; it is written like 25.5m² or 25.50平米")
    area = Decimal(found["area"].replace(",", ""))
    if not 0 < area <= MOST_AREA:
        raise BadInput(f"{_shown(text)} is no area that a room can have")
    return area.quantize(Decimal("0.01"), ROUND_HALF_UP)


def parse_walk_minutes(text: str) -> Access:
    """Read a way to a station, such as 新宿駅/山手線 徒歩5分 or 新宿駅 バス10分 徒歩3分."""
    walk = _WALK.fullmatch(_plain(text))
    bus = _BUS.fullmatch(walk["where"]) if walk else None
    where = (bus or walk or {"where": ""})["where"].strip(" /")
    if walk is None or _WALK.search(walk["where"]) or _OTHER_MINUTES.search(where):
        raise BadInput(f"{_shown(text)} is no way to a station; it is written like 新宿駅 徒歩5分")
    station, line = _station(where)
    return Access(station, line, int(walk["walk"]), int(bus["bus"]) if bus else 0)


def _station(where: str) -> tuple[str | None, str | None]:
    """Tell the station from its line, which stands before or after it."""
    if quoted := _QUOTED.fullmatch(where):
        return f"{quoted['station'].strip()}駅", quoted["line"].strip(" /") or None
    words = where.split("/") if "/" in where else where.split()
    parts = [part.strip() for part in words if part.strip()]
    if not parts:
        return None, None
    stops = (index for index, part in enumerate(parts) if _STOP.fullmatch(part))
    station = parts.pop(next(stops, 0))
    return station, " ".join(parts) or None


def _plain(text: str) -> str:
    """Return the text on one line, with plain characters in place of wide ones."""
    if len(text) > MOST_CHARACTERS:
        raise BadInput(f"{_shown(text)} is longer than {MOST_CHARACTERS} characters")
    return one_line(text.translate(_PLAIN))


def _words(text: str) -> str:
    """Return the plain text without a label such as 管理費 before it."""
    plain = _plain(text)
    label = _LABEL.match(plain)
    return plain[label.end() :] if label else plain


def _amount(words: str, text: str) -> int:
    found = _AMOUNT.fullmatch(words)
    parts = [(found[unit], size) for unit, size in _UNITS.items() if found[unit]] if found else []
    if found is None or not parts or not (found["sign"] or found["yen"] or parts[-1][1] > 1):
        raise BadInput(f"{_shown(text)} is no amount; it is written like 8.5万円 or ¥1,234")
    if any("." in number for number, _ in parts[:-1]):
        raise BadInput(f"{_shown(text)} has a fraction before its last unit")
    total, above = Decimal(0), Decimal("Infinity")
    for number, size in parts:
        part = Decimal(number.replace(",", "")) * size
        if part >= above:
            raise BadInput(f"{_shown(text)} has more in a lower unit than fits below the higher")
        total, above = total + part, Decimal(size)
    if total % 1:
        raise BadInput(f"{_shown(text)} has a fraction of a yen")
    return _bounded(int(total), text)


def _bounded(amount: int, text: str) -> int:
    if amount > MOST_YEN:
        raise BadInput(f"{_shown(text)} is more than {MOST_YEN:,} yen")
    return amount


def _shown(text: str) -> str:
    return repr(one_line(text, most=40))
