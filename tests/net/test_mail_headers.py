"""Whatever a title or a name holds, a mail has the headers that we wrote, and no others."""

from dataclasses import replace
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP

import pytest

from mimawari.errors import BadInput
from mimawari.kernel.clock import RealClock
from mimawari.net.envelope import Envelope, Refused, subject_of
from mimawari.net.mail import send
from mimawari.net.notify import Message, recipients_of
from mimawari.net.notify import send as notify
from mimawari.settings import DEFAULTS, Settings
from mimawari.settings.mail import is_mail_address
from mimawari.watches.books.digest import Book, Section, write_digest
from tests.books.newsletter import PLAIN, a_digest
from tests.net.post_office import ANN, SENDER, Office, a_mail, do_nothing, open_office, plain

SHOWN = {
    "a\r\nBcc: eve@example.org\r\n\r\nHello": "a Bcc: eve@example.org Hello",
    "a\nX: y\rZ: w": "a X: y Z: w",
    "a\x00b\x1b[31m\x9b0m": "a\ufffdb\ufffd[31m\ufffd0m",
    "half \ud83d letter": "half \ufffd letter",
    "line\u2028after\u2029line": "line after line",
    "\u202etxt.exe\u202c \u2066x\u2069": "\ufffdtxt.exe\ufffd \ufffdx\ufffd",
    "=?utf-8?q?a=0D=0ABcc:_eve@example.org?=": "=\u200b?utf-8?q?a=0D=0ABcc:_eve@example.org?=",
    "=?utf-8?b?QmNjOiBldmVAZXhhbXBsZS5vcmc=?=": (
        "=\u200b?utf-8?b?QmNjOiBldmVAZXhhbXBsZS5vcmc=\u200b?="
    ),
    "題 =?nosuch?q?x?= 題": "題 =\u200b?nosuch?q?x?= 題",
    'a, <b@example.org>; "c" (d)': 'a, <b@example.org>; "c" (d)',
    "Bcc: eve@example.org": "Bcc: eve@example.org",
    "題" * 10_000: "題" * 199 + "…",
    "x" * 10_000: "x" * 199 + "…",
    "👨‍👩‍👧 🏳️‍🌈": "👨‍👩‍👧 🏳️‍🌈",
    " ": "",
}
HOSTILE = list(SHOWN)
BODY = ["Content-Type", "Content-Transfer-Encoding", "MIME-Version"]
ADDRESSES = [
    "ann@example.com\r\nRCPT TO:<eve@example.org>",
    "ann@example.com>\r\nDATA",
    "ann@example.com\n",
    "ann@example.com,eve@example.org ",
    "<ann@example.com>",
    "Ann <ann@example.com>",
    "ann@example.com> SIZE=1",
    '"ann\r\n"@example.com',
    "ann@example.com\x00",
    "ann@exa\u202emple.com",
    "=?utf-8?q?ann?=@example.com\ud800",
    "ann@" + "x" * 300 + ".com",
]


def settings_for(office: Office) -> Settings:
    given = {
        "smtp_host": "127.0.0.1",
        "smtp_port": office.port,
        "smtp_security": "none",
        "mail_from": SENDER,
    }
    return DEFAULTS.model_copy(update=given)


def read(office: Office) -> EmailMessage:
    """Read the mail that came, whose every line must be one that a server takes."""
    [taken] = office.mails
    assert (taken.sender, taken.recipients) == (SENDER, [ANN])
    assert max(map(len, taken.content.split(b"\r\n"))) <= 998
    assert taken.content.isascii()
    return message_from_bytes(taken.content, policy=SMTP)


@pytest.mark.parametrize("title", HOSTILE)
async def test_a_notification_has_a_readable_subject_and_no_header_of_a_title(title: str) -> None:
    async with open_office() as office:
        message = Message(id="1", title=title, body=f"{title}\r\n.\r\nQUIT\r\n{title}")
        report = await notify(f"mailto:{ANN}", message, settings_for(office), RealClock())
        assert report.is_sent, report.error
        got = read(office)
    assert got.keys() == ["Subject", "From", "To", "Message-ID", *BODY]
    assert str(got["Subject"]) == SHOWN[title]
    assert (str(got["From"]), str(got["To"])) == (SENDER, ANN)
    assert got["Message-ID"] == "<notify-1@example.org>"
    assert ".\nQUIT\n" in str(got.get_content()).replace("\r\n", "\n")


@pytest.mark.parametrize("text", HOSTILE)
async def test_a_digest_has_the_headers_of_a_digest_whatever_its_books_are_called(
    text: str,
) -> None:
    book = Book(title=text, subtitle=text, authors=(text,), publisher=text, description=text)
    digest = replace(a_digest(), sections=(Section(name=text, books=(book, PLAIN)),))
    message = write_digest(digest)
    envelope = Envelope(sender=SENDER, recipients=(ANN,), message=message)
    async with open_office() as office:
        await send(plain(office), envelope, do_nothing)
        got = read(office)
    own = ["Date", "From", "To", "Subject", "Message-ID", "Auto-Submitted"]
    own += ["List-Unsubscribe", "List-Unsubscribe-Post"]
    assert [key for key in got if key not in {"MIME-Version", "Content-Type"}] == own
    assert str(got["Subject"]) == "新着図書 2冊 (2026-11-16)"
    assert got["List-Unsubscribe"] == "<https://example.org/stop?to=ann>"


@pytest.mark.parametrize("name", ["Subject", "X-Title"])
async def test_a_mail_with_a_line_break_in_a_header_is_refused_before_it_is_sent(name: str) -> None:
    """The last look, whoever wrote the mail: a header that is decoded may hold a line break."""
    message = a_mail()
    del message[name]
    message[name] = "=?utf-8?q?a=0D=0ABcc:_eve@example.org?="
    async with open_office() as office:
        envelope = Envelope(sender=SENDER, recipients=(ANN,), message=message)
        with pytest.raises(Refused, match="holds a line break; write it on one line"):
            await send(plain(office), envelope, do_nothing)
        assert office.mails == []


@pytest.mark.parametrize("address", ADDRESSES)
def test_what_is_no_plain_address_reaches_no_server(address: str) -> None:
    assert not is_mail_address(address)
    with pytest.raises(BadInput):
        recipients_of(f"mailto:{address}")
    for sender, recipient in ((address, ANN), (SENDER, address)):
        with pytest.raises(Refused) as caught:
            Envelope(sender=sender, recipients=(recipient,), message=a_mail())
        assert address not in str(caught.value)
        with pytest.raises(BadInput):
            replace(a_digest(), sender=sender, recipients=(recipient,))
    with pytest.raises(BadInput):
        replace(a_digest(), unsubscribe=address)


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/stop>\r\nBcc: eve@example.org",
        "https://example.org/<x>",
        "https://example.org/ x",
        "https://example.org/\x00",
        "http://example.org/",
        "mailto:ann@example.com?bcc=eve@example.org",
    ],
)
def test_an_address_to_unsubscribe_that_would_break_its_header_is_refused(url: str) -> None:
    with pytest.raises(BadInput):
        replace(a_digest(), unsubscribe=url)


def test_an_ordinary_subject_is_left_as_it_is() -> None:
    for text in ("見回り: 値下げ (3)", "Mimawari: 2 events", "a = ?b"):
        assert subject_of(text) == text
