"""The log: one JSON object a line, with secrets struck out."""

import json
import logging
import math
import re
import sys
from collections.abc import MutableMapping
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import Any, TextIO
from urllib.parse import urlsplit

import structlog

from mimawari.text import clean, plain_line

_WORDS = "keys?|tokens?|secrets?|passw(?:or)?d|passwords|authorization|cookies?|signature|dsn"
_SECRET_NAME = re.compile(rf"(?i)({_WORDS})$")
_WORD = re.compile(r"\S+")
_SCHEME = re.compile(r"(?i)[a-z][a-z0-9+.-]{0,40}\Z")
_USER = re.compile(r"[^/\s:@]*:")
_LONGEST_SCHEME = 41
# In running text a bare `key` is an ordinary word, unless it is one of a URL's parameters.
_SECRET_TEXT = re.compile(
    r"(?i)((?<![\w-])(?:[\w-]*[\w-]key|[\w-]*(?:token|secret|passw(?:or)?d|authorization|cookie"
    r"|signature|dsn))|[?&]key)"
    r"(['\"]?\s?[:=]\s?(?:(?:bearer|basic|digest|token|apikey)\s+)?)"
    r"('[^']*'|\"[^\"]*\"|[^\s'\"&,;]+)"
)
STRUCK = "***"
MOST_PLAIN = 2000
_WEB = ("http", "https")
_TOP = ("timestamp", "level", "monitor_id", "component", "event")
_LEVELS = {"warning": "WARN", "critical": "ERROR"}
"""How levels are written where their names in capitals are not what readers know."""
_NAMING = ("monitor_id", "target", "lane", "caller")
_MONITOR = re.compile(r"(?:^|:)(mon-[0-9a-f]{32})$")
"""The id of a stream's monitor, which a line has at its top wherever it names one."""
_NOT_SECRET = frozenset({"dedupe_key"})

Line = MutableMapping[str, Any]


def strike(value: Any, name: str = "") -> Any:
    """Return a value with everything that looks like a secret struck out."""
    if isinstance(value, dict):
        return {clean(str(key)): strike(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [strike(inner, name) for inner in value]
    if (
        value is None
        or isinstance(value, int)
        or (isinstance(value, float) and math.isfinite(value))
    ):
        return value
    if _SECRET_NAME.search(name) and name not in _NOT_SECRET:
        return STRUCK
    return _SECRET_TEXT.sub(_struck, _WORD.sub(_strike_password, clean(str(value))))


def _strike_password(found: re.Match[str]) -> str:
    """Strike the password out of an address that a word holds: scheme://user:password@host.

    Each part is looked for once, so that it takes linear time however long the word is.
    """
    word = found[0]
    last, at = word.rfind("@"), word.find("://")
    while -1 < at < last:
        user = _USER.match(word, at + 3)
        scheme = _SCHEME.search(word[max(0, at - _LONGEST_SCHEME) : at])
        if user and scheme and user.end() <= last:
            return f"{word[: user.end()]}{STRUCK}{word[last:]}"
        at = word.find("://", at + 3)
    return word


def hide_secrets(address: str) -> str:
    """Write where something goes, without what only its owner may know."""
    scheme, slashes, _ = address.partition("://")
    if not slashes:
        return str(strike(address))
    # Of other services the host itself may be a key.
    if scheme.lower() not in _WEB:
        return f"{scheme}://{STRUCK}"
    try:
        parts = urlsplit(address)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return f"{scheme}://{STRUCK}"
    rest = f"/{STRUCK}" if parts.path.strip("/") or parts.query else ""
    return f"{parts.scheme}://{parts.hostname}{port}{rest}"


def _struck(found: re.Match[str]) -> str:
    return found[0] if found[1] in _NOT_SECRET else f"{found[1]}{found[2]}{STRUCK}"


def _shape(zone: tzinfo, _logger: object, _method: str, line: Line) -> str:
    """Write one line: timestamp, level, monitor_id where there is one, component, message, data."""
    exception = line.pop("exception", None)
    monitor_id = _find_monitor(line)
    level = str(line.get("level"))
    shaped = {
        "timestamp": _write_time(str(line.get("timestamp")), zone),
        "level": _LEVELS.get(level, level.upper()),
        **({"monitor_id": monitor_id} if monitor_id else {}),
        "component": strike(line.get("component", "mimawari")),
        "message": strike(str(line.get("event", ""))),
        "data": strike({key: value for key, value in line.items() if key not in _TOP}),
    }
    if exception:
        shaped["trace"] = strike(exception)
    text = json.dumps(shaped, ensure_ascii=False, default=str)
    # Some readers take these two for the end of a line.
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _find_monitor(line: Line) -> str | None:
    """Return the id of the monitor that a line is about, if it is about one."""
    for name in _NAMING:
        found = _MONITOR.search(str(line.get(name, "")))
        if found:
            return found[1]
    return None


def _write_time(written: str, zone: tzinfo) -> str:
    return datetime.fromisoformat(written).astimezone(zone).isoformat(timespec="milliseconds")


class _Bridge(logging.Handler):
    """Brings libraries' own log records into ours."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record as one of our lines."""
        logger = structlog.get_logger(component=record.name.split(".")[0])
        level = min(max(record.levelno // 10 * 10, logging.DEBUG), logging.CRITICAL)
        logger.log(level, _message(record), exc_info=record.exc_info or None)


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        # A library's own mistake in its arguments is no reason to lose its line.
        return str(record.msg)


def tell_plainly(component: str, stream: TextIO | None = None) -> None:
    """Write what one part tells as plain lines, for a person who waits for it, and no other."""

    def plain(_logger: object, _method: str, line: Line) -> str:
        if line.get("component") != component:
            raise structlog.DropEvent
        mark = "[WARN]" if line.get("level") == "warning" else ""
        words = [line.get("event"), line.get("reason")]
        said = strike(": ".join(str(word) for word in words if word))
        # A line break in a name would begin a line of its own.
        return mark + plain_line(str(said), most=MOST_PLAIN)

    structlog.configure(
        processors=[structlog.processors.add_log_level, plain],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(stream or sys.stderr),
        cache_logger_on_first_use=False,
    )


def configure(level: str, stream: TextIO | None = None, zone: tzinfo = UTC) -> None:
    """Send every log line to one stream, standard error unless told, with times in one zone."""
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            partial(_shape, zone),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(stream or sys.stderr),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers[:] = [_Bridge()]
    root.setLevel(max(number, logging.WARNING))
