"""A connection has a deadline in each of its phases, and a full listener still takes new ones."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from mimawari.app.http.connections import Connections, Deadlines
from mimawari.app.http.edge import Message, Receive, Send
from mimawari.app.http.listening import listen, start

QUICK = Deadlines(idle=0.6, headers=0.4, body=0.5, stalled=0.6, sweep=0.05)
BOUND_SECONDS = 10.0
HALF_HEADERS = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
WHOLE = HALF_HEADERS + b"\r\n"
HALF_BODY = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{"

Open = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


async def answer(scope: Message, receive: Receive, send: Send) -> None:
    """Read the whole request; answer at once, in megabytes or in a stream that never ends."""
    if scope["type"] != "http":
        return
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        if not message.get("more_body"):
            break
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while scope["path"] == "/stream":
        await send({"type": "http.response.body", "body": b"event", "more_body": True})
        await asyncio.sleep(0.2)
    body = b"x" * 50_000_000 if scope["path"] == "/large" else b"here"
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def served(most: int = 1000) -> AsyncIterator[tuple[Open, Connections]]:
    """Serve on a free port with quick deadlines."""
    connections = Connections(most, QUICK)
    taken = listen("127.0.0.1", 0)
    port = taken.getsockname()[1]
    server, serving = start(answer, taken, connections=connections)
    writers = []

    async def connect() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writers.append(writer)
        return reader, writer

    try:
        yield connect, connections
    finally:
        for writer in writers:
            writer.transport.abort()
        server.should_exit = True
        await serving


async def rest(reader: asyncio.StreamReader) -> bytes:
    """Read until the server closes."""
    async with asyncio.timeout(BOUND_SECONDS):
        return await reader.read()


async def drip(writer: asyncio.StreamWriter) -> None:
    """Send a byte now and then, for ever."""
    with suppress(OSError):
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)


def check_timeout(response: bytes) -> None:
    """Insist on a 408 in the one form of all errors."""
    head, _, body = response.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    assert json.loads(body)["error"]["code"] == "timeout"


async def test_a_connection_that_says_nothing_is_closed() -> None:
    async with served() as (connect, _):
        reader, _ = await connect()
        assert await rest(reader) == b""


async def test_a_connection_that_says_nothing_after_a_response_is_closed() -> None:
    async with served() as (connect, _):
        reader, writer = await connect()
        writer.write(WHOLE)
        assert (await rest(reader)).startswith(b"HTTP/1.1 200 ")


async def test_headers_that_drip_in_are_refused_at_their_deadline() -> None:
    async with served() as (connect, _):
        reader, writer = await connect()
        writer.write(HALF_HEADERS)
        dripping = asyncio.create_task(drip(writer))
        check_timeout(await rest(reader))
        dripping.cancel()


async def test_a_body_that_drips_in_is_refused_at_its_deadline() -> None:
    async with served() as (connect, _):
        reader, writer = await connect()
        writer.write(HALF_BODY)
        dripping = asyncio.create_task(drip(writer))
        check_timeout(await rest(reader))
        dripping.cancel()


async def test_the_deadlines_begin_anew_with_each_request_of_a_connection() -> None:
    async with served() as (connect, _):
        reader, writer = await connect()
        for _ in range(3):
            writer.write(WHOLE[:20])
            await asyncio.sleep(0.25)
            writer.write(WHOLE[20:])
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 ")
            await reader.readuntil(b"0\r\n\r\n")


async def test_a_stream_of_events_outlives_every_deadline() -> None:
    async with served() as (connect, _):
        reader, writer = await connect()
        writer.write(WHOLE.replace(b"GET / ", b"GET /stream "))
        began = asyncio.get_running_loop().time()
        while asyncio.get_running_loop().time() - began < 3 * QUICK.idle:
            async with asyncio.timeout(BOUND_SECONDS):
                await reader.readuntil(b"event")


async def test_a_client_that_takes_nothing_of_its_response_is_cut_off() -> None:
    async with served() as (connect, connections):
        _, writer = await connect()
        writer.write(WHOLE.replace(b"GET / ", b"GET /large "))
        async with asyncio.timeout(BOUND_SECONDS):
            while len(connections) == 0:
                await asyncio.sleep(0.01)
            while len(connections):
                await asyncio.sleep(0.05)


async def test_a_full_listener_closes_who_was_silent_for_longest_and_takes_the_new_one() -> None:
    async with served(most=20) as (connect, connections):
        first, _ = await connect()
        streaming, writer = await connect()
        writer.write(WHOLE.replace(b"GET / ", b"GET /stream "))
        await streaming.readuntil(b"event")
        for _ in range(30):
            await connect()
        reader, writer = await connect()
        writer.write(WHOLE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert (await rest(reader)).startswith(b"HTTP/1.1 200 ")
        assert len(connections) <= 20
        assert await rest(first) == b""
        await streaming.readuntil(b"event")


async def test_what_is_not_http_is_refused_in_the_one_form_of_errors() -> None:
    async with served() as (connect, _):
        reader, writer = await connect()
        writer.write(b"what is this\r\n\r\n")
        head, _, body = (await rest(reader)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 ")
        assert json.loads(body)["error"]["code"] == "bad_request"
