"""Sentences in the visitor's language: those that the program writes itself, and no other."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import mimawari
from mimawari.errors import BadInput
from mimawari.web.reasons import load_said, say_problem, say_reason
from mimawari.web.words import Words
from tests.web.ground import Browser
from tests.web.scene import CALLBACK, GIVEN, url_of

ENGLISH, JAPANESE = Words("en"), Words("ja")
PARTS = re.compile(r"\{\w+\}")
IN_ENGLISH = re.compile(r"[A-Za-z]{2,} [A-Za-z]{2,} [A-Za-z]{2,}")
"""Three words in a row; a name or an address is not that."""
MONITOR = {"stream_url": url_of(1), "callback_url": CALLBACK}
PRODUCT = {"name": "x"}
SEARCH = {"url": "https://realestate.yahoo.co.jp/rent/search/03/13/", "every": "1d", "limit": "10"}
BOOK_JOB = {
    "name": "new", "queries": "a", "interval": "1d", "max_per_run": "10", "mail_limit": "10",
    "enabled": "1",
}  # fmt: skip


@cache
def sentences() -> frozenset[str]:
    """List every text of the source, with the places that are filled in left open."""
    found = set()
    for path in Path(mimawari.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [
                    str(one.value) if isinstance(one, ast.Constant) else "{}" for one in node.values
                ]
                found.add("".join(parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return frozenset(found)


def _write(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else "{}"


def test_every_sentence_that_is_known_in_japanese_is_one_that_the_program_writes() -> None:
    for template in load_said():
        plain = PARTS.sub("{}", template)
        begun = [plain, plain.replace("{}:", "", 1), re.sub(r"^[a-z_]+: ", "{}: ", plain)]
        assert sentences() & set(begun), template


def test_a_sentence_has_the_same_places_in_both_languages_but_for_what_is_left_out() -> None:
    for template, said in load_said().items():
        assert set(PARTS.findall(said)) <= set(PARTS.findall(template)), template


@pytest.mark.parametrize(
    ("reason", "english", "japanese"),
    [
        ("every 1h30m", "every 1 h 30 min", "1時間30分ごと"),
        ("every 25m at weight 0.8", "every 25 min at weight 0.8", "25分ごと\uff08重み 0.8\uff09"),
        ("the site answered 403", "the site answered 403", "サイトが 403 を返しました"),
        (
            "not sent: the receiver answered 500",
            "not sent: the receiver answered 500",
            "未送信\uff1a受信側が 500 を返しました",
        ),
        ("ended: done", "ended: done", "終了\uff1a完了"),
        ("told grouped", "told together", "まとめて通知"),
        ("every 2h", "every 2 h", "2時間ごと"),
        ("something else", "something else", "something else"),
        ("every now and then", "every now and then", "every now and then"),
        (None, "–", "–"),
    ],
)
def test_a_reason_is_said_in_the_visitors_language(
    reason: str | None, english: str, japanese: str
) -> None:
    assert (say_reason(ENGLISH, reason), say_reason(JAPANESE, reason)) == (english, japanese)


def test_several_problems_are_said_one_by_one() -> None:
    error = BadInput("the form has too many fields; must be a whole number in plain digits")
    assert say_problem(ENGLISH, error) == str(error)
    assert say_problem(JAPANESE, error) == "入力項目が多すぎます; 半角数字の整数で入力してください"


WRONG = [
    ("/hot", {"name": ""}),
    ("/hot", {"name": "a", "weight": "9"}),
    ("/hot", {"name": "a", "weight": "heavy"}),
    ("/hot", {"name": "a" * 300}),
    ("/prices", {"name": ""}),
    ("/prices", {"name": "a", "min_price": "cheap"}),
    ("/prices", {"name": "a", "min_price": "9", "max_price": "8"}),
    ("/prices", {"name": "a b", "exclusions": "b"}),
    ("/prices", {"name": "a", "median_percent": "100"}),
    ("/rentals/searches", {**SEARCH, "url": ""}),
    ("/rentals/searches", {**SEARCH, "url": "http://other.example/"}),
    ("/rentals/searches", {**SEARCH, "every": "5m"}),
    ("/rentals/searches", {**SEARCH, "limit": "ten"}),
    ("/rentals/searches", {**SEARCH, "limit": "5001"}),
    ("/books/jobs", {**BOOK_JOB, "name": "a b"}),
    ("/books/jobs", {**BOOK_JOB, "queries": ""}),
    ("/books/jobs", {**BOOK_JOB, "interval": "soon"}),
    ("/books/jobs", {**BOOK_JOB, "interval": "1s"}),
    ("/books/jobs", {**BOOK_JOB, "max_per_run": "0"}),
    ("/books/jobs", {**BOOK_JOB, "mail_limit": "many"}),
    ("/books/jobs", {**BOOK_JOB, "recipients": "nobody"}),
    ("/books/jobs", {**BOOK_JOB, "lang_restrict": "japanese"}),
    ("/books/jobs", {**BOOK_JOB, "print_type": "scrolls"}),
    ("/streams/new", {**MONITOR, "stream_url": "https://example.org/"}),
    ("/streams/new", {**MONITOR, "callback_url": "ftp://x"}),
    ("/streams/new", {**MONITOR, "callback_url": "http://10.0.0.1/"}),
    ("/streams/new", {**MONITOR, "check_interval_sec": "0"}),
    ("/streams/new", {**MONITOR, "check_interval_sec": "2.5"}),
    ("/streams/new", {**MONITOR, "silence_db_threshold": "low"}),
    ("/streams/new", {**MONITOR, "scheduled_start_time": "soon"}),
    ("/streams/new", {**MONITOR, "maintenance_from": "2026-01-02T10:00"}),
    ("/streams/new", {**MONITOR, "loudness_min_lufs": "-5", "loudness_max_lufs": "-40"}),
    ("/streams/new", {**MONITOR, "metadata": "[]"}),
]


@pytest.mark.parametrize("given", [GIVEN], ids=["ready"])
async def test_what_is_wrong_with_a_form_is_said_in_the_visitors_language(
    visitor_with: Browser,
) -> None:
    for path, fields in WRONG:
        said = {}
        for language in ("ja", "en"):
            visitor_with.speak(language)
            refused = await visitor_with.send(path, **fields)
            assert refused.status_code == 422, (path, fields)
            alert = re.search(r'role="alert">([^<]+)<', refused.text)
            assert alert is not None, (path, fields)
            said[language] = alert[1]
        assert not IN_ENGLISH.search(said["ja"]), (path, fields, said["ja"])
        assert not re.search("[ぁ-ん]", said["en"]), (path, fields, said["en"])
