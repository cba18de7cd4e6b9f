"""Webhooks are signed over what goes out, are called at public addresses, and go no further."""

import hashlib
import hmac
import json
import shutil
import socket
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import httpx2
import pytest

from mimawari.errors import BadInput, Transient
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.exchange import MOST_ANSWERED, NotTaken
from mimawari.net.dial import Dialer, transport
from mimawari.net.guard import Forbidden, Guard
from mimawari.net.webhook import Hook, check_callback, post, sign
from tests.net.dns import PUBLIC, Dns
from tests.net.sockets import free_port, open_server

KEY = "鍵 of 署名".encode()
NOW = datetime(2026, 6, 1, 3, 0, 0, 900_000, tzinfo=UTC)
CLOCK = VirtualClock(NOW)
BODY = json.dumps({"event_type": "alert.blackout", "title": "配信"}, ensure_ascii=False).encode()


def out(*allow: str) -> httpx2.AsyncBaseTransport:
    """Make a way out that may reach this machine only where it is told."""
    return transport(Dialer(Guard(allow)))


def hook_to(port: int, host: str = "127.0.0.1") -> Hook:
    """Make up a webhook."""
    return Hook(url=f"http://{host}:{port}/hook?a=1", body=BODY, event_id="event-1")


def reply(status: str, *headers: str) -> bytes:
    """Write a reply without a body."""
    lines = (f"HTTP/1.1 {status}", *headers, "Content-Length: 0", "Connection: close", "", "")
    return "\r\n".join(lines).encode()


def verify(payload: bytes, signature: str, timestamp: str, secret: bytes) -> bool:
    """Check a signature as the description's receiver does, but for the time."""
    expected = hmac.new(secret, f"{timestamp}.".encode() + payload, hashlib.sha256).hexdigest()
    return hmac.compare_digest(f"sha256={expected}", signature)


async def test_the_receiver_can_verify_what_it_got() -> None:
    async with open_server(lambda _: reply("204 No Content")) as server:
        assert (await post(out("127.0.0.1"), hook_to(server.port), KEY, CLOCK)).status == 204
    head = server.heads[0].decode()
    headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
    assert head.startswith("POST /hook?a=1 HTTP/1.1")
    assert server.bodies == [BODY]
    assert headers["X-Timestamp"] == str(int(NOW.timestamp()))
    assert headers["X-Event-Id"] == "event-1"
    assert headers["Content-Type"] == "application/json"
    assert verify(server.bodies[0], headers["X-Signature-256"], headers["X-Timestamp"], KEY)
    assert not verify(server.bodies[0] + b" ", headers["X-Signature-256"], "1780282800", KEY)


def test_the_signature_is_what_others_compute() -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    command = ["openssl", "dgst", "-sha256", "-hmac", "secret", "-r"]
    said = subprocess.run(command, input=b"17." + BODY, capture_output=True, check=True).stdout
    assert sign(b"secret", "17", BODY) == f"sha256={said.split()[0].decode()}"


@pytest.mark.parametrize("status", ["199 Odd", "400 Bad", "404 Gone", "500 No", "503 Later"])
async def test_only_2xx_is_success(status: str) -> None:
    async with open_server(lambda _: reply(status)) as server:
        with pytest.raises(Transient, match="the receiver"):
            await post(out("127.0.0.1"), hook_to(server.port), KEY, CLOCK)


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 There", "308 There"])
async def test_redirects_are_not_followed(status: str) -> None:
    async with open_server(lambda _: reply("200 OK")) as other:
        place = f"Location: http://127.0.0.1:{other.port}/"
        async with open_server(lambda _: reply(status, place)) as server:
            with pytest.raises(Transient, match="not followed"):
                await post(out("127.0.0.1"), hook_to(server.port), KEY, CLOCK)
        assert other.heads == []


async def test_a_receiver_that_has_moved_to_this_machine_is_not_called() -> None:
    async with open_server(lambda _: reply("200 OK")) as server:
        with pytest.raises(Transient, match="could not be called"):
            await post(out(), hook_to(server.port, "localhost"), KEY, CLOCK)
        assert server.heads == []


async def test_a_receiver_that_is_down_or_speaks_nonsense_fails_for_now() -> None:
    with pytest.raises(Transient, match="could not be called"):
        await post(out("127.0.0.1"), hook_to(free_port()), KEY, CLOCK)
    async with open_server(lambda _: b"SSH-2.0-server\r\n\r\n") as server:
        with pytest.raises(Transient, match="could not be called"):
            await post(out("127.0.0.1"), hook_to(server.port), KEY, CLOCK)


async def test_a_receiver_that_is_silent_fails_for_now() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hook = hook_to(silent.getsockname()[1])
        hurried = replace(hook, deadline_for=timedelta(milliseconds=50))
        with pytest.raises(Transient, match=r"longer than 0\.05 s"):
            await post(out("127.0.0.1"), hurried, KEY, CLOCK)


async def test_of_a_large_reply_the_beginning_is_kept() -> None:
    large = b"HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n" + b"a" * 10_000_000
    async with open_server(lambda _: large) as server:
        said = await post(out("127.0.0.1"), hook_to(server.port), KEY, CLOCK)
    assert (said.status, said.answer) == (200, "a" * MOST_ANSWERED)


async def test_a_body_that_never_comes_keeps_nobody_from_having_answered() -> None:
    slow = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nso far"
    async with open_server(lambda _: slow) as server:
        hurried = replace(hook_to(server.port), deadline_for=timedelta(milliseconds=500))
        said = await post(out("127.0.0.1"), hurried, KEY, CLOCK)
    assert (said.status, said.answer) == (200, "so far")


async def test_what_was_said_to_and_fro_is_told_whether_it_was_taken_or_not() -> None:
    words = "なぜ\x00か".encode()
    refusal = b"HTTP/1.1 500 No\r\nContent-Length: %d\r\n\r\n%s" % (len(words), words)
    async with open_server(lambda _: refusal) as server:
        with pytest.raises(NotTaken) as raised:
            await post(out("127.0.0.1"), hook_to(server.port), KEY, CLOCK)
    said = raised.value.exchange
    assert (said.status, said.answer, said.took_for) == (500, "なぜ\ufffdか", timedelta(0))
    assert (said.address, said.body) == (hook_to(server.port).url, BODY.decode())
    assert said.headers["X-Event-Id"] == "event-1"
    assert verify(BODY, said.headers["X-Signature-256"], said.headers["X-Timestamp"], KEY)
    with pytest.raises(NotTaken) as raised:
        await post(out("127.0.0.1"), hook_to(free_port()), KEY, CLOCK)
    assert (raised.value.exchange.status, raised.value.exchange.answer) == (None, None)


async def test_a_test_is_marked_and_nothing_else_is() -> None:
    async with open_server(lambda _: reply("200 OK")) as server:
        for is_test in (True, False):
            hook = replace(hook_to(server.port), is_test=is_test)
            await post(out("127.0.0.1"), hook, KEY, CLOCK)
    assert ["X-Mimawari-Test: 1" in head.decode() for head in server.heads] == [True, False]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com/hook",
        "ftp://example.com/hook",
        "https://user:pass@example.com/hook",
        "https://",
        "https://example.com:99999/",
        f"https://example.com/{'x' * 600}",
    ],
)
async def test_a_callback_that_could_never_be_called_is_refused(url: str) -> None:
    with pytest.raises(BadInput):
        await check_callback(Guard(), url)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "10.0.0.1", "[::1]", "169.254.169.254"])
async def test_a_callback_that_is_not_public_is_refused(host: str) -> None:
    with pytest.raises(Forbidden):
        await check_callback(Guard(), f"http://{host}/hook")
    await check_callback(Guard(["127.0.0.1:8000"]), "http://127.0.0.1:8000/hook")


async def test_a_name_that_was_public_when_it_was_given_is_not_called_once_it_leads_inside() -> (
    None
):
    dns = Dns({"receiver.example": [[PUBLIC], ["127.0.0.1"]]})
    guard = Guard((), dns)
    async with open_server(lambda _: reply("200 OK")) as server:
        await check_callback(guard, f"http://receiver.example:{server.port}/hook")
        hook = hook_to(server.port, "receiver.example")
        for _ in range(4):
            with pytest.raises(Transient, match="could not be called"):
                await post(transport(Dialer(guard)), hook, KEY, CLOCK)
        assert server.heads == []
    assert len(dns.asked) == 5
