"""The simulated mail server: it takes what a client sends, and shows and tells it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from email.message import EmailMessage

import aiosmtplib
import httpx2
import pytest

from mimawari.errors import BadInput
from mimawari.kernel.clock import VirtualClock
from mimawari.net.envelope import Envelope, Relay
from mimawari.net.mail import send
from mimawari.sim.mail_server import MOST_LINE, Mail
from mimawari.sim.world import make_world

HOST = "127.0.0.1"
HOSTILE = '<script>alert(1)</script>" onload="x'


@pytest.fixture
def mail() -> Mail:
    return Mail(VirtualClock())


@pytest.fixture
async def port(mail: Mail) -> AsyncIterator[int]:
    async with mail.open(HOST) as port:
        yield port


def write(subject: str, text: str) -> EmailMessage:
    """Write a mail with a part in HTML beside its text."""
    message = EmailMessage()
    message["Subject"], message["Message-ID"] = subject, "<1@example.org>"
    message["From"], message["To"] = "books@example.org", "ann@example.com"
    message.set_content(text)
    message.add_alternative("<p>HTML</p>", subtype="html")
    return message


async def test_a_mail_of_our_own_client_is_kept_as_it_was_sent(mail: Mail, port: int) -> None:
    async def nothing() -> None:
        """Commit nothing."""

    envelope = Envelope(
        sender="books@example.org",
        recipients=("ann@example.com", "ben@example.net"),
        message=write("新しい本 3冊", "一行目\n.点で始まる行\n..二つ\n"),
    )
    sent = await send(Relay(host=HOST, port=port, security="none"), envelope, nothing)
    assert (sent.reply, sent.refused) == ("taken as 1", ())
    told = mail.truth({})
    assert told["count"] == 1
    (letter,) = told["mails"]
    assert letter["sender"] == "books@example.org"
    assert letter["recipients"] == ("ann@example.com", "ben@example.net")
    assert letter["subject"] == "新しい本 3冊"
    assert letter["text"].splitlines() == ["一行目", ".点で始まる行", "..二つ"]


async def test_two_mails_on_one_connection_are_two_and_can_be_asked_for_by_number(
    mail: Mail, port: int
) -> None:
    async with aiosmtplib.SMTP(hostname=HOST, port=port, start_tls=False) as client:
        for subject in ("one", "two"):
            await client.send_message(write(subject, "text"))
    assert [one["subject"] for one in mail.truth({"after": "1"})["mails"]] == ["two"]
    with pytest.raises(BadInput):
        mail.truth({"after": "x"})


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        (b"DATA\r\n", b"503"),
        (b"RCPT TO:<a@example.org>\r\n", b"503"),
        (b"MAIL FROM:nobody\r\n", b"501"),
        (b"VRFY a\r\n", b"502"),
        (b"HELO there\r\n", b"250"),
        (b"NOOP\r\n", b"250"),
        (b"RSET\r\n", b"250"),
        (b"QUIT\r\n", b"221"),
    ],
)
async def test_a_command_out_of_place_is_refused(port: int, said: bytes, reply: bytes) -> None:
    reader, writer = await asyncio.open_connection(HOST, port)
    assert (await reader.readline()).startswith(b"220")
    writer.write(said)
    assert (await reader.readline()).startswith(reply)
    writer.close()


async def test_who_hangs_up_or_never_ends_a_line_has_sent_nothing(mail: Mail, port: int) -> None:
    _, writer = await asyncio.open_connection(HOST, port)
    writer.write(b"MAIL FROM:<a@example.org>\r\nRCPT TO:<b@example.org>\r\nDATA\r\nhalf")
    await writer.drain()
    writer.close()
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(b"x" * (MOST_LINE * 4))
    await writer.drain()
    assert (await reader.readline()).startswith(b"220")
    with suppress(ConnectionError):
        assert await reader.read() == b""
    assert mail.truth({})["count"] == 0


async def test_the_world_shows_its_mail_and_hostile_words_stay_text() -> None:
    world = make_world(VirtualClock())
    world.find(Mail).take("a@example.org", ("b@example.org",), bytes(write(HOSTILE, HOSTILE)))
    transport = httpx2.ASGITransport(app=world)
    async with httpx2.AsyncClient(transport=transport, base_url="http://world.test") as http:
        page = (await http.get("/mail/")).text
        told = (await http.get("/_truth/mail")).json()
        assert (await http.post("/mail/")).status_code == 405
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert told["mails"][0]["subject"] == HOSTILE
