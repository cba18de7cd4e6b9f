"""Real listeners on this machine: a trap that counts, a server, and a proxy that takes notes."""

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

END = b"\r\n\r\n"
GREETING = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def read_head(reader: asyncio.StreamReader) -> bytes:
    """Read the head of a request or reply; less if the other side leaves."""
    try:
        return await reader.readuntil(END)
    except asyncio.IncompleteReadError as error:
        return error.partial


async def read_body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    """Read the body that a head announces."""
    length = re.search(rb"(?i)\r\ncontent-length: ([0-9]+)\r\n", head)
    if length:
        return await reader.readexactly(int(length[1]))
    body = b""
    if re.search(rb"(?i)\r\ntransfer-encoding: chunked\r\n", head):
        while size := int(await reader.readuntil(b"\r\n"), 16):
            body += (await reader.readexactly(size + 2))[:-2]
    return body


class Trap:
    """Listens where nobody may come, on both loopback addresses, and counts who comes."""

    def __init__(self) -> None:
        self._came = 0
        self._sockets: list[socket.socket] = []
        self.port = 0

    def bind(self) -> list[socket.socket]:
        """Take one port on both addresses."""
        while True:
            four = socket.create_server(("127.0.0.1", 0))
            self.port = four.getsockname()[1]
            try:
                six = socket.create_server(("::1", self.port), family=socket.AF_INET6)
            except OSError:
                four.close()
            else:
                return [four, six]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Count one who came."""
        self._came += 1
        with closing(writer), suppress(OSError):
            await read_head(reader)
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\ntrap")
            await writer.drain()

    async def came(self) -> int:
        """Say how many came; two knocks of our own, which come last, prove that all are counted."""
        for host in ("127.0.0.1", "::1"):
            reader, writer = await asyncio.open_connection(host, self.port)
            with closing(writer):
                writer.write(END)
                assert (await reader.read()).endswith(b"trap")
            self._came -= 1
        return self._came


@asynccontextmanager
async def open_trap() -> AsyncIterator[Trap]:
    """Set a trap."""
    trap = Trap()
    servers = [await asyncio.start_server(trap.serve, sock=each) for each in trap.bind()]
    try:
        yield trap
    finally:
        for server in servers:
            server.close()


Reply = Callable[[bytes], bytes]


class Server:
    """Answers a connection's first request, or all, and remembers their heads and bodies."""

    def __init__(self, reply: Reply, *, keep: bool) -> None:
        self._reply = reply
        self._keep = keep
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one client."""
        with closing(writer), suppress(OSError):
            while head := await read_head(reader):
                self.heads.append(head)
                self.bodies.append(await read_body(reader, head))
                writer.write(self._reply(head))
                await writer.drain()
                if not self._keep:
                    break


@asynccontextmanager
async def open_server(
    reply: Reply = lambda _: GREETING,
    host: str = "127.0.0.1",
    tls: ssl.SSLContext | None = None,
    *,
    keep: bool = False,
) -> AsyncIterator[Server]:
    """Run a server on a free port."""
    server = Server(reply, keep=keep)
    listening = await asyncio.start_server(server.serve, host, 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()


class Proxy:
    """A proxy that notes what it is asked for and leads every tunnel to one port of ours."""

    def __init__(self, to: int, reply: bytes) -> None:
        self._to = to
        self._reply = reply
        self.heads: list[bytes] = []
        self.port = 0

    @property
    def asked(self) -> list[str]:
        """The targets, in order."""
        return [head.split()[1].decode() for head in self.heads]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Join one client to our port, or answer as told."""
        with closing(writer), suppress(OSError):
            self.heads.append(await read_head(reader))
            writer.write(self._reply)
            await writer.drain()
            if b" 200" in self._reply:
                await self._join(reader, writer)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._to)
        with closing(far_writer):
            forth = asyncio.create_task(pump(reader, far_writer))
            await pump(far_reader, writer)
            forth.cancel()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on until there are no more."""
    with suppress(OSError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()


@asynccontextmanager
async def open_proxy(to: int = 0, reply: bytes = ESTABLISHED) -> AsyncIterator[Proxy]:
    """Run a proxy on a free port."""
    proxy = Proxy(to, reply)
    listening = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = listening.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        listening.close()


def free_port() -> int:
    """Name a port that nobody listens on."""
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        return int(taken.getsockname()[1])


def make_certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the TLS of a server of that name, and the TLS of a client who trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2120, 1, 1, tzinfo=UTC))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = folder / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    file.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(file)
    return server, ssl.create_default_context(cafile=file)


class Echo:
    """Says back what it hears, and tells when somebody has left."""

    def __init__(self) -> None:
        self.left = asyncio.Semaphore(0)
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Say back what one client says."""
        with closing(writer):
            await pump(reader, writer)
        self.left.release()


@asynccontextmanager
async def open_echo() -> AsyncIterator[Echo]:
    """Run an echo on a free port."""
    echo = Echo()
    listening = await asyncio.start_server(echo.serve, "127.0.0.1", 0)
    echo.port = listening.sockets[0].getsockname()[1]
    try:
        yield echo
    finally:
        listening.close()


@asynccontextmanager
async def open_connection(address: str) -> AsyncIterator[Streams]:
    """Open a connection to a proxy of this machine as a browser would."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
    with closing(writer):
        yield reader, writer


async def ask(address: str, request: bytes) -> bytes:
    """Send a request to a proxy and return all that comes back."""
    async with open_connection(address) as (reader, writer):
        writer.write(request)
        await writer.drain()
        return await reader.read()


@asynccontextmanager
async def open_tunnel(address: str, target: str) -> AsyncIterator[Streams]:
    """Open a tunnel through a proxy."""
    async with open_connection(address) as (reader, writer):
        writer.write(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        assert await read_head(reader) == ESTABLISHED
        yield reader, writer


async def is_full(address: str, place: str) -> bool:
    """Tell whether a proxy turns a tunnel away; it may do so before it has read the request."""
    try:
        async with open_tunnel(address, place):
            return False
    except (AssertionError, ConnectionError):
        return True


def status_of(reply: bytes) -> int:
    """Read the status of a reply."""
    return int(reply.split(None, 2)[1])


MALFORMED = [
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET https://site.example/ HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET ftp://site.example/ HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET file:///etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET http:/site.example/ HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET http:///path HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET http://user@loop.example/ HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET http://loop.example:http/ HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET http://loop.example:123456/ HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET http://loop.example/a b HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET http://loop.example/#part HTTP/1.1\r\nHost: a\r\n\r\n",
    b"CONNECT loop.example HTTP/1.1\r\nHost: a\r\n\r\n",
    b"CONNECT loop.example: HTTP/1.1\r\nHost: a\r\n\r\n",
    b"CONNECT :443 HTTP/1.1\r\nHost: a\r\n\r\n",
    b"CONNECT http://loop.example:443 HTTP/1.1\r\nHost: a\r\n\r\n",
    b"CONNECT user@loop.example:443 HTTP/1.1\r\nHost: a\r\n\r\n",
    b"CONNECT ::1:443 HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET http://loop.example/ HTTP/1.1\r\n\r\n",
    b"GET http://loop.example/\r\n\r\n",
    b"GET http://loop.example/ HTTP/1.1\r\nHost : a\r\n\r\n",
    b"GET http://loop.example/ HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
    b"GET http://loop.example/ HTTP/1.1\r\nHost: a\x00\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    b"\x00" * 10 + b"\r\n\r\n",
    b"hello\r\n\r\n",
]
"""Requests that no proxy can understand."""

REPLIES: list[tuple[bytes, int, str | None]] = [
    (GREETING, 200, "hello"),
    (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", 200, "until the end"),
    (b"HTTP/1.0 200 OK\r\n\r\nold", 200, "old"),
    (b"HTTP/1.1 404 No\r\nContent-Length: 2\r\nKeep-Alive: 5\r\n\r\nno", 404, "no"),
    (b"HTTP/1.1 204 None\r\n\r\n", 204, ""),
    (CHUNKED + b"\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", 200, "abc"),
    (CHUNKED + b"Content-Length: 1\r\n\r\n2\r\nab\r\n0\r\n\r\n", 200, "ab"),
    (b"HTTP/1.1 100 Continue\r\n\r\n" + GREETING, 200, "hello"),
    (b"HTTP/1.1 101 Switching\r\nUpgrade: a\r\n\r\n", 502, None),
    (b"", 502, None),
    (b"hello\r\n\r\n", 502, None),
]
"""What a server may answer, and the status and text that a client of a proxy sees."""
