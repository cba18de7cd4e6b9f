"""What people may be told of products."""

from mimawari.kernel.telling import Facts, Telling
from mimawari.watches.prices.alerts import AlertKind

_NAMES = {
    AlertKind.NEW_LOWEST: ("最安値を更新", "a new lowest"),
    AlertKind.UNDER_TARGET: ("目標価格以下", "at or under the target"),
    AlertKind.UNDER_MEDIAN: ("相場より大幅に安い", "far under the median"),
}


_DOUBTS = ("相場から外れた価格のため要確認", "doubtful: far from what it sells for")


def _opened(facts: Facts, language: str) -> str:
    ja, en = _NAMES[AlertKind(facts["kind"])]
    if facts.get("doubt"):
        ja, en = f"{ja}、{_DOUBTS[0]}", f"{en}; {_DOUBTS[1]}"
    yen = int(facts["price"])
    if language == "ja":
        return f"{facts['product']}: {yen:,}円 ({ja}) 「{facts['name']}」"
    return f"{facts['product']}: ¥{yen:,} ({en}): {facts['name']}"


def _closed(facts: Facts, language: str) -> str:
    ja, en = _NAMES[AlertKind(facts["kind"])]
    if language == "ja":
        return f"{facts['product']}: 「{ja}」は終わりました ({int(facts['price']):,}円だったもの)"
    return f"{facts['product']}: over: {en}, which was ¥{int(facts['price']):,}"


def _path(facts: Facts) -> str:
    return f"/prices/{facts['product_id']}"


TELLINGS = (
    Telling(
        kind="prices.alert_opened", ja="掘り出し物", en="bargain", line=_opened, path=_path
    ),
    Telling(
        kind="prices.alert_closed", ja="掘り出し物の終わり", en="bargain over", line=_closed,
        path=_path,
    ),
)  # fmt: skip
