"""What people may be told of IPs."""

from mimawari.kernel.telling import Facts, Telling
from mimawari.watches.hot.models import AlertKind

_NAMES = {
    AlertKind.HIGH_OUTFLOW: ("よく売れています", "sells fast"),
    AlertKind.LOW_LIQUIDITY: ("売れ行きが鈍っています", "hardly sells"),
    AlertKind.SURGE: ("売れ行きが急増しています", "sales surge"),
    AlertKind.PRICE_DROP: ("相場が下がっています", "prices drop"),
}


def _opened(facts: Facts, language: str) -> str:
    ja, en = _NAMES[AlertKind(facts["kind"])]
    if language == "ja":
        return f"{facts['name']}: {ja}"
    return f"{facts['name']} {en}: {facts['message']}"


def _closed(facts: Facts, language: str) -> str:
    ja, en = _NAMES[AlertKind(facts["kind"])]
    if language == "ja":
        return f"{facts['name']}: 「{ja}」は終わりました"
    return f"{facts['name']}: over: {en}"


def _path(facts: Facts) -> str:
    return f"/hot/{facts['ip_id']}"


TELLINGS = (
    Telling(
        kind="hot.alert_opened", ja="注目の動き", en="alert of an IP", line=_opened, path=_path
    ),
    Telling(
        kind="hot.alert_closed", ja="注目の動きの終わり", en="alert of an IP over", line=_closed,
        path=_path,
    ),
)  # fmt: skip
