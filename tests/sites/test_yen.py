"""What is read from amounts, areas and ways to stations as Japanese pages write them."""

# ruff: noqa: RUF001 - pages write wide signs, and so do these tests

from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mimawari.errors import BadInput
from mimawari.sites.yen import (
    MOST_YEN,
    Access,
    parse_area,
    parse_fee,
    parse_months_or_yen,
    parse_walk_minutes,
    parse_yen,
)

steady = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
WIDE = str.maketrans("0123456789.,¥", "０１２３４５６７８９．，￥")
amounts = st.integers(0, MOST_YEN)


def in_units(yen: int) -> str:
    """Write an amount as 1億2,000万3,456円."""
    oku, rest = divmod(yen, 10**8)
    man, ones = divmod(rest, 10**4)
    parts = [(oku, "億"), (man, "万"), (ones, "")]
    return "".join(f"{number:,}{unit}" for number, unit in parts if number) + "円"


def in_man(yen: int) -> str:
    """Write an amount as 8.5万円."""
    return f"{Decimal(yen) / 10_000:f}万円"


@pytest.mark.parametrize(
    ("text", "yen"),
    [
        ("8.5万円", 85_000),
        ("8.55万円", 85_500),
        ("8.5555万円", 85_555),
        ("10万円", 100_000),
        ("￥１２，８００", 12_800),
        ("￥１２．５万", 125_000),
        ("¥1,234", 1_234),
        ("¥ 1,234", 1_234),
        (" ¥1234 ", 1_234),
        ("900円", 900),
        ("0円", 0),
        ("1,000円", 1_000),
        ("1000000円", 1_000_000),
        ("1億2,000万円", 120_000_000),
        ("1.2億円", 120_000_000),
        ("3億円", 300_000_000),
        ("1億5,000円", 100_005_000),
        ("12万3,456円", 123_456),
        ("12万3456円", 123_456),
        ("12 万 3,456 円", 123_456),
        ("１２万３，４５６円", 123_456),
        ("¥1,234.00", 1_234),
        ("賃料 8.5万円", 85_000),
        ("現在 ¥300", 300),
        ("+500円", 500),
        ("10,000億円", MOST_YEN),
        ("1,000,000,000,000円", MOST_YEN),
        ("8万\n円", 80_000),
        ("8万\u3000円", 80_000),
    ],
)
def test_an_amount_is_read_to_the_yen(text: str, yen: int) -> None:
    assert parse_yen(text) == yen
    assert parse_fee(text) == yen
    assert parse_months_or_yen(text, 1) == yen


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "円",
        "¥",
        "万円",
        "億",
        "900",
        "1,234",
        "-500円",
        "−500円",
        "－５００円",
        "▲500円",
        "¥-500",
        "(500円)",
        "1,23円",
        "12,34,567円",
        "1234,567円",
        ",500円",
        "500,円",
        "0,500円",
        "1 234円",
        "1_234円",
        "0x10円",
        "1e3円",
        "8.55555万円",
        "0.5円",
        "¥1,234.5",
        "8.円",
        ".5万円",
        "8.5.5万円",
        "8.5万300円",
        "1.5億300万円",
        "12万34,567円",
        "1億20,000万円",
        "1億100,000,000円",
        "1万2億円",
        "8万8万円",
        "1,000,000,000,001円",
        "10,001億円",
        "9" * 190 + "円",
        "9" * 10_000 + "円",
        "8万円～9万円",
        "8万円から",
        "8²円",
        "①円",
        "八万円",
        "٣円",
        "১২円",
        "8万円\x00",
        "8\ud800万円",
        "$8",
        "8万ドル",
        "8.00000000000000000000000000000000001万円",
        "abc",
        "<b>8万円</b>",
    ],
)
def test_what_is_no_amount_is_refused(text: str) -> None:
    for parse in (parse_yen, parse_fee):
        with pytest.raises(BadInput):
            parse(text)
    with pytest.raises(BadInput):
        parse_months_or_yen(text, 85_000)


@pytest.mark.parametrize(
    "text",
    [
        "要問合せ",
        "要問い合わせ",
        "要お問い合わせ",
        "お問い合わせください",
        "応談",
        "価格応談",
        "相談",
        "要相談",
        "未定",
        "賃料 未定",
        "敷金: 応談",
    ],
)
def test_an_amount_to_be_asked_for_is_not_known(text: str) -> None:
    assert parse_yen(text) is None
    assert parse_fee(text) is None
    assert parse_months_or_yen(text, 85_000) is None


@pytest.mark.parametrize("text", ["-", "－", "—", "ー", "−", "--", "なし", "無", "無し", "無料"])
@pytest.mark.parametrize("label", ["", "管理費 ", "管理費等 ", "敷金：", "礼 "])
def test_no_fee_is_a_fee_of_nothing_but_no_price(label: str, text: str) -> None:
    assert parse_fee(label + text) == 0
    assert parse_months_or_yen(label + text, 85_000) == 0
    with pytest.raises(BadInput):
        parse_yen(label + text)


@pytest.mark.parametrize(
    ("text", "yen"),
    [
        ("管理費 5,000円", 5_000),
        ("管理費等 8,000円", 8_000),
        ("管理費・共益費：５，０００円", 5_000),
        ("管理費/共益費 3000円", 3_000),
        ("共益費 0.5万円", 5_000),
        ("敷金 8.5万円", 85_000),
        ("礼8.5万円", 85_000),
    ],
)
def test_the_name_of_a_fee_before_it_is_passed_over(text: str, yen: int) -> None:
    assert parse_fee(text) == yen


@pytest.mark.parametrize(
    ("text", "yen"),
    [
        ("1ヶ月", 85_001),
        ("敷金 1ヶ月", 85_001),
        ("1.5か月", 127_501),
        ("２ヵ月", 170_002),
        ("2カ月分", 170_002),
        ("1ケ月", 85_001),
        ("1箇月", 85_001),
        ("1ｹ月", 85_001),
        ("0ヶ月", 0),
        ("賃料1ヶ月分", 85_001),
        ("礼 1 ヶ月", 85_001),
        ("120ヶ月", 10_200_120),
    ],
)
def test_months_of_rent_become_whole_yen(text: str, yen: int) -> None:
    assert parse_months_or_yen(text, 85_001) == yen


def test_months_of_an_unknown_rent_are_not_known() -> None:
    assert parse_months_or_yen("1ヶ月", None) is None


@pytest.mark.parametrize(
    "text", ["121ヶ月", "9999ヶ月", "-1ヶ月", "1月", "ヶ月", "1.ヶ月", "一ヶ月"]
)
def test_what_is_no_number_of_months_is_refused(text: str) -> None:
    for rent_yen in (None, 85_000):
        with pytest.raises(BadInput):
            parse_months_or_yen(text, rent_yen)


def test_months_never_add_up_to_more_than_an_amount_can_be() -> None:
    with pytest.raises(BadInput):
        parse_months_or_yen("2ヶ月", MOST_YEN)


@steady
@given(amounts)
def test_every_amount_is_read_back_however_it_is_written(yen: int) -> None:
    written = [f"{yen:,}円", f"{yen}円", f"¥{yen:,}", f"{in_man(yen)}", f"{yen:,} 円"]
    if yen:
        written.append(in_units(yen))
    for text in written:
        assert parse_yen(text) == yen
        assert parse_yen(text.translate(WIDE)) == yen


@steady
@given(st.integers(1, 10**9), st.integers(1, 9999))
def test_an_amount_with_a_fraction_of_a_yen_is_never_rounded(yen: int, part: int) -> None:
    for text in (f"{yen}.{part:04}円", f"{yen}.{part:04}{9:04}万円", f"¥{yen:,}.{part:04}"):
        with pytest.raises(BadInput):
            parse_yen(text)


@steady
@given(amounts.filter(lambda yen: yen > 999), st.integers(1, 12))
def test_a_comma_in_the_wrong_place_is_never_passed_over(yen: int, place: int) -> None:
    digits = str(yen)
    at = min(place, len(digits) - 1)
    text = f"{digits[:at]},{digits[at:]}円"
    if text != f"{yen:,}円":
        with pytest.raises(BadInput):
            parse_yen(text)


@steady
@given(st.one_of(st.text(), st.text(alphabet="0123456789.,万億円¥ -ヶ月なし歩分駅徒バス/㎡m2「」")))
def test_no_text_raises_anything_but_a_refusal(text: str) -> None:
    for read in (parse_yen, parse_fee):
        try:
            yen = read(text)
        except BadInput:
            continue
        assert yen is None or 0 <= yen <= MOST_YEN
    for parse in (parse_area, parse_walk_minutes):
        try:
            parse(text)
        except BadInput:
            continue
    try:
        months = parse_months_or_yen(text, 10**6)
    except BadInput:
        return
    assert months is None or 0 <= months <= MOST_YEN


@pytest.mark.parametrize(
    ("text", "area"),
    [
        ("25.5m²", "25.50"),
        ("25.5㎡", "25.50"),
        ("25.50平米", "25.50"),
        ("25.5m2", "25.50"),
        ("２５．５ｍ２", "25.50"),
        ("２５．５㎡", "25.50"),
        ("25 m²", "25.00"),
        ("25平方メートル", "25.00"),
        ("1,234.5m²", "1234.50"),
        ("33.0578m²", "33.06"),
        ("0.01m²", "0.01"),
    ],
)
def test_an_area_is_read_to_the_hundredth(text: str, area: str) -> None:
    assert parse_area(text) == Decimal(area)
    assert str(parse_area(text)) == area


@pytest.mark.parametrize(
    "text",
    ["", "25.5", "m²", "0m²", "-5m²", "25,5m²", "25.5坪", "1,000,001m²", "25m", "NaNm²", "1e9m²"],
)
def test_what_is_no_area_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_area(text)


@steady
@given(st.integers(1, 10**8), st.sampled_from(["m²", "㎡", "平米", "m2", " m2"]))
def test_every_area_is_read_back(hundredths: int, unit: str) -> None:
    area = Decimal(hundredths) / 100
    for text in (f"{area:.2f}{unit}", f"{area:,.2f}{unit}".translate(WIDE)):
        assert parse_area(text) == area


@pytest.mark.parametrize(
    ("text", "access"),
    [
        ("新宿駅 徒歩5分", Access("新宿駅", None, 5)),
        ("新宿駅 徒歩 5 分", Access("新宿駅", None, 5)),
        ("新宿駅徒歩５分", Access("新宿駅", None, 5)),
        ("新宿 徒歩5分", Access("新宿", None, 5)),
        ("徒歩5分", Access(None, None, 5)),
        ("バス10分 徒歩3分", Access(None, None, 3, 10)),
        ("新宿駅 バス10分 徒歩3分", Access("新宿駅", None, 3, 10)),
        ("新宿駅/山手線 バス10分 (バス停)西新宿 停歩3分", Access("新宿駅", "山手線", 3, 10)),
        ("西新宿駅/東京メトロ丸ノ内線 徒歩3分", Access("西新宿駅", "東京メトロ丸ノ内線", 3)),
        ("守山駅/東海道本線 徒歩1分以内", Access("守山駅", "東海道本線", 1)),
        ("ＪＲ山手線/新宿駅 歩5分", Access("新宿駅", "JR山手線", 5)),
        ("ＪＲ山手線　新宿駅　徒歩5分", Access("新宿駅", "JR山手線", 5)),
        ("東京メトロ 丸ノ内線 西新宿駅 徒歩3分", Access("西新宿駅", "東京メトロ 丸ノ内線", 3)),
        ("東京メトロ東西線「早稲田」駅 徒歩5分", Access("早稲田駅", "東京メトロ東西線", 5)),
        ("「早稲田」駅 徒歩約5分", Access("早稲田駅", None, 5)),
        ("センター北駅/ブルーライン 徒歩12分", Access("センター北駅", "ブルーライン", 12)),
        ("国分寺駅/中央線 徒歩8分", Access("国分寺駅", "中央線", 8)),
        ("大分駅 徒歩0分", Access("大分駅", None, 0)),
        ("熊野前停留場/都電荒川線 徒歩2分", Access("熊野前停留場", "都電荒川線", 2)),
    ],
)
def test_a_way_to_a_station_is_read(text: str, access: Access) -> None:
    assert parse_walk_minutes(text) == access


def test_a_way_takes_as_long_as_the_bus_and_the_walk_together() -> None:
    assert parse_walk_minutes("新宿駅 バス10分 徒歩3分").minutes == 13


@pytest.mark.parametrize(
    "text",
    [
        "",
        "新宿駅",
        "新宿駅 徒歩分",
        "新宿駅 徒歩不明",
        "新宿駅 徒歩-5分",
        "新宿駅 徒歩1000分",
        "新宿駅 車10分",
        "新宿駅 車10分 徒歩5分",
        "新宿駅 バス10分",
        "新宿駅 徒歩5分 渋谷駅 徒歩7分",
        "新宿駅 バス10分 徒歩3分 / 渋谷駅 徒歩5分",
        "新宿駅 徒歩5分から8分",
        "駅" * 10_000,
    ],
)
def test_what_is_no_way_on_foot_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_walk_minutes(text)


names = st.text(alphabet="新宿渋谷品川大崎目黒ヶーセンタ", min_size=1, max_size=8)
minutes = st.integers(0, 999)


@steady
@given(names, names, minutes, minutes)
def test_every_way_is_read_back(station: str, line: str, walk: int, bus: int) -> None:
    stop = f"{station}駅"
    assert parse_walk_minutes(f"{stop}/{line}線 徒歩{walk}分") == Access(stop, f"{line}線", walk)
    by_bus = parse_walk_minutes(f"{line}線 {stop} バス{bus}分 徒歩{walk}分".translate(WIDE))
    assert by_bus == Access(stop, f"{line}線", walk, bus)
