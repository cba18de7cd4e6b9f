"""The commands of the rentals watch, as a person and as a program use them."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update

from mimawari.kernel.clock import RealClock
from mimawari.kernel.job import End, State, Want
from mimawari.kernel.values import BreakerPolicy, Grant, Limit
from mimawari.kernel.worker import ALIVE
from mimawari.store.sql import SqlStore
from mimawari.watches.rentals import tasks
from mimawari.watches.rentals.tables import lists
from tests.app.screen import Screen
from tests.rentals.cli_ground import GONE, HOUR, OTHER, SEASIDE, TOWER
from tests.rentals.scene import ADDRESS, AREA
from tests.rentals.seeing import TOKYO, page_of


def meddle(screen: Screen, work: Callable[[SqlStore], Awaitable[Any]]) -> None:
    """Do something to what is behind a screen."""

    async def meddled() -> None:
        store = SqlStore(f"sqlite:///{screen.data}/mimawari.db", RealClock())
        await work(store)
        await store.close()

    asyncio.run(meddled())


def test_help_names_every_command(empty: Screen) -> None:
    for words, names in (
        (
            ("--help",),
            ("list", "scrape", "ls", "show", "changes", "stats", "cleanup", "search"),
        ),
        (("search", "--help"), ("add", "ls", "rm")),
    ):
        said = empty.run(*words)
        assert said.code == 0
        assert all(f" {name} " in said.out for name in names)


def test_nothing_is_said_in_words(empty: Screen) -> None:
    assert "rentals list URL" in empty.run("ls").out
    assert empty.run("changes").out == "Nothing has changed yet.\n"
    assert "search add URL" in empty.run("search", "ls").out
    for words in (("ls",), ("changes",), ("search", "ls")):
        assert empty.run(*words, "--json").json() == []
    said = empty.run("stats").out
    assert "none is running; start one with `mimawari serve`" in said
    assert "▱▱▱▱▱ 0 of 5 used in the last hour, next token now" in said
    assert "none before the first list" in said


def test_a_list_without_a_worker_is_kept_and_not_waited_for(empty: Screen) -> None:
    said = empty.run("list", AREA, "--limit", "5")
    assert (said.code, said.err) == (0, "")
    assert "It begins once a worker runs; start one with `mimawari serve`." in said.out
    job_id = said.out.split("`mimawari why ")[1].split("`")[0]
    again = empty.run("list", AREA, "--json").json()
    assert (again["run_id"], again["job_id"]) == (job_id, job_id)
    assert again["queue_status"]["is_running"] is False
    assert "daily round  " in empty.run("stats").out
    assert "none before" not in empty.run("stats").out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("list", "x"), "is no address"),
        (("list", f"{ADDRESS}/rent/"), "is no list of the site's; give one like"),
        (("list", "https://example.com/rent/search/1/"), "is no list of the site's"),
        (("scrape", f"{ADDRESS}/rent/detail/abc/"), "44 hex digits"),
        (("scrape", AREA), "is no property of the site's"),
        (("search", "add", AREA, "--every", "6"), "write it like 90s, 5m"),
        (("search", "add", AREA, "--every", "5m"), "from 1h to 30d"),
        (("search", "add", AREA, "--every", "31d"), "from 1h to 30d"),
        (("search", "add", "x"), "is no address"),
        (("search", "rm", "7"), "no saved search has the id 7"),
        (("ls", "--min-rent", "2", "--max-rent", "1"), "--min-rent is above --max-rent"),
        (("show", " "), "an id has some digits"),
        (("show", "f"), "no property has an id like 'f'"),
        (("show", "%"), "no property has an id like '%'"),
        (("show", "aaaa"), f"several ids begin with 'aaaa': {SEASIDE[:11]}, {TOWER[:11]}; give"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(
    filled: Screen, words: tuple[str, ...], says: str
) -> None:
    assert says in filled.run(*words).refused()


@pytest.mark.parametrize(
    "words",
    [
        ("list", AREA, "--limit", "0"),
        ("list", AREA, "--limit", "5001"),
        ("search", "rm", "0"),
        ("ls", "--sort", "luck"),
        ("ls", "--min-rent", "-1"),
        ("changes", "--kind", "mood"),
        ("changes", "--limit", "501"),
    ],
)
def test_what_is_out_of_bounds_shows_how_it_is_used(empty: Screen, words: tuple[str, ...]) -> None:
    said = empty.run(*words)
    assert (said.code, "Usage:" in said.err) == (2, True)


def test_what_is_gone_is_never_asked_again_and_says_so(filled: Screen) -> None:
    assert "never: the site said that it is gone" in filled.run("show", GONE).out
    (found,) = filled.run("ls", "--status", "ended", "--json").json()
    local = datetime.fromisoformat(found["gone_at"]).astimezone(TOKYO)
    said = filled.run("scrape", page_of(GONE)).refused(code=1)
    assert f"is gone since {local:%m-%d %H:%M:%S}" in said
    assert said.endswith("it is never asked again")
    assert filled.run("stats", "--json").json()["pending"] == 0


def test_a_property_without_a_worker_is_put_into_the_queue(filled: Screen) -> None:
    said = filled.run("scrape", page_of(TOWER))
    assert (said.code, said.err) == (0, "")
    assert "It is read once a worker runs; start one with `mimawari serve`." in said.out
    assert f"`mimawari rentals show {TOWER}` shows it then." in said.out
    waits = filled.run("scrape", page_of(TOWER), "--json").json()
    assert (waits["property_id"], "no worker is running" in waits["reason"]) == (TOWER, True)
    assert filled.run("stats", "--json").json()["pending"] == 1
    assert "in about 12m, at 5 an hour" in filled.run("stats").out
    assert "not before" in filled.run("show", TOWER).out


async def _use_up(store: SqlStore, count: int) -> None:
    """Take grants of a limit that has room for them at once, so that they count in the real one."""
    roomy = Limit(tasks.DETAIL, 5, timedelta(microseconds=5))
    for _ in range(count):
        grant = await store.limiter.acquire(roomy, "test")
        assert isinstance(grant, Grant)
        await store.limiter.settle(grant)


def test_the_gauge_shows_what_is_used_and_when_the_next_token_comes(filled: Screen) -> None:
    meddle(filled, lambda store: _use_up(store, 3))
    said = filled.run("stats").out
    (line,) = [line for line in said.splitlines() if line.startswith("details")]
    assert "▰▰▰▱▱ 3 of 5 used in the last hour, next token " in line
    assert line.endswith("(in 12m)")
    told = filled.run("stats", "--json").json()["details"]
    assert (told["used"], told["details_per_hour"], told["reason"]) == (3, 5, "hourly_limit")
    lowered = filled.run("stats", MIMAWARI_RENTALS_DETAILS_PER_HOUR="2").out
    assert "▰▰ 2 of 2 used in the last hour" in lowered


def test_what_waits_for_the_limit_says_so_in_words(filled: Screen) -> None:
    async def work(store: SqlStore) -> None:
        await _use_up(store, 1)
        await store.cache.set(ALIVE, b"1", HOUR)

    meddle(filled, work)
    said = filled.run("scrape", page_of(TOWER)).out
    assert said.startswith("It is read at ")
    assert "(in 12m): no more than 5 details an hour are allowed." in said


def test_a_block_is_seen_on_the_gauge_and_the_breaker(filled: Screen) -> None:
    policy = BreakerPolicy(failures=2)
    reason = "the site shows its block page"

    async def block(store: SqlStore) -> None:
        await store.breaker.failed("yahoo_realestate", policy, reason)
        until = RealClock().now() + timedelta(minutes=5)
        await store.limiter.hold(tasks.DETAIL, until, "the site turned us away")

    meddle(filled, block)
    said = filled.run("stats").out
    assert "(in 5m): the site turned us away" in said
    assert "closed, 1 block in a row; a light page is asked for before all else" in said
    meddle(filled, block)
    said = filled.run("stats").out
    assert "breaker      open until " in said
    assert f"(in 1h), 2 blocks in a row: {reason}" in said


async def _end_all(store: SqlStore) -> None:
    """Put three details into the queue and end them long ago, each in its own way."""
    states = (State.DONE, State.FAILED, State.PERMANENT_FAIL)
    await store.queue.put([tasks.detail_job(one, page_of(one)) for one in (SEASIDE, TOWER, OTHER)])
    want = Want(kind=tasks.DETAIL, most=3, lease_for=HOUR)
    turn = await store.queue.turn([], [want], "test")
    jobs = zip(turn.jobs, states, strict=True)
    ends = [End(id=job.id, token=job.token, state=state) for job, state in jobs]
    await store.queue.turn(ends, [], "test")


def test_the_queue_is_cleared_of_what_is_old_and_first_says_of_what(filled: Screen) -> None:
    meddle(filled, _end_all)
    nothing = "0 read moved to the archive, 0 failed and 0 gone deleted."
    assert (
        filled.run("cleanup", "--dry-run").out == f"Nothing was changed; it would be: {nothing}\n"
    )
    old = {"MIMAWARI_RENTALS_ARCHIVE_AFTER": "1ms", "MIMAWARI_RENTALS_KEEP_FAILED": "1ms"}
    counts = {"archived": 1, "failed": 1, "permanent_fail": 1}
    for _ in range(2):
        told = filled.run("cleanup", "--dry-run", "--json", **old).json()
        assert told == {"dry_run": True, **counts}
    said = filled.run("cleanup", **old)
    assert said.out == "1 read moved to the archive, 1 failed and 1 gone deleted.\n"
    assert filled.run("cleanup", **old).out == f"{nothing}\n"


def test_a_search_is_saved_listed_changed_and_forgotten(empty: Screen) -> None:
    said = empty.run("search", "add", AREA, "--every", "6h", "--limit", "30")
    assert said.out == (
        "Search 1 is walked over as soon as a worker is free,"
        " then every 6h, at most 30 rooms each time.\n"
    )
    assert empty.run("search", "add", AREA).out.startswith("Search 1 is walked over")
    (saved,) = empty.run("search", "ls", "--json").json()
    assert (saved["id"], saved["url"], saved["every"]) == (1, AREA, "1d")
    assert (saved["limit"], saved["last_run"]) == (100, None)
    shown = empty.run("search", "ls").out
    assert "/rent/search/06/27/27991/" in shown
    assert ADDRESS not in shown
    assert "is forgotten" in empty.run("search", "rm", "1").out
    assert empty.run("search", "ls", "--json").json() == []


def test_a_list_that_was_asked_for_once_is_no_saved_search(empty: Screen) -> None:
    empty.run("list", AREA)
    assert empty.run("search", "ls", "--json").json() == []
    assert "no saved search has the id 1" in empty.run("search", "rm", "1").refused()


def test_a_list_that_is_gone_is_never_asked_again(empty: Screen) -> None:
    empty.run("search", "add", AREA)

    async def work(store: SqlStore) -> None:
        async with store.edit() as tx:
            await tx.execute(update(lists).values(gone_at=RealClock().now()))

    meddle(empty, work)
    for words in (("list", AREA), ("search", "add", AREA)):
        assert "is gone; it is never asked again" in empty.run(*words).refused(code=1)
    assert "never: the site says" in " ".join(empty.run("search", "ls").out.split())
