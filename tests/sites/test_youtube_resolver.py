"""The real extractor of yt-dlp against a stand-in for YouTube, behind our own gate."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mimawari.errors import BadInput
from mimawari.installation import install_advice
from mimawari.net.gate import Bounds
from mimawari.sites.youtube import Answer, LiveStatus, Trouble, YtDlpResolver, parse_expiry
from tests.sites.youtube_standin import (
    LOWEST,
    MANIFEST,
    MASTER,
    URL,
    StandIn,
    is_clean,
    open_standin,
    tell_live,
    tell_refusal,
    tell_schedule,
    tell_video,
)

FIRST, SECOND, LAST = "VISIONOS", "WEB", "ANDROID"
START = "1790000000"
START_AT = datetime(2026, 9, 21, 14, 13, 20, tzinfo=UTC)
PLAYER = "/youtubei/v1/player"
UNAVAILABLE = tell_refusal("ERROR", "This video is not available")


def make_resolver(standin: StandIn, **given: Any) -> YtDlpResolver:
    """Make a resolver as it is, but for the stand-in's certificate, which nobody signed."""
    return YtDlpResolver(
        standin.proxy,
        options={"nocheckcertificate": True},
        streamlink_options={"http-ssl-verify": False},
        **given,
    )


async def resolve(standin: StandIn, **given: Any) -> Answer:
    resolver = make_resolver(standin, **given)
    try:
        return await resolver.resolve(URL)
    finally:
        resolver.close()


@pytest.fixture
async def standin(tmp_path: Path) -> AsyncIterator[StandIn]:
    async with open_standin(tmp_path) as found:
        yield found


async def test_live_gives_the_manifest_of_all_variants_for_one_player_call(
    standin: StandIn,
) -> None:
    standin.tell(FIRST, tell_live())
    found = await resolve(standin)
    assert (found.live_status, found.title) == (LiveStatus.LIVE, "A stream")
    assert found.manifest_url == MASTER
    assert parse_expiry(MASTER) == datetime(2027, 1, 15, 8, 0, tzinfo=UTC)
    assert standin.players == [FIRST]
    assert len(standin.asked) == 2


@pytest.mark.parametrize(
    ("reason", "is_stream"),
    [("This live event will begin in 2 days.", True), ("Premieres in 6 hours", False)],
    ids=["upcoming", "premiere"],
)
async def test_upcoming_and_premiere_tell_when_they_begin(
    standin: StandIn, reason: str, *, is_stream: bool
) -> None:
    standin.tell(FIRST, tell_schedule(reason, START, isLiveContent=is_stream))
    found = await resolve(standin)
    assert (found.live_status, found.release_at) == (LiveStatus.UPCOMING, START_AT)
    assert (found.trouble, found.manifest_url) == (None, None)
    assert standin.asked == [PLAYER]


async def test_upcoming_without_details_is_still_upcoming(standin: StandIn) -> None:
    standin.tell(FIRST, tell_refusal("LIVE_STREAM_OFFLINE", "This live event will begin shortly."))
    assert (await resolve(standin)).trouble is Trouble.UPCOMING


@pytest.mark.parametrize(
    ("details", "status"),
    [
        ({"isLiveContent": True, "isLive": False}, LiveStatus.WAS_LIVE),
        ({"isLiveContent": True, "isPostLiveDvr": True}, LiveStatus.POST_LIVE),
        ({"isLiveContent": False}, LiveStatus.NOT_LIVE),
    ],
    ids=["ended", "post_live", "never_live"],
)
async def test_ended_and_post_live_are_told_without_a_manifest(
    standin: StandIn, details: dict[str, Any], status: LiveStatus
) -> None:
    told = tell_video(**details) | {"streamingData": {"hlsManifestUrl": MASTER}}
    standin.tell(FIRST, told)
    found = await resolve(standin)
    assert (found.live_status, found.manifest_url, found.trouble) == (status, None, None)
    assert standin.players == [FIRST]


async def test_ended_and_not_kept_is_an_end_like_any_other(standin: StandIn) -> None:
    reason = "This live stream recording is not available."
    standin.tell(FIRST, tell_refusal("UNPLAYABLE", reason, isLiveContent=True))
    found = await resolve(standin)
    assert (found.live_status, found.trouble) == (LiveStatus.WAS_LIVE, None)


REFUSALS = {
    Trouble.PRIVATE: tell_refusal("LOGIN_REQUIRED", "Private video", "Sign in if you may see it"),
    Trouble.REMOVED: tell_refusal(
        "ERROR", "Video unavailable", "This video has been removed by the uploader"
    ),
    Trouble.MEMBERS_ONLY: tell_refusal(
        "UNPLAYABLE",
        "Join this channel to get access to members-only content like this video.",
        isLive=True,
        isLiveContent=True,
    ),
    Trouble.REGION: tell_refusal(
        "UNPLAYABLE",
        "Video unavailable",
        "The uploader has not made this video available in your country",
        isLive=True,
        isLiveContent=True,
    ),
    Trouble.AGE_RESTRICTED: tell_refusal("LOGIN_REQUIRED", "Sign in to confirm your age"),
    Trouble.BOT_CHALLENGE: tell_refusal(
        "LOGIN_REQUIRED", "Sign in to confirm you\u2019re not a bot"
    ),
    Trouble.RATE_LIMITED: tell_refusal(
        "ERROR", "Video unavailable", "This content isn't available, try again later.", isLive=True
    ),
}


@pytest.mark.parametrize("trouble", REFUSALS)
async def test_private_removed_members_only_region_bot_check_and_rate_limited_are_told_apart(
    standin: StandIn, trouble: Trouble
) -> None:
    standin.tell(FIRST, REFUSALS[trouble])
    standin.tell("WEB_EMBEDDED_PLAYER", REFUSALS[trouble])
    found = await resolve(standin)
    assert (found.live_status, found.trouble) == (None, trouble)
    assert is_clean(found.words)
    # Of a video for grown-ups the extractor itself asks a second player.
    assert len(standin.players) == (2 if trouble is Trouble.AGE_RESTRICTED else 1)


@pytest.mark.parametrize(
    ("status", "trouble"), [(429, Trouble.RATE_LIMITED), (500, Trouble.NETWORK)]
)
async def test_a_status_of_refusal_is_asked_once_and_says_nothing_of_the_video(
    standin: StandIn, status: int, trouble: Trouble
) -> None:
    standin.tell(FIRST, tell_live())
    standin.status = status
    found = await resolve(standin)
    assert (found.live_status, found.trouble) == (None, trouble)
    assert standin.players == [FIRST]


async def test_network_down_says_nothing_of_the_video(tmp_path: Path) -> None:
    async with open_standin(tmp_path, where="") as standin:
        found = await resolve(standin)
    assert (found.live_status, found.trouble) == (None, Trouble.NETWORK)


async def test_unavailable_is_believed_only_when_a_second_player_is_told_so(
    standin: StandIn,
) -> None:
    standin.tell(FIRST, UNAVAILABLE)
    standin.tell(SECOND, UNAVAILABLE)
    assert (await resolve(standin)).trouble is Trouble.UNAVAILABLE
    assert standin.players == [FIRST, SECOND]


async def test_a_live_video_made_for_children_is_live(standin: StandIn) -> None:
    standin.tell(FIRST, UNAVAILABLE)
    standin.tell(SECOND, tell_live())
    found = await resolve(standin)
    assert (found.live_status, found.manifest_url) == (LiveStatus.LIVE, MASTER)


async def test_a_refusal_of_the_second_player_is_no_end(standin: StandIn) -> None:
    standin.tell(FIRST, UNAVAILABLE)
    standin.tell(SECOND, REFUSALS[Trouble.BOT_CHALLENGE])
    assert (await resolve(standin)).trouble is Trouble.BOT_CHALLENGE


async def test_live_without_a_manifest_is_given_the_one_that_streamlink_finds(
    standin: StandIn,
) -> None:
    standin.tell(FIRST, tell_live(None))
    standin.tell(LAST, tell_live())
    found = await resolve(standin)
    assert (found.live_status, found.manifest_url) == (LiveStatus.LIVE, MASTER)
    assert standin.players == [FIRST, LAST]


@pytest.mark.parametrize("told", [UNAVAILABLE, tell_video(isLive=False), b"{", b"[]"])
async def test_streamlink_never_says_whether_a_video_is_live(standin: StandIn, told: Any) -> None:
    standin.tell(FIRST, tell_live(None))
    standin.tell(LAST, told)
    found = await resolve(standin)
    assert (found.live_status, found.manifest_url) == (LiveStatus.LIVE, None)


async def test_a_manifest_without_variants_is_given_itself(standin: StandIn) -> None:
    standin.tell(FIRST, tell_live(LOWEST))
    standin.manifest = b"#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:5,\nhttps://a.example/1.ts\n"
    assert (await resolve(standin)).manifest_url == LOWEST


@pytest.mark.parametrize("where", ["127.0.0.1", "10.0.0.1", "169.254.169.254"])
async def test_names_that_lead_to_no_public_address_are_not_asked(
    tmp_path: Path, where: str
) -> None:
    async with open_standin(tmp_path, where=where) as standin:
        found = await resolve(standin)
    assert (found.live_status, found.trouble) == (None, Trouble.NETWORK)
    assert standin.asked == []


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/a.m3u8", "https://localhost/a.m3u8", "file:///etc/hostname"]
)
async def test_a_manifest_on_this_machine_is_not_fetched(standin: StandIn, url: str) -> None:
    standin.tell(FIRST, tell_live(url))
    standin.tell(LAST, tell_live(url))
    assert (await resolve(standin)).manifest_url is None
    standin.tell(FIRST, tell_live(None))
    found = await resolve(standin)
    assert (found.live_status, found.manifest_url) == (LiveStatus.LIVE, None)


async def test_a_file_of_this_machine_is_no_manifest(standin: StandIn, tmp_path: Path) -> None:
    file = tmp_path / "a.m3u8"
    file.write_text(MANIFEST)
    standin.tell(FIRST, tell_live(None))
    standin.tell(LAST, tell_live(file.as_uri()))
    assert (await resolve(standin)).manifest_url is None


async def test_no_setting_of_the_environment_leads_past_the_gate(
    standin: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "*")
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    standin.tell(FIRST, tell_live(None))
    standin.tell(LAST, tell_live())
    assert (await resolve(standin)).manifest_url == MASTER


async def test_a_site_that_hangs_is_left_at_the_deadline_and_the_next_call_works(
    standin: StandIn,
) -> None:
    later = tell_schedule("Premieres in 6 hours", START)
    standin.tell(FIRST, later)
    # The first to ask also waits until yt-dlp is loaded.
    await resolve(standin)
    standin.told[FIRST] = None
    resolver = make_resolver(standin, deadline_for=timedelta(seconds=3))
    found = await resolver.resolve(URL)
    assert (found.trouble, found.words) == (Trouble.NETWORK, "no answer within 3 s")
    standin.tell(FIRST, later)
    assert (await resolver.resolve(URL)).live_status is LiveStatus.UPCOMING
    resolver.close()


async def test_one_who_leaves_holds_up_nobody(standin: StandIn) -> None:
    standin.told[FIRST] = None
    resolver = make_resolver(standin)
    leaving = asyncio.create_task(resolver.resolve(URL))
    await asyncio.wait_for(standin.waiting.acquire(), 60)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    standin.tell(FIRST, tell_schedule("Premieres in 6 hours", START))
    assert (await resolver.resolve(URL)).live_status is LiveStatus.UPCOMING
    resolver.close()


async def test_many_at_once_take_turns_with_one_yt_dlp(standin: StandIn) -> None:
    standin.tell(FIRST, tell_schedule("Premieres in 6 hours", START))
    resolver = make_resolver(standin)
    found = await asyncio.gather(*(resolver.resolve(URL) for _ in range(5)))
    assert {answer.live_status for answer in found} == {LiveStatus.UPCOMING}
    assert standin.players == [FIRST] * 5
    resolver.close()


HOSTILE: dict[str, Any] = {
    "empty": b"",
    "no_json": b"<html>",
    "null": b"null",
    "list": b"[]",
    "number": b"5",
    "deep": b'{"playabilityStatus":' * 100_000,
    "deep_and_whole": b'{"videoDetails":' * 50_000 + b"1" + b"}" * 50_000,
    "large": b'{"videoDetails":{"title":"' + b"a" * 3_000_000 + b'"}}',
    "no_utf8": b'{"videoDetails":"\xff\xfe"}',
    "odd_details": {"videoDetails": [5], "playabilityStatus": "OK", "streamingData": 5},
    "odd_parts": tell_video(isLive="yes", title=[1], lengthSeconds={}) | {"streamingData": []},
    "odd_reason": {"playabilityStatus": {"status": 5, "reason": {"a": 1}, "errorScreen": []}},
    "odd_formats": tell_live() | {"streamingData": {"formats": "x", "adaptiveFormats": [1]}},
    "odd_manifest": tell_live() | {"streamingData": {"hlsManifestUrl": 5}},
    "odd_schedule": tell_schedule("Premieres in 6 hours", "soon"),
    "long_schedule": tell_schedule("Premieres in 6 hours", "9" * 5000),
    "no_reason": {
        "playabilityStatus": {
            "status": "ERROR",
            "errorScreen": {"playerErrorMessageRenderer": {"subreason": {"simpleText": "a"}}},
        }
    },
    "other_video": tell_video(isLive=True, videoId="AAAAAAAAAAA"),
    "trailer": {
        "playabilityStatus": {
            "errorScreen": {"playerLegacyDesktopYpcTrailerRenderer": {"trailerVideoId": "A" * 11}}
        }
    },
    "control_letters": tell_refusal("ERROR", "a\x1b[31m\r\n\x00b" * 1000),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_no_reply_makes_anything_but_an_answer(standin: StandIn, name: str) -> None:
    for player in (FIRST, SECOND, LAST):
        standin.tell(player, HOSTILE[name])
    found = await resolve(standin)
    assert (found.live_status is None) == (found.trouble is not None)
    assert found.manifest_url in {None, MASTER}
    assert is_clean(found.words)


@pytest.mark.parametrize(
    "manifest", [b"", b"<html>", b"#EXTM3U", b"#EXTM3U\n#EXT-X-STREAM-INF:\n\xff", b"#EXTM3U\n" * 9]
)
async def test_an_odd_manifest_leaves_the_video_live(standin: StandIn, manifest: bytes) -> None:
    standin.tell(FIRST, tell_live())
    standin.tell(LAST, tell_live())
    standin.manifest = manifest
    found = await resolve(standin)
    assert found.live_status is LiveStatus.LIVE


async def test_a_reply_larger_than_the_gate_bears_is_no_answer(tmp_path: Path) -> None:
    async with open_standin(tmp_path, bounds=Bounds(tunnel_bytes=100_000)) as standin:
        standin.tell(FIRST, b'{"a":"' + b"a" * 1_000_000 + b'"}')
        found = await resolve(standin)
    assert (found.live_status, found.trouble) == (None, Trouble.NETWORK)


async def test_what_names_no_video_is_not_asked_for(standin: StandIn) -> None:
    with pytest.raises(BadInput, match="give the address of one video"):
        await make_resolver(standin).resolve("https://www.youtube.com/@LofiGirl")
    assert standin.asked == []


async def test_without_the_extra_it_is_said_how_to_install_it(
    standin: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "yt_dlp"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "mimawari.sites.youtube.ytdlp", raising=False)
    monkeypatch.setitem(sys.modules, "yt_dlp", None)
    with pytest.raises(BadInput, match=re.escape(install_advice("youtube"))):
        await resolve(standin)
