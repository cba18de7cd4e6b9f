"""The log: one JSON object a line, with secrets struck out."""

import json
import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any, TextIO

import structlog

from mimawari.text import clean

_SECRET_NAME = re.compile(r"(?i)(key|token|secret|passw|authorization|cookie|signature|dsn)$")
_SECRET_URL = re.compile(r"(?i)([a-z][a-z0-9+.-]*://[^/\s:@]*):[^/\s@]+@")
STRUCK = "***"
_TOP = ("timestamp", "level", "component", "event")
_NOT_SECRET = frozenset({"dedupe_key"})

Line = MutableMapping[str, Any]


def strike(value: Any, name: str = "") -> Any:
    """Return a value with everything that looks like a secret struck out."""
    if isinstance(value, dict):
        return {str(key): strike(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [strike(inner, name) for inner in value]
    if isinstance(value, str):
        if _SECRET_NAME.search(name) and name not in _NOT_SECRET:
            return STRUCK
        return _SECRET_URL.sub(rf"\1:{STRUCK}@", clean(value))
    return value


def _shape(_logger: object, _method: str, line: Line) -> str:
    """Write one line: timestamp, level, component, message, data."""
    exception = line.pop("exception", None)
    shaped = {
        "timestamp": line.get("timestamp"),
        "level": line.get("level"),
        "component": line.get("component", "mimawari"),
        "message": strike(str(line.get("event", ""))),
        "data": {key: strike(value, key) for key, value in line.items() if key not in _TOP},
    }
    if exception:
        shaped["trace"] = strike(exception)
    return json.dumps(shaped, ensure_ascii=False, default=str)


class _Bridge(logging.Handler):
    """Brings libraries' own log records into ours."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record as one of our lines."""
        logger = structlog.get_logger(component=record.name.split(".")[0])
        logger.log(record.levelno, record.getMessage(), exc_info=record.exc_info or None)


def configure(level: str, stream: TextIO | None = None) -> None:
    """Send every log line to one stream, standard error unless told."""
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _shape,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(stream or sys.stderr),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers[:] = [_Bridge()]
    root.setLevel(max(number, logging.WARNING))
