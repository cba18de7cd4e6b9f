"""One JSON object a line with no secret in it, whoever logs and whatever they log."""

import io
import json
import logging
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mimawari import log

steady = settings(
    deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
ANY = st.text(st.characters(exclude_categories=()))
PLAIN = ["timestamp", "level", "component", "message", "data"]


def read(lines: io.StringIO) -> list[dict[str, Any]]:
    """Read all lines as any reader would, however it splits lines, and forget them."""
    text = lines.getvalue()
    lines.seek(0)
    lines.truncate()
    text.encode()
    assert text.endswith("\n")
    assert text.splitlines() == text[:-1].split("\n")
    return [json.loads(line, parse_constant=_no_constant) for line in text.splitlines()]


def _no_constant(name: str) -> None:
    pytest.fail(f"{name} is not JSON")


def written(lines: io.StringIO, message: str, **data: Any) -> dict[str, Any]:
    """Log one line and read it back."""
    structlog.get_logger(component="test").info(message, **data)
    (line,) = read(lines)
    return line


def test_a_line_has_exactly_its_five_parts(lines: io.StringIO) -> None:
    line = written(lines, "hello", what="job", count=3, share=0.5, good=True, none=None)
    assert list(line) == PLAIN
    written_at = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00"
    assert re.fullmatch(written_at, line["timestamp"])
    assert (line["level"], line["component"], line["message"]) == ("INFO", "test", "hello")
    assert line["data"] == {"what": "job", "count": 3, "share": 0.5, "good": True, "none": None}


def test_an_error_has_its_trace_too_without_the_secrets_in_it(lines: io.StringIO) -> None:
    error = ValueError("cannot reach postgresql://user:hunter2@host/name")
    structlog.get_logger(component="test").error("it failed", exc_info=error)
    (line,) = read(lines)
    assert list(line) == [*PLAIN, "trace"]
    assert line["level"] == "ERROR"
    assert "ValueError: cannot reach postgresql://user:***@host/name" in line["trace"]
    assert "hunter2" not in line["trace"]


@pytest.mark.parametrize(
    "name",
    [
        *("key", "api_key", "API_KEYS", "X-API-Key", "token", "access_token", "client_secret"),
        *("password", "passwd", "Authorization", "Set-Cookie", "signature", "DB_DSN"),
    ],
)
@pytest.mark.parametrize(
    "value", ["hunter2", b"hunter2", ["hunter2"], {"hunter2"}, Path("hunter2")]
)
def test_a_value_by_a_secret_name_is_struck_out(
    lines: io.StringIO, name: str, value: object
) -> None:
    line = written(lines, "hello", **{name: value}, nested=[{name: value}])
    assert "hunter2" not in json.dumps(line)
    assert "***" in json.dumps(line["data"][name])


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://user:hunter2@host:5432/name",
        "postgresql+asyncpg://user:p@ss/hunter2@host/name",
        "see https://user:hunter2@example.org/ and redis://:hunter2@host",
        "GET https://example.org/?a=1&api_key=hunter2&b=2",
        "GET https://example.org/?key=hunter2",
        "GET https://example.org/?access_token=hunter2#x",
        "Authorization: Bearer hunter2",
        "authorization: Basic hunter2",
        "{'Authorization': 'Bearer hunter2', 'Accept': '*/*'}",
        '{"password": "two words hunter2"}',
        "X-API-Key: hunter2",
        "password=hunter2, user=me",
        "MIMAWARI_API_KEY=hunter2",
    ],
)
def test_a_secret_in_running_text_is_struck_out(lines: io.StringIO, text: str) -> None:
    line = written(lines, text, url=text, error=ValueError(text), inner=[{"deep": text}])
    assert "hunter2" not in json.dumps(line)
    assert "***" in line["message"]


def test_what_is_no_secret_stays(lines: io.StringIO) -> None:
    text = "GET https://example.org:8080/a?b=c; dedupe_key=d; the key: none; 10:20@noon"
    data = {"dedupe_key": "read:a", "token": 3, "at": "a@b"}
    line = written(lines, text, **data)
    assert line["message"] == text
    assert line["data"] == data


@pytest.mark.parametrize(
    "evil",
    [
        '\n{"level": "error"}',
        "\r\nforged",
        "\x1b[2J\x07",
        "\x00",
        "\x85next",
        "\x9b31m",
        "\u2028next\u2029next",
        "\ud800\udfff",
        "\x0b\x0c\x1c\x1d\x1e",
        '"}\\',
        "\u202e",
    ],
)
def test_no_text_forges_a_line_or_reaches_a_terminal(lines: io.StringIO, evil: str) -> None:
    logger = structlog.get_logger(component=f"c{evil}")
    message = f"m{evil}"
    logger.info(message, value=f"v{evil}", **{f"n{evil}": 1}, deep=[{f"d{evil}": evil}])
    (line,) = read(lines)
    assert (line["level"], list(line)) == ("INFO", PLAIN)
    assert line["message"].startswith("m")
    raw = json.dumps(line, ensure_ascii=False)
    assert not re.search("[\x00-\x1f\x7f-\x9f]", raw)


@steady
@given(ANY, ANY, ANY)
def test_any_text_at_all_makes_one_line(lines: io.StringIO, a: str, b: str, c: str) -> None:
    logger = structlog.get_logger(component="test")
    logger.info(a, **{f"x{b}": c})
    (line,) = read(lines)
    assert list(line) == PLAIN


def test_values_of_any_type_are_written(lines: io.StringIO) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    line = written(lines, "hello", at=at, nan=float("nan"), far=float("inf"), raw=b"\xff", o=object)
    assert line["data"]["at"] == "2026-01-01 00:00:00+00:00"
    assert (line["data"]["nan"], line["data"]["far"]) == ("nan", "inf")
    assert line["data"]["raw"] == "b'\\xff'"


def test_libraries_log_into_the_same_lines(lines: io.StringIO) -> None:
    logging.getLogger("uvicorn.error").warning("port %d taken by %s", 80, "x\ny")
    logging.getLogger("asyncio").error("lost", exc_info=OSError("token=hunter2"))
    warning, error = read(lines)
    assert (warning["level"], warning["component"]) == ("WARN", "uvicorn")
    assert warning["message"] == "port 80 taken by x\ny"
    assert (error["level"], error["component"], error["message"]) == ("ERROR", "asyncio", "lost")
    assert "OSError: token=***" in error["trace"]


def test_a_name_begins_no_line_of_its_own_in_plain_lines() -> None:
    stream = io.StringIO()
    log.tell_plainly("books", stream)
    name = "one\r\n[WARN]two\u2028three\u202e\x1b[2J"
    structlog.get_logger(component="books").info(f"[{name}] Stopped", reason=name)
    assert stream.getvalue().splitlines() == [
        "[one [WARN]two three\ufffd\ufffd[2J] Stopped: one [WARN]two three\ufffd\ufffd[2J"
    ]


def test_a_library_that_logs_badly_still_gets_its_line(lines: io.StringIO) -> None:
    handlers = logging.getLogger().handlers
    (ours,) = [handler for handler in handlers if type(handler).__module__ == log.__name__]
    for level, message, args in (
        (30, "%d", ("no number",)),
        (30, "%s and %s", ("one",)),
        (35, "between two levels", None),
        (99, "above all levels", None),
    ):
        ours.handle(logging.LogRecord("some.library", level, "file", 1, message, args, None))
    assert [line["message"] for line in read(lines)] == [
        "%d",
        "%s and %s",
        "between two levels",
        "above all levels",
    ]


@pytest.mark.parametrize(
    ("level", "seen"),
    [
        ("debug", ["DEBUG", "INFO", "WARN", "ERROR"]),
        ("info", ["INFO", "WARN", "ERROR"]),
        ("WARN", ["WARN", "ERROR"]),
        ("error", ["ERROR"]),
    ],
)
def test_less_important_lines_are_left_out(level: str, seen: list[str]) -> None:
    stream = io.StringIO()
    log.configure(level, stream)
    logger = structlog.get_logger(component="test")
    for name in ("debug", "info", "warning", "error"):
        getattr(logger, name)("hello")
        logging.getLogger("library").debug("never")
    assert [line["level"] for line in read(stream)] == seen
