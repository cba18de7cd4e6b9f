"""How the sending of a mail may end: at each step, by either side, and what is known then."""

import asyncio
import sys
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from mimawari.errors import BadInput, JobError, LeaseLost, Transient
from mimawari.net.envelope import Refused, Relay, Unconfirmed
from mimawari.net.mail import send
from mimawari.settings.mail import Security
from tests.net.post_office import (
    ANN,
    CLOSE,
    PATIENCE,
    SILENCE,
    Both,
    Commit,
    Office,
    Teller,
    a_mail,
    an_envelope,
    do_nothing,
    open_teller,
    plain,
    secure,
)
from tests.net.sockets import free_port, make_certificate


async def test_the_caller_commits_once_and_before_the_server_has_the_mail(office: Office) -> None:
    commit = Commit(office)
    await send(plain(office), an_envelope(), commit)
    assert (commit.count, commit.seen, len(office.mails)) == (1, [0], 1)


async def test_a_commit_that_fails_is_told_and_nothing_is_delivered(office: Office) -> None:
    lost = LeaseLost("it is somebody else's")
    with pytest.raises(LeaseLost) as raised:
        await send(plain(office), an_envelope(a_mail("never")), Commit(error=lost))
    assert raised.value is lost
    # The next mail proves that the server has thrown the first one away.
    await send(plain(office), an_envelope(a_mail("instead")), do_nothing)
    assert [b"instead" in taken.content for taken in office.mails] == [True]


STEPS = ["connect", "EHLO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA", "end"]


async def meet(step: str, reply: str, certificate: Both, commit: Commit) -> Teller:
    """Send a mail to a server that answers one step so."""
    server, client = certificate
    replies = {step: reply}
    if step == "STARTTLS":
        replies["EHLO"] = "250-here\r\n250 STARTTLS"
    async with open_teller(server if step == "AUTH" else None, **replies) as teller:
        relay = replace(plain(teller), host="localhost")
        if step in {"STARTTLS", "AUTH"}:
            relay = secure(teller, client, "tls" if step == "AUTH" else "starttls")
        try:
            await send(relay, an_envelope(), commit)
        finally:
            async with asyncio.timeout(PATIENCE):
                await teller.left.wait()
    return teller


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    ("code", "error"), [(421, Transient), (451, Transient), (500, Refused), (554, Refused)]
)
async def test_a_refusal_at_any_step_says_whether_to_try_again(
    certificate: Both, step: str, code: int, error: type[JobError]
) -> None:
    commit = Commit()
    with pytest.raises(error, match=rf"the mail server localhost refuses .* \({code}\)") as raised:
        await meet(step, f"{code} 4.2.0 busy <{ANN}>", certificate, commit)
    assert commit.count == (step == "end")
    assert "ann@" not in str(raised.value)
    assert type(raised.value) is error


@pytest.mark.parametrize("step", STEPS[:-1])
async def test_a_server_that_leaves_before_the_end_has_no_mail(
    certificate: Both, step: str
) -> None:
    with pytest.raises(Transient, match="the mail server localhost could not be spoken to: "):
        await meet(step, CLOSE, certificate, Commit())


async def test_a_server_that_leaves_while_the_caller_commits_has_no_mail() -> None:
    async with open_teller(body=CLOSE) as teller:

        async def commit() -> None:
            await teller.left.wait()
            # A greeting, which comes later, proves that the first one's end was noticed.
            reader, writer = await asyncio.open_connection("127.0.0.1", teller.port)
            with closing(writer):
                assert await reader.readline() == b"220 here\r\n"

        with pytest.raises(Transient, match="was lost before the mail was ended"):
            await send(plain(teller), an_envelope(), commit)
    assert not teller.has_ended


@pytest.mark.parametrize("reply", [CLOSE, "nonsense", "354 more", "999 what"])
async def test_a_server_that_gives_no_answer_to_a_whole_mail_leaves_it_unconfirmed(
    certificate: Both, reply: str
) -> None:
    commit = Commit()
    with pytest.raises(Unconfirmed, match="it may have been delivered, and is not sent again"):
        await meet("end", reply, certificate, commit)
    assert commit.count == 1


async def test_a_silent_server_is_left_after_the_deadline() -> None:
    brief = timedelta(milliseconds=200)
    async with open_teller(MAIL=SILENCE) as teller:
        with pytest.raises(Transient, match=r"took longer than 0.2 s \(at "):
            await send(replace(plain(teller), deadline_for=brief), an_envelope(), do_nothing)
    async with open_teller(end=SILENCE) as teller:
        with pytest.raises(Unconfirmed, match="Timed out"):
            await send(replace(plain(teller), reply_for=brief), an_envelope(), do_nothing)
    assert teller.has_ended


async def test_a_server_that_is_not_there_may_come_back() -> None:
    relay = Relay(host="127.0.0.1", port=free_port(), security="none")
    with pytest.raises(Transient, match=r"could not be spoken to: .* \(at the connection"):
        await send(relay, an_envelope(), do_nothing)


async def test_neither_error_is_tried_again_by_whoever_delivers() -> None:
    for error in (Refused, Unconfirmed):
        assert issubclass(error, JobError)
        assert issubclass(error, BadInput)
        assert not issubclass(error, Transient)


async def test_who_is_stopped_while_committing_still_ends_the_mail(office: Office) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()
    done = []

    async def commit() -> None:
        begun.set()
        await go_on.wait()
        done.append(True)

    task = asyncio.create_task(send(plain(office), an_envelope(), commit))
    await begun.wait()
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    await send(plain(office), an_envelope(a_mail("second")), do_nothing)
    assert (done, len(office.mails)) == ([True], 2)


PROGRAM = """
import asyncio, os, ssl, sys
from email.message import EmailMessage
from mimawari.net.mail import Envelope, Relay, send

async def die():
    os._exit(7)

message = EmailMessage()
message["Message-ID"] = "<digest-42@example.org>"
message.set_content("x", cte="7bit")
message.set_payload(("abc" * 300 + "\\n") * 10_000)
envelope = Envelope(sender="a@b.example", recipients=("c@d.example",), message=message)
tls = ssl.create_default_context(cafile=sys.argv[2])
relay = Relay(host="localhost", port=int(sys.argv[1]), security=sys.argv[3], tls=tls)
asyncio.run(send(relay, envelope, die))
"""
"""A program that dies when the mail is with the server, all but its end."""


@pytest.mark.parametrize("security", ["none", "tls"])
async def test_who_dies_while_committing_has_written_all_but_the_end(
    tmp_path: Path, security: Security
) -> None:
    server, _ = make_certificate(tmp_path, "localhost")
    async with open_teller(server if security == "tls" else None) as teller:
        words = (str(teller.port), str(tmp_path / "server.pem"), security)
        program = await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, *words)
        assert await program.wait() == 7
        async with asyncio.timeout(PATIENCE):
            await teller.left.wait()
    assert teller.body.count(b"abc" * 300 + b"\r\n") == 10_000
    assert not teller.has_ended
