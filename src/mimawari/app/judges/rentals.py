"""Runs the rentals watch on the simulated site in virtual time and judges it by the truth."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import SequenceMatcher
from itertools import groupby
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import select

from mimawari.app.judges.virtual_run import (
    EXAMPLES,
    START,
    Order,
    Progress,
    list_seen,
    open_ground,
    spread_orders,
)
from mimawari.kernel.clock import VirtualClock
from mimawari.sim.chance import Chance, chance_of
from mimawari.sim.sites.yahoo_realestate.conduct import (
    PAUSE_FOR,
    Span,
    count_least,
    judge_manners,
    list_blocks,
    list_details,
)
from mimawari.sim.sites.yahoo_realestate.names import AREAS
from mimawari.sim.sites.yahoo_realestate.observed import Change, Looks
from mimawari.sim.sites.yahoo_realestate.site import Rentals
from mimawari.sim.world import World
from mimawari.sites.yahoo_realestate import SITE
from mimawari.store.sql import SqlStore
from mimawari.watches.rentals import lists, tasks, watch
from mimawari.watches.rentals.models import MOST_ROOMS
from mimawari.watches.rentals.tables import changes

# Pictures are kept only where they can be shown safely.
ADDRESS = "https://rentals.test"
EVERY = timedelta(hours=6)
STEP = timedelta(minutes=5)
MOST_AN_HOUR, LEAST_AN_HOUR = 5, 4
ENOUGH = 2
"""With so many details due, the queue cannot run dry before the next look at it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Whether there was work and a way to it at one time."""

    at: datetime
    is_clear: bool
    """Details were due, and the breaker was closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a watch says changed, and what the site says it was asked."""

    seed: int
    days: float
    requests: Sequence[Mapping[str, Any]]
    moments: Sequence[Moment]
    changes: Sequence[Change]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A change that only one side knows of."""

    property_id: str
    kind: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How the watch did."""

    ok: bool
    seed: int
    days: float
    requests: int
    details: int
    blocks: int
    most_in_an_hour: int
    least_in_a_full_hour: int | None
    """The fewest details in any full hour; None if there was no such hour.

    A full hour is any 3,600 seconds in which details were due all the time, the breaker was
    closed all the time, no block page was given, and none had been within five minutes before.
    Whether they were is looked at every five minutes, too often for the queue to run dry between.
    Nothing else is left out: details that fail, and rooms that are gone, count as asked.
    """
    asked_again_after_404: int
    blocked_url_within_an_hour: int
    requests_within_5_min_after_a_block: int
    properties: int
    changes: int
    missing: int
    """Changes that somebody who looked as we did could have seen, and that we do not have."""
    extra: int
    """Changes that we have and nobody could have seen."""
    missing_examples: list[Difference]
    extra_examples: list[Difference]


async def check_rentals(seed: int, days: float, progress: Progress) -> Report:
    """Watch all areas for so many simulated days, and compare with what is really so."""
    return judge(await watch_rentals(seed, days, progress))


async def watch_rentals(seed: int, days: float, progress: Progress) -> Evidence:
    """Watch all areas while things go wrong by the seed, and gather what there is to judge."""
    clock = VirtualClock(START)
    world = World(clock, (Rentals(clock, seed),), seed)
    span = timedelta(days=days)
    orders = plan_orders(seed, span)
    moments = []
    async with open_ground(world, clock, watch, {"rentals_url": ADDRESS}) as ground:
        async with ground.store.edit() as tx:
            for area in AREAS:
                url = f"{ADDRESS}/rent/search/{area.path}/"
                await lists.add_list(tx, url, MOST_ROOMS, EVERY, ground.settings, clock.now())
        async for now in ground.pass_days(span, STEP, progress):
            while orders and orders[0][0] <= now:
                world.orders.add(orders.pop(0)[1])
            moments.append(Moment(at=now, is_clear=await is_clear(ground.store)))
        while ground.rounds.worker.running:
            await ground.rounds.pass_time(STEP)
        found = await read_changes(ground.store)
    requests = [*list_seen(world)]
    return Evidence(seed=seed, days=days, requests=requests, moments=moments, changes=found)


def plan_orders(seed: int, span: timedelta) -> list[Order]:
    """Plan by the seed what goes wrong and when: of each kind something on every day."""
    found = spread_orders(chance_of("check rentals", seed), span, _draw_orders)
    return [(at, {"part": Rentals.name, **order}) for at, order in found]


def _draw_orders(chance: Chance) -> Iterator[dict[str, Any]]:
    hours = 3600.0
    error = {"do": "status", "code": 500, "share": 0.3}
    yield {"do": "blocked", "for_s": chance.uniform(1, 4) * hours}
    yield {"do": "blocked", "times": 1}
    yield {"path": "/rent/detail/", **error, "for_s": chance.uniform(2, 6) * hours}
    yield {"path": "/rent/search/", **error, "for_s": chance.uniform(2, 6) * hours}
    yield {"path": "/rent/detail/", "do": "gone", "times": chance.randint(1, 3)}


async def is_clear(store: SqlStore) -> bool:
    """Say whether details are due now, and nothing keeps us from the site."""
    due = await store.queue.depths([tasks.DETAIL], ENOUGH)
    breaker = await store.breaker.find(SITE.name)
    return due.get(tasks.DETAIL, 0) >= ENOUGH and (breaker is None or breaker.state == "closed")


async def read_changes(store: SqlStore) -> list[Change]:
    """Read every change that is kept, in the order in which it was seen."""
    async with store.read() as reader:
        rows = (await reader.execute(select(changes).order_by(changes.c.id))).all()
    return [
        Change(
            property_id=row.property_id,
            at=row.at,
            kind=row.kind,
            before=_plain(row.kind, row.old_value),
            after=_plain(row.kind, row.new_value),
        )
        for row in rows
    ]


def _plain(kind: str, value: str | None) -> str | None:
    """Write pictures as the truth does, which knows no address of its own."""
    if kind != "image" or value is None:
        return value
    return json.dumps([urlsplit(url).path for url in json.loads(value)])


def judge(evidence: Evidence) -> Report:
    """Compare what the watch says with what it could have seen, and how it asked with how."""
    requests = evidence.requests
    looks = Looks(evidence.seed, requests)
    manners = judge_manners(requests)
    missing, extra = compare(evidence.changes, looks.changes)
    blocks = list_blocks(requests)
    least = count_least(list_details(requests), clear_spans(evidence.moments, blocks))
    is_paced = manners.most_in_an_hour <= MOST_AN_HOUR and (least or 0) >= LEAST_AN_HOUR
    return Report(
        ok=manners.ok and is_paced and not missing and not extra,
        seed=evidence.seed,
        days=evidence.days,
        requests=manners.requests,
        details=manners.details,
        blocks=len(blocks),
        most_in_an_hour=manners.most_in_an_hour,
        least_in_a_full_hour=least,
        asked_again_after_404=manners.asked_again_after_404,
        blocked_url_within_an_hour=manners.blocked_url_within_an_hour,
        requests_within_5_min_after_a_block=manners.requests_within_5_min_after_a_block,
        properties=looks.properties,
        changes=len(evidence.changes),
        missing=len(missing),
        extra=len(extra),
        missing_examples=missing[:EXAMPLES],
        extra_examples=extra[:EXAMPLES],
    )


def clear_spans(moments: Sequence[Moment], blocks: Sequence[datetime]) -> list[Span]:
    """Tell when all was clear from one look to the next, less every block and the pause after."""
    spans = []
    for is_clear, group in groupby(moments, key=lambda moment: moment.is_clear):
        times = [moment.at for moment in group]
        if not is_clear:
            continue
        start = times[0]
        for block in blocks:
            if times[0] - PAUSE_FOR < block <= times[-1]:
                spans.append((start, block))
                start = block + PAUSE_FOR
        spans.append((start, times[-1]))
    return [(start, end) for start, end in spans if start < end]


def compare(
    ours: Sequence[Change], theirs: Sequence[Change]
) -> tuple[list[Difference], list[Difference]]:
    """Tell which changes we lack, and which only we have; each property's come in their order."""
    missing, extra = [], []
    mine, true = _by_property(ours), _by_property(theirs)
    for key in sorted(mine.keys() | true.keys()):
        own, real = mine.get(key, []), true.get(key, [])
        for tag, a, b, c, d in SequenceMatcher(None, real, own, autojunk=False).get_opcodes():
            if tag != "equal":
                missing += real[a:b]
                extra += own[c:d]
    return missing, extra


def _by_property(found: Sequence[Change]) -> dict[str, list[Difference]]:
    """Sort what was seen at one time by its kind: pages have no order of their own."""
    sorted_by: dict[str, list[Difference]] = {}
    for one in sorted(found, key=lambda one: (one.at, one.kind)):
        plain = Difference(
            property_id=one.property_id, kind=one.kind, before=one.before, after=one.after
        )
        sorted_by.setdefault(one.property_id, []).append(plain)
    return sorted_by
