"""A forward proxy on this machine for the browser, whose every connection the dialer opens."""

import asyncio
import re
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

import h11
import httpcore2

from mimawari.errors import BadInput, Transient
from mimawari.net.dial import Dialer, Options
from mimawari.net.guard import Address, Forbidden
from mimawari.text import one_line

READ_BYTES = 64 * 1024
LEAVE_SECONDS = 5.0
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]@]+\]|[^:\[\]@]+)(?::(?P<port>[0-9]{1,5}))?")
_ABSOLUTE = re.compile(r"(?i:http)://(?P<authority>[^/?#]+)(?P<path>[^#]*)")
_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
# The gate writes its own Host, and answers "100 Continue" by itself.
_OURS = frozenset({b"host", b"expect"})
HTTP_PORT = 80

Header = tuple[bytes, bytes]


class _Spent(Exception):
    """A tunnel has passed all the bytes it may."""


class _Refused(Exception):
    """A request is answered by the gate itself."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


_UNREACHED = (httpcore2.ConnectError, httpcore2.ConnectTimeout)
# Whatever either side does to break off ends its own tunnel and nothing else.
_BROKEN = (OSError, httpcore2.NetworkError, httpcore2.ProtocolError, h11.ProtocolError, _Spent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much the gate bears."""

    header_bytes: int = 64 * 1024
    tunnel_bytes: int = 64 * 1024 * 1024
    tunnels: int = 256
    idle_for: timedelta = timedelta(seconds=60)
    dial_for: timedelta = timedelta(seconds=20)


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request wants to go; a tunnel has no path."""

    host: str
    port: int
    path: str | None = None

    @property
    def authority(self) -> str:
        """The host and port as a Host header has them."""
        return self.host if self.port == HTTP_PORT else f"{self.host}:{self.port}"


def parse_target(method: bytes, target: bytes) -> Target:
    """Read what a proxy is asked for: host:port of a tunnel, or an http:// address."""
    text = target.decode("latin-1")
    if method == b"CONNECT":
        host, port = _parse_authority(text)
        if port is None:
            raise BadInput("a tunnel needs a port")
        return Target(host, port)
    parts = _ABSOLUTE.fullmatch(text)
    if parts is None:
        raise BadInput("this is a proxy: ask it for http:// addresses or tunnels")
    host, port = _parse_authority(parts["authority"])
    path = parts["path"]
    return Target(host, port or HTTP_PORT, path if path.startswith("/") else f"/{path}")


def _parse_authority(text: str) -> tuple[str, int | None]:
    parts = _AUTHORITY.fullmatch(text)
    if parts is None:
        raise BadInput("the host and port cannot be read")
    return parts["host"], int(parts["port"]) if parts["port"] else None


def end_to_end(headers: Sequence[Header]) -> list[Header]:
    """Return the headers that are meant for the other end, not for the next hop."""
    named = {
        word.strip().lower()
        for name, value in headers
        if name.lower() == b"connection"
        for word in value.split(b",")
    }
    dropped = _HOP_BY_HOP | named
    if any(name.lower() == b"transfer-encoding" for name, _ in headers):
        # A length beside it is not the length of what is passed on.
        dropped |= {b"content-length"}
    return [(name, value) for name, value in headers if name.lower() not in dropped]


class _Meter:
    """Counts a tunnel's bytes, both ways together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.moved = 0

    def count(self, piece: bytes) -> bytes:
        self.moved += len(piece)
        if self.moved > self._most:
            raise _Spent
        return piece


class _Client:
    """The browser's end of one connection."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, bounds: Bounds
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._room = bounds.header_bytes + 1
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=bounds.header_bytes)

    @property
    def early(self) -> bytes:
        """What came after the request's head."""
        return self._http.trailing_data[0]

    async def read_head(self) -> h11.Request | None:
        """Read the head of the request; None if there is none."""
        while (event := self._http.next_event()) is h11.NEED_DATA:
            piece = await self._reader.read(self._room)
            self._room -= len(piece)
            self._http.receive_data(piece)
        return event if isinstance(event, h11.Request) else None

    async def read_body(self, meter: _Meter) -> AsyncIterator[bytes]:
        """Read the body of this one request and nothing beyond it."""
        if self._http.they_are_waiting_for_100_continue:
            await self.send(h11.InformationalResponse(status_code=100, headers=[]))
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                self._http.receive_data(await self._reader.read(READ_BYTES))
            elif isinstance(event, h11.Data):
                yield meter.count(bytes(event.data))
            else:
                return

    async def read(self) -> bytes:
        """Read what comes next, as it is."""
        return await self._reader.read(READ_BYTES)

    async def write(self, piece: bytes) -> None:
        """Write bytes as they are."""
        self._writer.write(piece)
        await self._writer.drain()

    async def send(self, event: h11.Event) -> None:
        """Write a part of the response."""
        await self.write(self._http.send(event) or b"")

    async def leave(self) -> None:
        """Close once the client has read all, or after a moment: unread bytes would cut it off."""
        self._writer.write_eof()
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_SECONDS):
                while await self.read():
                    pass


class Gate:
    """Passes the browser's connections on, each to an address that the guard has checked."""

    def __init__(self, dialer: Dialer, bounds: Bounds | None = None) -> None:
        self._dialer = dialer
        self._bounds = bounds or Bounds()
        self._server: asyncio.Server | None = None
        self._port = 0
        self._tunnels: set[asyncio.Task[None]] = set()
        self.dialed = 0
        """How many connections have come about."""

    @property
    def address(self) -> str:
        """Where the browser finds the gate."""
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        """Open the gate on a free port, for this machine only."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the gate and everything that passes through it."""
        server, self._server = self._server, None
        if server:
            server.close()
        for tunnel in self._tunnels:
            tunnel.cancel()
        await asyncio.gather(*self._tunnels, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._server is None or len(self._tunnels) >= self._bounds.tunnels:
            writer.write(_refusal(503, "too many open tunnels"))
            writer.close()
            return
        tunnel = asyncio.create_task(self._serve(_Client(reader, writer, self._bounds)))
        self._tunnels.add(tunnel)
        tunnel.add_done_callback(self._tunnels.discard)
        # Also a tunnel that was cancelled before its first step closes its connection.
        tunnel.add_done_callback(lambda _: writer.transport.abort())

    async def _serve(self, client: _Client) -> None:
        with suppress(*_BROKEN):
            try:
                await self._pass_on(client)
            except _Refused as refused:
                await client.write(_refusal(refused.status, str(refused)))
            await client.leave()

    async def _pass_on(self, client: _Client) -> None:
        request = await self._read_request(client)
        if request is None:
            return
        target = _target_of(request)
        stream = await self._dial(target)
        self.dialed += 1
        meter = _Meter(self._bounds.tunnel_bytes)
        try:
            if target.path is None:
                await client.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                works = _pumps(client, stream, meter)
            else:
                works = [_exchange(client, stream, request, target, meter)]
            await self._watch(works, meter)
        finally:
            await stream.aclose()

    async def _read_request(self, client: _Client) -> h11.Request | None:
        try:
            async with asyncio.timeout(self._bounds.idle_for.total_seconds()):
                return await client.read_head()
        except h11.RemoteProtocolError as error:
            raise _Refused(error.error_status_hint, str(error)) from error

    async def _dial(self, target: Target) -> httpcore2.AsyncNetworkStream:
        options = Options(timeout=self._bounds.dial_for.total_seconds())
        try:
            async with asyncio.timeout(options.timeout):
                addresses = await self._find_addresses(target)
                return await self._dialer.dial(addresses, target.port, options)
        except Forbidden as error:
            raise _Refused(403, str(error)) from error
        except (Transient, TimeoutError, *_UNREACHED) as error:
            raise _Refused(502, f"cannot connect: {error}") from error

    async def _find_addresses(self, target: Target) -> tuple[Address, ...]:
        addresses = await self._dialer.guard.addresses(target.host, target.port)
        if target.port == self._port and any(_is_here(address) for address in addresses):
            raise Forbidden("the gate does not lead to itself")
        return addresses

    async def _watch(self, works: Sequence[Coroutine[Any, Any, None]], meter: _Meter) -> None:
        """Run a tunnel until one of its works ends, or none has moved a byte for too long."""
        tasks = [asyncio.create_task(work) for work in works]
        try:
            while True:
                before = meter.moved
                done, _ = await asyncio.wait(
                    tasks,
                    timeout=self._bounds.idle_for.total_seconds(),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if done or meter.moved == before:
                    break
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            task.result()


def _target_of(request: h11.Request) -> Target:
    try:
        return parse_target(request.method, request.target)
    except BadInput as error:
        raise _Refused(400, str(error)) from error


def _is_here(address: Address) -> bool:
    mapped = getattr(address, "ipv4_mapped", None) or address
    return bool(mapped.is_loopback or mapped.is_unspecified)


def _refusal(status: int, text: str) -> bytes:
    body = f"{one_line(text)}\n".encode()
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + body


def _pumps(
    client: _Client, stream: httpcore2.AsyncNetworkStream, meter: _Meter
) -> list[Coroutine[Any, Any, None]]:
    async def forth() -> None:
        piece = client.early or await client.read()
        while piece:
            await stream.write(meter.count(piece))
            piece = await client.read()

    async def back() -> None:
        while piece := await stream.read(READ_BYTES):
            await client.write(meter.count(piece))

    return [forth(), back()]


async def _exchange(
    client: _Client,
    stream: httpcore2.AsyncNetworkStream,
    request: h11.Request,
    target: Target,
    meter: _Meter,
) -> None:
    """Pass on one request and its response, and no second one."""
    try:
        response = await _ask(client, stream, request, target, meter)
    except h11.RemoteProtocolError as error:
        raise _Refused(400, str(error)) from error
    except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
        raise _Refused(502, f"the server broke off: {error}") from error
    headers = [*end_to_end(response.headers), (b"Connection", b"close")]
    await client.send(h11.Response(status_code=response.status, headers=headers))
    async for piece in response.aiter_stream():
        await client.send(h11.Data(data=meter.count(piece)))
    await client.send(h11.EndOfMessage())


async def _ask(
    client: _Client,
    stream: httpcore2.AsyncNetworkStream,
    request: h11.Request,
    target: Target,
    meter: _Meter,
) -> httpcore2.Response:
    sent = request.headers.raw_items()
    headers = [(name, value) for name, value in end_to_end(sent) if name.lower() not in _OURS]
    headers += [(b"Host", target.authority.encode("ascii")), (b"Connection", b"close")]
    if any(name.lower() == b"transfer-encoding" for name, _ in sent):
        headers.append((b"Transfer-Encoding", b"chunked"))
    url = httpcore2.URL(
        scheme=b"http", host=target.host, port=target.port, target=target.path or "/"
    )
    server = httpcore2.AsyncHTTP11Connection(origin=url.origin, stream=stream)
    body = client.read_body(meter)
    response = await server.handle_async_request(
        httpcore2.Request(request.method, url, headers=headers, content=body)
    )
    if response.status < HTTPStatus.OK:
        raise httpcore2.RemoteProtocolError(f"{response.status} was not asked for")
    return response
