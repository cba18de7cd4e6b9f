"""What was checked is what is dialled, and nothing else ever is."""

import asyncio
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpcore2
import httpx2
import pytest

from mimawari.errors import Transient
from mimawari.kernel.clock import VirtualClock
from mimawari.net.dial import Dialer, transport
from mimawari.net.guard import Forbidden, Guard
from mimawari.net.proxies import Egress, ProxyUrl
from tests.net.dns import ADDRESSES, FORBIDDEN, PUBLIC, PUBLIC_V6, Dns, hostile_dns
from tests.net.sockets import (
    GREETING,
    Trap,
    free_port,
    make_certificate,
    open_proxy,
    open_server,
    open_trap,
)

TLS = ssl.create_default_context()
# The client itself refuses some spellings before it dials.
REFUSED = (Forbidden, httpx2.InvalidURL, httpx2.UnsupportedProtocol)


def client(dialer: Dialer, tls: ssl.SSLContext = TLS) -> httpx2.AsyncClient:
    """Make a client over the dialer that follows where it is led."""
    return httpx2.AsyncClient(
        transport=transport(dialer, tls), trust_env=False, follow_redirects=True, timeout=30
    )


async def is_healthy(_: ProxyUrl) -> bool:
    return True


def through(*ports: int, login: str = "") -> Egress:
    """Make an egress through proxies of this machine."""
    urls = [f"http://{login}127.0.0.1:{port}" for port in ports]
    return Egress(urls, VirtualClock(), is_healthy)


@pytest.fixture
async def trap() -> AsyncIterator[Trap]:
    async with open_trap() as trap:
        yield trap


@pytest.mark.parametrize("host", FORBIDDEN)
async def test_no_address_given_to_the_client_reaches_this_machine(host: str, trap: Trap) -> None:
    async with client(Dialer(Guard(resolve=hostile_dns()))) as http:
        with pytest.raises(REFUSED):
            await http.get(f"http://{host}:{trap.port}/")
    assert await trap.came() == 0


@pytest.mark.parametrize("host", FORBIDDEN)
async def test_no_redirect_leads_to_this_machine(host: str, trap: Trap) -> None:
    place = f"http://{host}:{trap.port}/".encode()
    reply = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: " + place + b"\r\n\r\n"
    async with open_server(lambda _: reply) as server:
        guard = Guard([f"127.0.0.1:{server.port}"], resolve=hostile_dns())
        async with client(Dialer(guard)) as http:
            with pytest.raises((*REFUSED, httpx2.RemoteProtocolError)):
                await http.get(f"http://127.0.0.1:{server.port}/")
        assert len(server.heads) == 1
    assert await trap.came() == 0


@pytest.mark.parametrize("host", FORBIDDEN)
async def test_the_dialer_itself_refuses_whatever_host_it_is_given(host: str, trap: Trap) -> None:
    with pytest.raises(Forbidden):
        await Dialer(Guard(resolve=hostile_dns())).connect_tcp(host, trap.port, 30)
    assert await trap.came() == 0


@pytest.mark.parametrize("host", [*ADDRESSES, "localhost", "loop.example", "last.example"])
async def test_no_proxy_is_asked_for_what_is_refused(host: str) -> None:
    async with open_proxy() as proxy:
        dialer = Dialer(Guard(resolve=hostile_dns()), through(proxy.port))
        with pytest.raises(Forbidden):
            await dialer.connect_tcp(host, 80, 30)
    assert proxy.heads == []


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "[::1]", "localhost", "loop.example", "six.example", "any.example"]
)
async def test_the_trap_is_reached_once_it_is_opened(host: str, trap: Trap) -> None:
    guard = Guard(["127.0.0.1", "::1", "any.example"], resolve=hostile_dns())
    async with client(Dialer(guard)) as http:
        assert (await http.get(f"http://{host}:{trap.port}/")).text == "trap"
    assert await trap.came() == 1


@pytest.mark.parametrize("opening", ["127.0.0.1:{}", "loop.example:{}"])
async def test_an_opening_with_a_port_opens_only_that_port(opening: str, trap: Trap) -> None:
    async with open_server() as server:
        guard = Guard([opening.format(server.port)], resolve=hostile_dns())
        async with client(Dialer(guard)) as http:
            assert (await http.get(f"http://loop.example:{server.port}/")).text == "hello"
            with pytest.raises(Forbidden):
                await http.get(f"http://loop.example:{trap.port}/")
    assert await trap.came() == 0


async def test_a_name_whose_answer_moves_is_asked_once_for_each_connection(trap: Trap) -> None:
    dns = Dns({"site.example": [["127.0.0.2"], ["127.0.0.1"], ["127.0.0.2", "127.0.0.1"]]})
    dialer = Dialer(Guard(["127.0.0.2"], resolve=dns))
    async with client(dialer) as http:
        # Nobody listens at the address that was checked, and the name now leads elsewhere.
        with pytest.raises(httpx2.ConnectError):
            await http.get(f"http://site.example:{trap.port}/")
        assert dns.asked == ["site.example"]
        for _ in range(2):
            with pytest.raises(Forbidden):
                await http.get(f"http://site.example:{trap.port}/")
    assert await trap.came() == 0
    assert len(dns.asked) == 3


async def test_a_proxy_is_asked_for_the_checked_address_though_the_name_has_moved() -> None:
    dns = Dns({"site.example": [[PUBLIC], ["127.0.0.1"]]})
    async with open_server() as server, open_proxy(server.port) as proxy:
        async with client(Dialer(Guard(resolve=dns), through(proxy.port))) as http:
            assert (await http.get("http://site.example:8080/a")).text == "hello"
            with pytest.raises(Forbidden):
                await http.get("http://site.example:8080/b")
        assert proxy.asked == [f"{PUBLIC}:8080"]
        assert [head.split()[1] for head in server.heads] == [b"/a"]


@pytest.mark.parametrize(
    "answers",
    [["127.0.0.1", "127.0.0.2"], [f"127.0.0.{last}" for last in (5, 4, 3, 2)]],
)
async def test_the_next_address_is_dialled_when_one_does_not_answer(answers: list[str]) -> None:
    dns = Dns({"site.example": [answers]})
    dialer = Dialer(Guard(["127.0.0.0/8"], resolve=dns))
    async with open_server(host="127.0.0.2") as server, client(dialer) as http:
        assert (await http.get(f"http://site.example:{server.port}/")).text == "hello"
    assert dns.asked == ["site.example"]


async def test_a_dead_family_leaves_the_other_its_turn() -> None:
    dns = Dns({"site.example": [[*(f"127.0.0.{last}" for last in range(1, 9)), "::1"]]})
    dialer = Dialer(Guard(["site.example"], resolve=dns))
    async with open_server(host="::1") as server, client(dialer) as http:
        assert (await http.get(f"http://site.example:{server.port}/")).text == "hello"


async def test_a_place_where_nobody_listens_is_a_failed_connection() -> None:
    async with client(Dialer(Guard(["127.0.0.1"]))) as http:
        with pytest.raises(httpx2.ConnectError):
            await http.get(f"http://127.0.0.1:{free_port()}/")


async def test_a_name_that_does_not_resolve_may_do_so_later() -> None:
    async with client(Dialer(Guard(resolve=Dns()))) as http:
        with pytest.raises(Transient):
            await http.get("http://site.example/")


async def test_a_resolver_that_never_answers_ends_in_time() -> None:
    async def silent(_name: str, _port: int, /) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    with pytest.raises(httpcore2.ConnectTimeout):
        await Dialer(Guard(resolve=silent)).connect_tcp("site.example", 80, 0.05)


async def test_a_proxy_that_never_answers_ends_in_time() -> None:
    release = asyncio.Event()

    async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        writer.close()

    listening = await asyncio.start_server(silent, "127.0.0.1", 0)
    dialer = Dialer(Guard(), through(listening.sockets[0].getsockname()[1]))
    with pytest.raises(httpcore2.ConnectTimeout):
        await dialer.connect_tcp(PUBLIC, 80, 0.2)
    release.set()
    listening.close()


async def test_a_socket_of_this_machine_is_refused() -> None:
    with pytest.raises(Forbidden):
        await Dialer(Guard(["127.0.0.1"])).connect_unix_socket("/run/a.sock")


async def test_the_proxies_of_the_environment_are_not_followed(
    monkeypatch: pytest.MonkeyPatch, trap: Trap
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{trap.port}")
    async with open_server() as server:
        dialer = Dialer(Guard([f"127.0.0.1:{server.port}"]))
        async with httpx2.AsyncClient(transport=transport(dialer)) as http:
            assert (await http.get(f"http://127.0.0.1:{server.port}/")).text == "hello"
    assert await trap.came() == 0


@asynccontextmanager
async def open_tls(folder: Path) -> AsyncIterator[tuple[int, ssl.SSLContext, list[str | None]]]:
    """Run a TLS server named site.example; list the names that clients ask it for."""
    theirs, ours = make_certificate(folder, "site.example")
    names: list[str | None] = []
    theirs.sni_callback = lambda _object, name, _context: names.append(name)
    async with open_server(tls=theirs) as server:
        yield server.port, ours, names


@pytest.mark.parametrize("proxied", [False, True])
async def test_tls_checks_the_name_and_not_the_address(tmp_path: Path, *, proxied: bool) -> None:
    dns = Dns({"site.example": [["127.0.0.1"]], "other.example": [["127.0.0.1"]]})
    guard = Guard(["127.0.0.1"], resolve=dns)
    async with open_tls(tmp_path) as (port, tls, names), open_proxy(port) as proxy:
        dialer = Dialer(guard, through(proxy.port) if proxied else None)
        async with client(dialer, tls) as http:
            assert (await http.get(f"https://site.example:{port}/")).text == "hello"
            with pytest.raises(httpx2.ConnectError, match=r"other\.example"):
                await http.get(f"https://other.example:{port}/")
        assert names == ["site.example", "other.example"]
        assert len(proxy.heads) == (2 if proxied else 0)


@pytest.mark.parametrize(
    ("address", "target"), [(PUBLIC, f"{PUBLIC}:443"), (PUBLIC_V6, f"[{PUBLIC_V6}]:443")]
)
async def test_a_proxy_is_asked_as_the_standard_has_it(address: str, target: str) -> None:
    async with open_server() as server, open_proxy(server.port) as proxy:
        dialer = Dialer(Guard(), through(proxy.port))
        stream = await dialer.connect_tcp(address, 443, 30)
        await stream.write(b"GET / HTTP/1.1\r\n\r\n")
        assert await stream.read(1000) == GREETING
        await stream.aclose()
    assert proxy.heads == [f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode()]


@pytest.mark.parametrize(
    ("login", "sent"),
    [
        ("user:word@", b"user:word"),
        ("user@", b"user:"),
        ("us%40er:p%3Aw%2F%25@", b"us@er:p:w/%"),
        ("user:%E8%A6%8B@", "user:\u898b".encode()),
    ],
)
async def test_a_proxy_is_told_its_user_and_password(login: str, sent: bytes) -> None:
    async with open_server() as server, open_proxy(server.port) as proxy:
        dialer = Dialer(Guard(), through(proxy.port, login=login))
        await (await dialer.connect_tcp(PUBLIC, 443, 30)).aclose()
    assert b"\r\nProxy-Authorization: Basic " + b64encode(sent) + b"\r\n" in proxy.heads[0]


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
        b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno",
        b"HTTP/1.1 502 Bad Gateway\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 \xef\xbc\x92\xef\xbc\x90\xef\xbc\x90 OK\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 204 No\r\nX: " + b"a" * 16384 + b"\r\n\r\n",
        b"HTTP/1.1 204 No\r\n" + b"X: a\r\n" * 100_000,
        b"HTTP/1.1 204 No\r\nX: a\r\n",
        b"HTTP/1.1 204 No\r\n\r\nearly",
        b"\x00" * 100,
        b"",
    ],
)
async def test_a_proxy_that_grants_no_tunnel_is_a_failed_connection(reply: bytes) -> None:
    async with open_proxy(reply=reply) as proxy:
        dialer = Dialer(Guard(), through(proxy.port, login="user:hunter2@"))
        with pytest.raises(httpcore2.ConnectError) as caught:
            await dialer.connect_tcp(PUBLIC, 443, 30)
        assert f"http://127.0.0.1:{proxy.port}" in str(caught.value)
        assert "hunter2" not in f"{caught.value!r} {caught.value.__cause__!r}"


async def test_a_proxy_that_is_not_there_is_a_failed_connection() -> None:
    with pytest.raises(httpcore2.ConnectError):
        await Dialer(Guard(), through(free_port())).connect_tcp(PUBLIC, 443, 30)


async def test_the_status_of_a_refusing_proxy_is_told() -> None:
    async with open_proxy(reply=b"HTTP/1.1 407 Login\r\n\r\n") as proxy:
        http = client(Dialer(Guard(), through(proxy.port)))
        with pytest.raises(httpx2.ConnectError, match="answered 407"):
            await http.get(f"https://{PUBLIC}/")
        await http.aclose()


async def test_each_checked_address_is_asked_of_the_proxy_in_turn() -> None:
    dns = Dns({"site.example": [[PUBLIC, "1.1.1.1", PUBLIC_V6]]})
    async with open_proxy(reply=b"HTTP/1.1 502 No\r\n\r\n") as proxy:
        dialer = Dialer(Guard(resolve=dns), through(proxy.port))
        with pytest.raises(httpcore2.ConnectError):
            await dialer.connect_tcp("site.example", 80, 30)
    assert proxy.asked == [f"{PUBLIC}:80", f"[{PUBLIC_V6}]:80", "1.1.1.1:80"]


async def test_a_connection_is_used_again_while_it_is_fresh() -> None:
    dns = Dns({"site.example": [["127.0.0.1"]]})
    dialer = Dialer(Guard(["127.0.0.1"], resolve=dns))
    async with open_server(keep=True) as server, client(dialer) as http:
        for _ in range(3):
            assert (await http.get(f"http://site.example:{server.port}/")).text == "hello"
    assert len(dns.asked) == 1


async def test_no_connection_is_kept_through_a_proxy_that_was_left() -> None:
    async with (
        open_server(keep=True) as server,
        open_proxy(server.port) as first,
        open_proxy(server.port) as second,
    ):
        egress = through(first.port, second.port)
        async with client(Dialer(Guard(), egress)) as http:
            assert (await http.get(f"http://{PUBLIC}/")).text == "hello"
            for _ in range(10):
                await egress.failed("blocked", egress.current)
            assert (await http.get(f"http://{PUBLIC}/")).text == "hello"
        assert (len(first.heads), len(second.heads)) == (1, 1)
