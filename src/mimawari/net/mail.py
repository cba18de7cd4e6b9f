"""Sends mail by SMTP such that a crash neither loses nor doubles one.

The mail server is the operator's own setting, so it is trusted like the database's address: the
guard is not asked, and the server may well stand on this machine.
"""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from copy import copy
from datetime import timedelta
from email.message import EmailMessage
from typing import cast

import structlog
from aiosmtplib import (
    SMTP,
    SMTPException,
    SMTPRecipientRefused,
    SMTPResponseException,
    SMTPServerDisconnected,
    SMTPStatus,
)
from aiosmtplib.protocol import SMTPProtocol

from mimawari.errors import Transient
from mimawari.net.envelope import Envelope, Refusal, Refused, Relay, Sent, Unconfirmed
from mimawari.text import one_line

MOST_BYTES = 10 * 1024 * 1024
FAREWELL_FOR = timedelta(seconds=5)
DOMAINS_SHOWN = 5

_FOR_NOW, _FOR_GOOD = range(400, 500), range(500, 600)
"""What a server answers that refuses."""
_HEADER = re.compile(rb"^([^ \t\r\n][^:\r\n]*)", re.MULTILINE)
_DOT = re.compile(rb"^\.", re.MULTILINE)
_LOCAL_PART = re.compile(r"[^\s<>()@:;,\"']{1,64}@")

Commit = Callable[[], Awaitable[None]]

log = structlog.get_logger(component="mail")


async def send(
    relay: Relay, envelope: Envelope, before_end: Commit, at_end: Callable[[], None] | None = None
) -> Sent:
    """Send a mail, with `before_end` awaited when all of it but its end is with the server.

    There the caller commits that the mail is sent: whoever dies before has sent nothing, and
    afterwards a single short line is left to write. Whoever is cancelled meanwhile still
    writes it if the commit went well. `at_end` is called when nothing but that line is left.

    Raises Transient or Refused when nothing was delivered, so that a commit made must be taken
    back, and Unconfirmed when nobody knows, so that the mail must not be sent again unasked.
    What `before_end` raises is raised on, and nothing was delivered.
    """
    body = _flatten(envelope.message)
    talk = _Talk(relay)
    try:
        refused = await talk.begin(envelope, body)
        sent = Sent(reply=await talk.end(before_end, at_end), refused=refused)
        _tell(relay, envelope, sent)
        await talk.leave()
    finally:
        talk.close()
    return sent


async def greet(relay: Relay) -> None:
    """Speak to a mail server up to where a mail would begin, or raise what is in the way."""
    talk = _Talk(relay)
    try:
        await talk.greet()
        await talk.leave()
    finally:
        talk.close()


def _tell(relay: Relay, envelope: Envelope, sent: Sent) -> None:
    domains = sorted({one.rpartition("@")[2].lower() for one in envelope.recipients})
    log.info(
        "mail sent", what="mail", id=str(envelope.message["Message-ID"]), host=relay.host,
        recipients=len(envelope.recipients), domains=domains[:DOMAINS_SHOWN],
        refused=len(sent.refused), result="sent", reply=sent.reply,
    )  # fmt: skip


def _flatten(message: EmailMessage) -> bytes:
    """Write a mail as it goes over the wire, but for its end: dots stuffed, every line ended."""
    bare = copy(message)
    # Whom it is hidden from would read there who gets it too.
    del bare["Bcc"]
    # Seven bits pass every server, and the message's own policy knows how long its lines may be.
    policy = message.policy.clone(linesep="\r\n", cte_type="7bit")
    written = bare.as_bytes(policy=policy)
    if _HEADER.findall(written.partition(b"\r\n\r\n")[0]) != [key.encode() for key in bare]:
        raise Refused("a header of the mail holds a line break; write it on one line")
    whole = _DOT.sub(b"..", written)
    whole = whole if whole.endswith(b"\r\n") else whole + b"\r\n"
    if len(whole) > MOST_BYTES:
        raise Refused(f"the mail is larger than {MOST_BYTES} bytes; send less at once")
    return whole


class _Talk:
    """One conversation with a mail server, from the greeting to the farewell."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._step = "the connection"
        self._smtp = SMTP(hostname=relay.host, timeout=None, start_tls=False)
        self._protocol = SMTPProtocol()
        self._transport: asyncio.Transport | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._is_ended = False

    async def greet(self) -> None:
        """Connect, and log in where that is set, within the deadline."""
        async with self._within_deadline():
            await self._connect()
            await self._greet()

    async def begin(self, envelope: Envelope, body: bytes) -> tuple[Refusal, ...]:
        """Bring all of a mail but its end to the server, within the deadline."""
        async with self._within_deadline():
            await self._connect()
            await self._greet()
            refused = await self._address(envelope, len(body))
            await self._write(body)
        return refused

    @asynccontextmanager
    async def _within_deadline(self) -> AsyncIterator[None]:
        """Take what goes wrong for one of our errors, and too long a time for one too."""
        seconds = self._relay.deadline_for.total_seconds()
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError as error:
            raise self._failed(f"took longer than {seconds:g} s") from error
        except SMTPResponseException as error:
            raise self._refused(error.code, error.message) from error
        except ssl.SSLCertVerificationError as error:
            words = error.verify_message or "it does not verify"
            raise self._failed(f"shows a certificate that is not trusted: {words}") from error
        except ssl.SSLError as error:
            words = error.reason or type(error).__name__
            hint = "check that MIMAWARI_SMTP_SECURITY fits MIMAWARI_SMTP_PORT"
            raise self._failed(f"does not speak TLS as it should ({words}); {hint}") from error
        except (OSError, SMTPException) as error:
            raise self._failed(f"could not be spoken to: {_words(str(error))}") from error

    async def end(self, before_end: Commit, at_end: Callable[[], None] | None) -> str:
        """Let the caller commit, end the mail, and return what the server says to it."""
        is_stopped = await _see_through(before_end)
        self._step = "the whole mail"
        if at_end is not None:
            at_end()
        try:
            self._protocol.write(b".\r\n")
        except SMTPServerDisconnected as error:
            raise self._failed("was lost before the mail was ended") from error
        self._is_ended = True
        if is_stopped:
            raise asyncio.CancelledError
        seconds = self._relay.reply_for.total_seconds()
        try:
            reply = await self._protocol.read_response(timeout=seconds)
        except (OSError, SMTPException) as error:
            raise self._unconfirmed(_words(str(error))) from error
        if reply.code in _FOR_NOW or reply.code in _FOR_GOOD:
            raise self._refused(reply.code, reply.message)
        if reply.code != SMTPStatus.completed:
            raise self._unconfirmed(f"it answered {reply.code}")
        return _words(reply.message)

    async def leave(self) -> None:
        """Say farewell, though nothing depends on it any more."""
        with suppress(OSError, SMTPException):
            async with asyncio.timeout(FAREWELL_FOR.total_seconds()):
                await self._smtp.quit()

    def close(self) -> None:
        """Close the connection; a mail that was not ended is thrown away by the server."""
        if self._transport is not None:
            # Closing still brings the end of a mail to the server; aborting brings nothing.
            (self._transport.close if self._is_ended else self._transport.abort)()

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        context = self._relay.tls
        if context is None:
            context = await asyncio.to_thread(ssl.create_default_context)
        is_tls = self._relay.security == "tls"
        transport, _ = await loop.create_connection(
            # What comes before TLS is from nobody knows whom, and goes to nobody.
            asyncio.Protocol if is_tls else lambda: self._protocol,
            self._relay.host,
            self._relay.port,
        )
        # What was flushed is with the system, which sends it though we die.
        transport.set_write_buffer_limits(high=0)
        self._transport = transport
        if is_tls:
            self._step = "TLS"
            self._protocol.connection_made(transport)
            self._protocol.transport = await loop.start_tls(
                transport, self._protocol, context, server_hostname=self._relay.host
            )
            self._secured()
        self._smtp.local_hostname, self._smtp.tls_context = _own_name(transport), context
        self._smtp.protocol, self._smtp.transport = self._protocol, self._transport

    async def _greet(self) -> None:
        self._step = "the greeting"
        greeting = await self._protocol.read_response()
        if greeting.code != SMTPStatus.ready:
            raise SMTPResponseException(greeting.code, greeting.message)
        await self._ehlo()
        if self._relay.security == "starttls":
            await self._start_tls()
        if self._relay.user:
            await self._log_in()

    async def _ehlo(self) -> None:
        self._step = "EHLO"
        await self._smtp.ehlo()

    async def _start_tls(self) -> None:
        self._step = "STARTTLS"
        if not self._smtp.supports_extension("starttls"):
            raise self._failed("offers no STARTTLS; set MIMAWARI_SMTP_SECURITY to what it offers")
        await self._smtp.starttls()
        self._secured()
        await self._ehlo()

    def _secured(self) -> None:
        self._transport = cast("asyncio.Transport", self._protocol.transport)
        # At zero the layer of TLS would take an empty buffer for a full one.
        self._transport.set_write_buffer_limits(high=1, low=0)

    async def _log_in(self) -> None:
        """Say user and password once: a server locks out who tries a wrong one in many ways."""
        self._step = "AUTH"
        if self._smtp.get_transport_info("sslcontext") is None:
            raise Refused(
                "a password is never sent without TLS; set MIMAWARI_SMTP_SECURITY to starttls or"
                " tls, or unset MIMAWARI_SMTP_USER"
            )
        methods = self._smtp.server_auth_methods
        if not {"plain", "login"} & set(methods):
            raise self._failed("takes no password by PLAIN or LOGIN; unset MIMAWARI_SMTP_USER")
        say = self._smtp.auth_plain if "plain" in methods else self._smtp.auth_login
        try:
            await say(self._relay.user, self._relay.password.get_secret_value())
        except SMTPResponseException as error:
            # What the server says may hold what it was told.
            hint = "check MIMAWARI_SMTP_USER and MIMAWARI_SMTP_PASSWORD"
            raise self._refused(error.code, hint) from None

    async def _address(self, envelope: Envelope, size: int) -> tuple[Refusal, ...]:
        self._step = "MAIL"
        options = [f"SIZE={size}"] if self._smtp.supports_extension("size") else []
        await self._smtp.mail(envelope.sender, options=options)
        self._step = "RCPT"
        refused = []
        for recipient in envelope.recipients:
            try:
                await self._smtp.rcpt(recipient)
            except SMTPRecipientRefused as error:
                reason = _words(error.message)
                refused.append(Refusal(recipient=recipient, code=error.code, reason=reason))
        if len(refused) == len(envelope.recipients):
            # One who may be taken later is reason enough to try again.
            mildest = min(refused, key=lambda one: one.code)
            raise self._refused(mildest.code, f"every recipient: {mildest.reason}")
        return tuple(refused)

    async def _write(self, body: bytes) -> None:
        self._step = "DATA"
        reply = await self._smtp.execute_command(b"DATA")
        if reply.code != SMTPStatus.start_input:
            raise SMTPResponseException(reply.code, reply.message)
        self._step = "the mail"
        transport = cast("asyncio.Transport", self._transport)
        # It is kept, because one that is forgotten closes the connection.
        self._writer = asyncio.StreamWriter(
            transport, self._protocol, None, asyncio.get_running_loop()
        )
        # Beneath TLS there is a buffer that nobody can wait for, but what comes behind it waits
        # until it is empty: so the last line end comes by itself.
        for piece in (body[:-2], body[-2:]):
            self._protocol.write(piece)
            await self._writer.drain()
        if not self._protocol.is_connected:
            raise SMTPServerDisconnected("it closed the connection")

    def _failed(self, words: str) -> Transient:
        return Transient(f"the mail server {self._relay.host} {words} (at {self._step})")

    def _refused(self, code: int, words: str) -> Refused | Transient:
        said = f"the mail server {self._relay.host} refuses {self._step} ({code}): {_words(words)}"
        if code in _FOR_GOOD:
            return Refused(said, code="mail_refused")
        return Transient(said)

    def _unconfirmed(self, words: str) -> Unconfirmed:
        return Unconfirmed(
            f"the mail server {self._relay.host} got the whole mail and did not say what became"
            f" of it ({words}): it may have been delivered, and is not sent again",
            code="mail_unconfirmed",
        )


async def _see_through(before_end: Commit) -> bool:
    """Wait until the caller has committed, come what may; say whether we were told to stop."""
    commit = asyncio.ensure_future(before_end())
    is_stopped = False
    while not commit.done():
        try:
            await asyncio.wait({commit})
        except asyncio.CancelledError:
            # Half a commit would leave a mail that is sent in the books and nowhere else.
            is_stopped = True
    commit.result()
    return is_stopped


def _own_name(transport: asyncio.Transport) -> str:
    """Name this machine by its address, for which nobody has to be asked (RFC 5321, 4.1.3)."""
    address = str(transport.get_extra_info("sockname")[0]).partition("%")[0]
    return f"[IPv6:{address}]" if ":" in address else f"[{address}]"


def _words(text: str) -> str:
    """Return what a server says on one line, without anybody's name before an @."""
    return one_line(_LOCAL_PART.sub("…@", text), most=200)
