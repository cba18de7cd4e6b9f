"""Judges every watch by the truth of its site, less the answers that died with who asked."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select

from mimawari.app.judges import books, hot, prices, rentals, streams, streams_verdict
from mimawari.app.judges.virtual_run import list_seen
from mimawari.kernel.limits import START_FOR
from mimawari.sim.sites.google_books.observed import look_again
from mimawari.sim.sites.mercari.observed import Looks
from mimawari.sim.sites.webhooks import Hooks
from mimawari.sim.sites.yahoo_realestate.conduct import (
    count_least,
    judge_manners,
    list_blocks,
    list_details,
)
from mimawari.watches.books import jobs as book_jobs
from mimawari.watches.books.jobs import PAGE
from mimawari.watches.books.tables import usage
from mimawari.watches.hot.queries import Window
from mimawari.watches.hot.tables import crawls
from tests.faults.all_stage import KEYWORDS, PRODUCTS, SEED, SPAN, Stage
from tests.faults.all_world import Crew, find_lost

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the world was asked, and which of its answers died with who asked."""

    all: Sequence[Mapping[str, Any]]
    lost: frozenset[int]
    spent: Sequence[datetime]

    def kept(self, part: str) -> list[Mapping[str, Any]]:
        """List the requests to a part whose answers somebody may have kept."""
        return [one for one in self.all if one["part"] == part and one["n"] not in self.lost]


async def gather_asked(stage: Stage, crew: Crew) -> Asked:
    """Gather what was asked, and tell apart what was lost."""
    asked = [*list_seen(stage.world)]
    async with crew.store.read() as reader:
        found = [await book_jobs.find_known(reader, one.name) for one in stage.searches]
        rows = (await reader.execute(select(usage))).all()
    queries = {one.name: one.q for one in found}
    lost: set[int] = set()
    unasked: list[datetime] = []
    for loss, numbers in find_lost(asked, crew.losses, queries):
        lost.update(numbers)
        if loss.kind == PAGE and not numbers:
            unasked.append(loss.at)
    times = {one["n"]: datetime.fromisoformat(one["at"]) for one in asked}
    calls = [one for one in asked if one["part"] == "books"]
    # A call that was paid for and never made is known by the count of both sides alone.
    unmade = sum(row.calls + row.reserved for row in rows) - len(calls)
    assert 0 <= unmade <= len(unasked), (unmade, unasked)
    made = [times[one["n"]] for one in calls if one["n"] in lost]
    return Asked(all=asked, lost=frozenset(lost), spent=[*made, *unasked[:unmade]])


async def judge_hot(stage: Stage, crew: Crew, asked: Asked) -> None:
    """Insist on every count."""
    window = Window.before(stage.clock.now(), 24)
    ours = await hot.read_ours(crew.store, KEYWORDS, window)
    searches = [
        one
        for one in asked.kept("market")
        if one["searched"] and one["searched"]["keyword"] in KEYWORDS
    ]
    async with crew.store.read() as reader:
        rows = await reader.execute(select(crawls.c.pages_asked - crawls.c.pages_read))
        unread = sum(rows.scalars())
    report = hot.judge(ours, Looks(SEED, searches), stage.market.market)
    LOG.info("hot: %s", {**asdict(report), "targets": len(report.targets), "unread": unread})
    assert not report.differing, [one for one in report.targets if not one.ok]
    assert report.crawls > len(KEYWORDS)


async def judge_prices(stage: Stage, crew: Crew, asked: Asked, until: datetime) -> None:
    """Insist on every sale that was seen, its price, its day and every median."""
    keywords = {one.keyword for one in PRODUCTS}
    zone = crew.given.settings("").zone
    now = stage.clock.now()
    evidence = prices.Evidence(
        seed=SEED,
        days=SPAN.total_seconds() / 86400,
        settings=PRODUCTS,
        requests=[
            one
            for one in asked.kept("market")
            if not one["searched"] or one["searched"]["keyword"] in keywords
        ],
        until=until,
        zone=zone,
        crawls=await prices.count_crawls(crew.store),
        stored=await prices.list_stored(crew.store),
        markets=await prices.find_markets(crew.store, stage.begin_at, now, crew.given.settings("")),
    )
    report = prices.judge(evidence, prices.look_again(evidence))
    LOG.info("prices: %s", report)
    assert report.ok, report.examples


async def judge_rentals(stage: Stage, crew: Crew, asked: Asked) -> None:
    """Insist on every change that was seen, and on how the site was asked."""
    everything = [one for one in asked.all if one["part"] == "rentals"]
    kept = [
        {**one, "status": None, "order": None} if one["n"] in asked.lost else one
        for one in everything
    ]
    days = SPAN.total_seconds() / 86400
    changes = await rentals.read_changes(crew.store)
    evidence = rentals.Evidence(
        seed=SEED, days=days, requests=kept, moments=stage.moments, changes=changes
    )
    report = rentals.judge(evidence)
    manners = judge_manners(kept, START_FOR)
    blocks = list_blocks(everything)
    spans = rentals.clear_spans(stage.moments, blocks)
    least = count_least(list_details(everything), spans)
    LOG.info("rentals: %s; %s; least %s; %s blocks", report, manners, least, len(blocks))
    assert (report.missing, report.extra) == (0, 0), report
    assert manners.ok, manners
    assert manners.most_in_an_hour <= 5
    assert least is None or least >= 4


async def judge_books(stage: Stage, crew: Crew, asked: Asked) -> None:
    """Insist on every book, on every cursor and on the quota."""
    now = stage.clock.now()
    evidence = books.Evidence(
        seed=SEED,
        days=SPAN.total_seconds() / 86400,
        quota=stage.calls,
        zone=crew.given.settings("").zone,
        requests=asked.kept("books"),
        watched=[
            await books.read_job(crew.store, one, stage.resets[one.name], now)
            for one in stage.searches
        ],
        books=await books.list_books(crew.store),
        spent=asked.spent,
    )
    report = books.judge(evidence, look_again(SEED, evidence.requests))
    LOG.info("books: %s", report)
    assert not report.examples, report.examples
    assert report.books > 0


async def judge_streams(stage: Stage, crew: Crew) -> None:
    """Insist on every alert, its recovery and their times; how late they come is not judged."""
    evidence = streams_verdict.Evidence(
        seed=SEED,
        scripts=stage.scripts,
        told=streams.list_told(stage.world.find(Hooks)),
        requests=0,
        segments=await streams.count_segments(crew.store),
    )
    report = streams_verdict.judge(evidence)
    LOG.info("streams: %s", report)
    wrong = [one for one in report.examples if one.what != "late"]
    assert not wrong, wrong
    assert report.expected == report.alerted == report.recovered == 3 * len(stage.scripts)
