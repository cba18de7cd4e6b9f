"""A simulated mail server: it takes every mail, delivers none, and shows what it took."""

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from email import policy
from email.errors import MessageError
from email.parser import BytesParser
from html import escape
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from mimawari.errors import BadInput
from mimawari.kernel.ports import Clock
from mimawari.sim.faults import read_template
from mimawari.text import clean, one_line

REMEMBERED = 1000
SHOWN = 50
MOST_BYTES = 10 * 1024 * 1024
MOST_LINE = 4096
MOST_RECIPIENTS = 100
END = b".\r\n"
_NUMBER = re.compile(r"[0-9]{1,15}")
_MAILBOX = re.compile(r"(?:FROM|TO):\s*<([^<>\s]*)>", re.IGNORECASE)
_LEFT = "221 bye"
_PLAIN = {
    "EHLO": f"250-mail.test\r\n250 SIZE {MOST_BYTES}",
    "HELO": "250 mail.test",
    "NOOP": "250 still here",
    "QUIT": _LEFT,
}
_HUNG_UP = (
    ConnectionError,
    ValueError,
    asyncio.IncompleteReadError,
    asyncio.LimitOverrunError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """One mail as it came in."""

    n: int
    at: str
    sender: str
    recipients: tuple[str, ...]
    subject: str
    text: str
    size: int


class Mail:
    """Takes mail by SMTP while it is open, and shows it below `/mail/`, the newest first."""

    name = "mail"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._count = 0
        self._kept: deque[Letter] = deque(maxlen=REMEMBERED)

    @asynccontextmanager
    async def open(self, host: str) -> AsyncIterator[int]:
        """Take mail on a free port for as long as the block lasts; the port is given."""
        talks: set[asyncio.StreamWriter] = set()

        async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            talks.add(writer)
            # Whoever hangs up in the middle of a word has said nothing.
            with suppress(*_HUNG_UP):
                await _Talk(self, reader, writer).go_on()
            talks.discard(writer)
            writer.close()

        server = await asyncio.start_server(meet, host, 0, limit=MOST_LINE)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            for writer in talks:
                writer.transport.abort()

    def take(self, sender: str, recipients: tuple[str, ...], body: bytes) -> Letter:
        """Keep a mail."""
        self._count += 1
        subject, text = _read(body)
        letter = Letter(
            n=self._count,
            at=self._clock.now().isoformat(),
            sender=clean(sender),
            recipients=tuple(map(clean, recipients)),
            subject=subject,
            text=text,
            size=len(body),
        )
        self._kept.append(letter)
        return letter

    def owns(self, path: str) -> bool:
        """Say whether a path is this site's."""
        return path == "/mail/"

    async def answer(self, request: Request) -> Response:
        """Show what came."""
        if request.method not in {"GET", "HEAD"}:
            return PlainTextResponse("Method Not Allowed", 405, {"allow": "GET, HEAD"})
        rows = "".join(_row(one) for one in [*self._kept][: -SHOWN - 1 : -1])
        return HTMLResponse(read_template("mail.html").substitute(rows=rows))

    def truth(self, query: Mapping[str, str]) -> Any:
        """Tell what came, perhaps only after a number."""
        after = query.get("after", "0")
        if not _NUMBER.fullmatch(after):
            raise BadInput("after is a whole number")
        mails = [asdict(one) for one in self._kept if one.n > int(after)]
        return {"count": self._count, "mails": mails}

    def refusal(self) -> Response:
        """Make the page this site shows when it blocks somebody."""
        return PlainTextResponse("Forbidden", 403)


class _Talk:
    """One connection: as much of RFC 5321 as a client without extensions needs."""

    def __init__(
        self, mail: Mail, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._mail = mail
        self._reader = reader
        self._writer = writer
        self._sender: str | None = None
        self._recipients: list[str] = []

    async def go_on(self) -> None:
        """Answer commands until the other side leaves."""
        reply = "220 mail.test simulated mail"
        while True:
            self._writer.write(f"{reply}\r\n".encode())
            await self._writer.drain()
            if reply == _LEFT:
                return
            line = (await self._reader.readuntil(b"\n")).decode(errors="replace").strip()
            reply = await self._answer(line)

    async def _answer(self, line: str) -> str:
        word, _, rest = line.partition(" ")
        match word.upper():
            case "MAIL" | "RCPT" as told:
                return self._address(told, rest)
            case "DATA":
                return await self._data()
            case "RSET":
                self._forget()
                return "250 forgotten"
            case other:
                return _PLAIN.get(other, "502 not known here")

    def _address(self, word: str, rest: str) -> str:
        found = _MAILBOX.match(rest)
        if found is None:
            return "501 write <address>"
        if word == "MAIL":
            self._forget()
            self._sender = found[1]
        elif self._sender is None:
            return "503 MAIL comes first"
        elif len(self._recipients) >= MOST_RECIPIENTS:
            return "452 too many recipients"
        else:
            self._recipients.append(found[1])
        return "250 good"

    async def _data(self) -> str:
        if self._sender is None or not self._recipients:
            return "503 MAIL and RCPT come first"
        self._writer.write(b"354 end with a full stop\r\n")
        await self._writer.drain()
        body = bytearray()
        while (line := await self._reader.readuntil(b"\n")) != END:
            # A full stop at the start of a line was put before it by the client.
            body += line[1:] if line.startswith(b".") else line
            if len(body) > MOST_BYTES:
                raise ValueError("too large a mail")
        letter = self._mail.take(self._sender, tuple(self._recipients), bytes(body))
        self._forget()
        return f"250 taken as {letter.n}"

    def _forget(self) -> None:
        self._sender, self._recipients = None, []


def _read(body: bytes) -> tuple[str, str]:
    """Return a mail's subject and its text; of what cannot be read, nothing."""
    try:
        message = BytesParser(policy=policy.default).parsebytes(body)
        part = message.get_body(("plain",))
        text = part.get_content() if part is not None else ""
        return one_line(str(message["Subject"] or ""), most=500), clean(str(text))
    except (MessageError, LookupError, ValueError, AttributeError):
        return "", ""


def _row(one: Letter) -> str:
    head = f"{one.n} · {one.at} · {one.sender} → {', '.join(one.recipients)}"
    return (
        f"<article><h2>{escape(one.subject)}</h2><p>{escape(head)}</p>"
        f"<pre>{escape(one.text)}</pre></article>"
    )
