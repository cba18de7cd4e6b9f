"""Which items' own pages are read after a crawl: what the limit allows, shared among products."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, zip_longest
from typing import Any

from sqlalchemy import ColumnElement, Select, func, or_, select, update

from mimawari.kernel.ports import Tx
from mimawari.watches.prices import rules, traits
from mimawari.watches.prices.models import Product, SellingStatus
from mimawari.watches.prices.tables import SAME_ITEM, alerts, results, settings, sightings

LEADS = 20
"""The ten cheapest, and as many behind them, which follow when some of those are gone."""
NEAR = 10
"""How many of those that cost a little more than the target price."""
LOST_AFTER = timedelta(hours=24)
"""A page that was enqueued and not read for so long is enqueued again."""
BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """The results whose own pages are to be read."""

    leads: tuple[int, ...] = ()
    """Those that come first: what is cheap is looked at after every crawl."""
    unseen: tuple[int, ...] = ()
    """What is on sale by our books and was not among the crawl's results."""
    undated: tuple[int, ...] = ()
    """What was sold, nobody knows when."""

    @property
    def others(self) -> tuple[int, ...]:
        """All but those that come first; of both kinds in turn, so that neither waits alone."""
        turns = chain.from_iterable(zip_longest(self.unseen, self.undated))
        return tuple(one for one in turns if one is not None)

    @property
    def all(self) -> tuple[int, ...]:
        """All of them, each once."""
        return (*self.leads, *self.others)


async def choose(tx: Tx, product: Product, crawled_at: datetime, capacity: int | None) -> Checks:
    """Choose the pages to read until the next crawl, and note that they are asked for.

    `capacity` is how many pages all products together may read until then; None is no bound.
    """
    found = _Candidates(tx, product, crawled_at)
    room = None if capacity is None else await found.find_room(capacity)
    leads = _cut(await found.list_leads(), None if room is None else -(-room // 2))
    left = None if room is None else room - len(leads)
    unseen = await found.list_unseen(leads, left)
    undated = await found.list_undated(leads, left)
    if left is not None:
        # Each kind gets a half, and what the other leaves of its own.
        half = left // 2
        unseen, undated = (
            unseen[: max(half, left - len(undated))],
            undated[: max(left - half, left - len(unseen))],
        )
    checks = Checks(leads=tuple(leads), unseen=tuple(unseen), undated=tuple(undated))
    await found.note(checks.all)
    return checks


def _cut(ids: Iterable[int], most: int | None) -> list[int]:
    return list(dict.fromkeys(ids))[:most]


@dataclass(frozen=True, slots=True)
class _Candidates:
    """The results of a product whose own pages may be asked for."""

    tx: Tx
    product: Product
    crawled_at: datetime

    async def find_room(self, capacity: int) -> int:
        """Return how many more pages may be asked for, and keep how many are wanted."""
        wanted = await self._count(or_(self._is_unseen(), self._is_undated()))
        own = settings.c.product_id == self.product.id
        await self.tx.execute(update(settings).where(own).values(wanted=wanted))
        others = select(settings.c.wanted).where(~own, settings.c.enabled == 1)
        wants = list((await self.tx.execute(others)).scalars())
        return max(0, rules.find_share(capacity, wants) - await self._count(~self._is_free()))

    async def _count(self, which: ColumnElement[bool]) -> int:
        query = self._select(func.count()).where(which)
        counted: int = (await self.tx.execute(query)).scalar_one()
        return counted

    def _select(self, *columns: Any) -> Select[Any]:
        query = select(*columns).select_from(sightings).join(results, SAME_ITEM)
        return query.where(sightings.c.product_id == self.product.id)

    def _is_free(self) -> ColumnElement[bool]:
        """Match what is not asked for already."""
        asked_at = sightings.c.asked_at
        return or_(asked_at.is_(None), asked_at < self.crawled_at - LOST_AFTER)

    def _is_unseen(self) -> ColumnElement[bool]:
        at = sightings.c
        return at.on_sale_yen.is_not(None) & (at.last_seen_at < self.crawled_at)

    @staticmethod
    def _is_undated() -> ColumnElement[bool]:
        is_sold = results.c.selling_status == int(SellingStatus.SOLD_OUT)
        return sightings.c.sold_quarter.is_(None) & is_sold & results.c.sold_out_at.is_(None)

    async def list_leads(self) -> list[int]:
        """List the cheapest, those near the target and in open alerts, the longest unseen first."""
        price = sightings.c.on_sale_yen
        chosen: set[int] = set(await traits.list_unplaced(self.tx, self.product))
        ids = self._select(results.c.id)
        cheapest = ids.where(price.is_not(None)).order_by(price, results.c.id).limit(LEADS)
        chosen.update((await self.tx.execute(cheapest)).scalars())
        if (target := self.product.setting.target_price) is not None:
            near = ids.where(price > target).order_by(price, results.c.id).limit(NEAR)
            chosen.update((await self.tx.execute(near)).scalars())
        mine = (alerts.c.product_id == self.product.id) & alerts.c.open_key.is_not(None)
        told = select(alerts.c.external_id).where(mine)
        chosen.update(
            (await self.tx.execute(ids.where(sightings.c.external_id.in_(told)))).scalars()
        )
        return await self._list(self._is_unseen() & results.c.id.in_(chosen), None)

    async def list_unseen(self, without: Sequence[int], most: int | None) -> list[int]:
        """List what is on sale and was not seen, the longest unseen first."""
        return await self._list(self._is_unseen() & results.c.id.not_in(without), most)

    async def list_undated(self, without: Sequence[int], most: int | None) -> list[int]:
        """List what was sold, nobody knows when, the longest unseen first."""
        return await self._list(self._is_undated() & results.c.id.not_in(without), most)

    async def _list(self, which: ColumnElement[bool], most: int | None) -> list[int]:
        query = self._select(results.c.id).where(which, self._is_free())
        ordered = query.order_by(sightings.c.last_seen_at, results.c.id).limit(most)
        return list((await self.tx.execute(ordered)).scalars())

    async def note(self, ids: Sequence[int]) -> None:
        """Note that pages are asked for now."""
        for start in range(0, len(ids), BATCH):
            some = ids[start : start + BATCH]
            named = select(results.c.external_id).where(results.c.id.in_(some))
            mine = sightings.c.product_id == self.product.id
            statement = update(sightings).where(mine, sightings.c.external_id.in_(named))
            await self.tx.execute(statement.values(asked_at=self.crawled_at))
