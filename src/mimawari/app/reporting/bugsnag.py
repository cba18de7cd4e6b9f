"""Reports to BugSnag, or to a server of one's own that speaks its language."""

import logging
from collections.abc import Callable, Mapping
from itertools import zip_longest
from queue import Full, Queue
from threading import Thread
from typing import Any

import bugsnag
import httpx2
import structlog
from bugsnag.delivery import default_headers
from pydantic import SecretStr

from mimawari import __version__
from mimawari.app.reporting.traces import Raised, list_raised
from mimawari.kernel.values import Trouble
from mimawari.text import one_line

MOST_WAITING = 100
SEND_SECONDS = 5.0

log = structlog.get_logger(component="reporter")


class Found(Exception):
    """Trouble that was found and not raised, such as a job whose process died."""


class BugSnag:
    """Tells a project on BugSnag."""

    name = "BugSnag"

    def __init__(self, key: SecretStr, url: str) -> None:
        # A client of our own with no hook anywhere: whatever else would collect or send is off.
        self._client = bugsnag.Client(
            install_sys_hook=False,
            api_key=key.get_secret_value(),
            endpoint=url,
            delivery=_Post(url, key),
            app_version=__version__,
            auto_notify=False,
            auto_capture_sessions=False,
            max_breadcrumbs=0,
            enabled_breadcrumb_types=[],
            send_code=False,
            send_environment=False,
            hostname="",
            lib_root="",
            project_root="",
            ignore_classes=[],
            logger=logging.getLogger("bugsnag"),
        )

    def report(self, trouble: Trouble) -> None:
        """Leave an event to the thread that sends."""
        error = trouble.error or Found()
        settings = self._client.configuration
        # Nothing of the request that is being answered, if there is one.
        nobody = bugsnag.RequestConfiguration()  # type: ignore[no-untyped-call]
        event = bugsnag.Event(error, settings, nobody, severity=trouble.level, context=trouble.what)
        about = {"component": trouble.component, "what": trouble.what, **trouble.about}
        # What was gathered is replaced whole: notes, messages and ways hold more than is told.
        event.metadata = {"mimawari": about}
        for shown, raised in zip_longest(event.errors, list_raised(error)):
            if shown is not None:
                shown.error_message = trouble.message
                shown.stacktrace = _stacktrace(raised)
        self._client.deliver(event)

    def flush(self, seconds: float) -> None:
        """Send what waits."""
        try:
            self._client.flush(int(seconds * 1000))
        except Exception:  # noqa: BLE001 - it says in no other way that time is up
            log.warning("not reported", what=self.name, result="dropped", reason="time is up")


def _stacktrace(raised: Raised | None) -> list[dict[str, Any]]:
    """Write a way as BugSnag reads it: the last step comes first."""
    return [
        {
            "file": frame.file,
            "lineNumber": frame.line,
            "method": frame.function,
            "inProject": frame.is_ours,
        }
        for frame in reversed(raised.frames if raised else ())
    ]


class _Post:
    """Sends from one thread with patience that ends; it never holds up the process's own end."""

    def __init__(self, url: str, key: SecretStr) -> None:
        self._url = url
        self._key = key
        self._waiting: Queue[tuple[str, Callable[[], None]]] = Queue(MOST_WAITING)
        self._thread: Thread | None = None

    def deliver(self, _settings: object, payload: str, options: Mapping[str, Any]) -> None:
        """Take one payload to be sent."""
        if self._thread is None:
            self._thread = Thread(target=self._run, name="bugsnag", daemon=True)
            self._thread.start()
        sent: Callable[[], None] = options["post_delivery_callback"]
        try:
            self._waiting.put_nowait((payload, sent))
        except Full:
            sent()
            self._lose("too many wait")

    def _run(self) -> None:
        with httpx2.Client(timeout=SEND_SECONDS) as http:
            while True:
                payload, sent = self._waiting.get()
                headers = default_headers(self._key.get_secret_value())
                try:
                    reply = http.post(self._url, content=payload.encode(), headers=headers)
                    reply.raise_for_status()
                except Exception as error:  # noqa: BLE001 - the one thread there is must not die
                    self._lose(one_line(f"{type(error).__name__}: {error}"))
                finally:
                    sent()

    @staticmethod
    def _lose(reason: str) -> None:
        log.warning("not reported", what=BugSnag.name, result="dropped", reason=reason)
