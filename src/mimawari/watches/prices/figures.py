"""What a product is worth by what was sold, and which prices are left out of it: pure decisions."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import exp
from math import log as ln

LEAST_SALES = 8
"""Of fewer sales nobody can tell which price is out of line."""
FARTHEST = 3.5
"""How many robust deviations a price may lie from the middle."""
LEAST_SPREAD = 0.15
"""A robust deviation is taken for at least this, so that equal prices leave room for others."""
TO_SIGMA = 1.4826
"""Makes a median deviation comparable to a standard one."""
WITHIN_HOURS = (1, 6, 24, 72, 168, 336, 720)
"""The steps in which it is told how long things took to sell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Between which prices something counts, and why."""

    least_yen: int | None
    most_yen: int | None
    reason: str

    def find_outlier(self, price: int) -> str | None:
        """Tell why a price is left out; None if it counts."""
        if self.least_yen is not None and price < self.least_yen:
            return f"{price:,} yen is less than {self.least_yen:,}: {self.reason}"
        if self.most_yen is not None and price > self.most_yen:
            return f"{price:,} yen is more than {self.most_yen:,}: {self.reason}"
        return None

    def cut(self, ordered: Sequence[int]) -> Sequence[int]:
        """Return the prices that count."""
        start = 0 if self.least_yen is None else bisect_left(ordered, self.least_yen)
        end = len(ordered) if self.most_yen is None else bisect_right(ordered, self.most_yen)
        return ordered[start:end]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What some sales were worth."""

    count: int
    median_yen: float
    p25_yen: float
    p75_yen: float
    min_yen: int
    max_yen: int


def find_bounds(ordered: Sequence[int]) -> Bounds:
    """Tell which prices are of the product itself, and not of bundles, junk or a mistake.

    Prices are compared as ratios, by their median and the median distance from it, so that some
    that are far out cannot move the middle.
    """
    if len(ordered) < LEAST_SALES:
        reason = f"all count, as {len(ordered)} of {LEAST_SALES} sales cannot tell what is usual"
        return Bounds(least_yen=None, most_yen=None, reason=reason)
    middle = _log(find_share(ordered, 0.5))
    spread = max(TO_SIGMA * _find_spread(ordered, middle), LEAST_SPREAD)
    least, most = exp(middle - FARTHEST * spread), exp(middle + FARTHEST * spread)
    reason = (
        f"{FARTHEST:g} robust deviations around the median of {exp(middle):,.0f} yen"
        f" of {len(ordered):,} sales"
    )
    return Bounds(least_yen=-int(-least // 1), most_yen=int(most), reason=reason)


def _log(price: float) -> float:
    return ln(max(price, 1))


def _find_spread(ordered: Sequence[int], middle: float) -> float:
    """Find the median distance from the middle; the nearest half lies together in the order."""
    half = (len(ordered) + 1) // 2
    low, high = 0, len(ordered) - half
    while low < high:
        start = (low + high) // 2
        below, above = middle - _log(ordered[start]), _log(ordered[start + half]) - middle
        low, high = (start + 1, high) if below > above else (low, start)
    ends = (ordered[low], ordered[low + half - 1])
    return max(abs(_log(price) - middle) for price in ends)


def make_figures(ordered: Sequence[int]) -> Figures | None:
    """Sum up sales; None of nothing."""
    if not ordered:
        return None
    return Figures(
        count=len(ordered),
        median_yen=find_share(ordered, 0.5),
        p25_yen=find_share(ordered, 0.25),
        p75_yen=find_share(ordered, 0.75),
        min_yen=ordered[0],
        max_yen=ordered[-1],
    )


def find_share(ordered: Sequence[int], share: float) -> float:
    """Find the value below which a share lies, between two where it falls so."""
    place = share * (len(ordered) - 1)
    below = int(place)
    if below + 1 >= len(ordered):
        return float(ordered[-1])
    return ordered[below] + (ordered[below + 1] - ordered[below]) * (place - below)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """How many sold so soon, and not sooner; None is later than every step."""

    within_hours: int | None
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DaysToSell:
    """How long things took to sell, of those whose listing was seen."""

    count: int
    median_days: float
    p25_days: float
    p75_days: float
    steps: tuple[Step, ...]


def make_days_to_sell(counts: Mapping[int, int]) -> DaysToSell | None:
    """Sum up how many sales took so many hours from listing to sale; None of nothing."""
    if not counts:
        return None
    hours = sorted(counts)
    ends = [*accumulate(counts[hour] for hour in hours)]
    below = [0, *ends]
    steps = [below[bisect_left(hours, step)] for step in WITHIN_HOURS]
    return DaysToSell(
        count=ends[-1],
        median_days=hours[bisect_left(ends, ends[-1] * 0.5)] / 24,
        p25_days=hours[bisect_left(ends, ends[-1] * 0.25)] / 24,
        p75_days=hours[bisect_left(ends, ends[-1] * 0.75)] / 24,
        steps=tuple(
            Step(within_hours=hour, count=end - start)
            for hour, start, end in zip(
                (*WITHIN_HOURS, None), [0, *steps], [*steps, ends[-1]], strict=True
            )
        ),
    )
