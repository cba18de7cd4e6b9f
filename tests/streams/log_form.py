"""The form of log lines that §11.2 prints, and a reader that insists on it."""

import io
import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from zoneinfo import ZoneInfo

import structlog

from mimawari import log

TOKYO = ZoneInfo("Asia/Tokyo")
EXAMPLE: dict[str, Any] = {
    "timestamp": "2024-01-15T20:15:30.123+09:00",
    "level": "INFO",
    "monitor_id": "mon-0190a5c8e4b07d8a9c1d2e3f4a5b6c7d",
    "component": "segment_analyzer",
    "message": "Blackout detected",
    "data": {"duration_sec": 35, "segment_sequence": 1520},
}
"""The line that the spec prints."""
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+09:00")
LEVELS = {"DEBUG", "INFO", "WARN", "ERROR"}


def read(text: str) -> list[dict[str, Any]]:
    """Read log lines, each of which must have the form of the example."""
    found = [json.loads(line) for line in text.splitlines()]
    for line in found:
        names = [name for name in EXAMPLE if name != "monitor_id" or name in line]
        assert [name for name in line if name != "trace"] == names, line
        assert MOMENT.fullmatch(line["timestamp"]), line
        assert line["level"] in LEVELS, line
        assert {type(line[name]) for name in ("component", "message")} == {str}, line
        assert isinstance(line["data"], dict), line
        assert "monitor_id" not in line["data"], line
    return found


@contextmanager
def logged() -> Iterator[io.StringIO]:
    """Catch what is logged meanwhile, with the times of Tokyo."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    stream = io.StringIO()
    log.configure("debug", stream, TOKYO)
    try:
        yield stream
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        structlog.reset_defaults()
