"""How an address is taken, and an application answers there."""

import asyncio
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import uvicorn
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from mimawari.app.http.connections import Connection, Connections, Deadlines, most_connections
from mimawari.app.http.edge import App
from mimawari.errors import BadInput

BACKLOG = 512
"""As many may be accepted before the first of them is looked at, and each is an open file."""


class Uvicorn(uvicorn.Server):
    """Uvicorn without signal handlers of its own: stopping is decided in one place."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield


Api = tuple[Uvicorn, "asyncio.Task[Any]"]


def listen(host: str, port: int, setting: str = "MIMAWARI_PORT") -> socket.socket:
    """Take the API's address, or say what to do if somebody else has it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named outright, TCP is known to the event loop, which then sends each reply without delay.
    taken = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((host, port))
        # Two may bind one port at once, but only one may listen on it.
        taken.listen(BACKLOG)
    except OSError as error:
        taken.close()
        raise BadInput(
            f"cannot listen on {host}:{port}: {error.strerror}; stop what listens there,"
            f" or set {setting} to another port (0 takes a free one)",
            code="address_taken",
        ) from error
    return taken


def start(
    app: App,
    taken: socket.socket,
    tls: ssl.SSLContext | None = None,
    *,
    proxies: Sequence[str] = (),
    connections: Connections | None = None,
) -> Api:
    """Answer on a socket, encrypted if asked for; the task ends soon after `should_exit` is set.

    X-Forwarded-For and X-Forwarded-Proto are read from trusted proxies only: clients can set them.
    """
    if proxies:
        app = cast("App", ProxyHeadersMiddleware(cast("Any", app), list(proxies)))
    if connections is None:
        connections = Connections(most_connections(), Deadlines())
    connection = partial(Connection, connections=connections)
    config = uvicorn.Config(
        app,
        http=cast("type[Connection]", connection),
        # Nothing here is a WebSocket, so that none is negotiated past the deadlines.
        ws="none",
        backlog=BACKLOG,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=5,
    )
    config.load()
    config.ssl = tls
    server = Uvicorn(config)
    return server, asyncio.create_task(server.serve([taken]), name="api")
