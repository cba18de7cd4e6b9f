"""What belongs to a product, what it stands for, and what a crawl could have shown."""

import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from mimawari.columns.stamps import WRITTEN, parse_stamp
from mimawari.watches.prices.models import Found, SellingStatus, Setting

QUARTER = 900
"""Seconds; a day of any zone begins with a quarter of an hour."""
HOUR = timedelta(hours=1)
NOON = timedelta(hours=12)
WORTHLESS: Mapping[str, int | None] = {
    "on_sale_yen": None,
    "sold_yen": None,
    "sold_quarter": None,
    "sold_after_hours": None,
}
"""What stands for nothing in the figures."""


def fold(text: str) -> str:
    """Return text as a search compares it: wide and narrow, large and small are alike."""
    return unicodedata.normalize("NFKC", text).casefold()


def find_mismatch(setting: Setting, name: str, price: int) -> str | None:
    """Tell why an item is none of a product's, by its settings alone; None if it is one."""
    if setting.min_price and price < setting.min_price:
        return f"{price:,} yen is less than {setting.min_price:,}"
    if setting.max_price and price > setting.max_price:
        return f"{price:,} yen is more than {setting.max_price:,}"
    folded = fold(name)
    for word in fold(setting.keyword).split():
        if word not in folded:
            return f"its name lacks {word!r}"
    for word in setting.exclusions:
        if fold(word) in folded:
            return f"its name has {word!r}"
    return None


def oldest_shown(found: Sequence[Found]) -> datetime | None:
    """Tell when the oldest item on sale that a crawl has shown was listed."""
    times = [
        one.listed_at
        for one in found
        if one.selling_status is SellingStatus.ON_SALE and one.listed_at is not None
    ]
    return min(times, default=None)


def could_be_shown(
    listed_at: datetime | None, oldest_at: datetime | None, *, is_whole: bool
) -> bool:
    """Say whether an item on sale would have been on the pages read: they show the newest first."""
    if is_whole:
        return True
    return listed_at is not None and oldest_at is not None and listed_at > oldest_at


def parse_sold_out_at(text: str) -> datetime:
    """Read when something was sold; of a day alone its noon, which is that day in most zones."""
    if len(text) < len("2026-01-01 00:00:00"):
        return datetime.strptime(text, WRITTEN[:8]).replace(tzinfo=UTC) + NOON
    return parse_stamp(text)


def quarter_of(at: datetime) -> int:
    """Count the quarters of an hour up to a moment."""
    return int(at.timestamp()) // QUARTER


def sold_quarter_of(row: Mapping[str, Any]) -> int | None:
    """Tell in which quarter of an hour a result was sold; None if it was not, or nobody knows."""
    if row["selling_status"] != SellingStatus.SOLD_OUT or not row["sold_out_at"]:
        return None
    return quarter_of(parse_sold_out_at(row["sold_out_at"]))


def worth_of(row: Mapping[str, Any], listed_at: datetime | None) -> dict[str, int | None]:
    """Tell what a result stands for in the figures: a price on sale, or a sale and its time."""
    worth = dict(WORTHLESS)
    if row["selling_status"] == SellingStatus.ON_SALE:
        worth["on_sale_yen"] = row["price"]
    elif row["sold_out_at"]:
        sold_at = parse_sold_out_at(row["sold_out_at"])
        worth["sold_yen"] = row["price"]
        worth["sold_quarter"] = quarter_of(sold_at)
        if listed_at is not None:
            worth["sold_after_hours"] = max(0, (sold_at - listed_at) // HOUR)
    return worth
