"""The commands on monitors, as a person and as a program use them."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from rich.cells import cell_len

from mimawari.kernel.clock import RealClock
from mimawari.kernel.worker import alive_key
from mimawari.store.sql import SqlStore
from tests.app.screen import Screen
from tests.streams.cli_ground import AWAITED, CALLBACK, DARK, HOUR, LOST, ODD, VIDEO


def set_to_work(screen: Screen) -> None:
    """Have it look as if a process looks at streams."""

    async def work() -> None:
        store = SqlStore(f"sqlite:///{screen.data}/mimawari.db", RealClock())
        await store.cache.set(alive_key("monitor"), b"1", HOUR)
        await store.close()

    asyncio.run(work())


def words_of(text: str) -> str:
    """Write a text on one line, however it was laid out."""
    return " ".join(text.split())


def test_help_names_every_command(empty: Screen) -> None:
    said = empty.run("--help")
    assert said.code == 0
    assert all(f" {name} " in said.out for name in ("add", "ls", "show", "stop", "events", "test"))


def test_nothing_is_said_in_words(empty: Screen) -> None:
    assert "`mimawari streams add URL --callback URL` adds one" in words_of(empty.run("ls").out)
    assert empty.run("ls", "--status", "error").out == "No monitor is error.\n"
    assert empty.run("events").out == "Nothing was told yet.\n"
    for words in (("ls",), ("events",)):
        assert empty.run(*words, "--json").json() == []


def test_monitors_are_listed_newest_first_in_80_columns(filled: Screen) -> None:
    said = filled.run("ls")
    lines = said.out.splitlines()
    assert max(cell_len(line) for line in lines[:-1]) <= 80
    ids = [line.split()[0] for line in lines if line.startswith("0190")]
    assert ids == [one[4:16] for one in (ODD, LOST, AWAITED, DARK)]
    words = words_of(said.out)
    for each in ("くらげ水槽", "v=AAAAAAAAAA1", "blackout", "1,234", "never:", "it begins later"):
        assert each in words
    assert "Nothing is looked at: no monitor part is running" in words
    set_to_work(filled)
    assert "no monitor part" not in words_of(filled.run("ls").out)


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ((), [ODD, LOST, AWAITED, DARK]),
        (("--status", "monitoring"), [ODD, DARK]),
        (("--status", "error"), [LOST]),
        (("--limit", "1"), [ODD]),
    ],
)
def test_monitors_are_chosen(filled: Screen, words: Sequence[str], ids: list[str]) -> None:
    found = filled.run("ls", *words, "--json").json()
    assert [one["monitor_id"] for one in found] == ids


def test_what_is_left_out_is_said(filled: Screen) -> None:
    assert "1 of 4 are shown; --limit shows more." in filled.run("ls", "--limit", "1").out
    assert "1 of 4 are shown" in filled.run("events", "--limit", "1").out


def test_a_monitor_is_shown_whole_by_the_beginning_of_its_id(filled: Screen) -> None:
    for begin in (DARK[:15], DARK[4:15].upper(), DARK):
        said = filled.run("show", begin)
        assert (said.code, said.err) == (0, "")
    words = words_of(said.out)
    for each in (
        f"id {DARK}",
        "title くらげ水槽",
        f"tells {CALLBACK}",
        "status monitoring, the stream is live",
        "picture blackout sound ok",
        "counted segments 1,234, black-outs 1, silences 0",
        "watched for black 30 s, silence 30 s; every 10 s, lowest quality",
        "open: blackout since ",
        "next look ",
        ": interval",
        "but no monitor part is running; start one with `mimawari serve`",
        "alert.blackout 30.5 s since ",
        "stream.started くらげ水槽 sent",
    ):
        assert each in words, each


def test_one_that_waits_says_for_what_and_one_that_is_over_why(filled: Screen) -> None:
    words = words_of(filled.run("show", AWAITED).out)
    assert "announced for " in words
    assert ": it begins later" in words
    assert "a still picture 60 s" in words
    words = words_of(filled.run("show", LOST).out)
    assert "because private: Private video" in words
    assert "failed, 4 tries: the receiver answered 500" in words
    assert "next look" not in words


def test_a_monitor_is_shown_whole_to_programs(filled: Screen) -> None:
    shown = filled.run("show", DARK, "--json").json()
    assert (shown["health"]["video"], shown["title"]) == ("blackout", "くらげ水槽")
    assert [one["what"] for one in shown["alerts"]] == ["blackout"]
    assert [one["event_type"] for one in shown["events"]] == ["alert.blackout", "stream.started"]
    assert shown["next"]["subject"] == f"streams:{DARK}"
    assert shown["metadata"] == {"channel": "見回り"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("show", " "), "an id has some digits"),
        (("show", "f"), "no monitor has an id like 'f'"),
        (("show", "%"), "no monitor has an id like '%'"),
        (("stop", "mon-"), "an id has some digits"),
        (("events", "f"), "no monitor has an id like 'f'"),
        (("show", "0190"), "several ids begin with '0190': 0190a5c8e4aa, 0190a5c8e4bb"),
        (("show", DARK, "--follow", "--json"), "--follow is for people"),
    ],
)
def test_what_cannot_be_found_is_refused_with_a_sentence(
    filled: Screen, words: tuple[str, ...], says: str
) -> None:
    assert says in filled.run(*words).refused()


@pytest.mark.parametrize(
    "words",
    [
        ("ls", "--limit", "0"),
        ("ls", "--status", "asleep"),
        ("events", "--limit", "501"),
        ("test", "x", "--seconds", "0"),
        ("test", "x", "--quality", "720p"),
        ("add", VIDEO.format(1)),
    ],
)
def test_what_is_out_of_bounds_shows_how_it_is_used(empty: Screen, words: tuple[str, ...]) -> None:
    said = empty.run(*words)
    assert (said.code, "Usage:" in said.err) == (2, True)


def test_a_monitor_is_stopped_once(filled: Screen) -> None:
    assert filled.run("stop", DARK[4:15]).out == f"{DARK} is stopped; it tells nothing any more.\n"
    shown = filled.run("show", DARK, "--json").json()
    assert (shown["status"], shown["next"], shown["alerts"]) == ("stopped", None, [])
    again = filled.run("stop", DARK)
    assert (again.code, "was over already: stopped at " in again.out) == (0, True)
    told = filled.run("stop", LOST, "--json").json()
    assert (told["monitor_id"], told["status"]) == (LOST, "error")


def test_events_tell_what_was_sent_and_what_failed(filled: Screen) -> None:
    words = words_of(filled.run("events").out)
    for each in ("alert.segment_error", "pending", "failed, 4 tries:", "alert.blackout"):
        assert each in words
    told = filled.run("events", LOST, "--json").json()
    (one,) = told
    assert (one["event_type"], one["webhook_status"]) == ("monitor.error", "failed")
    assert (one["webhook_attempts"], one["sent_at"]) == (4, None)
    assert one["payload"]["data"]["reason"] == "private"
    assert max(map(cell_len, filled.run("events").out.splitlines())) <= 80


def test_times_are_said_in_the_configured_zone(filled: Screen) -> None:
    (_, started) = filled.run("show", DARK, "--json").json()["events"]
    at = datetime.fromisoformat(started["created_at"])
    for name in ("Asia/Tokyo", "America/New_York"):
        local = at.astimezone(ZoneInfo(name))
        assert (
            f"{local:%H:%M:%S}  stream.started"
            in filled.run("events", DARK, MIMAWARI_ZONE=name).out
        )


@pytest.mark.parametrize("words", [("ls",), ("show", ODD), ("events", ODD)])
def test_a_title_cannot_write_to_the_terminal(filled: Screen, words: tuple[str, ...]) -> None:
    shown = filled.run(*words).out
    assert "[red]a[/]" in words_of(shown)
    assert not set(shown) & {"\x1b", "\x07", "\u202e"}


def test_following_a_monitor_ends_when_it_is_over(filled: Screen) -> None:
    said = filled.run("show", LOST, "--follow")
    assert (said.code, "because" in said.out, "monitor.error" in said.out) == (0, True, True)
