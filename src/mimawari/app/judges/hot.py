"""Runs the hot watch on the simulated market in virtual time and judges it by the truth."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from statistics import StatisticsError, correlation
from typing import Any

from sqlalchemy import func, select

from mimawari.app.judges.virtual_run import START, Progress, list_seen, open_ground
from mimawari.errors import BadInput
from mimawari.kernel.clock import VirtualClock
from mimawari.sim.sites.mercari.items import FRANCHISES, WARES
from mimawari.sim.sites.mercari.market import Market
from mimawari.sim.sites.mercari.observed import Looks, count_events
from mimawari.sim.sites.mercari.site import MarketSite
from mimawari.sim.world import World
from mimawari.store.sql import SqlStore
from mimawari.watches.hot import franchises as targets
from mimawari.watches.hot import queries, rules, watch
from mimawari.watches.hot.models import NewIp
from mimawari.watches.hot.queries import Window
from mimawari.watches.hot.tables import hours

ADDRESS = "http://market.test"
ALIKE_ENOUGH = 0.95
MOST_TARGETS = len(FRANCHISES) * (1 + len(WARES))
STEP = timedelta(hours=1)
LONGEST_GAP = timedelta(hours=12)


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
    given = {"mercari_api_url": ADDRESS, "mercari_url": ADDRESS}
    async with open_ground(world, clock, watch, given) as ground:
        async with ground.store.edit() as tx:
            new = [NewIp(name=word, keyword=word) for word in keywords]
            await targets.add_ips(tx, new, ground.settings, clock.now())
        async for _ in ground.pass_days(timedelta(days=days), STEP, progress):
            pass
        await ground.rounds.settle()
        ours = await read_ours(ground.store, keywords, Window.before(clock.now(), 24))
    searches = [seen for seen in list_seen(world, part="market") if seen["searched"]]
    report = judge(ours, Looks(seed, searches), site.market)
    return replace(report, seed=seed, days=days, requests=len(searches))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """What the watch says of each search, in one order."""

    keywords: Sequence[str]
    sums: Sequence[tuple[int, int]]
    scores: Sequence[float]
    window: Window


async def read_ours(store: SqlStore, keywords: Sequence[str], window: Window) -> Ours:
    """Read what was counted of each search, and how they stand in a window."""
    async with store.read() as reader:
        found = await targets.find_by_keyword(reader, keywords)
        [standings] = await queries.list_standings(reader, window)
        flows = (func.sum(hours.c.inflow), func.sum(hours.c.outflow))
        query = select(hours.c.ip_id, *flows).group_by(hours.c.ip_id)
        rows: Any = await reader.execute(query)
        sums = {ip_id: (int(inflow), int(outflow)) for ip_id, inflow, outflow in rows}
    scores = {one.ip_id: one.score for one in standings}
    ids = [found[word].id for word in keywords]
    return Ours(
        keywords=keywords,
        sums=[sums.get(ip_id, (0, 0)) for ip_id in ids],
        scores=[scores.get(ip_id, 0.0) for ip_id in ids],
        window=window,
    )


def judge(ours: Ours, looks: Looks, market: Market) -> Report:
    """Compare what was counted with what our looks could have seen, and the ranking with all."""
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
