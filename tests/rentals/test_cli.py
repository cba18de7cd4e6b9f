"""The commands of the rentals watch, as a person and as a program use them."""

import asyncio
import json
import shutil
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from rich.cells import cell_len
from sqlalchemy import update

from mimawari.kernel.clock import RealClock
from mimawari.kernel.job import End, State, Want
from mimawari.kernel.values import BreakerPolicy, Grant, Limit
from mimawari.kernel.worker import ALIVE
from mimawari.store.sql import SqlStore
from mimawari.watches.rentals import tasks
from mimawari.watches.rentals.tables import lists
from tests.app.screen import Screen
from tests.ready import lay_tables
from tests.rentals.scene import ADDRESS, AREA
from tests.rentals.seeing import TOKYO, keep, keep_gone, on_list, on_page, page_of

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
SEASIDE, TOWER = "a" * 10 + "0" * 34, "a" * 10 + "1" * 34
HOSTILE_ID, GONE, UNSEEN, OTHER = "_" + "b" * 44, "c" * 44, "d" * 44, "e" * 44
HOSTILE = "[red]a[/] \x1b[31mb\x07 日本\n\u202e:x"
WAYS: list[dict[str, Any]] = [
    {"station": "汐見駅", "line": "巡回線", "walk_minutes": 6, "bus_minutes": 0},
    {"station": "北駅", "line": None, "walk_minutes": 2, "bus_minutes": 15},
]
VARIABLES = {"MIMAWARI_RENTALS_URL": ADDRESS}


async def fill(data: Path) -> None:
    """Keep a room whose rent fell twice, one that was seen once, and some that are gone."""
    clock = RealClock()
    store = SqlStore(await lay_tables(data / "mimawari.db"), clock)
    now = clock.now()
    ways = json.dumps(WAYS, ensure_ascii=False)
    await keep(store, now - 5 * DAY, on_list(SEASIDE, stations=ways, rent_yen=120_000))
    await keep(store, now - 4 * DAY, on_list(SEASIDE, rent_yen=110_000))
    first = on_page(SEASIDE, rent_yen=100_000, built_on="2019-03", years_old=7)
    await keep(store, now - 3 * DAY, first)
    moved = json.dumps([{**WAYS[0], "walk_minutes": 7}], ensure_ascii=False)
    await keep(store, now - 2 * DAY, on_page(SEASIDE, rent_yen=100_000, stations=moved))
    await keep(store, now - HOUR, on_list(TOWER, layout="3LDK", area_m2=80.25, rent_yen=300_000))
    await keep(store, now - 2 * HOUR, on_list(HOSTILE_ID, building_name=HOSTILE, rent_yen=None))
    await keep(store, now - 3 * HOUR, on_list(GONE, rent_yen=50_000, fee_yen=0))
    await keep_gone(store, now - HOUR, [GONE, UNSEEN])
    await store.close()


@pytest.fixture(scope="module")
def filled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with some properties; it is copied, never used."""
    folder = tmp_path_factory.mktemp("filled")
    asyncio.run(fill(folder))
    return folder


@pytest.fixture
def filled(filled_once: Path, tmp_path: Path) -> Screen:
    """A screen with some properties."""
    shutil.copytree(filled_once, tmp_path / "data")
    return Screen(tmp_path / "data", "rentals", VARIABLES)


@pytest.fixture
def empty(tmp_path: Path) -> Screen:
    """A screen with nothing behind it."""
    return Screen(tmp_path / "data", "rentals", VARIABLES)


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


def test_properties_are_listed_newest_first_in_80_columns(filled: Screen) -> None:
    said = filled.run("ls")
    lines = said.out.splitlines()
    assert max(map(cell_len, lines)) <= 80
    ids = [line.split()[0] for line in lines[1:] if not line.startswith(" ")]
    assert ids == [TOWER[:11], HOSTILE_ID[:11], GONE[:11], SEASIDE[:11]]
    for each in ("300,000", "+ 3,000", "80.25", "3LDK", "gone", "active", "汐見駅 7 min"):
        assert each in said.out
    assert UNSEEN[:8] not in said.out


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        (("--sort", "rent"), [HOSTILE_ID, GONE, SEASIDE, TOWER]),
        (("--sort", "area"), [TOWER, GONE, SEASIDE, HOSTILE_ID]),
        (("--sort", "seen"), [TOWER, HOSTILE_ID, GONE, SEASIDE]),
        (("--limit", "1"), [TOWER]),
        (("--status", "ended"), [GONE]),
        (("--min-rent", "100000"), [TOWER, SEASIDE]),
        (("--max-rent", "100000"), [GONE, SEASIDE]),
        (("--layout", "3LDK"), [TOWER]),
        (("--search", "汐見駅"), [SEASIDE]),
        (("--search", "%"), []),
    ],
)
def test_properties_are_chosen_and_put_in_order(
    filled: Screen, words: tuple[str, ...], ids: list[str]
) -> None:
    found = [one["property_id"] for one in filled.run("ls", *words, "--json").json()]
    assert found == ids


def test_programs_are_told_a_property_as_the_api_tells_it(filled: Screen) -> None:
    (found,) = filled.run("ls", "--search", "汐見駅", "--json").json()
    assert (found["rent_yen"], found["stations"][0]["walk_minutes"]) == (100_000, 7)
    assert found["images"] == ["a.jpg"]
    assert datetime.fromisoformat(found["first_seen_at"]).utcoffset() == timedelta(0)
    assert "snapshot_on" not in found


def test_a_property_is_shown_whole_by_the_beginning_of_its_id(filled: Screen) -> None:
    said = filled.run("show", SEASIDE[:11])
    assert (said.code, said.err) == (0, "")
    words = " ".join(said.out.split())
    for each in (
        f"id {SEASIDE}",
        "rent 100,000 yen + 3,000 fee",
        "layout 1K, 25.50 m²",
        "built 2019-03 (7 years old)",
        "rents █▅▁ 120,000 → 110,000 → 100,000",
        "stations 巡回線 汐見駅 7 min",
        "rent 110,000 → 100,000 ▼ its page",
        "rent 120,000 → 110,000 ▼ a list",
        "stations 巡回線 汐見駅 6 min; 北駅 bus 15 + 2 min →",
        "new first seen a list",
        "next in a daily round",
    ):
        assert each in words


def test_a_property_is_shown_whole_to_programs(filled: Screen) -> None:
    shown = filled.run("show", SEASIDE, "--json").json()
    assert [step["rent_yen"] for step in shown["rents"]] == [120_000, 110_000, 100_000]
    kinds = [change["kind"] for change in shown["changes"]]
    assert kinds == ["access", "rent", "rent", "new"]
    assert (shown["property_id"], shown["waiting"]) == (SEASIDE, None)


def test_a_rent_that_never_changed_is_not_drawn(filled: Screen) -> None:
    assert "rents" not in filled.run("show", TOWER).out


def test_times_are_said_in_the_configured_zone(filled: Screen) -> None:
    (found,) = filled.run("ls", "--status", "ended", "--json").json()
    ended_at = datetime.fromisoformat(found["ended_at"])
    for name in ("Asia/Tokyo", "America/New_York"):
        local = ended_at.astimezone(ZoneInfo(name))
        said = filled.run("show", GONE[:8], MIMAWARI_ZONE=name)
        assert f"ended       {local:%m-%d %H:%M:%S}" in said.out
        assert f"{local:%m-%d %H:%M}  status" in said.out


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


def test_changes_are_listed_newest_first(filled: Screen) -> None:
    found = filled.run("changes", "--json").json()
    assert [one["id"] for one in found] == sorted((one["id"] for one in found), reverse=True)
    assert {one["kind"] for one in found} == {"new", "rent", "access", "status"}
    rents = filled.run("changes", "--kind", "rent", "--json").json()
    assert [(one["before"], one["after"]) for one in rents] == [
        ("110000", "100000"),
        ("120000", "110000"),
    ]
    assert len(filled.run("changes", "--limit", "1", "--json").json()) == 1
    said = filled.run("changes", "--kind", "status")
    assert "active → ended" in said.out
    assert f" {GONE[:8]} " in said.out


@pytest.mark.parametrize("words", [("ls",), ("show", HOSTILE_ID[:8]), ("changes",)])
def test_a_name_cannot_write_to_the_terminal(filled: Screen, words: tuple[str, ...]) -> None:
    shown = filled.run(*words).out
    assert "[red]a[/]" in shown
    assert not set(shown) & {"\x1b", "\x07", "\u202e"}


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
