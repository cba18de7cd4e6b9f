"""How a shared resolver is asked, and how long a manifest's address is good."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimawari.errors import Blocked, Invalid, Transient
from mimawari.sites.youtube import SITE, LiveStatus, Trouble, fetch_answer, parse_expiry
from mimawari.sites.youtube.client import parse_reply
from tests.sites.asking import Answers, PlainHttp, serve_answers

ID = "jfKfPfyJRdk"
PATH = "/resolve"
EXPIRE_AT = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
LIVE = {
    "live_status": "is_live",
    "manifest_url": "https://manifest.googlevideo.com/api/manifest/hls_variant/expire/1700000000/a",
    "title": "A stream",
}


@pytest.fixture
async def answers() -> AsyncIterator[Answers]:
    async with serve_answers() as found:
        yield found


async def test_a_shared_resolver_is_asked_by_the_id_of_the_video(answers: Answers) -> None:
    answers.put(PATH, json.dumps(LIVE).encode())
    found = await fetch_answer(PlainHttp(), answers.url + PATH, ID)
    assert answers.asked == [f"{PATH}?v={ID}"]
    assert found.live_status is LiveStatus.LIVE
    assert found.manifest_url == LIVE["manifest_url"]


async def test_an_address_with_a_query_of_its_own_keeps_it(answers: Answers) -> None:
    answers.put(PATH, json.dumps(LIVE).encode())
    await fetch_answer(PlainHttp(), f"{answers.url}{PATH}?key=a", "a&b=c")
    assert answers.asked == [f"{PATH}?key=a&v=a%26b%3Dc"]


async def test_what_a_shared_resolver_was_refused_is_an_answer(answers: Answers) -> None:
    answers.put(PATH, b'{"error": "ERROR: [youtube] x: Private video. Sign in if you have"}')
    found = await fetch_answer(PlainHttp(), answers.url + PATH, ID)
    assert (found.live_status, found.trouble) == (None, Trouble.PRIVATE)


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (500, b"", Transient),
        (503, b"{}", Transient),
        (429, b"", Blocked),
        (403, b"", Blocked),
        (404, b"", Invalid),
        (410, b"", Invalid),
        (400, b'{"live_status": "is_live"}', Invalid),
        (200, b"", Invalid),
        (200, b"<html>", Invalid),
        (200, b"[]", Invalid),
        (200, b"null", Invalid),
        (200, b"{}", Invalid),
        (200, b'{"live_status": "perhaps"}', Invalid),
        (200, b'{"live_status": ["is_live"]}', Invalid),
        (200, b"[" * 60_000, Invalid),
        (200, b"\xff\xfe", Invalid),
    ],
)
async def test_a_reply_that_says_nothing_of_the_video_is_never_taken_for_an_answer(
    answers: Answers, status: int, body: bytes, error: type[Exception]
) -> None:
    answers.put(PATH, body, status=status)
    with pytest.raises(error):
        await fetch_answer(PlainHttp(), answers.url + PATH, ID)


async def test_a_reply_that_is_not_understood_is_kept(answers: Answers) -> None:
    answers.put(PATH, b'{"live_status": "perhaps"}')
    with pytest.raises(Invalid, match="perhaps") as caught:
        await fetch_answer(PlainHttp(), answers.url + PATH, ID)
    assert caught.value.page == b'{"live_status": "perhaps"}'


def test_replies_are_bounded() -> None:
    assert (SITE.name, SITE.most_bytes, SITE.deadline_for.total_seconds()) == (
        "resolver",
        65536,
        20,
    )


anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(
    st.dictionaries(
        st.sampled_from(
            ["live_status", "is_live", "error", "manifest_url", "release_timestamp", "title"]
        ),
        anything | st.sampled_from(["is_live", "is_upcoming", "https://a.example/b"]),
    )
)
def test_no_reply_raises_anything_but_invalid(said: dict[str, Any]) -> None:
    try:
        found = parse_reply(json.dumps(said).encode())
    except Invalid:
        return
    assert found.live_status or found.trouble


@pytest.mark.parametrize(
    "url",
    [
        "https://manifest.googlevideo.com/api/manifest/hls_variant/expire/1700000000/ei/a/index.m3u8",
        "https://manifest.googlevideo.com/api/manifest/hls_variant/expire/1700000000",
        "https://a.example/index.m3u8?expire=1700000000",
        "https://a.example/index.m3u8?a=b&expire=1700000000&c=d#expire=1800000000",
    ],
)
def test_a_manifest_says_until_when_its_address_is_good(url: str) -> None:
    assert parse_expiry(url) == EXPIRE_AT


@pytest.mark.parametrize(
    "url",
    [
        "",
        "https://a.example/index.m3u8",
        "https://a.example/expire/soon/index.m3u8",
        "https://a.example/expire/17000000000/index.m3u8",
        "https://a.example/expire/９９９９９９９９９９/index.m3u8",  # noqa: RUF001 - wide digits
        "https://a.example/expire/9999999999/index.m3u8",
        "https://a.example/index.m3u8?xexpire=1700000000",
        "https://a.example/index.m3u8#?expire=1700000000",
    ],
)
def test_an_address_that_says_nothing_of_its_end_has_none(url: str) -> None:
    assert parse_expiry(url) is None
