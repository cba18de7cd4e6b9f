"""The sales that somebody who asked the market could have seen, from its truth and its log."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs

from mimawari.sim.sites.mercari.api import ITEM, PRODUCT, cut
from mimawari.sim.sites.mercari.lives import Item, Kind, Status, What
from mimawari.sim.sites.mercari.market import ON_SALE, SOLD, Market, Sieve, Wanted
from mimawari.sim.sites.mercari.observed import Moments

EARLIER = timedelta(days=6)
"""So long before the first look the truth is listened to: trades go on for days."""
STEP = timedelta(days=1)

Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sale:
    """An item that was sold when it was last seen."""

    keyword: str
    item_id: str
    price_yen: int
    sold_at: datetime | None
    """The item's last update as its own page said; None if that was never asked for.

    Where the page was gone, the end of the walk that first showed the item as sold.
    """
    is_rough: bool
    """The page was gone, so that no more than the day can be known."""
    bought_at: datetime


@dataclass(slots=True)
class _Walk:
    """A walk over the pages of a search, and when its latest page was read."""

    at: datetime


@dataclass(slots=True)
class _Known:
    """An item as it was last seen, and what has been told of its sale since it was on sale."""

    item: Item
    sold_in: _Walk
    is_gone: bool = False
    sold_at: datetime | None = None
    is_rough: bool = False

    @property
    def is_sold(self) -> bool:
        return self.item.status in SOLD and not self.is_gone


class Sales:
    """Every look at the market, made again: what each search has seen to be sold.

    A look is an item on a page of a search, or an item's own page, and the latest one counts: what
    is on sale again, or has left the bounds of its search, is no sale. Where an item's own page is
    gone, what was seen to be sold was sold all the same, and what was on sale was not. Searches
    must share no items, because nobody can tell for which of them an own page was read.

    A true sale is one between the first look and `until`; it was seen if any look came before the
    item was on sale again.
    """

    def __init__(
        self,
        seed: int,
        searches: Sequence[Wanted],
        requests: Sequence[Mapping[str, Any]],
        until: datetime,
    ) -> None:
        self.taken_back = 0
        """How often something that was seen to be sold was seen on sale again, or out of bounds."""
        self.walks = 0
        self._wanted = {one.keyword: one for one in searches}
        self._sieves = {one.keyword: Sieve(one) for one in searches}
        self._walks: dict[str, _Walk] = {}
        self._known: dict[Key, _Known] = {}
        self._bought: dict[str, int] = {}
        self._true: dict[tuple[str, str, int], bool] = {}
        self._span = (_time_of(requests[0]) if requests else until, until)
        self._clock = Moments(self._span[0] - EARLIER)
        self._market = Market(self._clock, seed)
        self._heard = 0
        self._hear()
        for seen in requests:
            self._go_to(_time_of(seen))
            self._look(seen)
        self._go_to(until)

    @property
    def true(self) -> int:
        """How many sales there were while the market was watched."""
        return len(self._true)

    @property
    def true_seen(self) -> int:
        """How many of them were seen."""
        return sum(self._true.values())

    def list_seen(self) -> list[Sale]:
        """List what was sold when it was last seen, whenever that was."""
        return [
            Sale(
                keyword=keyword,
                item_id=item_id,
                price_yen=known.item.price_yen,
                sold_at=known.sold_at,
                is_rough=known.is_rough,
                bought_at=datetime.fromtimestamp(self._bought[item_id], UTC),
            )
            for (keyword, item_id), known in self._known.items()
            if self._is_sale(keyword, known)
        ]

    def _is_sale(self, keyword: str, known: _Known) -> bool:
        return known.is_sold and self._sieves[keyword].suits(known.item)

    def _go_to(self, at: datetime) -> None:
        """Let time pass in steps, because the market remembers only a week."""
        while self._clock.at < at:
            self._clock.at = min(at, self._clock.at + STEP)
            self._hear()

    def _hear(self) -> None:
        """Gather what was bought meanwhile."""
        events = self._market.events(self._heard)
        start, end = (moment.timestamp() for moment in self._span)
        for event in events:
            goods = event.item.goods
            if event.what is not What.BOUGHT:
                continue
            self._bought[goods.id] = event.at
            if start < event.at <= end:
                for keyword in self._list_wanting(event.item):
                    self._true[keyword, goods.id, event.at] = False
        self._heard = int(self._clock.at.timestamp())

    def _list_wanting(self, item: Item) -> Iterable[str]:
        return (word for word, sieve in self._sieves.items() if sieve.is_fit(item))

    def _look(self, seen: Mapping[str, Any]) -> None:
        if seen["searched"]:
            self._look_at_page(**seen["searched"])
        elif seen["path"] == ITEM:
            self._look_at_item(parse_qs(seen["query"])["id"][0])
        elif seen["path"].startswith(PRODUCT):
            self._look_at_item(seen["path"].removeprefix(PRODUCT))

    def _look_at_page(self, *, keyword: str, statuses: Sequence[Status], page: int) -> None:
        wanted = self._wanted[keyword].of(statuses)
        if page == 0 and wanted.statuses == ON_SALE:
            self._walks[keyword] = _Walk(self._clock.at)
            self.walks += 1
        self._walks[keyword].at = self._clock.at
        for item in cut(self._market.search(wanted), keyword, page).items:
            # What has no price is no sale, and nobody can buy it.
            if item.goods.kind is not Kind.NO_PRICE:
                self._see(keyword, item)

    def _see(self, keyword: str, item: Item) -> _Known:
        """Keep how an item looks now."""
        walk = self._walks[keyword]
        known = self._known.setdefault((keyword, item.goods.id), _Known(item, walk))
        was_sale = self._is_sale(keyword, known)
        if not known.is_sold or item.status not in SOLD:
            known.sold_in, known.sold_at, known.is_rough = walk, None, False
        known.item, known.is_gone = item, False
        is_sale = self._is_sale(keyword, known)
        self.taken_back += was_sale and not is_sale
        if is_sale:
            self._note(keyword, item.goods.id)
        return known

    def _note(self, keyword: str, item_id: str) -> None:
        """Note that a look has seen the latest sale of an item."""
        sale = (keyword, item_id, self._bought[item_id])
        if sale in self._true:
            self._true[sale] = True

    def _look_at_item(self, item_id: str) -> None:
        item = self._market.find(item_id)
        for keyword in self._wanted:
            if (keyword, item_id) in self._known:
                self._read(keyword, item_id, item)

    def _read(self, keyword: str, item_id: str, item: Item | None) -> None:
        """Keep what an item's own page says, or that it is gone."""
        known = self._known[keyword, item_id]
        if item is None:
            known.is_gone = not known.is_sold
            if known.is_sold and known.sold_at is None:
                known.sold_at, known.is_rough = known.sold_in.at, True
            return
        self._see(keyword, item)
        if known.is_sold and known.sold_at is None:
            known.sold_at = datetime.fromtimestamp(item.updated, UTC)


def _time_of(seen: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(seen["at"])
