"""What several pages of the prices watch tell: alerts, bounds, and when a product is crawled."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mimawari.watches.prices import actions, market, queries
from mimawari.watches.prices.alerts import AlertKind
from mimawari.watches.prices.figures import LEAST_SALES, Bounds
from mimawari.watches.prices.market import Market
from mimawari.watches.prices.models import Product
from mimawari.web.visit import Visit, write_yen
from mimawari.web.words import Words

MOST_OPEN = 10
"""How many open alerts are shown of a product."""
ALERTS = {
    AlertKind.NEW_LOWEST: "prices.alert_new_lowest",
    AlertKind.UNDER_TARGET: "prices.alert_under_target",
    AlertKind.UNDER_MEDIAN: "prices.alert_under_median",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """When a product is crawled next, if by itself, and why then."""

    next_at: datetime | None
    reason: str
    blocked_by: str | None = None


def tell_alert(words: Words, row: Any) -> str:
    """Say an alert in a sentence."""
    key = ALERTS[AlertKind(row.kind)]
    said = words(key, name=row.name, price=write_yen(row.price), bar=write_yen(row.threshold))
    return said if row.doubt is None else f"{said} {words('prices.doubtful')}"


def tell_bounds(words: Words, there: Market) -> str:
    """Say which prices count, and why those."""
    count = there.outliers + (there.sold.count if there.sold else 0)
    least, most = there.bounds.least_yen, there.bounds.most_yen
    if least is None or most is None:
        return words("prices.all_count", n=count, least=LEAST_SALES)
    return words("prices.bounds", least=write_yen(least), most=write_yen(most), n=count)


def tell_outlier(words: Words, bounds: Bounds, price: int) -> str:
    """Say why a price is left out; nothing if it counts."""
    if bounds.least_yen is not None and price < bounds.least_yen:
        return words("prices.too_low", bar=write_yen(bounds.least_yen))
    if bounds.most_yen is not None and price > bounds.most_yen:
        return words("prices.too_high", bar=write_yen(bounds.most_yen))
    return ""


def tell_under(words: Words, percent: float | None) -> str:
    """Say how far a price is under the median, or over it."""
    if percent is None:
        return "–"
    key = "prices.under" if percent >= 0 else "prices.over"
    return words(key, percent=f"{abs(percent):.0f}")


async def find_market(visit: Visit, product_id: int, days: int = market.USUAL_DAYS) -> Market:
    """Find what a product is worth over some days up to now."""
    now, settings = visit.system.clock.now(), visit.system.settings
    async with visit.system.store.read() as reader:
        return await market.find_market(reader, product_id, days, now, settings)


async def find_next(visit: Visit, product: Product) -> Next:
    """Tell when a product is crawled next, and why then."""
    found = await actions.find_next(visit.system, product)
    if found is not None:
        return Next(next_at=found.next_at, reason=found.reason, blocked_by=found.blocked_by)
    key = "prices.unplanned" if product.setting.enabled else "prices.never"
    return Next(next_at=None, reason=visit.words(key))


async def list_open(visit: Visit, product_id: int) -> list[tuple[Any, str]]:
    """List the open alerts of a product, each with its sentence."""
    wanted = queries.want_alerts(visit.system, product_id, is_open=True)
    async with visit.system.store.read() as reader:
        rows = await queries.list_alerts(reader, MOST_OPEN, None, wanted)
    return [(row, tell_alert(visit.words, row)) for row in rows]


async def count_open(visit: Visit, product_id: int) -> int:
    """Count the open alerts of a product."""
    wanted = queries.want_alerts(visit.system, product_id, is_open=True)
    async with visit.system.store.read() as reader:
        return await queries.count_alerts(reader, wanted)
