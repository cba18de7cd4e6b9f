"""The command that adds a monitor: with every option, or refused with a sentence."""

from datetime import UTC, datetime

import pytest

from mimawari.watches.streams.cli.add import OPTIONS, parse_time
from mimawari.watches.streams.schemas.requests import ConfigIn
from tests.app.screen import Screen
from tests.streams.cli_ground import CALLBACK, TOKYO, VIDEO


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


def test_a_stream_that_can_never_be_reached_is_refused_with_what_to_do(empty: Screen) -> None:
    words = ("add", "http://10.0.0.1/a.m3u8", "--callback", CALLBACK)
    said = empty.run(*words, STREAMS_PLATFORMS="youtube,hls").refused()
    assert said.endswith("add 10.0.0.1:80 to MIMAWARI_ALLOW_HOSTS")


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
