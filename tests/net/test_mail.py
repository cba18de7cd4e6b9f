"""Mail: whole, once, secure, and to those whom the server takes."""

from email import message_from_bytes
from email.policy import SMTP
from typing import Any

import pytest
from structlog.testing import capture_logs

from mimawari.errors import BadInput, JobError, Transient
from mimawari.net.envelope import Envelope, Refusal, Refused, Relay, relay_of
from mimawari.net.mail import MOST_BYTES, send
from mimawari.settings import DEFAULTS
from mimawari.settings.mail import Security
from tests.net.post_office import (
    ANN,
    BEN,
    PASSWORD,
    SENDER,
    Both,
    Commit,
    Office,
    a_mail,
    an_envelope,
    do_nothing,
    open_office,
    plain,
    secure,
)
from tests.net.sockets import free_port


async def test_a_mail_arrives_as_it_was_written(office: Office) -> None:
    message = a_mail()
    sent = await send(plain(office), an_envelope(message, (ANN, BEN)), do_nothing)
    (taken,) = office.mails
    assert (sent.reply, sent.refused) == ("queued as 42", ())
    assert (taken.sender, taken.recipients) == (SENDER, [ANN, BEN])
    assert taken.content == message.as_bytes(policy=SMTP)
    assert office.names == ["[127.0.0.1]"]


@pytest.mark.parametrize(
    "text",
    [
        "x\n",
        ".\n",
        "..\n",
        ".\n.\n\n..a\nb.\n",
        "a\r\n.\r\nb\n",
        "a\r.b\r.\n",
        "no end",
        "",
        "新着図書\n.\n",
    ],
    ids=repr,
)
@pytest.mark.parametrize("is_raw", [False, True])
async def test_no_line_ends_a_mail_early_or_is_changed(
    office: Office, text: str, *, is_raw: bool
) -> None:
    message = a_mail(text)
    if is_raw and text.isascii():
        message.set_payload(text)
    await send(plain(office), an_envelope(message), do_nothing)
    content = office.mails[0].content
    assert content.count(b"\n") == content.count(b"\r\n") == content.count(b"\r")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    got = message_from_bytes(content, policy=SMTP).get_content().replace("\r\n", "\n")
    assert got.rstrip("\n") == "\n".join(lines).rstrip("\n")


async def test_an_attachment_arrives_byte_for_byte(office: Office) -> None:
    attached = b".\n..\r\n.\r.\r\n\x00\xff" * 1000
    message = a_mail()
    message.add_attachment(attached, maintype="application", subtype="octet-stream")
    await send(plain(office), an_envelope(message), do_nothing)
    (part,) = message_from_bytes(office.mails[0].content, policy=SMTP).iter_attachments()
    assert part.get_content() == attached


async def test_japanese_passes_servers_of_seven_bits(office: Office) -> None:
    message = a_mail("本が 12 冊あります。\n", "新着図書 12冊 (2026-11-16)")
    message.replace_header("From", f"新着図書 <{SENDER}>")
    message["Bcc"] = BEN
    await send(plain(office), an_envelope(message), do_nothing)
    content = office.mails[0].content
    assert content.isascii()
    got = message_from_bytes(content, policy=SMTP)
    assert (got["Subject"], str(got["From"])) == (
        "新着図書 12冊 (2026-11-16)",
        f"新着図書 <{SENDER}>",
    )
    assert got.get_content() == "本が 12 冊あります。\n"
    assert got["Bcc"] is None
    assert message["Bcc"] == BEN


@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_a_mail_goes_by_tls_and_the_password_too(
    certificate: Both, security: Security
) -> None:
    server, client = certificate
    given: dict[str, Any] = {"tls" if security == "tls" else "tls_context": server}
    async with open_office(**given, auth_require_tls=security != "tls") as office:
        await send(secure(office, client, security), an_envelope(), do_nothing)
    assert [(taken.user, taken.is_secure) for taken in office.mails] == [("ann", True)]
    assert office.logins == [("PLAIN", "ann")]


async def test_a_server_without_plain_is_told_the_password_by_login(certificate: Both) -> None:
    server, client = certificate
    async with open_office(tls_context=server, auth_exclude_mechanism=["PLAIN"]) as office:
        relay = secure(office, client)
        await send(relay, an_envelope(), do_nothing)
    assert office.logins == [("LOGIN", "ann")]


async def test_a_wrong_password_is_said_once_and_never_repeated(certificate: Both) -> None:
    server, client = certificate
    async with open_office(tls_context=server) as office:
        relay = secure(office, client, password="guess")
        with pytest.raises(Refused, match=r"refuses AUTH \(535\): check MIMAWARI_SMTP") as raised:
            await send(relay, an_envelope(), do_nothing)
    assert len(office.logins) == 1
    assert "guess" not in f"{raised.value}{raised.value!r}{relay}"


@pytest.mark.parametrize("security", ["starttls", "tls"])
@pytest.mark.parametrize("known", [True, False])
async def test_a_certificate_that_is_not_trusted_ends_it_before_any_password(
    certificate: Both, security: Security, *, known: bool
) -> None:
    server, client = certificate
    given: dict[str, Any] = {"tls" if security == "tls" else "tls_context": server}
    async with open_office(**given) as office:
        # A certificate for another name is as bad as one of an unknown authority.
        host, tls = ("127.0.0.1", client) if known else ("localhost", None)
        relay = secure(office, tls, security, host=host)
        commit = Commit()
        with pytest.raises(Transient, match="certificate that is not trusted"):
            await send(relay, an_envelope(), commit)
    assert (office.logins, office.mails, commit.count) == ([], [], 0)


async def test_a_server_without_tls_gets_neither_mail_nor_password(office: Office) -> None:
    relay = secure(office, None)
    with pytest.raises(Transient, match="offers no STARTTLS"):
        await send(relay, an_envelope(), do_nothing)
    relay = Relay(host="localhost", port=office.port, security="tls")
    with pytest.raises(Transient, match="does not speak TLS as it should"):
        await send(relay, an_envelope(), do_nothing)
    relay = secure(office, None, "none")
    with pytest.raises(Refused, match="a password is never sent without TLS"):
        await send(relay, an_envelope(), do_nothing)
    assert (office.logins, office.mails) == ([], [])


async def test_those_who_are_refused_are_told_and_the_others_get_the_mail(office: Office) -> None:
    office.refused = {BEN: f"550 5.1.1 <{BEN}> is unknown"}
    sent = await send(plain(office), an_envelope(recipients=(BEN, ANN)), do_nothing)
    assert sent.refused == (
        Refusal(recipient=BEN, code=550, reason="5.1.1 <…@example.net> is unknown"),
    )
    assert [taken.recipients for taken in office.mails] == [[ANN]]


@pytest.mark.parametrize(
    ("codes", "error"), [((550, 553), Refused), ((550, 451), Transient), ((450, 451), Transient)]
)
async def test_a_mail_that_nobody_gets_is_tried_again_if_one_may_get_it_later(
    office: Office, codes: tuple[int, int], error: type[JobError]
) -> None:
    office.refused = {ANN: f"{codes[0]} no", BEN: f"{codes[1]} no"}
    commit = Commit()
    with pytest.raises(error, match=r"refuses RCPT \(.*\): every recipient: no"):
        await send(plain(office), an_envelope(recipients=(ANN, BEN)), commit)
    assert commit.count == 0


@pytest.mark.parametrize(
    ("sender", "recipients"),
    [
        ("", (ANN,)),
        (SENDER, ()),
        (SENDER, (ANN, "no address")),
        (SENDER, (f"{ANN}>\r\nRCPT TO:<eve@example.org",)),
        (SENDER, ("Ann <ann@example.com>",)),
        (SENDER, ("安@example.com",)),
        (f"{SENDER} SIZE=1", (ANN,)),
    ],
)
def test_addresses_that_no_server_takes_are_refused_and_not_repeated(
    sender: str, recipients: tuple[str, ...]
) -> None:
    with pytest.raises(Refused) as raised:
        Envelope(sender=sender, recipients=recipients, message=a_mail())
    assert "ann@" not in str(raised.value)


async def test_a_mail_without_a_message_id_or_of_too_many_bytes_is_refused() -> None:
    message = a_mail("x" * 70 + "\n")
    message.set_payload(("x" * 70 + "\n") * (MOST_BYTES // 72 + 1))
    relay = Relay(host="127.0.0.1", port=free_port(), security="none")
    with pytest.raises(Refused, match="larger than 10485760 bytes"):
        await send(relay, an_envelope(message), do_nothing)
    del message["Message-ID"]
    with pytest.raises(Refused, match="no Message-ID"):
        an_envelope(message)


def test_the_mail_server_is_the_one_that_is_set() -> None:
    assert relay_of(DEFAULTS) is None
    given = DEFAULTS.model_copy(update={"smtp_host": "smtp.example", "smtp_user": "ann"})
    with pytest.raises(BadInput, match="MIMAWARI_MAIL_FROM is empty"):
        relay_of(given)
    found = relay_of(given.model_copy(update={"mail_from": SENDER}))
    assert found == Relay(host="smtp.example", port=587, security="starttls", user="ann")


async def test_the_log_tells_of_a_mail_without_names_or_the_password(certificate: Both) -> None:
    server, client = certificate
    with capture_logs() as lines:
        async with open_office(tls_context=server) as office:
            office.refused = {BEN: f"550 {BEN} is unknown"}
            envelope = an_envelope(recipients=(ANN, BEN))
            await send(secure(office, client), envelope, do_nothing)
    (line,) = [line for line in lines if line["component"] == "mail"]
    assert (line["event"], line["recipients"], line["refused"]) == ("mail sent", 2, 1)
    assert line["domains"] == ["example.com", "example.net"]
    for secret in ("ann@", "ben@", PASSWORD):
        assert secret not in str(lines)
