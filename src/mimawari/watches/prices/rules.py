"""What belongs to a product, and what a crawl could have shown: pure decisions."""

import unicodedata
from collections.abc import Sequence
from datetime import datetime

from mimawari.watches.prices.models import Found, SellingStatus, Setting


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
