"""Addresses name one video in many spellings, and refusals are told apart."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mimawari.errors import BadInput, Invalid
from mimawari.sites.youtube import (
    LiveStatus,
    Trouble,
    parse_answer,
    parse_video_id,
    tell_trouble,
    watch_url,
)

FIXTURES = Path(__file__).parents[3] / "shared" / "fixtures" / "ytdlp"
ID = "jfKfPfyJRdk"


@pytest.mark.parametrize(
    "url",
    [
        f"https://www.youtube.com/watch?v={ID}",
        f"http://youtube.com/watch?v={ID}",
        f"https://m.youtube.com/watch?v={ID}&feature=share",
        f"HTTPS://WWW.YOUTUBE.COM/watch?app=desktop&v={ID}&t=10s#top",
        f"https://youtu.be/{ID}?si=abc",
        f"https://www.youtube.com/live/{ID}?feature=shared",
        f"https://www.youtube.com:443/watch/?v={ID}",
        f"  https://music.youtube.com/watch?v={ID}&list=RD  ",
    ],
)
def test_every_spelling_names_the_same_video(url: str) -> None:
    assert parse_video_id(url) == ID
    assert watch_url(parse_video_id(url)) == f"https://www.youtube.com/watch?v={ID}"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "youtube",
        f"www.youtube.com/watch?v={ID}",
        f"ftp://www.youtube.com/watch?v={ID}",
        "https://www.youtube.com/@LofiGirl",
        "https://www.youtube.com/channel/UCSJ4gkVC6NrvII8umztf0Ow/live",
        "https://www.youtube.com/playlist?list=PL1",
        "https://www.youtube.com/watch",
        "https://www.youtube.com/watch?v=short",
        f"https://www.youtube.com/watch?v={ID}x",
        f"https://www.youtube.com/watch?v={ID}&v=other678901",
        f"https://www.youtube.com.evil.example/watch?v={ID}",
        f"https://evil.example/watch?v={ID}",
        f"https://user@www.youtube.com/watch?v={ID}",
        f"https://www.youtube.com:8443/watch?v={ID}",
        f"https://www.youtube.com:x/watch?v={ID}",
        f"https://www.youtube.com/watch?v={ID}&x={'y' * 600}",
        "https://[::1/watch?v=jfKfPfyJRdk",
        "https://www.youtube.com/watch?v=ｊｆＫｆＰｆｙＪＲｄｋ",  # noqa: RUF001 - wide letters are none
    ],
)
def test_what_names_no_single_video_is_refused(url: str) -> None:
    with pytest.raises(BadInput, match="give the address of one video") as refused:
        parse_video_id(url)
    assert refused.value.code == "INVALID_URL"


LINES = {
    "ERROR: [youtube] x: Video unavailable. This video is private": Trouble.PRIVATE,
    "ERROR: [youtube] x: This video has been removed by the uploader": Trouble.REMOVED,
    "ERROR: [youtube] x: This video is no longer available because the YouTube account associated"
    " with this video has been terminated.": Trouble.REMOVED,
    "ERROR: [youtube] x: Video unavailable": Trouble.UNAVAILABLE,
    "ERROR: [youtube] x: The uploader has not made this video available in your country":
        Trouble.REGION,
    "ERROR: [youtube] x: Sign in to confirm you\u2019re not a bot.": Trouble.BOT_CHALLENGE,
    "ERROR: [youtube] x: Video unavailable. This content isn't available, try again later.":
        Trouble.RATE_LIMITED,
    "ERROR: [youtube] x: Join this channel to get access to members-only content":
        Trouble.MEMBERS_ONLY,
    "ERROR: [youtube] x: Premiere will begin shortly": Trouble.UPCOMING,
    "ERROR: Unable to download API page: <urlopen error timed out>": Trouble.NETWORK,
    "ERROR: [youtube] x: something that nobody has seen before": Trouble.UNKNOWN,
    "": Trouble.UNKNOWN,
}  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_refusals_are_told_apart(line: str) -> None:
    assert tell_trouble(line) is LINES[line]


def test_real_lines_are_told_apart() -> None:
    if not FIXTURES.is_dir():
        pytest.skip(f"{FIXTURES} is not here")
    # What streamlink says is never taken for an answer about a video; it is of the same sort.
    known = {"streamlink_bad_url": "no_format", "streamlink_upcoming": "upcoming"}
    lines = (FIXTURES / "stderr_cases.tsv").read_text(encoding="utf-8").splitlines()
    for line in lines:
        if not line.startswith("#"):
            said, kind, _ = line.split("\t")
            assert tell_trouble(said) == known.get(kind, kind), said


@pytest.mark.parametrize("trouble", Trouble)
def test_only_what_is_said_of_the_video_itself_is_for_good(trouble: Trouble) -> None:
    gone = {Trouble.PRIVATE, Trouble.REMOVED, Trouble.UNAVAILABLE}
    assert trouble.is_for_good is (trouble in gone)


def test_real_answers_are_read() -> None:
    if not FIXTURES.is_dir():
        pytest.skip(f"{FIXTURES} is not here")
    found = {
        path.stem: parse_answer(json.loads(path.read_text(encoding="utf-8")))
        for path in FIXTURES.glob("*.json")
    }
    live = found["info_is_live_fields_ytdlp_test"]
    assert live.live_status is LiveStatus.LIVE
    assert live.release_at == datetime(2022, 7, 12, 15, 59, 30, tzinfo=UTC)
    assert found["info_was_live_fields_ytdlp_test"].live_status is LiveStatus.WAS_LIVE


def test_an_answer_tells_status_address_and_time() -> None:
    found = parse_answer(
        {
            "live_status": "is_upcoming",
            "manifest_url": "https://origin.example/a.m3u8",
            "release_timestamp": 1_780_000_000,
            "title": " A\nstream ",
        }
    )
    assert found.live_status is LiveStatus.UPCOMING
    assert found.manifest_url == "https://origin.example/a.m3u8"
    assert found.title == "A stream"
    assert parse_answer({"is_live": True}).live_status is LiveStatus.LIVE


def test_an_error_line_is_an_answer_without_a_status() -> None:
    found = parse_answer({"error": "ERROR: [youtube] x: Video unavailable", "is_live": True})
    assert (found.live_status, found.trouble) == (None, Trouble.UNAVAILABLE)
    assert found.words == "ERROR: [youtube] x: Video unavailable"


def test_a_stream_that_was_not_kept_has_ended() -> None:
    found = parse_answer({"error": "[youtube] x: This live stream recording is not available."})
    assert (found.live_status, found.trouble) == (LiveStatus.WAS_LIVE, None)


@pytest.mark.parametrize(
    "said", [{}, {"live_status": "perhaps"}, {"is_live": False}, {"error": ""}]
)
def test_an_answer_that_says_nothing_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match="no status"):
        parse_answer(said)


@pytest.mark.parametrize("value", [None, True, "soon", -5, 0, 10**18, float("nan")])
def test_a_time_that_is_none_is_left_out(value: Any) -> None:
    assert parse_answer({"live_status": "is_live", "release_timestamp": value}).release_at is None


@pytest.mark.parametrize("status", LiveStatus)
def test_what_was_live_has_ended(status: LiveStatus) -> None:
    assert status.is_ended is (status not in {LiveStatus.LIVE, LiveStatus.UPCOMING})


def test_what_asks_for_a_report_is_left_out_of_the_words() -> None:
    line = "ERROR: [youtube] x: Unable to download; please report this issue on https://a.example"
    answer = parse_answer({"error": line})
    assert answer.words == "ERROR: [youtube] x: Unable to download"
