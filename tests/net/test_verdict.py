"""What a reply is: by status, headers, title and selectors together, never by a bare word."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimawari.errors import Blocked, Gone, Invalid, Transient
from mimawari.net.page import Outcome, Page, Verdict
from mimawari.net.verdict import LONGEST_HOLD, judge, parse_retry_after
from tests.captured import FOLDER, captured

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
FIXTURES = FOLDER / "blocked"

ARTICLE = """<!doctype html><title>What a 403 Forbidden means</title>
<h1>403 Forbidden and CAPTCHAs</h1><p>Just a moment... says Cloudflare; access denied; 429; are you
a robot? captcha challenge turnstile cf-challenge-running ray_id _Incapsula_Resource</p>
<div class="lds-ring"></div><form><input name="cf-turnstile-response"></form>
<p>ご覧になろうとしているページは現在表示できません</p>"""
CHALLENGE = """<!doctype html><title>Just a moment...</title>
<form id="challenge-form" action="/?__cf_chl_f_tk=x"></form>"""
FRAME = '<html><head><META NAME="robots"></head><iframe src="/_Incapsula_Resource?x"></iframe>'


def page(
    status: int = 200, body: str | bytes = "<p>x</p>", headers: Mapping[str, str] | None = None
) -> Page:
    content = body if isinstance(body, bytes) else body.encode()
    return Page(
        url="https://a.example/", status=status, headers=headers or {}, body=content, fetched_at=NOW
    )


@pytest.mark.parametrize(
    ("status", "body", "headers", "outcome"),
    [
        (200, "<p>x</p>", {}, Outcome.OK),
        (206, "x", {}, Outcome.OK),
        (200, "", {}, Outcome.EMPTY),
        (200, " \r\n\t", {}, Outcome.EMPTY),
        (204, "", {}, Outcome.EMPTY),
        (304, "", {}, Outcome.NOT_MODIFIED),
        (404, "", {}, Outcome.GONE),
        (410, "<p>gone</p>", {}, Outcome.GONE),
        (404, CHALLENGE, {}, Outcome.GONE),
        (401, "", {}, Outcome.BLOCKED),
        (403, "", {}, Outcome.BLOCKED),
        (403, ARTICLE, {}, Outcome.BLOCKED),
        (451, "", {}, Outcome.BLOCKED),
        (429, "", {}, Outcome.RATE_LIMITED),
        (429, CHALLENGE, {}, Outcome.RATE_LIMITED),
        (503, "", {}, Outcome.TRANSIENT),
        (503, "<p>we are being mended</p>", {}, Outcome.TRANSIENT),
        (503, CHALLENGE, {}, Outcome.BLOCKED),
        (503, "<title>hm</title><div id=cf-please-wait>", {}, Outcome.BLOCKED),
        (200, CHALLENGE, {}, Outcome.BLOCKED),
        (202, CHALLENGE, {}, Outcome.BLOCKED),
        (200, CHALLENGE.replace("Just a moment...", " しばらくお待ちください... "), {},
         Outcome.BLOCKED),
        (200, FRAME, {}, Outcome.BLOCKED),
        (200, FRAME + "word " * 100, {}, Outcome.OK),
        (200, "{}", {"cf-mitigated": "challenge"}, Outcome.BLOCKED),
        (500, "", {}, Outcome.TRANSIENT),
        (500, ARTICLE, {}, Outcome.TRANSIENT),
        (502, "", {}, Outcome.TRANSIENT),
        (504, "", {}, Outcome.TRANSIENT),
        (599, "", {}, Outcome.TRANSIENT),
        (408, "", {}, Outcome.TRANSIENT),
        (425, "", {}, Outcome.TRANSIENT),
        (400, "", {}, Outcome.DRIFT),
        (405, "", {}, Outcome.DRIFT),
        (422, "", {}, Outcome.DRIFT),
        (300, "", {}, Outcome.DRIFT),
        (200, ARTICLE, {}, Outcome.OK),
        (200, ARTICLE, {"server": "cloudflare"}, Outcome.OK),
        (200, "<title>Just a moment...</title><p>A poem</p> challenge", {}, Outcome.OK),
        (200, "<title>Access denied</title><p>A film</p> captcha", {}, Outcome.OK),
        (200, '{"title": "Just a moment...", "id": "challenge-form"}', {}, Outcome.OK),
        (200, "403 Forbidden", {}, Outcome.OK),
    ],
)  # fmt: skip
def test_a_reply_is_what_all_its_signs_say_together(
    status: int, body: str, headers: dict[str, str], outcome: Outcome
) -> None:
    assert judge(page(status, body, headers)).outcome == outcome


@captured
@pytest.mark.parametrize("status", [200, 403, 503])
@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.html")), ids=lambda path: path.stem)
def test_a_captured_block_page_is_a_block_whatever_its_status(path: Path, status: int) -> None:
    verdict = judge(page(status, path.read_bytes(), {"content-type": "text/html"}))
    assert verdict.outcome == Outcome.BLOCKED


@captured
def test_every_selector_that_is_known_to_tell_a_block_tells_one_on_a_page_so_titled() -> None:
    marks = json.loads((FIXTURES / "markers.json").read_text())
    cells = {
        "#cf-challenge-running": '<div id="cf-challenge-running">',
        ".ray_id": '<code class="ray_id">',
        ".attack-box": '<div class="attack-box">',
        "#cf-please-wait": '<div id="cf-please-wait">',
        "#challenge-spinner": '<div id="challenge-spinner">',
        "#trk_jschal_js": '<div id="trk_jschal_js">',
        "#turnstile-wrapper": '<div id="turnstile-wrapper">',
        ".lds-ring": '<div class="lds-ring">',
        "div.cf-error-title span.cf-code-label span":
            '<div class="cf-error-title"><span class="cf-code-label"><span>',
        "#cf-error-details div.cf-error-overview h1":
            '<div id="cf-error-details"><div class="cf-error-overview"><h1>',
        "input[name='cf-turnstile-response']": '<input name="cf-turnstile-response">',
    }  # fmt: skip
    assert set(marks["cloudflare"]["selectors"]) <= set(cells)
    for title in marks["cloudflare"]["titles"]:
        for cell in cells.values():
            body = f"<title>{title}</title>{cell}"
            assert judge(page(200, body)).outcome == Outcome.BLOCKED, (title, cell)
            assert judge(page(200, cell)).outcome == Outcome.OK, cell
        assert judge(page(200, f"<title>{title}</title>challenge cf-")).outcome == Outcome.OK


@pytest.mark.parametrize(
    ("verdict", "error"),
    [
        (Verdict(Outcome.OK), None),
        (Verdict(Outcome.NOT_MODIFIED), None),
        (Verdict(Outcome.EMPTY), None),
        (Verdict(Outcome.GONE, "r"), Gone),
        (Verdict(Outcome.BLOCKED, "r"), Blocked),
        (Verdict(Outcome.RATE_LIMITED, "r"), Blocked),
        (Verdict(Outcome.TRANSIENT, "r"), Transient),
        (Verdict(Outcome.DRIFT, "r"), Invalid),
    ],
)
def test_each_outcome_decides_the_jobs_future(verdict: Verdict, error: type | None) -> None:
    raised = verdict.error("toy", b"the page")
    assert type(raised) is (error or type(None))
    if isinstance(raised, Invalid):
        assert raised.page == b"the page"
    if isinstance(raised, Blocked):
        assert raised.site == "toy"


@pytest.mark.parametrize(
    ("text", "span"),
    [
        (None, None),
        ("", None),
        ("0", None),
        ("120", timedelta(seconds=120)),
        (" 5 ", timedelta(seconds=5)),
        ("-5", None),
        ("1.5", None),
        ("\uff11\uff12\uff10", None),
        ("9" * 400, LONGEST_HOLD),
        ("soon", None),
        (format_datetime(NOW + timedelta(minutes=3), usegmt=True), timedelta(minutes=3)),
        ("Thu, 01 Jan 2026 12:00:30", timedelta(seconds=30)),
        (format_datetime(NOW - timedelta(minutes=3), usegmt=True), None),
        ("Fri, 31 Dec 9999 23:59:59 GMT", LONGEST_HOLD),
        ("Fri, 31 Dec 9999 23:59:59 -2359", LONGEST_HOLD),
        ("Fri, 99 Dec 9999 99:99:99 GMT", None),
    ],
)
def test_a_retry_after_is_read_as_seconds_or_a_date_and_bounded(
    text: str | None, span: timedelta | None
) -> None:
    assert parse_retry_after(text, NOW) == (None if span is None else NOW + span)


@given(st.text(max_size=60))
def test_no_retry_after_raises(text: str) -> None:
    at = parse_retry_after(text, NOW)
    assert at is None or NOW < at <= NOW + LONGEST_HOLD


@given(st.integers(100, 599), st.binary(max_size=300), st.dictionaries(st.text(), st.text()))
def test_no_reply_raises(status: int, body: bytes, headers: dict[str, str]) -> None:
    assert judge(page(status, b"<cf-" + body, headers)).outcome in Outcome
