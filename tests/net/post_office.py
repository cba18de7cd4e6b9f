"""Mail, and servers on this machine: one that takes it in earnest, one that does as it is told."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword, Session
from aiosmtpd.smtp import Envelope as Got
from pydantic import SecretStr

from mimawari.net.envelope import Envelope, Relay
from mimawari.settings.mail import Security

Both = tuple[ssl.SSLContext, ssl.SSLContext]
"""The TLS of a server, and of a client who trusts it."""
CLOSE = "close"
SILENCE = "silence"
PATIENCE = 60.0
"""How long a test waits for what must come; a loaded machine is slow, and nothing is timed."""
SENDER, ANN, BEN = "books@example.org", "ann@example.com", "ben@example.net"
PASSWORD = "open-sesame"
USUAL = {
    "connect": "220 here",
    "EHLO": "250-here\r\n250-AUTH PLAIN\r\n250 SIZE 20000000",
    "AUTH": "235 in",
    "DATA": "354 go on",
    "end": "250 queued",
    "QUIT": "221 bye",
}


@dataclass(frozen=True, slots=True)
class Taken:
    """A mail as the server has it."""

    sender: str
    recipients: list[str]
    content: bytes
    user: str | None
    is_secure: bool


@dataclass(slots=True)
class Office:
    """A real mail server, which remembers what it took and refuses whom it is told to."""

    port: int = 0
    mails: list[Taken] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    password: bytes = PASSWORD.encode()
    logins: list[tuple[str, str]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    async def handle_EHLO(  # noqa: N802 - the server's own names
        self, _server: Any, session: Session, _envelope: Got, hostname: str, replies: list[str]
    ) -> list[str]:
        """Note what a client calls itself."""
        session.host_name = hostname
        self.names.append(hostname)
        return replies

    async def handle_RCPT(  # noqa: N802
        self, _server: Any, _session: Session, envelope: Got, address: str, _options: list[str]
    ) -> str:
        """Take a recipient or refuse it."""
        if address in self.refused:
            return self.refused[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802
        self, server: Any, session: Session, envelope: Got
    ) -> str:
        """Take a mail."""
        taken = Taken(
            sender=envelope.mail_from or "",
            recipients=list(envelope.rcpt_tos),
            content=envelope.original_content or b"",
            user=self.logins[-1][1] if session.authenticated else None,
            is_secure=server.transport.get_extra_info("ssl_object") is not None,
        )
        self.mails.append(taken)
        return "250 queued as 42"

    def authenticate(
        self, _server: Any, _session: Session, _envelope: Got, mechanism: str, given: Any
    ) -> AuthResult:
        """Let in who knows the password."""
        assert isinstance(given, LoginPassword)
        self.logins.append((mechanism, given.login.decode()))
        return AuthResult(success=given.password == self.password, handled=False)


@asynccontextmanager
async def open_office(
    tls: ssl.SSLContext | None = None, office: Office | None = None, **options: Any
) -> AsyncIterator[Office]:
    """Run a mail server on a free port; `tls` from the first byte on, or as an option later."""
    office = office or Office()
    loop = asyncio.get_running_loop()

    def serve() -> SMTP:
        return SMTP(
            office, hostname="here", loop=loop, authenticator=office.authenticate, **options
        )

    server = await loop.create_server(serve, "127.0.0.1", 0, ssl=tls)
    office.port = server.sockets[0].getsockname()[1]
    try:
        yield office
    finally:
        server.close()


class Teller:
    """Answers each step as it is told, and remembers all it heard."""

    def __init__(self, replies: Mapping[str, str]) -> None:
        self._replies = {**USUAL, **replies}
        self.port = 0
        self.heard: list[bytes] = []
        self.body = bytearray()
        self.has_ended = False
        self.left = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one client until it leaves or is left."""
        with closing(writer), suppress(OSError, asyncio.IncompleteReadError):
            is_on = await self._say("connect", reader, writer)
            while is_on and (line := await reader.readline()):
                self.heard.append(line)
                step = line.split()[0].decode().upper()
                is_on = await self._say(step, reader, writer)
                if is_on and step == "DATA":
                    is_on = await self._hear_body(reader, writer)
        self.left.set()

    async def _hear_body(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        while line := await reader.readline():
            if line == b".\r\n":
                self.has_ended = True
                return await self._say("end", reader, writer)
            self.body += line
            if "body" in self._replies:
                return await self._say("body", reader, writer)
        return False

    async def _say(
        self, step: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer a step; say whether the talk goes on."""
        reply = self._replies.get(step, "250 OK")
        if reply == SILENCE:
            await reader.read()
        if reply in {SILENCE, CLOSE}:
            return False
        writer.write(f"{reply}\r\n".encode())
        await writer.drain()
        return True


@asynccontextmanager
async def open_teller(tls: ssl.SSLContext | None = None, **replies: str) -> AsyncIterator[Teller]:
    """Run a server on a free port that answers each step as it is told."""
    teller = Teller(replies)
    server = await asyncio.start_server(teller.serve, "127.0.0.1", 0, ssl=tls, limit=2**24)
    teller.port = server.sockets[0].getsockname()[1]
    try:
        yield teller
    finally:
        server.close()


class Commit:
    """What the caller does before the end: it counts, looks at the server, and may fail."""

    def __init__(self, office: Office | None = None, error: Exception | None = None) -> None:
        self.count = 0
        self.seen: list[int] = []
        self._office = office
        self._error = error

    async def __call__(self) -> None:
        """Commit."""
        self.count += 1
        self.seen.append(len(self._office.mails) if self._office else 0)
        if self._error is not None:
            raise self._error


async def do_nothing() -> None:
    """Commit nothing."""


def a_mail(text: str = "Hello\n", subject: str = "New books") -> EmailMessage:
    """Write a mail."""
    message = EmailMessage()
    message["From"] = SENDER
    message["To"] = ANN
    message["Subject"] = subject
    message["Message-ID"] = "<digest-42@example.org>"
    message.set_content(text)
    return message


def an_envelope(
    message: EmailMessage | None = None, recipients: tuple[str, ...] = (ANN,)
) -> Envelope:
    """Address a mail."""
    return Envelope(sender=SENDER, recipients=recipients, message=message or a_mail())


def plain(server: Office | Teller) -> Relay:
    """Name a server to whom one speaks openly."""
    return Relay(host="127.0.0.1", port=server.port, security="none")


def secure(
    server: Office | Teller,
    tls: ssl.SSLContext | None,
    security: Security = "starttls",
    host: str = "localhost",
    password: str = PASSWORD,
) -> Relay:
    """Name a server together with a user."""
    return Relay(
        host=host, port=server.port, security=security, user="ann", password=SecretStr(password),
        tls=tls,
    )  # fmt: skip
