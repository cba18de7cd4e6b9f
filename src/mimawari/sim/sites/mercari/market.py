"""The truth of the simulated market: what is on offer, what was sold, and what happened when."""

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import product, takewhile
from typing import Any
from zlib import crc32

from mimawari.errors import BadInput
from mimawari.kernel.ports import Clock
from mimawari.sim.sites.mercari.items import CATEGORIES, FRANCHISES, ROOT_CATEGORY, Franchise, fold
from mimawari.sim.sites.mercari.lives import (
    DAY,
    HOUR,
    KEPT,
    LONGEST,
    NO_PRICE_YEN,
    Event,
    Item,
    Kind,
    Status,
    What,
    list_events,
)

ON_SALE = frozenset({Status.ON_SALE})
SOLD = frozenset({Status.TRADING, Status.SOLD_OUT})
SHOWN = ON_SALE | SOLD
ENDED = frozenset({Status.SOLD_OUT, Status.REMOVED})
SIDES = {"on_sale": ON_SALE, "sold": SOLD, "all": SHOWN}
APART = 1_000_003
"""How far the seeds of a crowd lie from each other."""
SEARCHES = 500
"""How many searches are remembered, so that they are quick when they come again."""
VIEWS = ("items", "rates", "events")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What somebody searches for; empty means no matter."""

    keyword: str = ""
    exclude: str = ""
    statuses: frozenset[Status] = SHOWN
    least_yen: int = 0
    most_yen: int = 0
    categories: frozenset[int] = frozenset()
    conditions: frozenset[int] = frozenset()
    sort: str = "created_time"
    descending: bool = True

    def of(self, statuses: Iterable[Status]) -> "Wanted":
        """Want the same among items of other statuses."""
        return replace(self, statuses=frozenset(statuses))


class Sieve:
    """Says which items a search is for, whatever their status."""

    def __init__(self, wanted: Wanted) -> None:
        self.words = tuple(fold(wanted.keyword).split())
        self._without = fold(wanted.exclude).split()
        self._drawers = _drawers(wanted.categories)
        self._conditions = wanted.conditions
        self._least_yen = wanted.least_yen
        self._most_yen = wanted.most_yen or NO_PRICE_YEN

    def is_fit(self, item: Item) -> bool:
        """Say whether a search is for an item as it is now."""
        return self.is_named(item) and self.suits(item)

    def is_named(self, item: Item) -> bool:
        """Say whether an item's title holds all words that are searched for."""
        return all(word in item.goods.words for word in self.words)

    def suits(self, item: Item) -> bool:
        """Say whether all but the words that are searched for is as wanted."""
        return (
            self._least_yen <= item.price_yen <= self._most_yen
            and not any(word in item.goods.words for word in self._without)
            and (not self._drawers or item.goods.category_id in self._drawers)
            and (not self._conditions or item.goods.condition_id in self._conditions)
        )


class Market:
    """The market of one seed; at one time it is always the same, however often it was asked.

    Where only some franchises are traded, all else about these is the same. A crowd of more than
    one adds the items of as many other seeds, less one.
    """

    def __init__(
        self,
        clock: Clock,
        seed: int,
        franchises: Collection[Franchise] = FRANCHISES,
        crowd: int = 1,
    ) -> None:
        self._clock = clock
        self._seeds = [seed + number * APART for number in range(crowd)]
        self._numbers = [FRANCHISES.index(one) for one in franchises]
        self._restart(self._now())

    def items(self) -> Mapping[str, Item]:
        """Return all items that the market remembers now, by id."""
        self._advance()
        return self._items

    def find(self, item_id: str) -> Item | None:
        """Find an item that has not been removed."""
        item = self.items().get(item_id)
        return None if item is None or item.status is Status.REMOVED else item

    def search(self, wanted: Wanted) -> list[Item]:
        """List the items that match, in the order in which the market shows them."""
        sieve = Sieve(wanted)
        found = [
            item
            for item in self._named(sieve)
            if item.status in wanted.statuses and sieve.suits(item)
        ]
        found.sort(key=lambda item: _rank(item, wanted.sort), reverse=wanted.descending)
        return found

    def _named(self, sieve: Sieve) -> list[Item]:
        """List the items whose titles hold all words; each title is looked at once."""
        items = self.items()
        count, known = self._looked.get(sieve.words, (0, []))
        new = (one for one in self._listed[count:] if one in items)
        found = [one for one in known if one in items]
        found += [one for one in new if sieve.is_named(items[one])]
        self._looked[sieve.words] = (len(self._listed), found)
        if len(self._looked) > SEARCHES:
            del self._looked[next(iter(self._looked))]
        return [items[one] for one in found]

    def events(self, since: int) -> list[Event]:
        """List what happened after a time, in order; about a week is remembered."""
        self._advance()
        return [*takewhile(lambda event: event.at > since, reversed(self._past))][::-1]

    def truth(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Tell the items of a search, the rates of each franchise, or the events since a time."""
        view = query.get("view", "rates")
        if view not in VIEWS:
            raise BadInput(f"view is one of {', '.join(VIEWS)}")
        now = {"now": _iso(self._now())}
        if view == "items":
            return now | {"items": [describe(item) for item in self._asked_for(query)]}
        if view == "events":
            return now | {"events": [_tell(event) for event in self.events(_since(query))]}
        return now | {"franchises": self._rates()}

    def _asked_for(self, query: Mapping[str, str]) -> list[Item]:
        side = query.get("side", "all")
        if side not in SIDES:
            raise BadInput(f"side is one of {', '.join(SIDES)}")
        return self.search(Wanted(keyword=query.get("keyword", ""), statuses=SIDES[side]))

    def _rates(self) -> list[dict[str, Any]]:
        self._advance()
        spans = {"hour": HOUR, "day": DAY, "week": 7 * DAY}
        counts = {
            one.key: {f"{what}_{span}": 0 for span in spans for what in ("listed", "sold")}
            for one in FRANCHISES
        }
        names = {What.LISTED: "listed", What.BOUGHT: "sold"}
        for event in self._past:
            for span, seconds in spans.items():
                if event.what in names and event.at > self._at - seconds:
                    counts[event.item.goods.franchise][f"{names[event.what]}_{span}"] += 1
        standing = {one.key: {"on_sale": 0, "sold": 0} for one in FRANCHISES}
        for item in self._items.values():
            if item.status in SHOWN:
                side = "on_sale" if item.status in ON_SALE else "sold"
                standing[item.goods.franchise][side] += 1
        return [
            {
                "key": one.key,
                "name": one.name,
                "keyword": one.keyword,
                "english": one.english,
                "listed_a_day": one.listed_a_day,
                "days_to_sell": one.days_to_sell,
                "price_level": one.price_level,
                **counts[one.key],
                **standing[one.key],
            }
            for one in FRANCHISES
        ]

    def _now(self) -> int:
        return int(self._clock.now().timestamp())

    def _restart(self, now: int) -> None:
        """Forget all, and begin so long ago that everything remembered now is made again."""
        self._items: dict[str, Item] = {}
        self._listed: list[str] = []
        # How many of those each search has looked at, and which it found.
        self._looked: dict[tuple[str, ...], tuple[int, list[str]]] = {}
        self._past: deque[Event] = deque()
        self._coming: list[tuple[int, str, int, Event]] = []
        self._ended: deque[tuple[int, str]] = deque()
        self._hour = (now - LONGEST - KEPT) // HOUR - 1
        self._at = self._hour * HOUR

    def _advance(self) -> None:
        now = self._now()
        if now < self._at or now - self._at > LONGEST + KEPT:
            self._restart(now)
        is_new = self._hour * HOUR <= now
        while self._hour * HOUR <= now:
            for seed, number in product(self._seeds, self._numbers):
                for order, event in enumerate(list_events(seed, number, self._hour)):
                    self._coming.append((event.at, event.item.goods.id, order, event))
            self._hour += 1
        if is_new:
            self._coming.sort(reverse=True)
        self._happen(now)
        self._forget(now)
        self._at = now

    def _happen(self, now: int) -> None:
        coming, items = self._coming, self._items
        while coming and coming[-1][0] <= now:
            *_, event = coming.pop()
            if event.item.goods.id not in items:
                self._listed.append(event.item.goods.id)
            items[event.item.goods.id] = event.item
            self._past.append(event)
            if event.item.status in ENDED:
                self._ended.append((event.at, event.item.goods.id))

    def _forget(self, now: int) -> None:
        while self._past and self._past[0].at <= now - KEPT:
            self._past.popleft()
        while self._ended and self._ended[0][0] <= now - KEPT:
            at, item_id = self._ended.popleft()
            item = self._items.get(item_id)
            # A shop may have put it on sale again since; then its next end counts.
            if item is not None and item.updated == at:
                del self._items[item_id]


def _drawers(wanted: frozenset[int]) -> frozenset[int]:
    """Return the categories with all that lie inside them, at any depth."""
    if ROOT_CATEGORY[0] in wanted:
        return wanted | CATEGORIES.keys()
    return wanted | {id_ for id_, one in CATEGORIES.items() if one.parent_id in wanted}


def _rank(item: Item, sort: str) -> tuple[int, str]:
    goods = item.goods
    match sort:
        case "price":
            return item.price_yen, goods.id
        case "num_likes":
            return likes(item), goods.id
        case "score":
            return crc32(goods.id.encode()), goods.id
        case _:
            return goods.filed, goods.id


def likes(item: Item) -> int:
    """Tell how many people marked an item."""
    return item.goods.seller % 37 + item.bids


def describe(item: Item) -> dict[str, Any]:
    """Tell all there is to know of an item."""
    goods = item.goods
    return {
        "id": goods.id,
        "kind": goods.kind,
        "franchise": goods.franchise,
        "title": goods.title,
        "status": item.status,
        "price_yen": item.price_yen,
        "is_no_price": goods.kind is Kind.NO_PRICE,
        "bids": item.bids,
        "category_id": goods.category_id,
        "condition_id": goods.condition_id,
        "seller": goods.seller,
        "created_at": _iso(goods.created),
        "updated_at": _iso(item.updated),
    }


def _tell(event: Event) -> dict[str, Any]:
    return {"at": _iso(event.at), "what": event.what, "item": describe(event.item)}


def _iso(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def _since(query: Mapping[str, str]) -> int:
    since = query.get("since", "1970-01-01T00:00:00+00:00")
    try:
        at = datetime.fromisoformat(since)
    except ValueError as error:
        raise BadInput("since is a time like 2026-01-01T00:00:00+00:00") from error
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())
