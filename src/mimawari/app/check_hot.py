"""Runs the hot watch on the simulated market in virtual time and judges it by the truth."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
from sqlalchemy import func, select

from mimawari.app.ops import open_store, upgrade_tables
from mimawari.errors import BadInput
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.deliverer import LogDestination
from mimawari.kernel.rounds import Rounds
from mimawari.kernel.watch import Watches
from mimawari.net.http import Fetcher
from mimawari.net.ways import open_ways
from mimawari.settings import DEFAULTS, Settings
from mimawari.sim.market import SOLD, Market, Wanted
from mimawari.sim.market_api import cut
from mimawari.sim.market_items import FRANCHISES, WARES, fold
from mimawari.sim.market_lives import Status, What
from mimawari.sim.market_site import MarketSite
from mimawari.sim.world import World
from mimawari.store.sql import SqlStore
from mimawari.watches.hot import reads, rules, targets, watch
from mimawari.watches.hot.models import NewIp
from mimawari.watches.hot.reads import Window
from mimawari.watches.hot.tables import hours

START = datetime(2026, 6, 1, 15, tzinfo=UTC)
ADDRESS = "http://market.test"
ALIKE_ENOUGH = 0.95
MOST_TARGETS = len(FRANCHISES) * (1 + len(WARES))
STEP = timedelta(hours=1)
PAGE = 10_000

Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What came and went for one IP, by our count and by the truth."""

    keyword: str
    inflow: int
    true_inflow: int
    outflow: int
    true_outflow: int

    @property
    def ok(self) -> bool:
        """Whether both counts are the truth."""
        return (self.inflow, self.outflow) == (self.true_inflow, self.true_outflow)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How the watch did."""

    ok: bool
    seed: int
    days: float
    requests: int
    crawls: int
    inflow: int
    outflow: int
    differing: int
    spearman: float
    targets: list[Counted]


def list_keywords(count: int) -> list[str]:
    """Name searches of the market, the liveliest first: franchises, then each with a ware."""
    franchises = sorted(FRANCHISES, key=lambda one: -one.listed_a_day)
    wares = sorted(WARES, key=lambda one: -one.weight)
    narrow = [f"{one.keyword} {ware.name}" for ware in wares for one in franchises]
    return ([one.keyword for one in franchises] + narrow)[:count]


async def check_hot(seed: int, days: float, count: int, progress: Progress) -> Report:
    """Watch so many IPs for so many simulated days, and compare with what is really so."""
    if not 1 <= count <= MOST_TARGETS:
        raise BadInput(f"--targets is from 1 to {MOST_TARGETS}")
    clock = VirtualClock(START)
    world = World(clock, (MarketSite(clock, seed),), seed)
    keywords = list_keywords(count)
    with tempfile.TemporaryDirectory(prefix="mimawari-check-", dir=_fast_folder()) as folder:
        settings = DEFAULTS.model_copy(
            update={"data": Path(folder), "mercari_api_url": ADDRESS, "mercari_url": ADDRESS}
        )
        store = open_store(settings, clock)
        try:
            await upgrade_tables(settings, store)
            await _watch(settings, store, world, keywords, timedelta(days=days), progress)
            async with store.read() as reader:
                found = await targets.find_by_keyword(reader, keywords)
                sums = await _sums(reader)
                window = Window.before(clock.now(), 24)
                [standings] = await reads.list_standings(reader, window)
        finally:
            await store.close()
    ids = {word: ip.id for word, ip in found.items()}
    seen = [*_searches(world)]
    truth = _Truth(seed, seen)
    counted = [
        Counted(
            keyword=word,
            inflow=sums.get(ids[word], (0, 0))[0],
            outflow=sums.get(ids[word], (0, 0))[1],
            true_inflow=truth.counts[word][0],
            true_outflow=truth.counts[word][1],
        )
        for word in keywords
    ]
    ours = {one.ip_id: one.score for one in standings}
    theirs = true_scores(world, keywords, window)
    alike = spearman([ours.get(ids[word], 0.0) for word in keywords], [theirs[w] for w in keywords])
    differing = sum(not one.ok for one in counted)
    return Report(
        ok=differing == 0 and truth.crawls >= count and (count == 1 or alike >= ALIKE_ENOUGH),
        seed=seed,
        days=days,
        requests=len(seen),
        crawls=truth.crawls,
        inflow=sum(one.inflow for one in counted),
        outflow=sum(one.outflow for one in counted),
        differing=differing,
        spearman=round(alike, 4),
        targets=counted,
    )


def _fast_folder() -> str | None:
    """Prefer memory: what is kept is judged and thrown away."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - a private folder in it


async def _watch(
    settings: Settings,
    store: SqlStore,
    world: World,
    keywords: Sequence[str],
    span: timedelta,
    progress: Progress,
) -> None:
    clock = world.clock
    assert isinstance(clock, VirtualClock)  # noqa: S101 - this module made it
    async with store.edit() as tx:
        new = [NewIp(name=word, keyword=word) for word in keywords]
        await targets.add_ips(tx, new, settings, clock.now())
    inside = httpx2.ASGITransport(app=world)
    async with open_ways(settings, store, clock, inside=inside) as ways:
        rounds = Rounds(
            store,
            clock,
            Watches([watch], settings),
            {"log": LogDestination()},
            partial(Fetcher, ways),
        )
        end = clock.now() + span
        while clock.now() < end:
            await rounds.pass_time(min(STEP, end - clock.now()))
            progress(1 - (end - clock.now()) / span)
        await rounds.settle()


async def _sums(reader: Any) -> Mapping[int, tuple[int, int]]:
    query = select(hours.c.ip_id, func.sum(hours.c.inflow), func.sum(hours.c.outflow))
    rows = await reader.execute(query.group_by(hours.c.ip_id))
    return {row[0]: (int(row[1]), int(row[2])) for row in rows}


def _searches(world: World) -> Iterator[Mapping[str, Any]]:
    """List every search the market was asked for, from its own log."""
    after = "0"
    while True:
        found = world.log.list({"part": "market", "after": after, "limit": str(PAGE)})
        yield from (seen for seen in found["seen"] if seen["searched"])
        if not found["seen"]:
            return
        after = str(found["next"])


class _Truth:
    """Counts what could be seen on the pages that were asked for, from the market's truth."""

    def __init__(self, seed: int, searches: Sequence[Mapping[str, Any]]) -> None:
        self.crawls = 0
        self.counts: dict[str, list[int]] = {}
        self._known: dict[str, dict[str, bool]] = {}
        self._is_first: dict[str, bool] = {}
        clock = _Moments()
        clock.at = datetime.fromisoformat(searches[0]["at"]) if searches else START
        market = Market(clock, seed)
        for seen in searches:
            clock.at = datetime.fromisoformat(seen["at"])
            self._read(market, **seen["searched"])

    def _read(self, market: Market, keyword: str, statuses: list[str], page: int) -> None:
        wanted = Wanted(keyword=keyword, statuses=frozenset(map(Status, statuses)))
        if page == 0 and Status.ON_SALE in wanted.statuses:
            self.crawls += 1
            self._is_first[keyword] = keyword not in self._known
            self._known.setdefault(keyword, {})
            self.counts.setdefault(keyword, [0, 0])
        known, counts = self._known[keyword], self.counts[keyword]
        for item in cut(market.search(wanted), keyword, page).items:
            was_sold, is_sold = known.get(item.goods.id), item.status in SOLD
            if not self._is_first[keyword]:
                counts[0] += was_sold is None and not is_sold
                counts[1] += is_sold and not was_sold
            known[item.goods.id] = is_sold


class _Moments(VirtualClock):
    """A clock that is at whatever moment is looked at."""

    at = START

    def now(self) -> datetime:
        """Return the moment."""
        return self.at


def true_scores(world: World, keywords: Sequence[str], window: Window) -> Mapping[str, float]:
    """Tell how hot each search was in a window, from all that really happened."""
    part = world.parts["market"]
    assert isinstance(part, MarketSite)  # noqa: S101 - this module made it
    start, end = window.start_at.timestamp(), window.end_at.timestamp()
    events = [event for event in part.market.events(int(start)) if start < event.at <= end]
    scores = {}
    for keyword in keywords:
        words = fold(keyword).split()
        mine = [one.what for one in events if all(word in one.item.goods.words for word in words)]
        scores[keyword] = rules.hot_score(mine.count(What.LISTED), mine.count(What.BOUGHT))
    return scores


def spearman(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Tell how alike two rankings are, from -1 to 1; equals share their rank."""
    first, second = _ranks(ours), _ranks(theirs)
    mean = (len(first) + 1) / 2
    both = sum((a - mean) * (b - mean) for a, b in zip(first, second, strict=True))
    spread = (sum((a - mean) ** 2 for a in first) * sum((b - mean) ** 2 for b in second)) ** 0.5
    return both / spread if spread else 1.0


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    first = {value: ordered.index(value) for value in set(values)}
    return [first[value] + (ordered.count(value) + 1) / 2 for value in values]
