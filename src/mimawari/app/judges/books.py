"""Runs the books watch on the simulated API in virtual time and judges it by what it was told."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Any

from pydantic import SecretStr
from sqlalchemy import select

from mimawari.app.judges.virtual_run import (
    DAY,
    START,
    Order,
    Progress,
    list_seen,
    open_ground,
    pick_examples,
    spread_orders,
)
from mimawari.kernel.clock import VirtualClock
from mimawari.settings import Settings
from mimawari.sim.chance import Chance, chance_of
from mimawari.sim.sites.google_books.observed import Calls, Look, Reading, look_again
from mimawari.sim.sites.google_books.site import Books
from mimawari.sim.sites.google_books.titles import TOPICS
from mimawari.sim.world import World
from mimawari.store.sql import SqlStore
from mimawari.watches.books import cursors, jobs, watch
from mimawari.watches.books.models import Search
from mimawari.watches.books.tables import books, job_books, runs

ADDRESS = "https://books.test"
BEFORE_MIDNIGHT = timedelta(seconds=3)
"""So that the first runs, and those after a reset, may still be under way when a day ends."""
STEP = timedelta(hours=1)
MANY = 1000
"""One search finds at least so many volumes."""
FAILING = 503
WANTED = frozenset({"quota", "max_per_run", "exhausted"})
"""Ways for a run to stop without which nothing was tried."""
BUSY_FOR = DAY * 0.3
"""Later in a day there are often no calls left that could go wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The end of a run, as the watch tells it."""

    at: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A job, what the watch keeps of it, and when its cursor was reset."""

    name: str
    q: str
    max_per_run: int
    start_index: int
    is_exhausted: bool
    keys: Sequence[str]
    runs: Sequence[Ended]
    resets: Sequence[datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a watch keeps, and what the site says it was asked."""

    seed: int
    days: float
    quota: int
    zone: tzinfo
    requests: Sequence[Mapping[str, Any]]
    watched: Sequence[Watched]
    books: Sequence[str]
    spent: Sequence[datetime] = ()
    """When calls were lost with their process: paid for, whether they were made or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Something that is not as it should be: what, of which job, where, and both sides of it."""

    what: str
    job: str
    about: str
    ours: str | None
    truth: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How the watch did."""

    ok: bool
    """Nothing differs, and there was something to try it: each way to stop, and failures."""
    seed: int
    days: float
    requests: int
    calls: int
    """Requests to the API, whatever came of them."""
    failures: int
    """Calls that the API answered with 503, by order or in a spell of its own."""
    quota: int
    most_calls_in_a_day: int
    jobs: int
    resets: int
    runs: int
    stops: dict[str, int]
    pages: int
    """Replies that told volumes, or that there are no more."""
    volumes: int
    """Volumes in all these replies."""
    books: int
    missing: int
    """Books that were told of and are not kept, by all or by a job that was told of them."""
    extra: int
    """Books that are kept and were not told of, or are kept twice."""
    skipped_pages: int
    """Pages that begin after the end of the one before."""
    repeated_pages: int
    """Pages that begin before the end of the one before."""
    over_quota_days: int
    cursor_differs: int
    """Jobs whose cursor is not the number of volumes told since it was reset."""
    wrong_exhausted: int
    """Jobs that rest too early, or are asked for again although they are exhausted."""
    wrong_stops: int
    """Runs that ended for another reason than what they were told."""
    overfetched: int
    """Calls for more volumes than the run still wanted."""
    examples: list[Difference]


async def check_books(seed: int, days: float, progress: Progress) -> Report:
    """Watch some searches for so many simulated days, and compare with what they were told."""
    evidence = await watch_books(seed, days, progress)
    return judge(evidence, look_again(seed, evidence.requests))


async def watch_books(seed: int, days: float, progress: Progress) -> Evidence:
    """Watch searches while things go wrong by the seed, and gather what there is to judge."""
    clock = VirtualClock(START - BEFORE_MIDNIGHT)
    site = Books(clock, seed)
    world = World(clock, (site,), seed)
    chance, span = chance_of("check books", seed), timedelta(days=days)
    quota, searches = chance.randint(55, 85), choose_searches(chance, site)
    orders = plan_orders(seed, span)
    resets: dict[str, list[datetime]] = {one.name: [] for one in searches}
    key = SecretStr("check")
    given = {"google_books_url": ADDRESS, "books_key": key, "books_calls": quota}
    async with open_ground(world, clock, watch, given) as ground:
        async with ground.store.edit() as tx:
            for one in searches:
                await jobs.add_job(tx, one, ground.settings, clock.now())
        async for now in ground.pass_days(span, STEP, progress):
            while orders and orders[0][0] <= now:
                world.orders.add(orders.pop(0)[1])
            for name in await reset_rested(ground.store, ground.settings, now):
                resets[name].append(now)
        await ground.rounds.settle()
        return Evidence(
            seed=seed,
            days=days,
            quota=quota,
            zone=ground.settings.zone,
            requests=[*list_seen(world)],
            watched=[
                await read_job(ground.store, one, resets[one.name], clock.now()) for one in searches
            ],
            books=await list_books(ground.store),
        )


def choose_searches(chance: Chance, site: Books) -> list[Search]:
    """Choose by the truth a search of many volumes, one of some, one of few and one of none."""
    words = [ja for ja, _, _ in TOPICS]
    chance.shuffle(words)
    wide: list[str] = []
    while not wide or len(site.truth({"q": " OR ".join(wide)})["books"]) < MANY:
        wide.append(words.pop())
    few = (f"{wide[0]} inauthor:巡田", f"{words.pop()} inauthor:汐見")
    return [
        _search("many", tuple(wide), 100, 67),
        _search("some", (wide[-1],), 40, 101),
        _search("few", few, 7, 53),
        _search("none", ("見回りの無い本",), 5, 149),
    ]


def _search(name: str, queries: tuple[str, ...], max_per_run: int, minutes: int) -> Search:
    every_for = timedelta(minutes=minutes)
    return Search(name=name, queries=queries, max_per_run=max_per_run, every_for=every_for)


def plan_orders(seed: int, span: timedelta) -> list[Order]:
    """Plan by the seed what goes wrong and when: of each kind something on every day."""
    found = spread_orders(chance_of("check books orders", seed), span, _draw_orders, BUSY_FOR)
    return [(at, {"part": Books.name, **order}) for at, order in found]


def _draw_orders(chance: Chance) -> Iterator[dict[str, Any]]:
    yield {"do": "status", "code": FAILING, "share": 0.6, "times": chance.randint(4, 10)}
    yield {"do": "status", "code": 500, "share": 0.3, "times": chance.randint(2, 6)}
    yield {"do": "status", "code": 429, "times": chance.randint(1, 3)}
    yield {"do": "rate_limited", "retry_after": chance.randint(5, 600), "times": 1}
    yield {"do": "changed_layout", "times": 1}
    # It tells neither volumes nor their number, and so proves nothing.
    empty = {"body": '{"kind": "books#volumes"}', "type": "application/json"}
    yield {"do": "status", "code": 200, **empty, "times": 1}


async def reset_rested(store: SqlStore, settings: Settings, now: datetime) -> list[str]:
    """Let each job begin anew that has been exhausted for a day, and tell which."""
    async with store.edit() as tx:
        rested = [
            one.job_name
            for one in await cursors.list_cursors(tx)
            if one.is_exhausted and one.last_updated_at <= now - DAY
        ]
        for name in rested:
            await jobs.reset_job(tx, name, settings, now)
    return rested


async def read_job(
    store: SqlStore, search: Search, resets: Sequence[datetime], now: datetime
) -> Watched:
    """Read what is kept of a job and how each run of it ended."""
    async with store.read() as reader:
        job = await jobs.find_known(reader, search.name)
        cursor = await cursors.find_cursor(reader, job.name, job.query_set_hash)
        rows = await reader.execute(select(runs).where(runs.c.job_id == job.id))
    keys = select(job_books.c.book_key).where(job_books.c.job_id == job.id)
    return Watched(
        name=job.name,
        q=job.q,
        max_per_run=job.max_per_run,
        start_index=cursor.start_index if cursor else 0,
        is_exhausted=cursor is not None and cursor.is_exhausted,
        keys=await _list(store, keys),
        runs=[Ended(at=row.ended_at or now, reason=row.stop_reason or "none") for row in rows],
        resets=resets,
    )


async def list_books(store: SqlStore) -> list[str]:
    """List the keys of all books that are kept."""
    return await _list(store, select(books.c.book_key))


async def _list(store: SqlStore, query: Any) -> list[str]:
    async with store.read() as reader:
        return [*(await reader.execute(query)).scalars()]


class Follower:
    """Follows a job by its replies, and tells where it went another way than it has to."""

    def __init__(self, watched: Watched, calls: Calls) -> None:
        self.differing: list[Difference] = []
        self._watched = watched
        self._calls = calls
        self._reading = Reading(watched.max_per_run)

    def follow(self, looks: Iterable[Look]) -> list[Difference]:
        """Go through all that happened in its order; a run ends after its last reply."""
        events: list[tuple[datetime, int, Look | Ended | None]] = [
            *((at, 0, None) for at in self._watched.resets),
            *((look.at, 1, look) for look in looks),
            *((run.at, 2, run) for run in self._watched.runs),
        ]
        for at, _, event in sorted(events, key=lambda event: event[:2]):
            match event:
                case Look():
                    self._see(event)
                case Ended():
                    self._end(event)
                case None:
                    self._judge_rest(at, is_exhausted=True)
                    self._reading.reset()
        self._judge_rest("the end", is_exhausted=self._watched.is_exhausted)
        ours, truth = self._watched.start_index, self._reading.start_index
        if ours != truth:
            self._differ("cursor", "the end", ours, truth)
        return self.differing

    def _see(self, look: Look) -> None:
        reading = self._reading
        if reading.is_exhausted:
            self._differ("exhausted", look.at, "asked again", "exhausted")
        if look.most > reading.wanted:
            self._differ("overfetched", look.at, look.most, reading.wanted)
        if look.is_answered and look.start != reading.start_index:
            what = "skipped" if look.start > reading.start_index else "repeated"
            self._differ(what, look.at, look.start, reading.start_index)
        reading.see(look, self._calls.count_left(look.at))

    def _end(self, run: Ended) -> None:
        reading = self._reading
        reasons = [reading.reason] if reading.reason else []
        if not reasons and self._calls.count_left(run.at) <= 0:
            reasons.append("quota")
        if not reading.reason and reading.has_failed:
            reasons.append("error")
        if run.reason not in reasons:
            self._differ("stop", run.at, run.reason, " or ".join(reasons) or None)
        reading.begin_run()

    def _judge_rest(self, about: object, *, is_exhausted: bool) -> None:
        if is_exhausted != self._reading.is_exhausted:
            self._differ("exhausted", about, is_exhausted, self._reading.is_exhausted)

    def _differ(self, what: str, about: object, ours: object, truth: object) -> None:
        self.differing.append(_differ(what, self._watched.name, about, ours, truth))


def _differ(what: str, job: str, about: object, ours: object, truth: object) -> Difference:
    sides = [None if side is None else str(side) for side in (ours, truth)]
    return Difference(what=what, job=job, about=str(about), ours=sides[0], truth=sides[1])


def compare_books(job: str, kept: Sequence[str], looks: Iterable[Look]) -> Iterator[Difference]:
    """Tell which books are missing, made up or twice there."""
    told = {one.key for look in looks for one in look.found}
    for key in sorted(told.difference(kept)):
        yield _differ("missing", job, key, None, key)
    for key in (Counter(kept) - Counter(told)).elements():
        yield _differ("extra", job, key, key, None)


def list_differing(evidence: Evidence, looks: Sequence[Look], calls: Calls) -> Iterator[Difference]:
    """Tell all that is not as it should be."""
    for day, count in calls.of_days.items():
        if count > evidence.quota:
            yield _differ("quota", "all", day, count, evidence.quota)
    yield from compare_books("all", evidence.books, looks)
    for watched in evidence.watched:
        mine = [look for look in looks if look.q == watched.q]
        yield from compare_books(watched.name, watched.keys, mine)
        yield from Follower(watched, calls).follow(mine)


def judge(evidence: Evidence, looks: Sequence[Look]) -> Report:
    """Compare what the watch keeps, and how it went on, with what it was told."""
    calls = Calls([*(look.at for look in looks), *evidence.spent], evidence.quota, evidence.zone)
    differing = [*list_differing(evidence, looks, calls)]
    counts = Counter(one.what for one in differing)
    stops = Counter(run.reason for watched in evidence.watched for run in watched.runs)
    failures = sum(look.status == FAILING for look in looks)
    return Report(
        ok=not differing and stops.keys() >= WANTED and failures > 0,
        seed=evidence.seed,
        days=evidence.days,
        requests=len(evidence.requests),
        calls=len(looks),
        failures=failures,
        quota=evidence.quota,
        most_calls_in_a_day=max(calls.of_days.values(), default=0),
        jobs=len(evidence.watched),
        resets=sum(len(watched.resets) for watched in evidence.watched),
        runs=stops.total(),
        stops=dict(sorted(stops.items())),
        pages=sum(look.is_answered for look in looks),
        volumes=sum(len(look.found) for look in looks),
        books=len(evidence.books),
        missing=counts["missing"],
        extra=counts["extra"],
        skipped_pages=counts["skipped"],
        repeated_pages=counts["repeated"],
        over_quota_days=counts["quota"],
        cursor_differs=counts["cursor"],
        wrong_exhausted=counts["exhausted"],
        wrong_stops=counts["stop"],
        overfetched=counts["overfetched"],
        examples=pick_examples(differing),
    )
