"""Decisions of the hot watch, pure: no I/O here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import log
from statistics import fmean, median, pstdev

from mimawari.watches.hot.models import (
    AlertKind,
    Change,
    Compared,
    Finding,
    Flow,
    ItemState,
    Kind,
    Pace,
    Prices,
    Seen,
    Status,
    Thresholds,
)

LIGHTEST, HEAVIEST = 0.1, 4.0
FASTER, SLOWER, BACK = 0.25, 0.1, 0.1
# A page of a search holds 120 items; these are what one page brings between two crawls.
BUSY_A_PAGE, CALM_A_PAGE, STILL_A_PAGE = 100, 50, 3
PAGE = 120
NEWS = 0.1
LEAST_STEP, MOST_STEP = 0.5, 4.0


def compare(known: Mapping[str, ItemState], items: Sequence[Seen], at: datetime) -> Compared:
    """Tell what happened to each item, in the order in which the crawl saw them."""
    states: dict[str, ItemState] = {}
    seen: dict[str, Seen] = {}
    changes = []
    for item in items:
        before = states.get(item.source_id) or known.get(item.source_id)
        if before is not None and before.last_seen_at > at:
            # A newer crawl was faster; what an older one saw is no news.
            continue
        change = _change(before, item)
        if change is not None:
            changes.append(change)
        states[item.source_id] = _state(before, item, at)
        seen[item.source_id] = item
    return Compared(changes=tuple(changes), states=states, seen=seen)


def _change(before: ItemState | None, item: Seen) -> Change | None:
    kind = _kind(before, item)
    if kind is None:
        return None
    price_before = before.price_yen if before else None
    price = item.price_yen if item.price_yen is not None else price_before
    return Change(
        source_id=item.source_id, kind=kind, price_before_yen=price_before, price_yen=price
    )


def _kind(before: ItemState | None, item: Seen) -> Kind | None:
    is_sold = item.status is Status.SOLD
    if before is None:
        return Kind.NEW_SOLD if is_sold else Kind.NEW_LISTING
    if before.status is not item.status:
        return Kind.SOLD if is_sold else Kind.RELISTED
    known = before.price_yen is not None and item.price_yen is not None
    if not is_sold and known and before.price_yen != item.price_yen:
        return Kind.PRICE_CHANGE
    return None


def _state(before: ItemState | None, item: Seen, at: datetime) -> ItemState:
    sold_at = before.sold_at if before else None
    if item.status is Status.SOLD and (before is None or before.status is Status.AVAILABLE):
        sold_at = at
    # A price that is not shown this time is the one we knew.
    price = item.price_yen
    if price is None and before is not None:
        price = before.price_yen
    return ItemState(status=item.status, price_yen=price, sold_at=sold_at, last_seen_at=at)


def summarize(prices: Sequence[int]) -> Prices:
    """Describe what newly sold items cost."""
    if not prices:
        return Prices()
    return Prices(
        samples=len(prices),
        average_yen=fmean(prices),
        median_yen=float(median(prices)),
        least_yen=min(prices),
        most_yen=max(prices),
        stddev_yen=pstdev(prices),
    )


def liquidity(inflow: int, outflow: int) -> float | None:
    """Tell how much is sold of what comes in; nothing is known if nothing came in."""
    return outflow / inflow if inflow else None


def hot_score(inflow: int, outflow: int) -> float:
    """Rank what sells fast and much above what merely sells fast."""
    return (outflow + 1) / (inflow + 1) * log(outflow + 1)


def interval(weight: float, pace: Pace) -> timedelta:
    """Tell how long to wait until an IP is crawled again."""
    return max(pace.least, min(pace.most, pace.base / max(weight, LIGHTEST)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """What one crawl brought, and how much it could have brought at the most."""

    inflow: int
    outflow: int
    pages_on_sale: int
    pages_sold: int


def spec_weight(weight: float, brought: Brought) -> float:
    """Go faster where pages fill up, slower where hardly anything moves, else back to 1."""
    on_sale, sold = brought.pages_on_sale, brought.pages_sold
    if brought.inflow > BUSY_A_PAGE * on_sale or brought.outflow > BUSY_A_PAGE * sold:
        return _bounded(weight + FASTER)
    if brought.inflow < CALM_A_PAGE * on_sale and brought.outflow < STILL_A_PAGE * sold:
        return _bounded(weight - SLOWER)
    if weight > 1.0:
        return _bounded(max(1.0, weight - BACK))
    return _bounded(min(1.0, weight + BACK))


def fill_weight(weight: float, brought: Brought) -> float:
    """Crawl so often that a tenth of the fuller side's pages is news, step by step."""
    on_sale = brought.inflow / (PAGE * brought.pages_on_sale)
    sold = brought.outflow / (PAGE * brought.pages_sold)
    step = max(LEAST_STEP, min(MOST_STEP, max(on_sale, sold) / NEWS))
    return _bounded(weight * step)


def _bounded(weight: float) -> float:
    # Rounded, so that ten steps of a tenth are one.
    return round(max(LIGHTEST, min(HEAVIEST, weight)), 4)


Rule = Callable[[float, Brought], float]
RULES: Mapping[str, Rule] = {"spec": spec_weight, "fill": fill_weight}


def find_alerts(flow: Flow, usual_yen: float | None, limits: Thresholds) -> list[Finding]:
    """Tell what is worth telling about an hour, beside what its items usually cost."""
    found = []
    if flow.outflow >= limits.outflow:
        found.append(_finding(AlertKind.HIGH_OUTFLOW, flow.outflow, limits.outflow, flow))
    share = liquidity(flow.inflow, flow.outflow)
    if share is not None and flow.inflow + flow.outflow >= limits.samples:
        if share < limits.liquidity_low:
            found.append(_finding(AlertKind.LOW_LIQUIDITY, share, limits.liquidity_low, flow))
        if share > limits.liquidity_high:
            found.append(_finding(AlertKind.SURGE, share, limits.liquidity_high, flow))
    paid = flow.prices.median_yen
    if usual_yen and paid is not None and flow.prices.samples >= limits.samples:
        drop = round(1 - paid / usual_yen, 4)
        if drop >= limits.price_drop:
            found.append(_finding(AlertKind.PRICE_DROP, drop, limits.price_drop, flow))
    return found


def _finding(kind: AlertKind, value: float, threshold: float, flow: Flow) -> Finding:
    count = flow.prices.samples if kind is AlertKind.PRICE_DROP else flow.inflow + flow.outflow
    return Finding(kind=kind, value=round(value, 4), threshold=threshold, samples=count)


def describe(kind: AlertKind, value: float, threshold: float, samples: int) -> str:
    """Say an alert in a sentence."""
    match kind:
        case AlertKind.HIGH_OUTFLOW:
            return f"{value:.0f} items sold in an hour ({threshold:.0f} or more is high)"
        case AlertKind.LOW_LIQUIDITY:
            return (
                f"only {value:.2f} sold for each one listed, of {samples} items"
                f" (below {threshold:g} is low)"
            )
        case AlertKind.SURGE:
            return (
                f"{value:.2f} sold for each one listed, of {samples} items"
                f" (above {threshold:g} is a surge)"
            )
        case AlertKind.PRICE_DROP:
            return (
                f"the median of {samples} prices is {value:.0%} under that of the last 7 days"
                f" ({threshold:.0%} or more is a drop)"
            )
