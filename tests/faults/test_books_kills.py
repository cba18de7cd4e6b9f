"""Collecting and mailing die anywhere: every page, every book and every mail is there once."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from mimawari.app.judges.virtual_run import list_seen
from mimawari.kernel.clock import RealClock, VirtualClock
from mimawari.sim.sites.google_books.observed import Look, Reading, look_again
from mimawari.sim.sites.google_books.titles import TOPICS
from mimawari.sim.world import World
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade
from mimawari.watches.books import jobs
from mimawari.watches.books.mailing import MailState
from mimawari.watches.books.models import Search, StopReason
from tests.conftest import Databases
from tests.faults.books_world import (
    DeadlyOffice,
    Got,
    Kept,
    Place,
    StandingBooks,
    Told,
    list_got,
    name_mail,
    open_deadly_office,
    open_deadly_store,
    read_kept,
    read_told,
    work_books,
)
from tests.faults.hot_world import ShiftedClock
from tests.faults.test_hot_kills import live
from tests.faults.world import FULL, PATIENCE_SECONDS, kill, running_site, spawn
from tests.net.post_office import ANN, BEN
from tests.stores import open_store

KILLS = 50 if FULL else 6
ROUNDS = 11 if FULL else 3
SEED = 3
# No book appears for the next minutes, which is longer than all calls take.
START = datetime(2026, 1, 1, 12, 30, tzinfo=UTC)
DAY = timedelta(days=1)
LATER = timedelta(minutes=10)
"""Whoever comes after a death comes so much later that nothing of the dead is waited for."""
AT_ONCE = 2
"""A process has at the most two pages on their way."""
PLENTY = 1000
WORDS = tuple(ja for ja, _, _ in TOPICS)
BOTH, ONE = (ANN, BEN), (BEN,)
SEARCHES = (
    Search(
        name="wide", queries=WORDS[: 11 if FULL else 2], max_per_run=95 if FULL else 70,
        mail_limit=200, recipients=BOTH,
    ),
    Search(
        name="near", queries=WORDS[1 : 6 if FULL else 3], max_per_run=45, mail_limit=200,
        recipients=BOTH,
    ),
    Search(name="other", queries=WORDS[:1], max_per_run=10 if FULL else 45, recipients=ONE),
)  # fmt: skip


@dataclass(slots=True, kw_only=True)
class Scene:
    """A catalogue and a mail server that remember, and a time that the processes live in."""

    world: World
    site: StandingBooks
    office: DeadlyOffice
    place: Place
    store: SqlStore
    now: datetime = START
    at_work: int = 0
    """How many died with something left to do."""
    calls: list[int] = field(default_factory=list)
    """How many calls the site saw in each round."""

    def later(self) -> timedelta:
        """Let time pass, and tell how far the processes' time is from ours."""
        self.now += LATER
        return self.now - RealClock().now()

    async def is_idle(self) -> bool:
        """Say whether nothing is left to collect, to mail or to deliver."""
        # What ends a job is what puts its follow-up or its event, so the jobs are looked at first.
        return not await live(self.store) and not (await self.store.outbox.counts())["pending"]


@asynccontextmanager
async def opened_scene(url: str, calls: int) -> AsyncIterator[Scene]:
    clock = VirtualClock(START)
    site = StandingBooks(clock, SEED)
    world = World(clock, (site,), SEED)
    async with AsyncExitStack() as stack:
        address = await stack.enter_async_context(running_site(world))
        office = await stack.enter_async_context(open_deadly_office())
        data = Path(stack.enter_context(TemporaryDirectory()))
        assert isinstance(office, DeadlyOffice)
        place = Place(url=url, address=address, mail_port=office.port, calls=calls, data=data)
        store = open_store(url, RealClock())
        await upgrade(store.database)
        async with store.edit() as tx:
            for search in SEARCHES:
                await jobs.add_job(tx, search, place.settings, START)
        yield Scene(world=world, site=site, office=office, place=place, store=store)
        await store.close()
        assert os.listdir(data / "mail") == []  # noqa: PTH208 - in a coroutine


async def live_and_die(scene: Scene, number: int) -> None:
    """Have a process work and die: at another statement each, with a page, around a mail's end."""
    is_at_site, is_at_office, is_at_end = (number % 5 == one for one in (1, 2, 3))
    moment = None if is_at_site or is_at_office or is_at_end else 10 + number * 37 % 140
    opened = open_deadly_store if is_at_end else open_store
    doomed = spawn(work_books, scene.place, scene.later(), moment, opened)
    scene.site.doomed = doomed if is_at_site else None
    scene.site.pages_left = 1 + number // 5 % 4
    scene.office.doomed = doomed if is_at_office else None
    async with asyncio.timeout(PATIENCE_SECONDS):
        while doomed.exitcode is None and not await scene.is_idle():
            await asyncio.sleep(0.02)
    scene.at_work += doomed.exitcode is not None
    scene.site.doomed = scene.office.doomed = None
    kill(doomed)
    assert doomed.exitcode == -signal.SIGKILL


async def run_round(scene: Scene, deaths: range) -> None:
    """Run every job once, with some deaths on the way, until nothing is left to do."""
    seen_before = scene.world.log.count({"part": "books"})["count"]
    store = open_store(scene.place.url, ShiftedClock(scene.later()))
    await store.queue.put([jobs.page_job(search.name) for search in SEARCHES])
    await store.close()
    for number in deaths:
        await live_and_die(scene, number)
    heir = spawn(work_books, scene.place, scene.later(), None)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await scene.is_idle():
                await asyncio.sleep(0.05)
    finally:
        kill(heir)
    scene.calls.append(scene.world.log.count({"part": "books"})["count"] - seen_before)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What is kept and told in the end, by us, by the catalogue and by the mail server."""

    kept: Kept
    told: Told
    looks: list[Look]
    calls: list[int]
    got: list[Got]
    at_work: int

    def pages_of(self, search: Search) -> list[Look]:
        """List what a job was told, each page once; of one that was lost, what came in its place.

        One that is lost is asked for again before any other, by another run perhaps for more. A
        last one that is lost nobody may have asked for again, where others had all calls.
        """
        found: list[Look] = []
        for look in self.looks:
            if look.q == search.q:
                is_again = bool(found) and found[-1].start == look.start
                found[-1 if is_again else len(found) :] = [look]
        is_lost = found[-1].found and found[-1].start == self.kept.cursors[search.name][0]
        return found[:-1] if is_lost else found


async def collect_and_mail(url: str, kills: int, calls: int = PLENTY) -> Outcome:
    """Run all jobs on some days, with so many deaths, and so many calls a day."""
    async with opened_scene(url, calls) as scene:
        for number in range(ROUNDS):
            scene.now = START + number * DAY
            await run_round(scene, range(kills * number // ROUNDS, kills * (number + 1) // ROUNDS))
        return Outcome(
            kept=await read_kept(scene.store, scene.place.address),
            told=await read_told(scene.store),
            looks=look_again(SEED, list_seen(scene.world, part="books")),
            calls=scene.calls,
            got=list_got(scene.office),
            at_work=scene.at_work,
        )


def insist_on_every_page(outcome: Outcome) -> None:
    """Insist that the pages of each job join, and that its books and its cursor are theirs."""
    assert all(look.is_answered for look in outcome.looks)
    for search in SEARCHES:
        pages = outcome.pages_of(search)
        ends = [look.start + len(look.found) for look in pages]
        assert [look.start for look in pages] == [0, *ends[:-1]], search.name
        assert outcome.kept.cursors[search.name][0] == ends[-1]
        volumes = [one.key for look in pages for one in look.found]
        assert outcome.kept.found[search.name] == volumes
    assert outcome.kept.books.keys() == {
        key for found in outcome.kept.found.values() for key in found
    }


def insist_on_every_call(outcome: Outcome, calls: int, kills: int) -> None:
    """Insist that each day's calls are within the quota, and none but a death's is lost."""
    counted = [outcome.told.calls[day] for day in sorted(outcome.told.calls)]
    assert len(counted) == len(outcome.calls) == ROUNDS
    for seen, (settled, lost) in zip(outcome.calls, counted, strict=True):
        assert settled <= seen <= settled + lost <= calls
    pages = sum(len(outcome.pages_of(search)) for search in SEARCHES)
    # One without volumes, to which the day's last call went, is rightly asked for again.
    empty = sum(not look.found for look in outcome.looks)
    assert pages <= sum(settled for settled, _ in counted) <= pages + empty
    lost_calls = sum(lost for _, lost in counted)
    assert len(outcome.looks) - pages <= lost_calls + empty
    assert lost_calls <= kills * AT_ONCE


def insist_on_every_mail(outcome: Outcome) -> None:
    """Insist that each list got each of its books in one mail, and each mail once."""
    numbered = {key for key, row in outcome.kept.books.items() if row["isbn13"]}
    for recipients in (BOTH, ONE):
        mine = [search.name for search in SEARCHES if search.recipients == recipients]
        wanted = numbered & {key for name in mine for key in outcome.kept.found[name]}
        told = [isbn for got in outcome.got if got.recipients == recipients for isbn in got.isbns]
        assert Counter(told) == Counter(wanted), recipients
    ids = Counter(got.message_id for got in outcome.got)
    assert ids == Counter(name_mail(mail_id) for mail_id in outcome.told.mails)
    assert set(outcome.told.mails.values()) <= {MailState.SENT, MailState.UNCONFIRMED}


def insist_on_every_stop(outcome: Outcome) -> None:
    """Insist that each run went as far as it has to, and exhausted only what was."""
    for search in SEARCHES:
        reading = Reading(search.max_per_run)
        for look in outcome.pages_of(search):
            assert look.most == reading.wanted
            reading.see(look, PLENTY)
            if reading.reason:
                reading.begin_run()
        assert outcome.kept.cursors[search.name] == (reading.start_index, reading.is_exhausted)


def insist_on_much(calm: Outcome) -> None:
    """Insist that there was something to lose: volumes, ends of lists, and mails."""
    ends = {name: is_exhausted for name, (_, is_exhausted) in calm.kept.cursors.items()}
    assert ends["other"]
    assert len(calm.kept.found["wide"]) > (1000 if FULL else 150)
    assert set(calm.told.mails.values()) == {MailState.SENT}
    assert len(calm.got) > ROUNDS
    shared = set(calm.kept.found["wide"]) & set(calm.kept.found["near"])
    assert len(shared) > 50
    assert len(calm.looks) == sum(len(calm.pages_of(search)) for search in SEARCHES)


@pytest.fixture(scope="module")
async def calm(databases: Databases) -> Outcome:
    """What becomes of it all where nobody dies."""
    found = await collect_and_mail(databases.fresh("sqlite"), 0)
    insist_on_much(found)
    return found


def insist_on_all(outcome: Outcome, calls: int, kills: int) -> None:
    """Insist on all that holds whatever the quota is."""
    insist_on_every_page(outcome)
    insist_on_every_call(outcome, calls, kills)
    insist_on_every_mail(outcome)


async def test_collecting_and_mailing_that_die_anywhere_leave_what_they_would_have_left(
    backend: str, databases: Databases, calm: Outcome
) -> None:
    """No page is skipped, no book missing or twice, in the store or in the mails."""
    insist_on_all(calm, PLENTY, 0)
    insist_on_every_stop(calm)
    died = await collect_and_mail(databases.fresh(backend), KILLS)
    insist_on_all(died, PLENTY, KILLS)
    insist_on_every_stop(died)
    assert died.kept == calm.kept
    # There were deaths at work, with a page that came and with a mail that went.
    assert died.at_work > KILLS / 2
    assert len(died.looks) > len(calm.looks)
    assert MailState.UNCONFIRMED in died.told.mails.values()


async def test_a_quota_that_is_used_up_holds_whoever_dies(
    backend: str, databases: Databases
) -> None:
    """The site sees no more calls a day than there are, and the next day goes on from there."""
    calls = 7 if FULL else 4
    died = await collect_and_mail(databases.fresh(backend), KILLS // 2, calls)
    insist_on_all(died, calls, KILLS // 2)
    stops = Counter(run[-1] for run in died.kept.runs.elements())
    assert stops[StopReason.QUOTA] >= ROUNDS
    for search in SEARCHES:
        last = died.pages_of(search)[-1]
        end = last.start + len(last.found)
        is_end = last.total is not None and (not last.found or end >= last.total)
        assert is_end or not died.kept.cursors[search.name][1]
