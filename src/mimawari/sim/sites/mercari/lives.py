"""The lives of the simulated market's items: each is known whole from a seed and an hour."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from itertools import accumulate
from math import exp

from mimawari.sim.chance import Chance, chance_of
from mimawari.sim.sites.mercari.items import (
    FRANCHISES,
    HOURS,
    Franchise,
    fold,
    make_title,
    pick_ware,
)

HOUR = 3600
DAY = HOURS * HOUR
JST = 9 * HOUR
# Nothing stays on offer longer than this; all has happened to it by then; then it is forgotten.
OFFERED = 8 * DAY
LONGEST = 13 * DAY
KEPT = 7 * DAY
NO_PRICE_YEN = 9_999_999
LEAST_YEN = 300
FINE_BELOW_YEN = 1000
SELLERS = 900
# Several markets of one seed in one process make their items once.
REMEMBERED_HOURS = 16_384
MOST_IN_AN_HOUR = 256
BOOM_SHARE = 0.05
PAUSED_SHARE = 0.05
SECOND_SHARE = 0.4
CALLED_OFF_SHARE = 0.05
RESTOCKED_SHARE = 0.3
CONDITIONS = (1, 2, 3, 4, 5)
CONDITIONS_SO_FAR = (35, 60, 85, 97, 100)
SHOPS_LETTERS = "23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


class Status(StrEnum):
    """Where an item stands, spelt as its own page spells it."""

    ON_SALE = "on_sale"
    TRADING = "trading"
    SOLD_OUT = "sold_out"
    STOP = "stop"
    REMOVED = "removed"


class Kind(StrEnum):
    """How an item is sold."""

    ORDINARY = "ordinary"
    SHOPS = "shops"
    AUCTION = "auction"
    NO_PRICE = "no_price"


KINDS = tuple(Kind)
KINDS_SO_FAR = (83, 92, 97, 100)


class What(StrEnum):
    """What happened to an item."""

    LISTED = "listed"
    REPRICED = "repriced"
    BID = "bid"
    BOUGHT = "bought"
    SOLD_OUT = "sold_out"
    RELISTED = "relisted"
    STOPPED = "stopped"
    RESUMED = "resumed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goods:
    """What does not change about an item; times are whole seconds since 1970."""

    id: str
    kind: Kind
    franchise: str
    title: str
    words: str
    category_id: int
    condition_id: int
    seller: int
    created: int
    # Where the market files it among the newest, which is only roughly when it was listed.
    filed: int
    first_price_yen: int
    deadline: int = 0


@dataclass(frozen=True, slots=True)
class Item:
    """An item as it stands after its latest change."""

    goods: Goods
    status: Status
    price_yen: int
    updated: int
    bids: int = 0


@dataclass(frozen=True, slots=True)
class Event:
    """One change of one item, and the item after it."""

    at: int
    what: What
    item: Item


class Trade:
    """A franchise on the market of one seed, and how hot it is from day to day."""

    def __init__(self, seed: int, number: int, franchise: Franchise) -> None:
        self.seed = seed
        self.number = number
        self.franchise = franchise
        self.sums = (0.0, *accumulate(franchise.curve()))
        self._heats: dict[int, float] = {}

    def heat(self, day: int) -> float:
        """Tell how wanted its goods are on a day; the median is 1 and a boom is far above."""
        heat = self._heats.get(day)
        if heat is None:
            chance = chance_of(self.seed, "heat", self.number, day)
            boom = chance.uniform(2.5, 5.0) if chance.random() < BOOM_SHARE else 1.0
            heat = self._heats[day] = boom * exp(chance.gauss(0, 0.2))
        return heat

    def later(self, at: int, hours: float, until: int) -> int:
        """Return the time by which as much was sold as in so many ordinary hours, if in time."""
        sums = self.sums
        day, second = divmod(at + JST, DAY)
        hour, rest = divmod(second, HOUR)
        heat = self.heat(day)
        left = hours + (sums[hour] + (sums[hour + 1] - sums[hour]) * rest / HOUR) * heat
        while left > HOURS * heat:
            left -= HOURS * heat
            day += 1
            if day * DAY > until + JST:
                return until
            heat = self.heat(day)
        want = left / heat
        hour = min(max(bisect_left(sums, want), 1), HOURS) - 1
        part = (want - sums[hour]) / (sums[hour + 1] - sums[hour])
        return max(at, int(day * DAY + (hour + part) * HOUR) - JST)


@cache
def _trade(seed: int, number: int) -> Trade:
    return Trade(seed, number, FRANCHISES[number])


@lru_cache(maxsize=REMEMBERED_HOURS)
def list_events(seed: int, number: int, hour: int) -> tuple[Event, ...]:
    """List all that will ever happen to what is first listed in an hour, for one franchise."""
    return tuple(_events(_trade(seed, number), hour))


def _events(trade: Trade, hour: int) -> Iterator[Event]:
    chance = chance_of(trade.seed, "hour", trade.number, hour)
    start = hour * HOUR
    day, second = divmod(start + JST, DAY)
    busy = trade.sums[second // HOUR + 1] - trade.sums[second // HOUR]
    mean = trade.franchise.listed_a_day / HOURS * busy * trade.heat(day) ** 0.5
    for number in range(min(_poisson(chance, mean), MOST_IN_AN_HOUR)):
        serial = ((hour * 16 + trade.number) * MOST_IN_AN_HOUR + number) * 2
        yield from _Life(trade, chance, serial).run(start + int(chance.random() * HOUR))


def _poisson(chance: Chance, mean: float) -> int:
    count, left = 0, mean
    while (left := left - chance.expovariate(1.0)) > 0:
        count += 1
    return count


def _round_price(chance: Chance, yen: float) -> int:
    step = 10 if yen < FINE_BELOW_YEN else 100
    neat = round(yen / step) * step - chance.choice((0, 0, 0, 1, 20))
    return min(max(neat, LEAST_YEN), NO_PRICE_YEN - 1)


def _make_id(kind: Kind, mixed: int) -> str:
    if kind is not Kind.SHOPS:
        return f"m{mixed % 10**11:011d}"
    number, letters = mixed * 3_037_000_499 % len(SHOPS_LETTERS) ** 20, "2J"
    for _ in range(20):
        number, letter = divmod(number, len(SHOPS_LETTERS))
        letters += SHOPS_LETTERS[letter]
    return letters


class _Life:
    """Makes one item and lets things happen to it until its end."""

    def __init__(self, trade: Trade, chance: Chance, serial: int) -> None:
        self._trade = trade
        self._chance = chance
        self._serial = serial
        self._ware = pick_ware(chance)
        self._title = make_title(chance, trade.franchise, self._ware)
        self._level = self._ware.price_yen * trade.franchise.price_level
        self._days = trade.franchise.days_to_sell
        self._events: list[Event] = []

    def run(self, at: int) -> list[Event]:
        """List what happens to an item listed now, and to its second life if it has one."""
        kind = self._chance.choices(KINDS, cum_weights=KINDS_SO_FAR)[0]
        last = self._happen(self._goods(at, kind, self._serial), at + OFFERED)
        again = last.updated + self._hours(0.3, 20)
        wants = kind is Kind.ORDINARY and self._chance.random() < SECOND_SHARE
        if last.status is Status.REMOVED and wants and again < at + OFFERED:
            self._happen(self._goods(again, kind, self._serial + 1), at + OFFERED)
        return self._events

    def _goods(self, at: int, kind: Kind, serial: int) -> Goods:
        chance, franchise = self._chance, self._trade.franchise
        spacing = DAY / franchise.listed_a_day
        price = _round_price(chance, self._level * exp(chance.gauss(0.05, 0.25)))
        if kind is Kind.AUCTION:
            price = max(LEAST_YEN, price // 3)
        return Goods(
            # Multiplying by a number prime to the range scatters serials and keeps them apart.
            id=_make_id(kind, serial * 48_271_000_003 + self._trade.seed * 7919),
            kind=kind,
            franchise=franchise.key,
            title=self._title,
            words=fold(self._title),
            category_id=self._ware.category_id,
            condition_id=chance.choices(CONDITIONS, cum_weights=CONDITIONS_SO_FAR)[0],
            seller=chance.randrange(SELLERS),
            created=at,
            filed=at + int(chance.uniform(-2, 2) * spacing),
            first_price_yen=NO_PRICE_YEN if kind is Kind.NO_PRICE else price,
            deadline=at + chance.randrange(1, 7) * DAY if kind is Kind.AUCTION else 0,
        )

    def _hours(self, least: float, most: float) -> int:
        return int(self._chance.uniform(least, most) * HOUR)

    def _happen(self, goods: Goods, until: int) -> Item:
        item = Item(goods, Status.ON_SALE, goods.first_price_yen, goods.created)
        self._events.append(Event(goods.created, What.LISTED, item))
        if goods.kind is Kind.AUCTION:
            return self._auction(item)
        while item.status is Status.ON_SALE:
            item = self._next(item, until)
        return item

    def _next(self, item: Item, until: int) -> Item:
        """Let happen what comes first: a buyer, a new price, a pause or the end."""
        at, chance, bought = item.updated, self._chance, item.updated + LONGEST
        changed = at + int(chance.expovariate(1 / (3 * DAY)))
        removed = max(at + HOUR, min(until, at + int(chance.expovariate(1 / (15 * DAY)))))
        if item.goods.kind is not Kind.NO_PRICE and at < until:
            wait = self._days * HOURS * (item.price_yen / self._level) ** 1.5
            bought = self._trade.later(at, chance.expovariate(1 / wait), until)
        if bought < changed and bought < removed:
            return self._sale(item, bought)
        if removed <= changed:
            return self._change(item, removed, What.REMOVED, Status.REMOVED)
        if chance.random() < PAUSED_SHARE or item.goods.kind is Kind.NO_PRICE:
            item = self._change(item, changed, What.STOPPED, Status.STOP)
            again = changed + self._hours(2, 48)
            return self._change(item, again, What.RESUMED, Status.ON_SALE)
        price = _round_price(chance, item.price_yen * chance.uniform(0.82, 0.98))
        item = Item(item.goods, Status.ON_SALE, price, changed)
        self._events.append(Event(changed, What.REPRICED, item))
        return item

    def _change(self, item: Item, at: int, what: What, status: Status) -> Item:
        changed = Item(item.goods, status, item.price_yen, at, item.bids)
        self._events.append(Event(at, what, changed))
        return changed

    def _sale(self, item: Item, at: int) -> Item:
        if item.goods.kind is Kind.SHOPS:
            item = self._change(item, at, What.BOUGHT, Status.SOLD_OUT)
            if self._chance.random() > RESTOCKED_SHARE:
                return item
            again = at + self._hours(6, 90)
            return self._change(item, again, What.RELISTED, Status.ON_SALE)
        item = self._change(item, at, What.BOUGHT, Status.TRADING)
        if self._chance.random() < CALLED_OFF_SHARE:
            again = at + self._hours(2, 60)
            return self._change(item, again, What.RELISTED, Status.ON_SALE)
        end = at + self._hours(20, 110)
        return self._change(item, end, What.SOLD_OUT, Status.SOLD_OUT)

    def _auction(self, item: Item) -> Item:
        first, end = item.goods.created, item.goods.deadline
        bids = _poisson(self._chance, 4 / self._days**0.5)
        for at in sorted(first + int(self._chance.random() * (end - first)) for _ in range(bids)):
            raised = item.price_yen + max(100, item.price_yen // 8)
            item = Item(item.goods, Status.ON_SALE, raised, at, item.bids + 1)
            self._events.append(Event(at, What.BID, item))
        if not bids:
            return self._change(item, end, What.REMOVED, Status.REMOVED)
        item = self._change(item, end, What.BOUGHT, Status.TRADING)
        end += self._hours(20, 110)
        return self._change(item, end, What.SOLD_OUT, Status.SOLD_OUT)
