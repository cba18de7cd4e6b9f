"""Sends webhooks: signed over the very bytes that go out, to public addresses, and no further.

Whoever receives one can tell by the signature that it is ours, by the time that it is no replay,
and by the event's id whether it came before.
"""

import asyncio
import hmac
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from hashlib import sha256

import httpx2

from mimawari import __version__
from mimawari.errors import BadInput, Transient
from mimawari.kernel.exchange import MOST_ANSWERED, MOST_SAID, Exchange, NotTaken
from mimawari.kernel.ports import Clock
from mimawari.net.guard import Guard
from mimawari.text import clean, one_line

DEADLINE = timedelta(seconds=10)
ANSWER_FOR = timedelta(seconds=1)
"""How long the body of an answer is waited for, which nothing depends on."""
MOST_LETTERS = 512
MOST_BYTES = 4 * MOST_ANSWERED
SIGNATURE, TIMESTAMP, EVENT_ID = "X-Signature-256", "X-Timestamp", "X-Event-Id"
TEST = "X-Mimawari-Test"
"""Marks what a person sends to try a receiver."""
_TAKEN, _REDIRECTS = range(200, 300), range(300, 400)
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """What is sent, and where; its id is the same over all attempts."""

    url: str
    body: bytes
    event_id: str
    deadline_for: timedelta = DEADLINE
    is_test: bool = False


def sign(key: bytes, timestamp: str, body: bytes) -> str:
    """Sign a body together with the time of sending it."""
    digest = hmac.new(key, timestamp.encode() + b"." + body, sha256)
    return f"sha256={digest.hexdigest()}"


async def check_callback(guard: Guard, url: str) -> None:
    """Refuse an address that could never be called: no https or http, or not a public one."""
    try:
        parsed = httpx2.URL(url) if len(url) <= MOST_LETTERS else None
    except (httpx2.InvalidURL, UnicodeError):
        parsed = None
    if parsed is None or parsed.scheme not in _PORTS or not parsed.host or parsed.userinfo:
        raise BadInput(
            "the callback is no address that can be called; give one like https://host/path,"
            f" without a password and of at most {MOST_LETTERS} letters",
            code="INVALID_URL",
        )
    port = _PORTS[parsed.scheme] if parsed.port is None else parsed.port
    await guard.addresses(parsed.host, port)


async def post(
    transport: httpx2.AsyncBaseTransport, hook: Hook, key: bytes, clock: Clock
) -> Exchange:
    """Send a webhook once and return what was said, answered 2xx; raise NotTaken for all else.

    Of a reply's body the beginning is kept; where a reply points to is not gone to.
    """
    timestamp = str(int(clock.now().timestamp()))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"mimawari/{__version__}",
        # What is kept of an answer is read as it comes.
        "Accept-Encoding": "identity",
        SIGNATURE: sign(key, timestamp, hook.body),
        TIMESTAMP: timestamp,
        EVENT_ID: hook.event_id,
        **({TEST: "1"} if hook.is_test else {}),
    }
    said = hook.body.decode(errors="replace")[:MOST_SAID]
    sent = Exchange(address=hook.url, headers=headers, body=said)
    since = clock.mark()
    try:
        status, answer = await _exchange(transport, hook, headers)
    except Transient as error:
        took_for = clock.mark().elapsed_since(since)
        raise NotTaken(str(error), replace(sent, took_for=took_for)) from error
    took_for = clock.mark().elapsed_since(since)
    told = replace(sent, status=status, answer=answer, took_for=took_for)
    if status in _REDIRECTS:
        raise NotTaken(f"the receiver answered {status}, which is not followed", told)
    if status not in _TAKEN:
        raise NotTaken(f"the receiver answered {status}", told)
    return told


async def _exchange(
    transport: httpx2.AsyncBaseTransport, hook: Hook, headers: Mapping[str, str]
) -> tuple[int, str]:
    """Return a reply's status and the beginning of its body, or raise why there is none."""
    seconds = hook.deadline_for.total_seconds()
    limits = dict.fromkeys(("connect", "read", "write", "pool"), seconds)
    try:
        request = httpx2.Request(
            "POST", hook.url, headers=headers, content=hook.body, extensions={"timeout": limits}
        )
        async with asyncio.timeout(seconds):
            response = await transport.handle_async_request(request)
    except (TimeoutError, httpx2.TimeoutException) as error:
        raise Transient(f"the receiver took longer than {seconds:g} s") from error
    except (httpx2.HTTPError, httpx2.InvalidURL, BadInput) as error:
        # An address that has moved to where nobody may be called fails like one that is down.
        said = one_line(str(error), most=200) or type(error).__name__
        raise Transient(f"the receiver could not be called: {said}") from error
    return response.status_code, await _read_some(response, min(ANSWER_FOR, hook.deadline_for))


async def _read_some(response: httpx2.Response, within: timedelta) -> str:
    """Read the beginning of a body; it has answered, so a body that is slow or broken is cut."""
    found = bytearray()
    with suppress(TimeoutError, httpx2.HTTPError, httpx2.StreamError):
        async with asyncio.timeout(within.total_seconds()):
            async for part in response.aiter_raw():
                found += part[:MOST_BYTES]
                if len(found) >= MOST_BYTES:
                    break
    with suppress(TimeoutError, httpx2.HTTPError):
        async with asyncio.timeout(within.total_seconds()):
            await response.aclose()
    return clean(found[:MOST_BYTES].decode(errors="replace"))[:MOST_ANSWERED]
