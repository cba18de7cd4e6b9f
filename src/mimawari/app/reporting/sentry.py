"""Reports to Sentry: events made by hand, so that nothing is in them that was not put there."""

from collections.abc import Sequence
from typing import Any

import sentry_sdk
import structlog
from pydantic import SecretStr
from sentry_sdk.transport import HttpTransport
from sentry_sdk.types import Event

from mimawari import __version__
from mimawari.app.reporting.traces import Raised, list_raised
from mimawari.kernel.values import Trouble

log = structlog.get_logger(component="reporter")


class _Transport(HttpTransport):
    """Sends from a thread of its own, and says in the log what could not be sent."""

    def on_dropped_event(self, _reason: str) -> None:
        """Say that a report was lost."""
        log.warning("not reported", what=Sentry.name, result="dropped", reason=_reason)


class Sentry:
    """Tells a project on Sentry."""

    name = "Sentry"

    def __init__(self, dsn: SecretStr) -> None:
        # A client of our own, bound to nothing: whatever else would collect or send is off.
        # Personal things are off as long as nobody turns them on.
        self._client = sentry_sdk.Client(
            dsn=dsn.get_secret_value(),
            transport=_Transport,
            release=f"mimawari@{__version__}",
            server_name="",
            default_integrations=False,
            auto_enabling_integrations=False,
            include_local_variables=False,
            include_source_context=False,
            max_breadcrumbs=0,
            auto_session_tracking=False,
            send_client_reports=False,
            enable_backpressure_handling=False,
            spotlight=False,
            # The same whatever else is installed: not every server of one's own reads brotli.
            _experiments={"transport_compression_algo": "gzip"},  # type: ignore[typeddict-item]
        )

    def report(self, trouble: Trouble) -> None:
        """Leave an event to the thread that sends."""
        about = {"component": trouble.component, "what": trouble.what, **trouble.about}
        event: Event = {
            "level": trouble.level,
            "message": trouble.message,
            "transaction": trouble.what,
            "tags": {name: str(value) for name, value in about.items() if value is not None},
        }
        if trouble.error is not None:
            event["exception"] = {"values": _values(list_raised(trouble.error), trouble.message)}
        self._client.capture_event(event)

    def flush(self, seconds: float) -> None:
        """Send what waits and stop."""
        self._client.close(timeout=seconds)


def _values(chain: Sequence[Raised], message: str) -> list[dict[str, Any]]:
    """Write errors as Sentry reads them: where it began comes first."""
    return [
        {
            "type": raised.name,
            "module": raised.module,
            "value": message,
            "stacktrace": {
                "frames": [
                    {
                        "filename": frame.file,
                        "lineno": frame.line,
                        "function": frame.function,
                        "in_app": frame.is_ours,
                    }
                    for frame in raised.frames
                ]
            },
        }
        for raised in reversed(chain)
    ]
