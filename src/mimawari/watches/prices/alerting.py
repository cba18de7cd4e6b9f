"""Opens and closes alerts of what is on sale: one open for each kind and product."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import insert, select, update

from mimawari.kernel.ports import Tx
from mimawari.kernel.telling import tell
from mimawari.settings import Settings
from mimawari.watches.prices import market
from mimawari.watches.prices.market import Cheapest, Market
from mimawari.watches.prices.models import Product
from mimawari.watches.prices.tables import alerts, settings

SLACK_PERCENT = 2
"""So much beyond a bar a price must go before anything is said anew, so that nothing flaps."""


class AlertKind(StrEnum):
    """What may be told of what is on sale."""

    NEW_LOWEST = "new_lowest"
    UNDER_TARGET = "under_target"
    UNDER_MEDIAN = "under_median"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The price at which something is told, and why that one."""

    price: int
    reason: str

    @property
    def over(self) -> int:
        """The price up to which it is not over."""
        return self.price * (100 + SLACK_PERCENT) // 100


async def sync_alerts(tx: Tx, product: Product, found: Settings, now: datetime) -> None:
    """Open what is new, close what is over, and tell of both once."""
    # Whoever else comes to this product waits here, so that nothing is told twice.
    mine = settings.c.product_id == product.id
    held = await tx.execute(select(settings.c.lowest_yen).where(mine).with_for_update())
    lowest = held.scalar_one()
    worth = await market.find_market(tx, product.id, market.USUAL_DAYS, now, found.zone)
    query = select(alerts).where(alerts.c.product_id == product.id, alerts.c.open_key.is_not(None))
    is_open = {AlertKind(row.kind): row for row in await tx.execute(query)}
    bars = make_bars(product, worth, lowest)
    teller = _Teller(tx, product, worth.cheapest, now)
    for kind in AlertKind:
        await teller.sync(kind, bars.get(kind), is_open.get(kind))
    reached = find_lowest(worth, lowest)
    if reached != lowest:
        await tx.execute(update(settings).where(mine).values(lowest_yen=reached))


def make_bars(product: Product, worth: Market, lowest: int | None) -> dict[AlertKind, Bar]:
    """Tell at which prices something is to be told."""
    bars = {}
    setting = product.setting
    if setting.target_price is not None:
        said = f"the target is {setting.target_price:,} yen"
        bars[AlertKind.UNDER_TARGET] = Bar(price=setting.target_price, reason=said)
    # Before enough was sold to tell what is usual, a median says little, and a lowest less.
    if worth.sold is None or worth.bounds.least_yen is None:
        return bars
    if setting.median_percent is not None:
        price = int(worth.sold.median_yen * (100 - setting.median_percent) / 100)
        said = (
            f"{setting.median_percent} percent under the median of {worth.sold.median_yen:,.0f} yen"
            f" of {worth.sold.count:,} sales"
        )
        bars[AlertKind.UNDER_MEDIAN] = Bar(price=price, reason=said)
    if lowest is not None and lowest >= worth.bounds.least_yen:
        price = _next_lowest(lowest)
        said = f"the lowest so far was {lowest:,} yen"
        bars[AlertKind.NEW_LOWEST] = Bar(price=price, reason=said)
    return bars


def find_lowest(worth: Market, lowest: int | None) -> int | None:
    """Tell the price that the next lowest is measured by: the last one told."""
    if worth.cheapest is None or worth.bounds.least_yen is None:
        return lowest
    price = worth.cheapest.price
    if lowest is None or lowest < worth.bounds.least_yen:
        return price
    return price if price <= _next_lowest(lowest) else lowest


def _next_lowest(lowest: int) -> int:
    return lowest * (100 - SLACK_PERCENT) // 100


def find_over(
    kind: AlertKind, told_yen: int, bar: Bar | None, cheapest: Cheapest | None
) -> str | None:
    """Tell why an alert is over; None if it is not."""
    if cheapest is None:
        return "nothing of it is on sale any more"
    # A new lowest is measured by itself: the bar has gone down with it.
    mark = Bar(price=told_yen, reason="") if kind is AlertKind.NEW_LOWEST else bar
    if mark is None:
        return "there is nothing to measure it by any more"
    if cheapest.price > mark.over:
        return f"the cheapest on sale is {cheapest.price:,} yen now"
    return None


@dataclass(frozen=True, slots=True)
class _Teller:
    """Tells of one product what is the cheapest on sale."""

    tx: Tx
    product: Product
    cheapest: Cheapest | None
    now: datetime

    async def sync(self, kind: AlertKind, bar: Bar | None, opened: Any) -> None:
        """Open, close or leave the alert of one kind."""
        over = None if opened is None else find_over(kind, opened.price, bar, self.cheapest)
        if self.cheapest is None or bar is None or self.cheapest.price > bar.price:
            if over is not None:
                await self._close(opened, over)
            return
        if opened is not None and kind is AlertKind.NEW_LOWEST:
            await self._close(opened, "something yet cheaper is on sale")
        elif opened is not None:
            return
        await self._open(kind, bar, self.cheapest)

    async def _open(self, kind: AlertKind, bar: Bar, cheapest: Cheapest) -> None:
        values: dict[str, Any] = {
            "product_id": self.product.id,
            "kind": kind,
            "external_id": cheapest.external_id,
            "name": cheapest.name,
            "price": cheapest.price,
            "threshold": bar.price,
            "reason": bar.reason,
            "opened_at": self.now,
            "open_key": f"{self.product.id}:{kind}",
        }
        await self.tx.execute(insert(alerts).values(values))
        message = f"{cheapest.name} is on sale for {cheapest.price:,} yen; {bar.reason}"
        url = cheapest.selling_url
        self._tell("prices.alert_opened", {**values, "message": message, "url": url})

    async def _close(self, opened: Any, reason: str) -> None:
        over = {"closed_at": self.now, "closed_reason": reason, "open_key": None}
        mine = alerts.c.id == opened.id
        await self.tx.execute(update(alerts).where(mine).values(over))
        self._tell("prices.alert_closed", {**opened._asdict(), "message": f"over: {reason}"})

    def _tell(self, event: str, told: dict[str, Any]) -> None:
        names = ("kind", "external_id", "name", "price", "threshold", "message", "url")
        body = {
            "product_id": self.product.id,
            "product": self.product.name,
            **{name: told[name] for name in names if name in told},
            "at": self.now.isoformat(),
        }
        tell(self.tx, f"prices:{self.product.id}", event, body)
