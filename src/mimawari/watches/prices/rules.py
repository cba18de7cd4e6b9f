"""What belongs to a product, what it stands for, and which own pages are read first."""

import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from mimawari.columns.stamps import WRITTEN, parse_stamp
from mimawari.watches.prices.models import SellingStatus, Setting, Traits

QUARTER = 900
"""Seconds; a day of any zone begins with a quarter of an hour."""
HOUR = timedelta(hours=1)
NOON = timedelta(hours=12)
NOTHING_KNOWN = Traits()
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


def find_mismatch(
    setting: Setting, name: str, price: int, traits: Traits = NOTHING_KNOWN
) -> str | None:
    """Return why an item does not fit a product's settings; None if it does.

    What is not known about the item yet is no reason.
    """
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
    return find_other_kind(setting, traits)


def find_other_kind(setting: Setting, traits: Traits) -> str | None:
    """Return why an item's category or condition does not fit; None if it does, or may."""
    filed, wanted = traits.category_id, setting.category_id
    if not is_inside(traits, wanted):
        return f"its category is {filed}, which is not in {wanted}"
    worn = traits.condition_id
    if setting.item_conditions and worn is not None and worn not in setting.item_conditions:
        wanted_ones = ", ".join(map(str, setting.item_conditions))
        return f"its condition is {worn}, not {wanted_ones}"
    return None


def is_inside(traits: Traits, category_id: int | None) -> bool:
    """Return whether an item is filed in a category or below it, or may be."""
    filed, above = traits.category_id, traits.category_above
    if category_id is None or filed is None or above is None:
        return True
    return category_id == filed or category_id in above


def find_share(capacity: int, others: Sequence[int]) -> int:
    """Return how much of a capacity falls to one who may want all, as others want so much.

    Who wants less than an even part leaves the rest to the others; nobody gets nothing.
    """
    left, count = capacity, len(others) + 1
    for want in sorted(others):
        if want >= left // count:
            break
        left, count = left - want, count - 1
    return max(1, left // count)


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
