"""The commands on monitors, as a person and as a program use them."""

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from rich.cells import cell_len
from sqlalchemy import update

from mimawari.kernel.clock import RealClock
from mimawari.kernel.values import Entry
from mimawari.kernel.worker import alive_key
from mimawari.media.timeline import Run
from mimawari.store.sql import SqlStore
from mimawari.watches.streams import sync
from mimawari.watches.streams.asking import ConfigIn
from mimawari.watches.streams.cli_add import OPTIONS, parse_time
from mimawari.watches.streams.models import (
    Config,
    EventType,
    Fault,
    Monitor,
    Notice,
    Reading,
    Sense,
    Source,
    State,
    Stats,
    Status,
    Step,
    StreamStatus,
    Told,
)
from mimawari.watches.streams.outside import CHECK
from mimawari.watches.streams.runner import member_of
from mimawari.watches.streams.tables import events
from tests.app.screen import Screen
from tests.ready import lay_tables

TOKYO = ZoneInfo("Asia/Tokyo")
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
HOSTILE = "[red]a[/] \x1b[31mb\x07 日本\n\u202e:x"
DARK, AWAITED, LOST, ODD = (f"mon-0190a5c8e4{digit * 22}" for digit in "abcd")
CALLBACK = "http://127.0.0.1:9/hook"
VIDEO = "https://www.youtube.com/watch?v=AAAAAAAAAA{}"
VARIABLES = {
    "WEBHOOK_SIGNING_KEY": "a-key",
    "MIMAWARI_ALLOW_HOSTS": "127.0.0.1",
    "MIMAWARI_ZONE": "Asia/Tokyo",
}


def a_monitor(monitor_id: str, number: int, at: datetime, **config: Any) -> Monitor:
    """Make up a monitor."""
    return Monitor(
        id=monitor_id,
        stream_url=VIDEO.format(number),
        callback_url=CALLBACK,
        config=Config(**config),
        metadata={"channel": "見回り"},
        status=Status.INITIALIZING,
        created_at=at,
    )


def a_step(status: Status, stream: StreamStatus, now: datetime, **given: Any) -> Step:
    """Make up what a check found."""
    usual = {"state": State(), "next_at": now + 10 * SECOND, "reason": "interval"}
    return Step(status=status, stream_status=stream, **{**usual, **given})


async def keep(store: SqlStore, monitor: Monitor, step: Step, at: datetime) -> None:
    """Keep a monitor with what one check of it found."""
    async with store.edit() as tx:
        await sync.add(tx, monitor, "test")
        await sync.keep_step(tx, monitor, step, at, TOKYO)
        if not step.is_end:
            tx.place(
                Entry(
                    member=member_of(monitor.id), kind=CHECK, next_at=step.next_at,
                    every=10 * SECOND, args={"monitor_id": monitor.id}, reason=step.reason,
                )
            )  # fmt: skip


def tell(what: EventType, at: datetime, **data: Any) -> Notice:
    """Make up something to tell."""
    return Notice(type=what, at=at, data=data)


async def fill(data: Path) -> None:
    """Keep a stream that is black, one that is awaited, one that is gone and one named badly."""
    clock = RealClock()
    store = SqlStore(await lay_tables(data / "mimawari.db"), clock)
    now = clock.now()
    since = now - 2 * MINUTE
    state = State(
        source=Source(manifest_url="https://cdn.test/a.m3u8", title="くらげ水槽"),
        reading=Reading(sequence=7),
        runs={Sense.BLACKOUT: Run(start=0.0, until=90.0, seconds=90.0, is_told=True)},
        told={Sense.BLACKOUT: Told(started_at=since)},
    )
    started = tell(EventType.STARTED, now - 3 * MINUTE, title="くらげ水槽")
    black = tell(EventType.BLACKOUT, now - MINUTE, duration_sec=30.5, started_at=since)
    dark = a_step(
        Status.MONITORING, StreamStatus.LIVE, now, state=state, notices=(started, black),
        stats=Stats(segments=1234, blackouts=1), next_at=now + HOUR,
    )  # fmt: skip
    await keep(store, a_monitor(DARK, 1, now - HOUR), dark, now - MINUTE)
    wait = a_step(
        Status.WAITING, StreamStatus.UPCOMING, now, reason="it begins later",
        next_at=now + 10 * MINUTE, state=State(source=Source(release_at=now + 5 * HOUR)),
    )  # fmt: skip
    await keep(store, a_monitor(AWAITED, 2, now - HOUR, freeze_threshold_sec=60), wait, now)
    gone = tell(EventType.ERROR, now, reason="private", error_details="Private video")
    over = a_step(
        Status.ERROR, StreamStatus.UNKNOWN, now, reason="private: Private video", notices=(gone,)
    )
    await keep(store, a_monitor(LOST, 3, now - HOUR), over, now)
    fault = Fault(what="segment", since=since, count=9, words=HOSTILE, is_told=True)
    named = a_step(
        Status.MONITORING, StreamStatus.LIVE, now, reason=HOSTILE,
        state=replace(state, told={}, fault=fault, source=Source(title=HOSTILE)),
        notices=(tell(EventType.SEGMENT_ERROR, now, reason="segment", error_details=HOSTILE),),
    )  # fmt: skip
    await keep(store, a_monitor(ODD, 4, now - HOUR), named, now)
    async with store.edit() as tx:
        told = {"webhook_status": "sent", "webhook_attempts": 1, "sent_at": now}
        await tx.execute(update(events).where(events.c.monitor_id == DARK).values(told))
        failed = {"webhook_attempts": 4, "webhook_last_error": "the receiver answered 500"}
        values = {"webhook_status": "failed", **failed}
        await tx.execute(update(events).where(events.c.monitor_id == LOST).values(values))
    await store.close()


@pytest.fixture(scope="module")
def filled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with some monitors; it is copied, never used."""
    folder = tmp_path_factory.mktemp("filled")
    asyncio.run(fill(folder))
    return folder


@pytest.fixture
def filled(filled_once: Path, tmp_path: Path) -> Screen:
    """A screen with some monitors."""
    shutil.copytree(filled_once, tmp_path / "data")
    return Screen(tmp_path / "data", "streams", VARIABLES)


@pytest.fixture
def empty(tmp_path: Path) -> Screen:
    """A screen with nothing behind it."""
    return Screen(tmp_path / "data", "streams", VARIABLES)


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


def test_a_monitor_is_added_and_what_happens_next_is_said(empty: Screen) -> None:
    said = empty.run("add", VIDEO.format(1), "--callback", CALLBACK)
    assert (said.code, said.err) == (0, "")
    monitor_id = said.out.split()[1]
    assert monitor_id.startswith("mon-")
    assert "It is asked now whether it is live; once it is live, every 10 s" in said.out
    assert f"`mimawari streams show {monitor_id[4:16]} --follow` shows how it stands." in said.out
    assert "no monitor part is running; start one with `mimawari serve`" in said.out
    shown = empty.run("show", monitor_id[4:16], "--json").json()
    assert (shown["monitor_id"], shown["status"]) == (monitor_id, "initializing")
    assert shown["next"]["reason"] == "just added"


def test_every_option_of_add_reaches_the_configuration(empty: Screen) -> None:
    said = {
        "--check-interval": ("check_interval_sec", 5),
        "--blackout": ("blackout_threshold_sec", 11),
        "--silence": ("silence_threshold_sec", 12),
        "--silence-db": ("silence_db_threshold", -42.5),
        "--tolerance": ("start_delay_tolerance_sec", 60),
        "--quality": ("quality", "360p"),
        "--freeze": ("freeze_threshold_sec", 13),
        "--bars": ("bars_threshold_sec", 14),
        "--loudness": ("loudness_threshold_sec", 15),
        "--loudness-min": ("loudness_min_lufs", -30.0),
        "--loudness-max": ("loudness_max_lufs", -10.0),
    }
    words = [word for option, (_, value) in said.items() for word in (option, str(value))]
    windows = ("--maintenance", "2030-01-01T03:00/2030-01-01T04:00")
    more = ("--start", "2030-01-31T20:00", "--snapshot", "--mute-is-fine", *windows)
    added = empty.run(
        "add", VIDEO.format(1), "--callback", CALLBACK, *words, *more,
        "--metadata", '{"名": [1]}', "--json",
    ).json()  # fmt: skip
    assert added["status"] == "initializing"
    shown = empty.run("show", added["monitor_id"], "--json").json()
    config = shown["config"]
    for name, value in said.values():
        assert config[name] == value, name
    assert config["snapshot"] is True
    assert config["missing_audio_is_silence"] is False
    started_at = datetime.fromisoformat(config["scheduled_start_time"])
    assert started_at == datetime(2030, 1, 31, 20, tzinfo=TOKYO)
    (window,) = config["maintenance"]
    assert datetime.fromisoformat(window["start"]) == datetime(2030, 1, 1, 3, tzinfo=TOKYO)
    assert (shown["metadata"], shown["callback_url"]) == ({"名": [1]}, CALLBACK)
    assert set(config) == set(ConfigIn.model_fields)


def test_every_key_of_the_api_is_known_by_its_option() -> None:
    flags = {"snapshot", "missing_audio_is_silence"}
    assert set(ConfigIn.model_fields) - flags <= set(OPTIONS)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("https://www.youtube.com/@a", "--callback", CALLBACK), "it names no single video"),
        ((VIDEO.format(1), "--callback", "x"), "no address that can be called"),
        ((VIDEO.format(1), "--callback", "http://10.0.0.1/"), "is not public"),
        ((VIDEO.format(1), "--callback", CALLBACK, "--blackout", "0"), "--blackout: "),
        ((VIDEO.format(1), "--callback", CALLBACK, "--silence-db", "5"), "--silence-db: "),
        ((VIDEO.format(1), "--callback", CALLBACK, "--start", "soon"), "--start: write a time"),
        ((VIDEO.format(1), "--callback", CALLBACK, "--start", "25:00"), "--start: write a time"),
        ((VIDEO.format(1), "--callback", CALLBACK, "--metadata", "{"), "--metadata: it is no JSON"),
        ((VIDEO.format(1), "--callback", CALLBACK, "--metadata", "[]"), "a JSON object like"),
        ((VIDEO.format(1), "--callback", CALLBACK, "--maintenance", "3:00"), "--maintenance: "),
        (
            (VIDEO.format(1), "--callback", CALLBACK, "--loudness-min", "-1"),
            "--loudness-min must be less than --loudness-max",
        ),
    ],
)
def test_what_cannot_be_added_is_refused_with_a_sentence(
    empty: Screen, words: tuple[str, ...], says: str
) -> None:
    assert says in empty.run("add", *words).refused()


def test_a_stream_is_not_monitored_twice(filled: Screen) -> None:
    said = filled.run("add", "https://youtu.be/AAAAAAAAAA1", "--callback", CALLBACK).refused()
    assert said.endswith("is monitored already; stop that monitor first")


def test_without_a_key_to_sign_with_nothing_is_added(empty: Screen) -> None:
    said = empty.run("add", VIDEO.format(1), "--callback", CALLBACK, WEBHOOK_SIGNING_KEY="")
    assert "set WEBHOOK_SIGNING_KEY" in said.refused()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("20:00", datetime(2026, 1, 31, 20, tzinfo=TOKYO)),
        ("12:00", datetime(2026, 2, 1, 12, tzinfo=TOKYO)),
        ("2026-02-03T20:00", datetime(2026, 2, 3, 20, tzinfo=TOKYO)),
        ("2026-02-03 20:00:30", datetime(2026, 2, 3, 20, 0, 30, tzinfo=TOKYO)),
        ("2026-02-03T20:00:00Z", datetime(2026, 2, 3, 20, tzinfo=UTC)),
    ],
)
def test_times_are_read_as_people_write_them(text: str, wanted: datetime) -> None:
    now = datetime(2026, 1, 31, 13, tzinfo=TOKYO)
    assert parse_time("--start", text, now, TOKYO) == wanted


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
