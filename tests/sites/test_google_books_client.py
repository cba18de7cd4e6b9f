"""How Google Books is asked, and how its refusals are told apart."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mimawari.errors import BadInput, Blocked, Invalid, Transient
from mimawari.net.page import MOST_JSON_BYTES, Outcome, Page, Verdict
from mimawari.sites.google_books import (
    SITE,
    Query,
    QuotaUsedUp,
    fetch_volumes,
)
from tests.captured import FOLDER, captured
from tests.sites.asking import ASKED_AT, Answers, PlainHttp, serve_answers
from tests.sites.books_replies import complain, make_item, write_volumes

FIXTURES = FOLDER / "google_books"
steady = settings(
    deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], max_examples=200
)
PATH = "/books/v1/volumes"
KEY = "AIzaSyD-a_key-that-nobody-may-see"


anything: st.SearchStrategy[Any] = st.one_of(
    *map(st.just, [None, True, -1, 10**30, 1.5, float("nan"), "", "\ud800", "\x00", [], {}, [[]]]),
    st.text(max_size=20),
    st.integers(),
)


def limit_details(limit: str, value: str) -> list[dict[str, Any]]:
    return [
        {"@type": "type.googleapis.com/google.rpc.Help", "links": [{"url": "https://x.test"}]},
        {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "RATE_LIMIT_EXCEEDED",
            "metadata": {"quota_limit": limit, "quota_limit_value": value},
        },
    ]


def judge(status: int, body: bytes) -> Verdict | None:
    assert SITE.judge is not None
    page = Page(url="https://x.test", status=status, headers={}, body=body, fetched_at=ASKED_AT)
    return SITE.judge(page)


@captured
def test_the_captured_refusals_are_told_apart() -> None:
    day = judge(429, (FIXTURES / "error_429_daily_quota.json").read_bytes())
    assert day == Verdict(Outcome.RATE_LIMITED, "day's quota used up")
    failed = judge(503, (FIXTURES / "error_503_backendFailed.json").read_bytes())
    assert failed is not None
    assert failed.outcome is Outcome.TRANSIENT


DAY = Verdict(Outcome.RATE_LIMITED, "day's quota used up")


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize(
    "body",
    [
        complain(429, "Quota exceeded for quota metric 'Queries' and limit 'Queries per day' of x"),
        complain(403, "Daily Limit Exceeded", "dailyLimitExceeded"),
        complain(403, "Daily Limit for Unauthenticated Use Exceeded.", "dailyLimitExceededUnreg"),
        complain(429, "Quota exceeded", details=limit_details("defaultPerDayPerProject", "1000")),
        complain(429, "Quota exceeded", details=limit_details("x", "0")),
    ],
)
def test_the_days_quota_is_told_from_a_burst(status: int, body: bytes) -> None:
    assert judge(status, body) == DAY


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (429, complain(429, "Quota exceeded ... limit 'Queries per minute per user'")),
        (429, complain(429, "Rate Limit Exceeded", "rateLimitExceeded")),
        (429, complain(429, "x", details=limit_details("defaultPerMinutePerUser", "100"))),
        (429, b""),
        (429, b"<html>Sorry...</html>"),
        (429, b'{"error": "Queries per day"}'),
        (429, b'{"error": {"message": 5, "errors": 5, "details": [5, {"metadata": 5}]}}'),
        (429, b"[" * 100_000),
        (403, complain(403, "User Rate Limit Exceeded", "userRateLimitExceeded")),
        (403, complain(403, "Rate Limit Exceeded", "rateLimitExceeded")),
    ],
)
def test_any_other_limit_is_a_burst(status: int, body: bytes) -> None:
    verdict = judge(status, body)
    assert verdict is not None
    assert verdict.outcome is Outcome.RATE_LIMITED
    assert verdict.reason.startswith("burst")
    assert verdict.until is None


@pytest.mark.parametrize(
    ("status", "body", "advice"),
    [
        (
            403,
            complain(403, "Books API has not been used", "accessNotConfigured"),
            "enable the Books",
        ),
        (403, complain(403, "x", details=[{"reason": "SERVICE_DISABLED"}]), "enable the Books"),
        (
            403,
            complain(403, "The request is missing a valid API key.", "forbidden"),
            "check the key",
        ),
        (403, complain(403, "API key expired.", "keyExpired"), "key is refused"),
        (403, b"<html>Forbidden</html>", "check"),
        (403, b"", "check"),
        (400, complain(400, "API key not valid. Please pass a valid API key."), "key is refused"),
        (400, complain(400, "x", "keyInvalid"), "key is refused"),
        (400, complain(400, "x", details=[{"reason": "API_KEY_INVALID"}]), "key is refused"),
        (401, complain(401, "API key not valid."), "key is refused"),
    ],
)
def test_a_refusal_says_what_to_do(status: int, body: bytes, advice: str) -> None:
    verdict = judge(status, body)
    assert verdict is not None
    assert verdict.outcome is Outcome.BLOCKED
    assert advice in verdict.reason


@pytest.mark.parametrize("body", [b"<!DOCTYPE html><p>", b"\n <html>", b"\xef\xbb\xbf<html>"])
def test_a_web_page_in_place_of_volumes_is_drift(body: bytes) -> None:
    verdict = judge(200, body)
    assert verdict is not None
    assert verdict.outcome is Outcome.DRIFT


@pytest.mark.parametrize("body", [b"", b"<html>", complain(503, "x", "backendFailed"), b"{}"])
def test_an_api_out_of_order_is_asked_again(body: bytes) -> None:
    verdict = judge(503, body)
    assert verdict is not None
    assert verdict.outcome is Outcome.TRANSIENT


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, write_volumes()),
        (200, b""),
        (400, complain(400, "Invalid value for startIndex", "invalidParameter")),
        (404, complain(404, "Not Found per day", "notFound")),
        (500, complain(500, "Queries per day")),
        (502, b"<html>"),
        (304, b""),
    ],
)
def test_the_rest_is_left_to_the_rules_for_all_sites(status: int, body: bytes) -> None:
    assert judge(status, body) is None


@pytest.mark.parametrize(
    "given_values",
    [
        {"q": ""},
        {"q": " \n"},
        {"q": "x" * 2001},
        {"q": "x", "start_index": -1},
        {"q": "x", "start_index": 10**9},
        {"q": "x", "max_results": 0},
        {"q": "x", "max_results": 41},
        {"q": "x", "print_type": "comics"},
        {"q": "x", "order_by": "oldest"},
        {"q": "x", "lang_restrict": "japanese!"},
        {"q": "x", "lang_restrict": ""},
    ],
)
def test_a_query_that_the_api_would_refuse_is_not_made(given_values: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        Query(**given_values)


@pytest.fixture
async def answers() -> AsyncIterator[Answers]:
    async with serve_answers() as found:
        yield found


async def test_volumes_are_fetched_and_read(answers: Answers) -> None:
    answers.put(PATH, write_volumes(make_item()))
    query = Query(
        q='intitle:"宇宙" A&B=C',
        start_index=40,
        max_results=10,
        print_type="books",
        lang_restrict="ja",
        order_by="newest",
    )
    page = await fetch_volumes(PlainHttp(), f"{answers.url}/", query, KEY)
    assert [volume.title for volume in page.volumes] == ["宇宙の話をしよう"]
    words = "q=intitle%3A%22%E5%AE%87%E5%AE%99%22+A%26B%3DC"
    rest = "startIndex=40&maxResults=10&printType=books&langRestrict=ja&orderBy=newest"
    assert answers.asked == [f"{PATH}?{words}&{rest}"]
    assert answers.headers[0]["x-goog-api-key"] == KEY


async def test_what_is_not_asked_for_is_left_out(answers: Answers) -> None:
    answers.put(PATH, write_volumes())
    await fetch_volumes(PlainHttp(), answers.url, Query(q="\ud800x"))
    assert answers.asked == [f"{PATH}?q=%EF%BF%BDx&startIndex=0&maxResults=40"]
    assert "x-goog-api-key" not in answers.headers[0]


async def test_the_days_quota_is_an_error_of_its_own(answers: Answers) -> None:
    answers.put(PATH, complain(429, "limit 'Queries per day'"), status=429)
    with pytest.raises(QuotaUsedUp, match="day's quota used up") as caught:
        await fetch_volumes(PlainHttp(), answers.url, Query(q="x"), KEY)
    assert isinstance(caught.value, Blocked)
    assert caught.value.site == "google_books"


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (429, complain(429, "limit 'Queries per minute per user'"), Blocked),
        (403, complain(403, "x", "accessNotConfigured"), Blocked),
        (400, complain(400, "API key not valid."), Blocked),
        (503, complain(503, "x", "backendFailed"), Transient),
        (500, b"", Transient),
        (200, b"<html>", Invalid),
        (200, b"{}", Invalid),
    ],
)
async def test_no_other_refusal_is_taken_for_the_days_quota(
    answers: Answers, status: int, body: bytes, error: type[Exception]
) -> None:
    answers.put(PATH, body, status=status)
    with pytest.raises(error) as caught:
        await fetch_volumes(PlainHttp(), answers.url, Query(q="x"), KEY)
    assert not isinstance(caught.value, QuotaUsedUp)


@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 429, 500, 503])
async def test_the_key_shows_in_no_address_and_no_error(answers: Answers, status: int) -> None:
    answers.put(PATH, complain(status, f"bad key {KEY}", f"{KEY}"), status=status)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever it is, it is looked at
        await fetch_volumes(PlainHttp(), answers.url, Query(q="x"), KEY)
    assert KEY not in "".join(answers.asked)
    assert KEY not in str(caught.value)
    assert KEY not in repr(caught.value)


@pytest.mark.parametrize("key", ["a b", "a\nX-Other: 1", "ä", "x" * 201])
async def test_a_key_that_cannot_be_one_is_refused_without_being_shown(
    answers: Answers, key: str
) -> None:
    with pytest.raises(BadInput) as caught:
        await fetch_volumes(PlainHttp(), answers.url, Query(q="x"), key)
    assert key not in str(caught.value)
    assert answers.asked == []


def test_replies_are_bounded() -> None:
    assert SITE.name == "google_books"
    assert SITE.most_bytes == MOST_JSON_BYTES


@steady
@given(st.sampled_from([400, 403, 429]), st.dictionaries(st.text(), anything), anything)
def test_no_complaint_raises_anything(status: int, error: dict[str, Any], other: Any) -> None:
    for key in ("message", "errors", "details", "x"):
        judge(status, json.dumps({"error": error | {key: other}}).encode())
        judge(
            status, json.dumps({"error": {"details": [{"metadata": other, key: other}]}}).encode()
        )
    judge(status, json.dumps({"error": other}).encode())
