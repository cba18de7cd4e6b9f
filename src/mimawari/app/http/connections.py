"""HTTP connections with deadlines: for headers, for the body, while idle and while stalled.

Uvicorn closes only connections that have been answered once. Here every connection has a phase,
every phase a deadline that no trickle of bytes extends, and a listener holds a bounded number of
connections. When it is full, the connection that has been silent for longest is closed, so that a
new client is never refused.
"""

import asyncio
import math
import resource
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import h11
import structlog
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from mimawari.app.http.envelope import envelope_bytes
from mimawari.kernel.clock import Mark, RealClock

MOST_CONNECTIONS = 1000
OPEN_FILES = 4096

log = structlog.get_logger(component="api")


REAL = RealClock()
"""Clients wait in real time, whatever clock the system goes by."""


def _seconds(since: Mark, now: Mark) -> float:
    return now.elapsed_since(since).total_seconds()


class Phase(StrEnum):
    """What a connection is doing."""

    IDLE = "idle"
    HEADERS = "headers"
    BODY = "body"
    RESPONSE = "response"
    CLOSING = "closing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """How many seconds each part of an exchange may take."""

    idle: float = 15.0
    """From the connection, or from the last response, to the first byte of a request."""
    headers: float = 10.0
    """From the first byte of a request to the end of its headers."""
    body: float = 30.0
    """From the end of the headers to the end of the body."""
    stalled: float = 60.0
    """How long a client may take nothing of a response that is ready for it."""
    closing: float = 2.0
    """How long what a refused client still sends is thrown away, so that it reads the refusal."""
    sweep: float = 1.0
    """How often the deadlines are checked."""

    def of(self, phase: Phase) -> float:
        """Return the deadline of a phase; a response may take as long as it is read."""
        limits = {
            Phase.IDLE: self.idle,
            Phase.HEADERS: self.headers,
            Phase.BODY: self.body,
            Phase.CLOSING: self.closing,
        }
        return limits.get(phase, math.inf)


def most_connections() -> int:
    """Return how many connections a listener may hold, after raising the limit of open files.

    Half of the open files stay free for the database, for sites and for child processes.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else min(MOST_CONNECTIONS, soft // 2)


class Connections:
    """The connections of one listener, the one that has been silent for longest first."""

    def __init__(self, most: int, deadlines: Deadlines) -> None:
        self.deadlines = deadlines
        self.closed: Counter[str] = Counter()
        """How many were closed since the last look, by reason."""
        self._most = most
        # A dict keeps its order: what was last heard of stands last.
        self._waiting: dict[Connection, None] = {}
        self._answering: dict[Connection, None] = {}
        self._sweeping: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """Return how many connections are open."""
        return len(self._waiting) + len(self._answering)

    def add(self, connection: "Connection") -> None:
        """Take a new connection in; close the one that has been silent for longest if full."""
        if len(self) >= self._most:
            silent = next(iter(self._waiting or self._answering))
            self.remove(silent)
            silent.drop(f"silent for longest of {self._most} connections")
        self.heard(connection)
        if self._sweeping is None:
            self._sweeping = connection.loop.call_later(self.deadlines.sweep, self._sweep)

    def heard(self, connection: "Connection") -> None:
        """Note that a connection has said or taken something."""
        self.remove(connection)
        is_answering = connection.phase is Phase.RESPONSE
        (self._answering if is_answering else self._waiting)[connection] = None

    def remove(self, connection: "Connection") -> None:
        """Forget a connection."""
        self._waiting.pop(connection, None)
        self._answering.pop(connection, None)

    def _sweep(self) -> None:
        """Close what is past its deadline; runs only while there are connections."""
        self._sweeping = None
        for connection in [*self._waiting, *self._answering]:
            connection.check()
        for reason, count in self.closed.items():
            log.info("connections closed", what=count, result="closed", reason=reason)
        self.closed.clear()
        if len(self):
            loop = asyncio.get_running_loop()
            self._sweeping = loop.call_later(self.deadlines.sweep, self._sweep)


class Connection(H11Protocol):
    """One connection of a client, with a deadline for each of its phases."""

    def __init__(self, *args: Any, connections: Connections, **named: Any) -> None:
        super().__init__(*args, **named)
        self._connections = connections
        self.phase = Phase.IDLE
        self._since = self._taken_at = REAL.mark()
        self._left_to_take = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin with the deadline of an idle connection."""
        super().connection_made(transport)
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._connections.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes in, and note which part of a request they complete."""
        if self.phase is Phase.CLOSING:
            return
        before = self.cycle
        super().data_received(data)
        self._enter(self._phase_with(Phase.HEADERS), anew=self.cycle is not before)
        if not self.transport.is_closing():
            self._connections.heard(self)

    def on_response_complete(self) -> None:
        """Begin the deadline of an idle connection, or of the next request that was pipelined."""
        super().on_response_complete()
        self._enter(self._phase_with(Phase.IDLE), anew=True)
        if not self.transport.is_closing():
            self._connections.heard(self)

    def _phase_with(self, nothing_in_hand: Phase) -> Phase:
        if self.cycle is None or self.cycle.response_complete:
            return nothing_in_hand
        return Phase.BODY if self.cycle.more_body else Phase.RESPONSE

    def _enter(self, phase: Phase, *, anew: bool) -> None:
        if self.phase is not Phase.CLOSING and (anew or phase is not self.phase):
            self.phase, self._since = phase, REAL.mark()

    def check(self) -> None:
        """Close the connection if a deadline is over."""
        now, deadlines = REAL.mark(), self._connections.deadlines
        left = self.transport.get_write_buffer_size()
        if not left or left != self._left_to_take:
            self._left_to_take, self._taken_at = left, now
        elif _seconds(self._taken_at, now) > deadlines.stalled:
            self._count(f"the client took nothing for {deadlines.stalled:g} s")
            self.transport.abort()
            return
        allowed = deadlines.of(self.phase)
        if _seconds(self._since, now) > allowed and not self.transport.is_closing():
            self.drop(f"{self.phase}: not complete after {allowed:g} s")

    def drop(self, reason: str) -> None:
        """Close the connection, with an error first if a request was begun."""
        if self.phase is not Phase.CLOSING:
            self._count(reason)
        if self.phase in (Phase.HEADERS, Phase.BODY):
            self._refuse(408, "timeout", "the request was not complete in time; send it again")
        elif self.phase is Phase.IDLE:
            self.transport.close()
        else:
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, in the one form that all errors have."""
        self._refuse(400, "bad_request", msg)

    def _refuse(self, status: int, code: str, message: str) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            # The application, which may wait for the rest of the body, is to stop.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            content = envelope_bytes(code, message)
            headers = [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(content)).encode()),
                (b"connection", b"close"),
            ]
            response = h11.Response(
                status_code=status, headers=headers, reason=STATUS_PHRASES[status]
            )
            for event in (response, h11.Data(data=content), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        if not self.transport.can_write_eof():
            self.transport.close()
            return
        # A socket closed with bytes unread resets the connection, and the refusal is lost.
        self.transport.write_eof()
        self._enter(Phase.CLOSING, anew=True)

    def _count(self, reason: str) -> None:
        self._connections.closed[reason] += 1
