"""What is traded on the simulated market: made-up franchises, their goods and their titles."""

import unicodedata
from dataclasses import dataclass
from itertools import accumulate

from mimawari.sim.chance import Chance

HOURS = 24
# How busy each hour of a Japanese day is: nights are quiet, evenings are not.
DAY = (
    *(0.70, 0.40, 0.25, 0.15, 0.12, 0.20, 0.40, 0.65, 0.80, 0.80, 0.90, 1.00),
    *(1.20, 1.10, 0.95, 0.95, 1.00, 1.15, 1.35, 1.60, 1.95, 2.20, 2.10, 1.40),
)
HOSTILE_SHARE = 0.04
FULL_NAME_SHARE = 0.5
ENGLISH_SHARE = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Franchise:
    """A made-up anime, and how its goods are traded."""

    key: str
    name: str
    keyword: str
    english: str
    cast: tuple[str, ...]
    listed_a_day: float
    days_to_sell: float
    price_level: float
    evenings: float
    late_hours: int = 0

    def curve(self) -> tuple[float, ...]:
        """Tell how busy each hour of its day is; the mean is 1."""
        raw = [DAY[(hour - self.late_hours) % HOURS] ** self.evenings for hour in range(HOURS)]
        return tuple(weight * HOURS / sum(raw) for weight in raw)


@dataclass(frozen=True, slots=True)
class Ware:
    """A sort of goods: what it is called, where it is filed, what it costs, how common it is."""

    name: str
    category_id: int
    price_yen: int
    weight: float


@dataclass(frozen=True, slots=True)
class Category:
    """A drawer of the market, inside a larger one."""

    id: int
    name: str
    parent_id: int
    parent_name: str


ROOT_CATEGORY = (5000, "ホビー・グッズ")
CATEGORIES = {
    entry.id: entry
    for entry in (
        Category(5111, "フィギュア", 5110, "フィギュア・模型"),
        Category(5112, "プライズ", 5110, "フィギュア・模型"),
        Category(5121, "アクリルスタンド", 5120, "キャラクターグッズ"),
        Category(5122, "缶バッジ", 5120, "キャラクターグッズ"),
        Category(5123, "キーホルダー", 5120, "キャラクターグッズ"),
        Category(5124, "ぬいぐるみ", 5120, "キャラクターグッズ"),
        Category(5125, "タペストリー", 5120, "キャラクターグッズ"),
        Category(5126, "クリアファイル", 5120, "キャラクターグッズ"),
        Category(5131, "シングルカード", 5130, "トレーディングカード"),
        Category(5141, "ブルーレイ", 5140, "映像・音楽"),
        Category(5142, "CD", 5140, "映像・音楽"),
        Category(5151, "画集・設定資料", 5150, "本"),
        Category(5161, "Tシャツ", 5160, "衣類"),
    )
}
WARES = (
    Ware("アクリルスタンド", 5121, 1300, 16),
    Ware("缶バッジ", 5122, 650, 15),
    Ware("キーホルダー", 5123, 900, 11),
    Ware("ぬいぐるみ マスコット", 5124, 2200, 9),
    Ware("クリアファイル", 5126, 500, 8),
    Ware("1/7スケール フィギュア", 5111, 14800, 6),
    Ware("プライズフィギュア", 5112, 2400, 10),
    Ware("B2タペストリー", 5125, 3900, 6),
    Ware("トレカ SR", 5131, 800, 9),
    Ware("Blu-ray BOX 初回限定版", 5141, 9800, 3),
    Ware("キャラソンCD", 5142, 1200, 2),
    Ware("設定資料集", 5151, 3300, 2),
    Ware("Tシャツ Lサイズ", 5161, 3000, 3),
)
BEFORE = (
    *("", "", "", "", "", "【新品未開封】", "【美品】", "【即購入OK】", "☆", "【送料無料】 "),
    *("■", "最終値下げ!!", "〈未使用〉", "レア♪ "),
)
AFTER = (
    *("", "", "", "", "", "", " 匿名配送", " 2点セット", " 非売品", " まとめ売り", " バラ不可"),
    *(" 箱なし", " コンプ", " 限定", " 1st ver.", " #推し活"),
)
# Titles that readers of pages have stumbled over; {0} is the franchise, {1} a name, {2} the ware.
HOSTILE = (
    "{0} {1} の画像 つき {2}",
    "{0} {2} 500円OFF 3,000円→2,500円 {1}",
    "{0} \"{1}\" {2} '限定' & more",
    "<b>{0}</b> {1} {2} <script>alert(1)</script>",
    "🎉✨{0}✨🎉 {1} {2} 👩‍👩‍👧‍👦🇯🇵",
    "{0} {2} のサムネイル 売り切れ {1}",
    "{0} {1} {2} ¥9,999 現在 ¥300 SOLD",
    "{0}\u3000\uff21\uff22\uff11\uff12 {1} {2} \uffe5\uff11\uff0c\uff10\uff10\uff10",
    "{0} {1} {2} \\u0000 %00 ${{x}} {{{{y}}}} &lt;i&gt;",
    "{0} {1} {2}" + " とても長い題名" * 40,
    "{0} ｱｸﾘﾙ {1} {2} ﾊﾝｶｸ",
    "{0} {1}\u200b{2}\u202e逆",
)

_FRANCHISES = (
    ("post", "星くず郵便と竜の切手", "星くず郵便", "Stardust Post", (240, 3.0, 1.2, 1.0, 0)),
    ("sword", "機装剣姫ヴェルティナ", "ヴェルティナ", "Vertina", (140, 2.2, 1.6, 1.3, 1)),
    ("volt", "超電磁少女ビリリカ", "ビリリカ", "Volt Girl Biririka", (90, 4.5, 0.8, 0.8, 0)),
    ("cafe", "喫茶ねむり猫の魔法帳", "ねむり猫の魔法帳", "Nemuri Cafe", (70, 3.5, 0.9, 1.0, 0)),
    ("rail", "蒼穹鉄道セレナーデ99", "蒼穹鉄道", "Skyline Serenade", (55, 6.0, 1.1, 1.1, 0)),
    ("ghost", "幽霊部長は成仏しない", "幽霊部長", "President Ghost", (45, 1.6, 1.0, 1.5, 2)),
    ("demon", "雨宮さんちの小さな魔王", "小さな魔王", "Little Demon King", (36, 5.0, 0.7, 0.7, -1)),
    ("bento", "銀河弁当屋ミルキィ亭", "ミルキィ亭", "Galaxy Bento", (28, 8.0, 0.6, 0.9, 0)),
    ("choir", "深海合唱部ラグナブルー", "ラグナブルー", "Lagna Blue", (22, 2.8, 1.4, 1.2, 0)),
    ("survey", "放課後ダンジョン測量部", "ダンジョン測量部", "Surveyors", (18, 4.0, 1.0, 1.0, 1)),
    ("moon", "月影奇譚ユラギ", "月影奇譚", "Yuragi", (13, 9.0, 2.2, 1.4, 2)),
    ("junk", "ポコとガラクタ王国", "ガラクタ王国", "Poko Junk", (9, 7.0, 0.5, 0.6, -2)),
    ("clock", "逆さ時計塔のミュゲ", "時計塔のミュゲ", "Muguet", (6, 3.2, 1.8, 1.0, 0)),
    ("desert", "砂漠航路ハルマッタン号", "ハルマッタン号", "The Harmattan", (4, 6.5, 1.3, 1.0, 0)),
)
_CASTS = (
    ("ルカ", "ミツバ", "竜のポスト", "シオン", "トワ局長"),
    ("ヴェル", "ティナ", "黒騎士ゼオ", "リンド", "ミスリル"),
    ("ビリリカ", "アンペア先輩", "コイルくん", "オーム", "ネオン"),
    ("ねむ", "モカ店長", "しっぽ", "クローヴ", "マシロ"),
    ("セレナ", "車掌ハル", "セイカ", "ベル", "九十九"),
    ("部長", "サキ", "鈴原くん", "オキクさん", "タマ"),
    ("まおー", "雨宮ハナ", "雨宮ソウタ", "使い魔ぺそ", "勇者みどり"),
    ("ミルキィ", "店主ゴハチ", "タコさん", "うめ", "シャケ隊長"),
    ("ラグナ", "ウミ", "アオイ", "くらげ先生", "ナギサ"),
    ("測量士カナ", "ポール", "ミズキ", "スライム係", "迷宮主"),
    ("ユラギ", "月読", "夜叉丸", "ツムギ", "朧"),
    ("ポコ", "ネジ王", "ブリキ", "さびすけ", "ガラ"),
    ("ミュゲ", "歯車伯爵", "スズラン", "ゼンマイ", "クロエ"),
    ("ハル船長", "サンド", "オアシス", "ラクダ号", "ジン"),
)
FRANCHISES = tuple(
    Franchise(
        key=key,
        name=name,
        keyword=keyword,
        english=english,
        cast=cast,
        listed_a_day=rates[0],
        days_to_sell=rates[1],
        price_level=rates[2],
        evenings=rates[3],
        late_hours=rates[4],
    )
    for (key, name, keyword, english, rates), cast in zip(_FRANCHISES, _CASTS, strict=True)
)
_WEIGHTS_SO_FAR = tuple(accumulate(ware.weight for ware in WARES))


def pick_ware(chance: Chance) -> Ware:
    """Pick what somebody sells, common things more often."""
    return chance.choices(WARES, cum_weights=_WEIGHTS_SO_FAR)[0]


def make_title(chance: Chance, franchise: Franchise, ware: Ware) -> str:
    """Write a title as sellers do, now and then one that breaks careless readers."""
    member = chance.choice(franchise.cast)
    called = franchise.name if chance.random() < FULL_NAME_SHARE else franchise.keyword
    if chance.random() < HOSTILE_SHARE:
        return chance.choice(HOSTILE).format(called, member, ware.name)
    also = f" {franchise.english}" if chance.random() < ENGLISH_SHARE else ""
    return f"{chance.choice(BEFORE)}{called}{also} {member} {ware.name}{chance.choice(AFTER)}"


def fold(text: str) -> str:
    """Return text as the market compares it: widths and cases make no difference."""
    return unicodedata.normalize("NFKC", text).casefold()
