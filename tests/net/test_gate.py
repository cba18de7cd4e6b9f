"""The browser's connections pass the same guard, one by one and within bounds."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from datetime import timedelta

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimawari.errors import BadInput
from mimawari.kernel.clock import VirtualClock
from mimawari.net.dial import Dialer
from mimawari.net.gate import Bounds, Gate, Target, end_to_end, parse_target
from mimawari.net.guard import Guard
from mimawari.net.proxies import Egress, connect_probe
from tests.net.dns import FORBIDDEN, PUBLIC, Dns, hostile_dns
from tests.net.sockets import (
    ESTABLISHED,
    GREETING,
    MALFORMED,
    REPLIES,
    Trap,
    ask,
    free_port,
    is_full,
    open_connection,
    open_echo,
    open_proxy,
    open_server,
    open_trap,
    open_tunnel,
    read_head,
    status_of,
)

LOCAL = ["127.0.0.1", "::1"]


@pytest.fixture
async def trap() -> AsyncIterator[Trap]:
    async with open_trap() as trap:
        yield trap


def gate_for(*allow: str, bounds: Bounds | None = None) -> Gate:
    return Gate(Dialer(Guard(allow, resolve=hostile_dns())), bounds)


@pytest.mark.parametrize("host", FORBIDDEN)
async def test_no_tunnel_leads_to_this_machine(host: str, trap: Trap) -> None:
    async with gate_for() as gate:
        request = (
            f"CONNECT {host}:{trap.port} HTTP/1.1\r\nHost: {host}\r\n\r\nGET / HTTP/1.1\r\n\r\n"
        )
        reply = await ask(gate.address, request.encode())
    assert status_of(reply) in {400, 403}
    assert await trap.came() == 0


@pytest.mark.parametrize("host", FORBIDDEN)
async def test_no_plain_request_leads_to_this_machine(host: str, trap: Trap) -> None:
    async with gate_for() as gate:
        request = f"GET http://{host}:{trap.port}/ HTTP/1.1\r\nHost: site.example\r\n\r\n"
        reply = await ask(gate.address, request.encode())
    assert status_of(reply) in {400, 403}
    assert await trap.came() == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "loop.example", "[::1]", "10.0.0.1", "localhost"])
async def test_a_refusal_says_in_one_line_why(host: str) -> None:
    async with gate_for() as gate:
        reply = await ask(gate.address, f"CONNECT {host}:443 HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    head, _, body = reply.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 403 Forbidden\r\n")
    assert re.fullmatch(rb"[^\n]*MIMAWARI_ALLOW_HOSTS\n", body)


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost", "loop.example", "six.example"])
async def test_the_trap_is_reached_through_the_gate_once_it_is_opened(
    host: str, trap: Trap
) -> None:
    async with gate_for(*LOCAL) as gate:
        place = f"{host}:{trap.port}"
        reply = await ask(gate.address, f"GET http://{place}/ HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        assert reply.endswith(b"trap")
        async with open_tunnel(gate.address, place) as (reader, writer):
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            assert (await reader.read()).endswith(b"trap")
    assert await trap.came() == 2


async def test_an_opening_with_a_port_opens_only_that_port(trap: Trap) -> None:
    async with open_server() as server, gate_for(f"loop.example:{server.port}") as gate:
        async with open_tunnel(gate.address, f"loop.example:{server.port}") as (reader, writer):
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            assert await reader.read() == GREETING
        request = f"CONNECT loop.example:{trap.port} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
        assert status_of(await ask(gate.address, request)) == 403
    assert await trap.came() == 0


async def test_a_name_that_moved_between_two_requests_is_refused(trap: Trap) -> None:
    dns = Dns({"site.example": [["127.0.0.2"], ["127.0.0.1"]]})
    async with Gate(Dialer(Guard(["127.0.0.2"], resolve=dns))) as gate:
        request = f"CONNECT site.example:{trap.port} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
        # Nobody listens at the address that was checked.
        assert status_of(await ask(gate.address, request)) == 502
        assert status_of(await ask(gate.address, request)) == 403
    assert await trap.came() == 0
    assert len(dns.asked) == 2


@pytest.mark.parametrize("request_line", ["CONNECT {}:{} HTTP/1.1", "GET http://{}:{}/ HTTP/1.1"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "any.example", "mapped.example"])
async def test_the_gate_does_not_lead_to_itself(request_line: str, host: str) -> None:
    async with gate_for("0.0.0.0/0", "::/0") as gate:
        line = request_line.format(host, gate.address.rpartition(":")[2])
        reply = await ask(gate.address, f"{line}\r\nHost: a\r\n\r\n".encode())
    assert status_of(reply) == 403
    assert b"itself" in reply


@pytest.mark.parametrize("request_", MALFORMED)
async def test_a_malformed_request_is_answered_with_400(request_: bytes) -> None:
    async with gate_for() as gate:
        assert status_of(await ask(gate.address, request_)) == 400


@pytest.mark.parametrize("port", [0, 65536, 99999])
async def test_a_port_that_is_none_is_refused(port: int) -> None:
    async with gate_for(*LOCAL) as gate:
        request = f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: a\r\n\r\n"
        assert status_of(await ask(gate.address, request.encode())) == 403


@pytest.mark.parametrize("end", [b"\r\n\r\n", b""])
async def test_a_head_over_the_bound_is_refused_though_it_comes_in_pieces(end: bytes) -> None:
    gate = gate_for(bounds=Bounds(header_bytes=1000))
    async with gate, open_connection(gate.address) as (reader, writer):
        writer.write(b"GET http://loop.example/ HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 700)
        # Once another client has its answer, the gate has read these bytes.
        assert status_of(await ask(gate.address, MALFORMED[0])) == 400
        writer.write(b"a" * 700 + end)
        assert status_of(await reader.read()) == 431


async def test_a_head_within_the_bound_passes() -> None:
    async with open_server() as server, gate_for(*LOCAL) as gate:
        place = f"127.0.0.1:{server.port}"
        start = f"CONNECT {place} HTTP/1.1\r\nHost: a\r\nX: ".encode()
        room = 64 * 1024 - len(start) - 4
        async with open_connection(gate.address) as (reader, writer):
            writer.write(start + b"a" * room + b"\r\n\r\n")
            assert await read_head(reader) == ESTABLISHED
        assert status_of(await ask(gate.address, start + b"a" * (room + 2) + b"\r\n\r\n")) == 431


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "loop.example", "unknown.example"])
async def test_a_place_that_cannot_be_reached_is_answered_with_502(host: str) -> None:
    async with gate_for(*LOCAL) as gate:
        place = f"{host}:{free_port()}"
        for line in (f"CONNECT {place} HTTP/1.1", f"GET http://{place}/ HTTP/1.1"):
            assert status_of(await ask(gate.address, f"{line}\r\nHost: a\r\n\r\n".encode())) == 502


async def test_a_tunnel_carries_bytes_both_ways_as_they_are() -> None:
    sent = bytes(range(256)) * 4096
    async with open_echo() as echo, gate_for(*LOCAL) as gate:
        start = f"CONNECT 127.0.0.1:{echo.port} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
        async with open_connection(gate.address) as (reader, writer):
            # The first bytes come along with the request.
            writer.write(start + sent)
            assert await read_head(reader) == ESTABLISHED
            assert await reader.readexactly(len(sent)) == sent
            writer.write(sent)
            assert await reader.readexactly(len(sent)) == sent


async def test_the_end_of_either_side_is_the_end_of_both() -> None:
    async with open_server() as server, gate_for(*LOCAL) as gate:
        async with open_tunnel(gate.address, f"127.0.0.1:{server.port}") as (reader, writer):
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            assert await reader.read() == GREETING
        async with open_echo() as echo:
            async with open_tunnel(gate.address, f"127.0.0.1:{echo.port}"):
                pass
            await asyncio.wait_for(echo.left.acquire(), 30)


async def test_a_plain_request_reaches_the_server_in_its_own_form() -> None:
    async with open_server() as server, gate_for(*LOCAL) as gate:
        place = f"loop.example:{server.port}"
        request = (
            f"POST HTTP://{place}/a/../b?c=%20d HTTP/1.1\r\nHost: evil.example\r\n"
            "Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic eA==\r\n"
            "Connection: keep-alive, X-Hop\r\nKeep-Alive: 5\r\nX-Hop: 1\r\nTE: trailers\r\n"
            "Upgrade: h2c\r\nX-End: 2\r\nCookie: a=b\r\nContent-Length: 4\r\n\r\nbody"
        )
        reply = await ask(gate.address, request.encode())
        assert reply.endswith(b"\r\n\r\nhello")
        assert re.search(rb"(?i)\r\nconnection: close\r\n", reply)
        (head,) = server.heads
        line, *headers = head.decode().removesuffix("\r\n\r\n").split("\r\n")
        assert line == "POST /a/../b?c=%20d HTTP/1.1"
        assert sorted(header.lower() for header in headers) == [
            "connection: close",
            "content-length: 4",
            "cookie: a=b",
            f"host: {place}",
            "x-end: 2",
        ]


async def test_a_second_request_on_the_same_connection_is_not_passed_on(trap: Trap) -> None:
    async with open_server() as server, gate_for(f"127.0.0.1:{server.port}") as gate:
        one = f"GET http://127.0.0.1:{server.port}/1 HTTP/1.1\r\nHost: a\r\n\r\n"
        two = f"GET http://127.0.0.1:{trap.port}/2 HTTP/1.1\r\nHost: a\r\n\r\n"
        reply = await ask(gate.address, (one + two).encode())
        assert reply.count(b"HTTP/1.1 ") == 1
        assert [head.split()[1] for head in server.heads] == [b"/1"]
    assert await trap.came() == 0


@pytest.mark.parametrize(
    "rest",
    [
        b"Content-Length: 10\r\n\r\n0123456789",
        b"Transfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n6\r\n456789\r\n0\r\n\r\n",
        b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n0\r\n\r\n",
        b"Expect: 100-continue\r\nContent-Length: 10\r\n\r\n0123456789",
    ],
)
async def test_the_body_of_a_plain_request_arrives_whole(rest: bytes) -> None:
    async with open_server() as server, gate_for(*LOCAL) as gate:
        start = f"POST http://127.0.0.1:{server.port}/ HTTP/1.1\r\nHost: a\r\n".encode()
        assert (await ask(gate.address, start + rest)).endswith(b"hello")
        assert server.bodies == [b"0123456789"]


@pytest.mark.parametrize(("reply", "status", "body"), REPLIES)
async def test_the_response_to_a_plain_request_comes_back(
    reply: bytes, status: int, body: str | None
) -> None:
    async with open_server(lambda _: reply) as server, gate_for(*LOCAL) as gate:
        async with httpx2.AsyncClient(proxy=gate.address, trust_env=False) as http:
            response = await http.get(f"http://127.0.0.1:{server.port}/")
        assert response.status_code == status
        assert body is None or response.text == body
        assert response.headers["connection"] == "close"


async def test_a_response_that_breaks_off_does_not_look_whole() -> None:
    cut = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello"
    async with open_server(lambda _: cut) as server, gate_for(*LOCAL) as gate:
        http = httpx2.AsyncClient(proxy=gate.address, trust_env=False)
        with pytest.raises(httpx2.TransportError):
            await http.get(f"http://127.0.0.1:{server.port}/")
        await http.aclose()


@pytest.mark.parametrize("plain", [False, True])
async def test_no_tunnel_carries_more_than_its_bytes(*, plain: bool) -> None:
    much = b"HTTP/1.1 200 OK\r\n\r\n" + b"a" * 3_000_000
    bounds = Bounds(tunnel_bytes=1_000_000)
    async with open_server(lambda _: much) as server, gate_for(*LOCAL, bounds=bounds) as gate:
        place = f"127.0.0.1:{server.port}"
        got = 0
        async with open_connection(gate.address) as (reader, writer):
            line = f"GET http://{place}/" if plain else f"CONNECT {place}"
            writer.write(f"{line} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            if not plain:
                assert await read_head(reader) == ESTABLISHED
                writer.write(b"GET / HTTP/1.1\r\n\r\n")
            with suppress(ConnectionError):
                while piece := await reader.read(65536):
                    got += len(piece)
        assert got <= 1_010_000


@pytest.mark.parametrize(
    "request_", [b"", b"CONNECT 127.0.0.1:", b"CONNECT {} HTTP/1.1\r\nHost: a\r\n\r\n"]
)
async def test_a_silent_connection_is_closed_after_the_idle_limit(request_: bytes) -> None:
    bounds = Bounds(idle_for=timedelta(seconds=0.1))
    async with open_echo() as echo, gate_for(*LOCAL, bounds=bounds) as gate:
        asked = request_.replace(b"{}", f"127.0.0.1:{echo.port}".encode())
        # The end of the reply is the promise; a gate that keeps it open would hang the test.
        reply = await asyncio.wait_for(ask(gate.address, asked), 30)
        assert reply in {b"", ESTABLISHED}


async def test_a_tunnel_that_moves_is_not_idle() -> None:
    bounds = Bounds(idle_for=timedelta(seconds=1))
    async with open_echo() as echo, gate_for(*LOCAL, bounds=bounds) as gate:
        place = f"127.0.0.1:{echo.port}"
        async with (
            open_tunnel(gate.address, place) as (reader, writer),
            open_tunnel(gate.address, place) as (silent, _),
        ):
            end = asyncio.create_task(silent.read())
            while not end.done():
                writer.write(b"x")
                assert await reader.readexactly(1) == b"x"
            writer.write(b"y")
            assert await reader.readexactly(1) == b"y"


async def test_one_tunnel_too_many_is_turned_away_and_a_free_place_is_given_again() -> None:
    async with open_echo() as echo, gate_for(*LOCAL, bounds=Bounds(tunnels=2)) as gate:
        place = f"127.0.0.1:{echo.port}"
        async with open_tunnel(gate.address, place):
            async with (
                open_tunnel(gate.address, place),
                open_connection(gate.address) as (reader, _),
            ):
                assert status_of(await reader.read()) == 503
            await asyncio.wait_for(echo.left.acquire(), 30)
            async with asyncio.timeout(30):
                while await is_full(gate.address, place):
                    pass


async def test_closing_the_gate_closes_every_tunnel() -> None:
    gate = gate_for(*LOCAL)
    async with open_echo() as echo, AsyncExitStack() as stack:
        async with gate:
            readers = []
            for _ in range(5):
                opened = open_tunnel(gate.address, f"127.0.0.1:{echo.port}")
                readers.append((await stack.enter_async_context(opened))[0])
            readers.append((await stack.enter_async_context(open_connection(gate.address)))[0])
        for reader in readers:
            with suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), 30) == b""
        for _ in range(5):
            await asyncio.wait_for(echo.left.acquire(), 30)
        with pytest.raises(ConnectionRefusedError):
            await stack.enter_async_context(open_connection(gate.address))


async def test_the_gate_listens_on_this_machine_only() -> None:
    async with gate_for() as gate:
        assert re.fullmatch(r"http://127\.0\.0\.1:[1-9][0-9]*", gate.address)
        with pytest.raises(OSError, match=r"refused|Connect call failed"):
            await asyncio.open_connection("127.0.0.2", int(gate.address.rpartition(":")[2]))


async def test_behind_the_gate_the_egress_proxy_is_asked_for_the_checked_address() -> None:
    dns = Dns({"site.example": [[PUBLIC], ["127.0.0.1"]]})
    async with open_server() as server, open_proxy(server.port) as proxy:
        url = f"http://127.0.0.1:{proxy.port}"
        egress = Egress([url], VirtualClock(), connect_probe("known.example"))
        async with (
            Gate(Dialer(Guard(resolve=dns), egress)) as gate,
            open_tunnel(gate.address, "site.example:8443") as (reader, writer),
        ):
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            assert await reader.read() == GREETING
        assert proxy.asked == [f"{PUBLIC}:8443"]


def test_a_target_is_read_as_it_will_be_dialled() -> None:
    assert parse_target(b"CONNECT", b"a.example:443") == Target("a.example", 443)
    assert parse_target(b"CONNECT", b"[::1]:443") == Target("[::1]", 443)
    assert parse_target(b"GET", b"http://a.example") == Target("a.example", 80, "/")
    assert parse_target(b"GET", b"http://a.example?b/c") == Target("a.example", 80, "/?b/c")
    assert parse_target(b"GET", b"http://a.example:81/b?c") == Target("a.example", 81, "/b?c")


@settings(deadline=None, derandomize=True, max_examples=500)
@given(
    st.sampled_from([b"CONNECT", b"GET"]),
    st.one_of(st.binary(), st.binary().map(lambda rest: b"http://" + rest)),
)
def test_no_target_raises_anything_but_bad_input(method: bytes, target: bytes) -> None:
    try:
        found = parse_target(method, target)
    except BadInput:
        return
    assert found.host
    assert "@" not in found.host
    assert "/" not in found.host or method == b"CONNECT"


def test_what_is_meant_for_the_next_hop_goes_no_further() -> None:
    kept = [(b"Accept", b"*/*"), (b"X-End", b"1")]
    hops = [
        (b"CONNECTION", b"close , X-Hop"),
        (b"x-hop", b"1"),
        (b"Proxy-Authorization", b"Basic eA=="),
        (b"Transfer-Encoding", b"chunked"),
        (b"Content-Length", b"5"),
    ]
    assert end_to_end([*hops, *kept]) == kept
    assert end_to_end([(b"Content-Length", b"5")]) == [(b"Content-Length", b"5")]
