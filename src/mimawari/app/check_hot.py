"""Runs the hot watch on the simulated market in virtual time and judges it by the truth."""

import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import StatisticsError, correlation
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
from mimawari.sim.market import Market
from mimawari.sim.market_items import FRANCHISES, WARES
from mimawari.sim.market_looks import Looks, count_events
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
LONGEST_GAP = timedelta(hours=12)
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
    seed: int = 0
    days: float = 0
    requests: int = 0
    crawls: int
    inflow: int
    outflow: int
    differing: int
    spearman: float
    """Against all that happened between our looks: from the last one before the 24 hours on."""
    spearman_by_clock: float
    """Against all that happened in the 24 hours by the clock, also after our last look."""
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
    site = MarketSite(clock, seed)
    world = World(clock, (site,), seed)
    keywords = list_keywords(count)
    with tempfile.TemporaryDirectory(prefix="mimawari-check-", dir=_fast_folder()) as folder:
        settings = DEFAULTS.model_copy(
            update={"data": Path(folder), "mercari_api_url": ADDRESS, "mercari_url": ADDRESS}
        )
        store = open_store(settings, clock)
        try:
            await upgrade_tables(settings, store)
            await _watch(settings, store, world, keywords, timedelta(days=days), progress)
            ours = await _read_ours(store, keywords, Window.before(clock.now(), 24))
        finally:
            await store.close()
    searches = [*_searches(world)]
    report = _judge(ours, Looks(seed, searches), site.market)
    return replace(report, seed=seed, days=days, requests=len(searches))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ours:
    """What the watch says of each search, in one order."""

    keywords: Sequence[str]
    sums: Sequence[tuple[int, int]]
    scores: Sequence[float]
    window: Window


async def _read_ours(store: SqlStore, keywords: Sequence[str], window: Window) -> _Ours:
    async with store.read() as reader:
        found = await targets.find_by_keyword(reader, keywords)
        [standings] = await reads.list_standings(reader, window)
        flows = (func.sum(hours.c.inflow), func.sum(hours.c.outflow))
        query = select(hours.c.ip_id, *flows).group_by(hours.c.ip_id)
        rows: Any = await reader.execute(query)
        sums = {ip_id: (int(inflow), int(outflow)) for ip_id, inflow, outflow in rows}
    scores = {one.ip_id: one.score for one in standings}
    ids = [found[word].id for word in keywords]
    return _Ours(
        keywords=keywords,
        sums=[sums.get(ip_id, (0, 0)) for ip_id in ids],
        scores=[scores.get(ip_id, 0.0) for ip_id in ids],
        window=window,
    )


def _judge(ours: _Ours, looks: Looks, market: Market) -> Report:
    counted = [
        Counted(
            keyword=word,
            inflow=inflow,
            outflow=outflow,
            true_inflow=looks.counts[word][0],
            true_outflow=looks.counts[word][1],
        )
        for word, (inflow, outflow) in zip(ours.keywords, ours.sums, strict=True)
    ]
    start, end = ours.window.start_at, ours.window.end_at
    events = market.events(int((start - LONGEST_GAP).timestamp()))
    between = [
        rules.hot_score(*count_events(events, word, looks.between(word, start, end)))
        for word in ours.keywords
    ]
    clock = [rules.hot_score(*count_events(events, word, (start, end))) for word in ours.keywords]
    alike = spearman(ours.scores, between)
    differing = sum(not one.ok for one in counted)
    return Report(
        ok=not differing and (len(counted) == 1 or alike >= ALIKE_ENOUGH),
        crawls=looks.total,
        inflow=sum(one.inflow for one in counted),
        outflow=sum(one.outflow for one in counted),
        differing=differing,
        spearman=round(alike, 4),
        spearman_by_clock=round(spearman(ours.scores, clock), 4),
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


def _searches(world: World) -> Iterator[Mapping[str, Any]]:
    """List every search the market was asked for, from its own log."""
    after = "0"
    while True:
        found = world.log.list({"part": "market", "after": after, "limit": str(PAGE)})
        yield from (seen for seen in found["seen"] if seen["searched"])
        if not found["seen"]:
            return
        after = str(found["next"])


def spearman(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Tell how alike two rankings are, from -1 to 1; where all are equal there is no difference."""
    try:
        return correlation(_ranks(ours), _ranks(theirs))
    except StatisticsError:
        return 1.0


def _ranks(values: Sequence[float]) -> list[float]:
    """Rank values; equals share the mean of their ranks."""
    ordered = sorted(values)
    return [(bisect_left(ordered, value) + bisect_right(ordered, value)) / 2 for value in values]
