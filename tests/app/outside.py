"""Those outside who are told of errors: a server that speaks for Sentry and for BugSnag."""

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from pydantic import SecretStr

from tests.app.ground import until

SENTRY_KEY = "5e2fb4a7c0d94d1f8a6b3e9d7c1f0a2b"
BUGSNAG_KEY = "b0a1c2d3e4f5061728394a5b6c7d8e9f"


@dataclass
class Listener:
    """All that was heard, byte by byte and as it was meant."""

    port: int = 0
    status: int = 200
    heard: list[bytes] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    payloads: list[Any] = field(default_factory=list)

    @property
    def dsn(self) -> str:
        """The DSN of the project on Sentry."""
        return f"http://{SENTRY_KEY}@127.0.0.1:{self.port}/42"

    @property
    def url(self) -> str:
        """Where BugSnag takes errors."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def given(self) -> dict[str, Any]:
        """The settings that name both."""
        return {
            "sentry_dsn": SecretStr(self.dsn),
            "bugsnag_key": SecretStr(BUGSNAG_KEY),
            "bugsnag_url": self.url,
        }

    @property
    def variables(self) -> dict[str, str]:
        """The same as variables of the environment."""
        return {
            "MIMAWARI_SENTRY_DSN": self.dsn,
            "MIMAWARI_BUGSNAG_KEY": BUGSNAG_KEY,
            "MIMAWARI_BUGSNAG_URL": self.url,
        }

    def hear(self, path: str, headers: bytes, body: bytes) -> None:
        """Take one request."""
        self.heard.append(b"\n".join((path.encode(), headers, body)))
        if path == "/api/42/envelope/":
            _, head, event = body.split(b"\n")[:3]
            assert json.loads(head)["type"] == "event"
            self.events.append(json.loads(event))
        else:
            (payload,) = json.loads(body)["events"]
            self.payloads.append(payload)

    async def until(self, count: int) -> None:
        """Wait until both have heard of so many."""

        async def is_heard() -> bool:
            return min(len(self.events), len(self.payloads)) >= count

        await until(is_heard)


@contextmanager
def listening(status: int = 200) -> Iterator[Listener]:
    """Listen on a free port for as long as the block lasts."""
    listener = Listener(status=status)

    class Ear(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            listener.hear(self.path, bytes(self.headers), body)
            self.send_response(listener.status)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Ear) as server:
        listener.port = server.server_port
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield listener
        finally:
            server.shutdown()
            thread.join()
