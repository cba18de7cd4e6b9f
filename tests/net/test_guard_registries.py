"""Which addresses are public: exactly those that no registry of special ones closes."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimawari.net.guard import Address, Guard, Network, is_public
from tests.net.dns import NEIGHBOURS, PUBLIC_V6

steady = settings(deadline=None, derandomize=True)

# The registries of special addresses, as they are published: block, and whether it is reachable.
REGISTRY_V4 = {
    "0.0.0.0/8": False,
    "10.0.0.0/8": False,
    "100.64.0.0/10": False,
    "127.0.0.0/8": False,
    "169.254.0.0/16": False,
    "172.16.0.0/12": False,
    "192.0.0.0/24": False,
    "192.0.0.0/29": False,
    "192.0.0.8/32": False,
    "192.0.0.170/31": False,
    "192.0.2.0/24": False,
    "192.31.196.0/24": True,
    "192.52.193.0/24": True,
    "192.168.0.0/16": False,
    "192.175.48.0/24": True,
    "198.18.0.0/15": False,
    "198.51.100.0/24": False,
    "203.0.113.0/24": False,
    "240.0.0.0/4": False,
    "255.255.255.255/32": False,
}
REGISTRY_V6 = {
    "::1/128": False,
    "::/128": False,
    "::ffff:0:0/96": False,
    "64:ff9b:1::/48": False,
    "100::/64": False,
    "100:0:0:1::/64": False,
    "2001::/23": False,
    "2001:2::/48": False,
    "2001:db8::/32": False,
    "2002::/16": False,
    "2620:4f:8000::/48": True,
    "3fff::/20": False,
    "5f00::/16": False,
    "fc00::/7": False,
    "fe80::/10": False,
}
# Not in those registries or called reachable there, and no place for us to go to.
BEYOND = [
    "192.88.99.0/24",
    "224.0.0.0/4",
    "192.0.0.9/32",
    "192.0.0.10/32",
    "ff00::/8",
    "64:ff9b::/96",
    "::/96",
    "fec0::/10",
    "2001:1::1/128",
    "2001:3::/32",
    "2001:4:112::/48",
    "2001:20::/28",
    "2001:30::/28",
]
GLOBAL_UNICAST = ip_network("2000::/3")
CLOSED: list[Network] = [
    ip_network(block)
    for block, reachable in {**REGISTRY_V4, **REGISTRY_V6, **dict.fromkeys(BEYOND, False)}.items()
    if not reachable
]


def is_closed_by_registry(address: Address) -> bool:
    """Say by the registries whether an address is closed."""
    if any(address in block for block in CLOSED):
        return True
    return isinstance(address, IPv6Address) and address not in GLOBAL_UNICAST


def edges(block: Network) -> list[Address]:
    """List the addresses on both sides of both edges of a block."""
    first, last = int(block[0]), int(block[-1])
    make = IPv4Address if block.version == 4 else IPv6Address
    most = 2**block.max_prefixlen - 1
    return [make(number) for number in (first - 1, first, last, last + 1) if 0 <= number <= most]


@pytest.mark.parametrize(
    "address",
    NEIGHBOURS,
)
async def test_a_public_neighbour_of_a_closed_block_passes(address: str) -> None:
    assert is_public(ip_address(address))
    assert await Guard().addresses(address, 443) == (ip_address(address),)


@pytest.mark.parametrize("block", CLOSED, ids=str)
def test_both_edges_of_a_closed_block_are_where_the_registry_has_them(block: Network) -> None:
    for address in edges(block):
        assert is_public(address) is not is_closed_by_registry(address), address
    assert not is_public(block[0])
    assert not is_public(block[-1])


near_an_edge = st.sampled_from(CLOSED).flatmap(
    lambda block: st.one_of(
        st.sampled_from(edges(block)),
        st.integers(0, block.num_addresses - 1).map(lambda at: block[at]),
    )
)


@settings(steady, max_examples=500)
@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6), near_an_edge))
def test_an_address_is_public_exactly_when_no_registry_closes_it(address: Address) -> None:
    assert is_public(address) is not is_closed_by_registry(address)


@settings(steady, max_examples=300)
@given(st.integers(int(IPv6Address("2000::")), int(IPv6Address("3fff::")) + 2**120))
def test_global_ipv6_is_public_exactly_when_no_registry_closes_it(number: int) -> None:
    address = IPv6Address(number)
    assert is_public(address) is not is_closed_by_registry(address)


def test_an_address_with_a_scope_is_never_public() -> None:
    assert is_public(IPv6Address(PUBLIC_V6))
    assert not is_public(IPv6Address(f"{PUBLIC_V6}%eth0"))
