"""The part `hot_pace`: what crawling the busy more often is worth, with the same requests."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from heapq import heapify, heapreplace
from itertools import chain, islice
from statistics import fmean, median

from rich.progress import Progress

from bench.report import Part, Row, ratio
from mimawari.app.judges.hot import spearman
from mimawari.sim.sites.mercari.api import PAGE_SIZE, cut
from mimawari.sim.sites.mercari.items import FRANCHISES, WARES, fold
from mimawari.sim.sites.mercari.lives import HOUR, KEPT, Event, Item, What, list_events
from mimawari.sim.sites.mercari.market import ENDED, ON_SALE, SOLD
from mimawari.watches.hot import rules
from mimawari.watches.hot.models import Pace

MARKETS = 3
# Merged into one market, so that the busiest franchise fills a page in about two hours.
SEEDS = 4
START = int(datetime(2026, 1, 5, tzinfo=UTC).timestamp())
BEFORE = 11 * 24 * HOUR
SPAN = 72 * HOUR
# What is sold after this may be seen by nobody in time, however it is crawled.
JUDGED = SPAN - 6 * HOUR
WINDOW = 24 * HOUR
EVERY = 6 * HOUR
NARROW_FRANCHISES, NARROW_WARES = 4, 2

SPEC = Pace(base=timedelta(hours=2), least=timedelta(hours=1), most=timedelta(hours=2))
WIDE = Pace(base=timedelta(hours=2), least=timedelta(minutes=15), most=timedelta(hours=6))

Place = tuple[int, str]


@dataclass(slots=True)
class Shelf:
    """What a search shows of one side, newest last, and the items behind it."""

    places: list[Place] = field(default_factory=list)
    items: dict[str, Item] = field(default_factory=dict)

    def copy(self) -> "Shelf":
        """Return the same again, to go on by itself."""
        return Shelf(self.places.copy(), self.items.copy())

    def put(self, item: Item) -> None:
        """Show an item where it was filed."""
        if item.goods.id not in self.items:
            insort(self.places, (item.goods.filed, item.goods.id))
        self.items[item.goods.id] = item

    def take(self, item: Item) -> None:
        """Show an item no more."""
        if self.items.pop(item.goods.id, None) is not None:
            del self.places[bisect_left(self.places, (item.goods.filed, item.goods.id))]

    def list_newest(self, keyword: str, pages: int) -> list[Item]:
        """Return what some pages show."""
        newest = islice(reversed(self.places), (pages + 1) * PAGE_SIZE)
        found = [self.items[item_id] for _, item_id in newest]
        return [item for number in range(pages) for item in cut(found, keyword, number).items]


class Stall:
    """What happens to the items that one search finds, as time goes on."""

    def __init__(self, keyword: str, events: Sequence[Event]) -> None:
        self.keyword = keyword
        self._events = events
        self._next = 0
        self._ended: list[tuple[int, Item]] = []
        self._forgotten = 0
        self.on_sale, self.sold = Shelf(), Shelf()
        self.bought: dict[str, int] = {}

    def copy(self) -> "Stall":
        """Return the same again, to go on by itself."""
        other = Stall(self.keyword, self._events)
        other._next, other._forgotten = self._next, self._forgotten
        other._ended = self._ended.copy()
        other.on_sale, other.sold = self.on_sale.copy(), self.sold.copy()
        return other

    def advance(self, now: int) -> None:
        """Let happen what happens until now."""
        while self._next < len(self._events) and self._events[self._next].at <= now:
            self._happen(self._events[self._next])
            self._next += 1
        while self._forgotten < len(self._ended):
            at, item = self._ended[self._forgotten]
            if at > now - KEPT:
                break
            kept = self.sold.items.get(item.goods.id)
            if kept is not None and kept.updated == at:
                self.sold.take(item)
            self._forgotten += 1

    def _happen(self, event: Event) -> None:
        item = event.item
        for shelf, statuses in ((self.on_sale, ON_SALE), (self.sold, SOLD)):
            if item.status in statuses:
                shelf.put(item)
            else:
                shelf.take(item)
        if item.status in ENDED:
            self._ended.append((event.at, item))
        if event.what is What.BOUGHT:
            self.bought[item.goods.id] = event.at


@dataclass(frozen=True, slots=True)
class Pages:
    """How many pages of each side a crawl reads."""

    on_sale: int
    sold: int


@dataclass(slots=True)
class Watched:
    """One search as a policy crawls it: what it knows, and what it counted when."""

    stall: Stall
    weight: float = 1.0
    known: dict[str, bool] = field(default_factory=dict)
    counts: list[tuple[int, int, int]] = field(default_factory=list)
    seen: set[Place] = field(default_factory=set)

    def crawl(self, now: int, pages: Pages) -> rules.Brought:
        """Read the pages as they stand, and count what is new by the rules of the watch."""
        self.stall.advance(now)
        inflow = outflow = 0
        keyword = self.stall.keyword
        for item in self.stall.on_sale.list_newest(keyword, pages.on_sale):
            inflow += item.goods.id not in self.known
            self.known[item.goods.id] = False
        for item in self.stall.sold.list_newest(keyword, pages.sold):
            name = item.goods.id
            outflow += not self.known.get(name, False)
            self.known[name] = True
            if (bought := self.stall.bought.get(name, 0)) > START:
                self.seen.add((bought, name))
        self.counts.append((now, inflow, outflow))
        return rules.Brought(
            inflow=inflow, outflow=outflow, pages_on_sale=pages.on_sale, pages_sold=pages.sold
        )

    def score(self, start: int, end: int) -> float:
        """Tell how hot it looked between two times."""
        counted = [count for count in self.counts if start < count[0] <= end]
        inflow, outflow = sum(one[1] for one in counted), sum(one[2] for one in counted)
        return rules.hot_score(inflow, outflow)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a policy came to."""

    requests: int
    sales_seen: float
    rank_agreement: float


@dataclass(frozen=True, slots=True)
class Search:
    """One search on one market: how it stands when all begins, and what truly happens then."""

    stall: Stall
    times: Mapping[What, Sequence[int]]

    def count(self, what: What, start: int, end: int) -> int:
        """Count what truly happened after a time and until another."""
        return bisect_right(self.times[what], end) - bisect_right(self.times[what], start)


def list_keywords() -> Iterator[tuple[int, str]]:
    """Name the searches: every franchise, and some goods of the busiest."""
    for number, franchise in enumerate(FRANCHISES):
        yield number, franchise.keyword
        if number < NARROW_FRANCHISES:
            for ware in WARES[:NARROW_WARES]:
                yield number, f"{franchise.keyword} {ware.name}"


def make_searches(first_seed: int) -> list[Search]:
    """Merge the markets of several seeds into a busy one, and search it."""
    spread = range((START - BEFORE) // HOUR, (START + SPAN) // HOUR)
    lives: dict[int, list[Event]] = {}
    for number in range(len(FRANCHISES)):
        hourly = (
            list_events(seed, number, hour)
            for seed in range(first_seed, first_seed + SEEDS)
            for hour in spread
        )
        lives[number] = sorted(chain.from_iterable(hourly), key=lambda event: event.at)
    return [_search(keyword, lives[number]) for number, keyword in list_keywords()]


def _search(keyword: str, lives: Sequence[Event]) -> Search:
    words = fold(keyword).split()
    events = [event for event in lives if all(word in event.item.goods.words for word in words)]
    times: dict[What, list[int]] = {What.LISTED: [], What.BOUGHT: []}
    for event in events:
        if event.what in times:
            times[event.what].append(event.at)
    stall = Stall(keyword, events)
    stall.advance(START)
    return Search(stall, times)


Waiting = Callable[[Watched, rules.Brought], int]


def fixed(every: float) -> Waiting:
    """Crawl all searches equally often."""
    return lambda _watched, _brought: int(every)


def adaptive(rule: rules.Rule, pace: Pace) -> Waiting:
    """Crawl by weights that a rule changes."""

    def wait(watched: Watched, brought: rules.Brought) -> int:
        watched.weight = rule(watched.weight, brought)
        return int(rules.interval(watched.weight, pace).total_seconds())

    return wait


def simulate(searches: Sequence[Search], wait: Waiting, first: float, pages: Pages) -> Outcome:
    """Crawl a market for the whole span; all know the same when it begins."""
    watched = [Watched(search.stall.copy()) for search in searches]
    for one in watched:
        one.crawl(START, pages)
        one.counts.clear()
    share = first / len(watched)
    due = [(START + int(share * (place + 1)), place) for place in range(len(watched))]
    heapify(due)
    while due[0][0] <= START + SPAN:
        now, place = due[0]
        one = watched[place]
        heapreplace(due, (now + wait(one, one.crawl(now, pages)), place))
    return judge(searches, watched, pages)


def judge(searches: Sequence[Search], watched: Sequence[Watched], pages: Pages) -> Outcome:
    """Hold what was seen against the truth."""
    end = START + SPAN
    true = sum(search.count(What.BOUGHT, START, START + JUDGED) for search in searches)
    seen = sum(at <= START + JUDGED for one in watched for at, _ in one.seen)
    agreements = []
    for until in range(START + WINDOW, end + 1, EVERY):
        start = until - WINDOW
        ours = [one.score(start, until) for one in watched]
        truth = [
            rules.hot_score(
                search.count(What.LISTED, start, until), search.count(What.BOUGHT, start, until)
            )
            for search in searches
        ]
        agreements.append(spearman(ours, truth))
    return Outcome(
        requests=sum(len(one.counts) for one in watched) * (pages.on_sale + pages.sold),
        sales_seen=seen / true,
        rank_agreement=fmean(agreements),
    )


POLICIES = {
    "spec-2h": adaptive(rules.spec_weight, SPEC),
    "spec-6h": adaptive(rules.spec_weight, WIDE),
    "fill-6h": adaptive(rules.fill_weight, WIDE),
}
DEPTHS = (Pages(1, 1), Pages(5, 5))


def compare(searches: Sequence[Search], wait: Waiting, pages: Pages) -> tuple[Outcome, Outcome]:
    """Simulate a policy, and the fixed interval that makes as many requests."""
    outcome = simulate(searches, wait, SPEC.base.total_seconds(), pages)
    every = SPAN * len(searches) * (pages.on_sale + pages.sold) / outcome.requests
    return outcome, simulate(searches, fixed(every), every, pages)


def rows_of(name: str, found: Sequence[tuple[Outcome, Outcome]]) -> list[Row]:
    """Set the medians over all markets beside those of the fixed interval."""
    figures: dict[str, Callable[[Outcome], float]] = {
        "requests": lambda one: one.requests,
        "seen_of_10000": lambda one: one.sales_seen * 10_000,
        "rank_agreement": lambda one: one.rank_agreement,
    }
    rows = []
    for measure, figure in figures.items():
        ours, peer = (median(map(figure, each)) for each in zip(*found, strict=True))
        rows.append(
            Row(
                bench="hot_pace",
                engine=name,
                measure=measure,
                ours=ours,
                peer="fixed interval",
                peer_value=peer,
                ratio_to_peer=ratio(ours, peer),
                floor=None,
                ratio_to_floor=None,
                runs=MARKETS,
            )
        )
    return rows


def run(progress: Progress) -> Part:
    """Let every policy crawl every market."""
    found: dict[str, list[tuple[Outcome, Outcome]]] = {}
    task = progress.add_task("markets", total=MARKETS * len(DEPTHS) * len(POLICIES))
    for market in range(MARKETS):
        searches = make_searches(1 + market * SEEDS)
        for pages in DEPTHS:
            for policy, wait in POLICIES.items():
                name = f"{policy} {pages.on_sale}+{pages.sold}"
                found.setdefault(name, []).append(compare(searches, wait, pages))
                progress.advance(task)
    notes = [
        f"{name}: " + ", ".join(f"{_more(*pair):+.0f}" for pair in pairs) + " of 10,000 sales"
        for name, pairs in found.items()
    ]
    notes.append(
        f"{SPAN // HOUR} simulated hours of {MARKETS} markets; 2h: every 1 to 2 hours, 6h: every 15"
        " minutes to 6 hours; each policy reads so many pages on"
        " sale + sold in a crawl; the fixed interval is chosen to make as many requests; sales"
        " seen: of those until six hours before the end; rank agreement: Spearman's, of 24-hour hot"
        " scores with the true ones; notes: how many more sales than the fixed interval, by market"
    )
    return Part([row for name, pairs in found.items() for row in rows_of(name, pairs)], notes)


def _more(ours: Outcome, peer: Outcome) -> float:
    return (ours.sales_seen - peer.sales_seen) * 10_000
