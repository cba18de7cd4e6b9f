"""Opens and closes alerts of what is on sale."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import insert, select, update

from mimawari.kernel.ports import Tx
from mimawari.kernel.telling import tell
from mimawari.settings import Settings
from mimawari.watches.prices import market, products
from mimawari.watches.prices.market import Cheapest, Market
from mimawari.watches.prices.models import Product
from mimawari.watches.prices.tables import alerts, settings, sightings

SLACK_PERCENT = 2
"""So much beyond a bar a price must go before anything is said anew, so that nothing flaps."""


class AlertKind(StrEnum):
    """What may be told of what is on sale."""

    NEW_LOWEST = "new_lowest"
    UNDER_TARGET = "under_target"
    UNDER_MEDIAN = "under_median"


EACH = (AlertKind.UNDER_TARGET, AlertKind.UNDER_MEDIAN)
"""What is told of each item by itself; of the others there is one alert for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The price at which something is told, and why that one."""

    price: int
    reason: str

    @property
    def over(self) -> int:
        """The price up to which it is not over."""
        return self.price * (100 + SLACK_PERCENT) // 100


@dataclass(frozen=True, slots=True)
class Offer:
    """Something that is on sale, and the bar that it passes."""

    bar: Bar
    cheapest: Cheapest


async def sync_alerts(tx: Tx, product: Product, found: Settings, now: datetime) -> None:
    """Open what is new, close what is over, and tell of both once."""
    # Whoever else comes to this product waits here, so that nothing is told twice.
    mine = settings.c.product_id == product.id
    held = await tx.execute(select(settings.c.lowest_yen).where(mine).with_for_update())
    lowest = held.scalar_one()
    worth = await market.find_market(tx, product.id, market.USUAL_DAYS, now, found)
    is_open = await _list_open(tx, product.id)
    bars = make_bars(product, worth, lowest)
    teller = _Teller(tx, product, now)
    await teller.sync_lowest(bars.get(AlertKind.NEW_LOWEST), worth.cheapest, is_open)
    for kind in EACH:
        bar = bars.get(kind)
        opened = {row.external_id: row for row in is_open if row.kind == kind}
        for row in opened.copy().values():
            if over := find_item_over(row, bar, now - found.prices_unseen_after):
                await teller.close(opened.pop(row.external_id), over)
        for offer in list_offers(kind, bar, worth):
            await teller.tell_offer(kind, offer, opened.get(offer.cheapest.external_id))
    reached = find_lowest(worth, lowest)
    if reached != lowest:
        await tx.execute(update(settings).where(mine).values(lowest_yen=reached))


async def _list_open(tx: Tx, product_id: int) -> list[Any]:
    """List the open alerts of a product, each with how its item stands now."""
    same = (sightings.c.product_id == alerts.c.product_id) & (
        sightings.c.external_id == alerts.c.external_id
    )
    standing = (sightings.c.on_sale_yen, sightings.c.last_seen_at)
    query = select(alerts, *standing).outerjoin(sightings, same)
    query = query.where(alerts.c.product_id == product_id, alerts.c.open_key.is_not(None))
    return list((await tx.execute(query.order_by(alerts.c.id))).all())


async def close_unseen(tx: Tx, found: Settings, now: datetime) -> None:
    """Close the alerts of what was not seen for too long, also while the site cannot be asked."""
    same = (sightings.c.product_id == alerts.c.product_id) & (
        sightings.c.external_id == alerts.c.external_id
    )
    query = select(alerts.c.product_id).distinct().join(sightings, same)
    query = query.where(
        alerts.c.open_key.is_not(None),
        sightings.c.last_seen_at < now - found.prices_unseen_after,
    )
    for product_id in sorted((await tx.execute(query)).scalars()):
        product = await products.find_product(tx, product_id)
        if product is not None:
            await sync_alerts(tx, product, found, now)


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


def find_over(told_yen: int, cheapest: Cheapest | None) -> str | None:
    """Return why a new lowest is over; None if it is not."""
    if cheapest is None:
        return "nothing of it is on sale any more"
    # It is measured by itself: the bar has gone down with it.
    if cheapest.price > Bar(price=told_yen, reason="").over:
        return f"the cheapest on sale is {cheapest.price:,} yen now"
    return None


def find_item_over(opened: Any, bar: Bar | None, since: datetime) -> str | None:
    """Return why the alert of one item is over; None if the item is there for so little."""
    if bar is None:
        return "there is nothing to measure it by any more"
    if opened.on_sale_yen is None:
        return "it is not on sale any more"
    if opened.last_seen_at < since:
        return f"it was not seen since {opened.last_seen_at:%Y-%m-%d %H:%M} UTC"
    if opened.on_sale_yen > bar.over:
        return f"it costs {opened.on_sale_yen:,} yen now"
    return None


def list_offers(kind: AlertKind, bar: Bar | None, worth: Market) -> list[Offer]:
    """List what is cheap enough to be told: the cheapest that counts, and one that is doubtful.

    Both are told, so that junk that is cheaper yet hides no bargain. A doubtful price under the
    median is told only if the bar itself lies where every price is doubtful.
    """
    least_yen = worth.bounds.least_yen
    if bar is None:
        return []
    found = [worth.cheapest]
    if kind is AlertKind.UNDER_TARGET or (least_yen is not None and bar.price < least_yen):
        found.append(worth.doubtful)
    return [Offer(bar, one) for one in found if one is not None and one.price <= bar.price]


@dataclass(frozen=True, slots=True)
class _Teller:
    """Tells what is on sale of one product."""

    tx: Tx
    product: Product
    now: datetime

    async def sync_lowest(
        self, bar: Bar | None, cheapest: Cheapest | None, is_open: Sequence[Any]
    ) -> None:
        """Open, close or leave the one alert of a new lowest."""
        opened = next((row for row in is_open if row.kind == AlertKind.NEW_LOWEST), None)
        if cheapest is None or bar is None or cheapest.price > bar.price:
            if opened is not None and (over := find_over(opened.price, cheapest)):
                await self.close(opened, over)
            return
        if opened is not None:
            await self.close(opened, "something yet cheaper is on sale")
        key = f"{self.product.id}:{AlertKind.NEW_LOWEST}"
        await self._open(AlertKind.NEW_LOWEST, key, Offer(bar, cheapest))

    async def tell_offer(self, kind: AlertKind, offer: Offer, opened: Any) -> None:
        """Open the alert of an item that is the cheapest now, unless it was told for as little."""
        cheapest = offer.cheapest
        if opened is not None:
            if cheapest.price > _next_lowest(opened.price):
                return
            await self.close(opened, f"it is cheaper yet, at {cheapest.price:,} yen")
        await self._open(kind, f"{self.product.id}:{kind}:{cheapest.external_id}", offer)

    async def _open(self, kind: AlertKind, key: str, offer: Offer) -> None:
        bar, cheapest = offer.bar, offer.cheapest
        values: dict[str, Any] = {
            "product_id": self.product.id,
            "kind": kind,
            "external_id": cheapest.external_id,
            "name": cheapest.name,
            "price": cheapest.price,
            "threshold": bar.price,
            "reason": bar.reason,
            "doubt": cheapest.outlier,
            "opened_at": self.now,
            "open_key": key,
        }
        await self.tx.execute(insert(alerts).values(values))
        message = f"{cheapest.name} is on sale for {cheapest.price:,} yen; {bar.reason}"
        if cheapest.outlier is not None:
            message += f"; doubtful: {cheapest.outlier}"
        url = cheapest.selling_url
        self._tell("prices.alert_opened", {**values, "message": message, "url": url})

    async def close(self, opened: Any, reason: str) -> None:
        over = {"closed_at": self.now, "closed_reason": reason, "open_key": None}
        mine = alerts.c.id == opened.id
        await self.tx.execute(update(alerts).where(mine).values(over))
        self._tell("prices.alert_closed", {**opened._asdict(), "message": f"over: {reason}"})

    def _tell(self, event: str, told: dict[str, Any]) -> None:
        names = ("kind", "external_id", "name", "price", "threshold", "message", "url", "doubt")
        body = {
            "product_id": self.product.id,
            "product": self.product.name,
            **{name: told[name] for name in names if name in told},
            "at": self.now.isoformat(),
        }
        tell(self.tx, f"prices:{self.product.id}", event, body)
