"""Nothing but public addresses is let through, however it is spelled, unless it was opened."""

import asyncio
import socket
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimawari.errors import BadInput, Transient
from mimawari.net.guard import Address, Forbidden, Guard, is_public, parse_name, resolve_by_system
from tests.net.dns import ADDRESSES, DISGUISES, FORBIDDEN, JUNK, PUBLIC, PUBLIC_V6, Dns, hostile_dns

steady = settings(deadline=None, derandomize=True)


def test_enough_hosts_are_tried() -> None:
    assert len(FORBIDDEN) == len(set(FORBIDDEN)) >= 120


@pytest.mark.parametrize("host", FORBIDDEN)
async def test_a_host_that_is_not_public_is_refused(host: str) -> None:
    with pytest.raises(Forbidden) as caught:
        await Guard(resolve=hostile_dns()).addresses(host, 80)
    assert caught.value.code == "address_forbidden"
    assert len(str(caught.value)) < 400
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("host", [*DISGUISES, *JUNK, *ADDRESSES, "localhost", "A.localhost."])
async def test_no_resolver_is_asked_about_what_is_no_name(host: str) -> None:
    dns = hostile_dns()
    with pytest.raises(Forbidden):
        await Guard(resolve=dns).addresses(host, 80)
    assert dns.asked == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "2130706433", "127.1"])
async def test_the_resolver_of_the_system_opens_nothing(host: str) -> None:
    with pytest.raises(Forbidden):
        await Guard().addresses(host, 80)


async def test_the_system_is_asked_for_the_addresses_of_a_name() -> None:
    assert set(await resolve_by_system("localhost", 80)) <= {"127.0.0.1", "::1"}
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)
    expected = tuple(dict.fromkeys(ip_address(where[0]) for *_, where in found))
    assert await Guard(["localhost"]).addresses("localhost", 80) == expected


@pytest.mark.parametrize("host", [PUBLIC, PUBLIC_V6, "public.example", "127.0.0.2"])
async def test_a_shut_guard_lets_through_only_what_was_opened_and_asks_for_no_name(
    host: str,
) -> None:
    dns = Dns({"public.example": [[PUBLIC]], "opened.example": [["127.0.0.1"]]})
    guard = Guard(["127.0.0.1:80", "opened.example"], dns, is_shut=True)
    with pytest.raises(Forbidden, match="is not part of the demo, which nothing leaves"):
        await guard.addresses(host, 80)
    assert not dns.asked
    for opened in ("127.0.0.1", "opened.example"):
        assert await guard.addresses(opened, 80) == (IPv4Address("127.0.0.1"),)


@pytest.mark.parametrize("port", [0, -1, 65536, 2**31, 10**30])
async def test_a_port_out_of_range_is_refused(port: int) -> None:
    with pytest.raises(Forbidden, match="1 to 65535"):
        await Guard(["0.0.0.0/0"]).addresses(PUBLIC, port)


@pytest.mark.parametrize("port", [1, 65535])
async def test_the_first_and_the_last_port_pass(port: int) -> None:
    assert await Guard().addresses(PUBLIC, port) == (IPv4Address(PUBLIC),)


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("site.example", "site.example"),
        ("SITE.Example", "site.example"),
        ("site.example.", "site.example"),
        ("b\u00dccher.example", "xn--bcher-kva.example"),
        ("b\u00fccher\u3002example", "xn--bcher-kva.example"),
        ("\u212aelvin.example", "kelvin.example"),
        ("a_b-c.example", "a_b-c.example"),
        ("1.example", "1.example"),
        ("0x7f.example", "0x7f.example"),
        ("router", "router"),
    ],
)
async def test_a_name_is_resolved_as_the_client_would_write_it(host: str, name: str) -> None:
    dns = Dns({name: [[PUBLIC, PUBLIC_V6, PUBLIC]]})
    found = await Guard(resolve=dns).addresses(host, 443)
    assert found == (IPv4Address(PUBLIC), IPv6Address(PUBLIC_V6))
    assert dns.asked == [name]
    assert parse_name(host) == name


@pytest.mark.parametrize("answers", [None, [[]]])
async def test_a_name_that_does_not_resolve_may_do_so_later(answers: list[list[str]]) -> None:
    dns = Dns({"site.example": answers} if answers else {})
    with pytest.raises(Transient, match=r"site\.example does not resolve"):
        await Guard(resolve=dns).addresses("site.example", 443)


async def test_a_name_that_moved_to_loopback_is_refused_from_then_on() -> None:
    dns = Dns({"site.example": [[PUBLIC], ["127.0.0.1"], [PUBLIC, "::1"], [PUBLIC]]})
    guard = Guard(resolve=dns)
    assert await guard.addresses("site.example", 80) == (IPv4Address(PUBLIC),)
    for _ in range(2):
        with pytest.raises(Forbidden, match="MIMAWARI_ALLOW_HOSTS"):
            await guard.addresses("site.example", 80)
    assert await guard.addresses("site.example", 80) == (IPv4Address(PUBLIC),)
    assert len(dns.asked) == 4


@pytest.mark.parametrize(
    ("opening", "host", "port"),
    [
        ("127.0.0.1", "127.0.0.1", 80),
        (" 127.0.0.1 ", "127.0.0.1", 8080),
        ("127.0.0.1", "loop.example", 80),
        ("127.0.0.1", "localhost", 80),
        ("127.0.0.0/8", "127.9.9.9", 80),
        ("127.0.0.0/8", "foo.localhost", 80),
        ("0.0.0.0/0", "10.0.0.1", 80),
        ("10.0.0.0/8", "10.255.255.255", 1),
        ("127.0.0.1:8080", "127.0.0.1", 8080),
        ("127.0.0.1:8080", "loop.example", 8080),
        ("loop.example", "loop.example", 80),
        ("LOOP.example.", "loop.example", 80),
        ("loop.example:8080", "Loop.Example.", 8080),
        ("b\u00fccher.example", "xn--bcher-kva.example", 80),
        ("xn--bcher-kva.example:80", "b\u00fccher.example", 80),
        ("localhost:8080", "LOCALHOST.", 8080),
        ("::1", "::1", 80),
        ("::1", "[::1]", 80),
        ("[::1]", "six.example", 80),
        ("[::1]:8080", "::1", 8080),
        ("[::1]:8080", "six.example", 8080),
        ("fd00::/8", "fd00::1", 80),
        ("::ffff:127.0.0.1", "mapped.example", 80),
    ],
)
async def test_an_opening_opens_what_it_says(opening: str, host: str, port: int) -> None:
    assert await Guard([opening], resolve=hostile_dns()).addresses(host, port)


@pytest.mark.parametrize(
    ("opening", "host", "port"),
    [
        ("127.0.0.1", "127.0.0.2", 80),
        ("127.0.0.1", "::1", 80),
        ("127.0.0.1", "::ffff:127.0.0.1", 80),
        ("127.0.0.1", "six.example", 80),
        ("127.0.0.1", "2130706433", 80),
        ("127.0.0.1:8080", "127.0.0.1", 80),
        ("127.0.0.1:8080", "localhost", 8081),
        ("127.0.0.0/9", "127.128.0.0", 80),
        ("loop.example", "127.0.0.1", 80),
        ("loop.example", "localhost", 80),
        ("loop.example", "a.loop.example", 80),
        ("example", "loop.example", 80),
        ("loop.example:8080", "loop.example", 80),
        ("localhost", "foo.localhost", 80),
        ("localhost:8080", "localhost", 80),
        ("[::1]:8080", "::1", 80),
        ("0.0.0.0/0", "::ffff:127.0.0.1", 80),
        ("::/0", "127.0.0.1", 80),
        ("::/0", "scoped.example", 80),
        ("fe80::/10", "fe80::1%lo", 80),
    ],
)
async def test_an_opening_opens_nothing_else(opening: str, host: str, port: int) -> None:
    with pytest.raises(Forbidden):
        await Guard([opening], resolve=hostile_dns()).addresses(host, port)


async def test_an_opening_of_one_answer_does_not_open_the_others() -> None:
    dns = Dns({"two.example": [["127.0.0.1", "10.0.0.1"]]})
    with pytest.raises(Forbidden, match=r"10\.0\.0\.1"):
        await Guard(["127.0.0.1"], resolve=dns).addresses("two.example", 80)
    assert len(await Guard(["two.example"], resolve=dns).addresses("two.example", 80)) == 2


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "loop.example"])
async def test_the_refusal_says_what_to_set_and_setting_it_helps(host: str) -> None:
    with pytest.raises(Forbidden) as caught:
        await Guard(resolve=hostile_dns()).addresses(host, 8443)
    advice = str(caught.value).partition(" add ")[2].partition(" to MIMAWARI_ALLOW_HOSTS")[0]
    assert await Guard([advice], resolve=hostile_dns()).addresses(host, 8443)


@pytest.mark.parametrize(
    ("entry", "advice"),
    [
        ("", "write host"),
        ("  ", "write host"),
        (":80", "write host"),
        ("host:", "write host"),
        ("host:0", "1 to 65535"),
        ("host:65536", "1 to 65535"),
        ("host:99999", "1 to 65535"),
        ("host:123456", "write host"),
        ("host:http", "write host"),
        ("host:\uff18\uff10", "write host"),
        ("host:80:80", "write host"),
        ("http://host", "write a CIDR"),
        ("host/path", "write a CIDR"),
        ("*.example", "is no host"),
        ("a b", "is no host"),
        ("user@host", "is no host"),
        ("2130706433", "four plain numbers"),
        ("127.1:80", "four plain numbers"),
        ("0x7f.1", "four plain numbers"),
        ("127.0.0.01", "four plain numbers"),
        ("127.0.0.256", "four plain numbers"),
        ("10.0.0.1/8", "write 10.0.0.0/8"),
        ("10.0.0.0/33", "write a CIDR"),
        ("10.0.0.0/255.0.0.0", "write a CIDR"),
        ("10.0.0.0/8:80", "write a CIDR"),
        ("fd00::1/8", "write fd00::/8"),
        ("fd00::/129", "write a CIDR"),
        ("::1:zz", "write host"),
        ("[::1]:0", "1 to 65535"),
        ("[::1]80", "write host"),
        ("[::1", "write host"),
        ("[127.0.0.1]:80", "is no host"),
        ("[host]:80", "is no host"),
        ("fe80::1%eth0", "without %"),
        ("[fe80::1%eth0]:80", "without %"),
        ("a\x00b", "is no host"),
        ("h" * 1000, "too long"),
    ],
)
def test_an_opening_that_cannot_be_used_says_what_to_write(entry: str, advice: str) -> None:
    with pytest.raises(BadInput) as caught:
        Guard(["127.0.0.1", entry])
    assert advice in str(caught.value)
    assert "MIMAWARI_ALLOW_HOSTS" in str(caught.value)
    assert not isinstance(caught.value, Forbidden)


hosts = st.one_of(
    st.text(max_size=300),
    st.text(st.sampled_from("0123456789abcdefx.:[]%-_ \u3002\uff11\uff0e\u00fc@/\\"), max_size=40),
    st.sampled_from(FORBIDDEN),
)


@settings(steady, max_examples=400)
@given(hosts, st.integers(-1, 70000))
def test_no_host_raises_anything_but_our_errors(host: str, port: int) -> None:
    async def ask() -> tuple[Address, ...]:
        return await Guard(resolve=hostile_dns()).addresses(host, port)

    try:
        found = asyncio.run(ask())
    except (Forbidden, Transient):
        return
    assert all(is_public(address) for address in found)


@settings(steady, max_examples=300)
@given(hosts)
def test_no_opening_raises_anything_but_bad_input(entry: str) -> None:
    with suppress(BadInput):
        Guard([entry])
