"""Decides which addresses may be reached: public ones, and those that an operator opened."""

import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Any, Protocol, Self

import httpx2

from mimawari.errors import BadInput, Transient
from mimawari.net.threads import BoundedThreads
from mimawari.settings import Settings
from mimawari.text import one_line

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Our own list: what the standard library calls global changes from release to release.
_CLOSED_V4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
# All else of IPv6 is local, mapped, translated, multicast or given to nobody.
_GLOBAL_V6 = IPv6Network("2000::/3")
_CLOSED_V6 = tuple(
    IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)
_LOOPBACKS = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))
_LONGEST_NAME = 253
_NAME = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
# A name that ends like this is read as an IPv4 address by one resolver or another.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_OPENING = re.compile(r"(?P<host>\[[^\[\]]+\]|[^:\[\]/]+)(?::(?P<port>[0-9]{1,5}))?")
_CIDR = re.compile(r"[0-9a-fA-F.:]+/[0-9]{1,3}")
_HIGHEST_PORT = 65535
LOOKUP_FOR = timedelta(seconds=10)
MOST_LOOKUPS = 32
# Threads of their own: look-ups that hang must not take those of files, databases and mail.
_LOOKUPS = BoundedThreads("mimawari-name", MOST_LOOKUPS)


class Forbidden(BadInput):
    """The address may not be reached unless an operator opens it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="address_forbidden")


class Resolver(Protocol):
    """Asks for the addresses of a name."""

    async def __call__(self, name: str, port: int, /) -> Sequence[str]:
        """Return the addresses as text; raise OSError if there are none."""
        ...


@dataclass(frozen=True, slots=True)
class Opening:
    """What an operator opened: a name or a network, at one port or at all."""

    where: str | Network
    port: int | None = None

    def covers(self, name: str | None, address: Address, port: int) -> bool:
        """Tell whether this opens the address that the name led to."""
        if self.port not in {None, port}:
            return False
        return self.where == name if isinstance(self.where, str) else address in self.where


async def resolve_by_system(name: str, port: int) -> Sequence[str]:
    """Ask the system for the addresses of a name, within a time whatever the name server does."""

    def look_up() -> list[Any]:
        return socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)

    try:
        found = await _LOOKUPS.run(look_up, LOOKUP_FOR)
    except TimeoutError as error:
        seconds = LOOKUP_FOR.total_seconds()
        raise OSError(f"no name server answered within {seconds:g} s") from error
    return [str(where[0]) for *_, where in found]


def is_public(address: Address) -> bool:
    """Tell whether an address belongs to the public internet."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _CLOSED_V4)
    return (
        address.scope_id is None
        and address in _GLOBAL_V6
        and not any(address in network for network in _CLOSED_V6)
    )


def parse_address(host: str) -> Address | None:
    """Read a plain dotted quad or an IPv6 address, in brackets or bare; None for all else."""
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        address = ip_address(bare)
    except ValueError:
        return None
    return None if bare != host and isinstance(address, IPv4Address) else address


def parse_name(host: str) -> str:
    """Return a host name as it is dialled: in lower case, in ASCII and without its last dot."""
    shown = one_line(host, most=80)
    if len(host) > _LONGEST_NAME + 1:
        raise Forbidden(f"the host {shown!r} is too long; write a host name or an address")
    name = (host.lower() if host.isascii() else _encode(host)).removesuffix(".")
    if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        raise Forbidden(f"{shown!r} is no host; write a host name or an address, and only that")
    if _NUMBER.fullmatch(name.rpartition(".")[2]):
        raise Forbidden(
            f"{shown!r} is a number in disguise; write the address as four plain numbers"
        )
    return name


def _encode(host: str) -> str:
    # The HTTP client itself says what it makes of a name, so that the two cannot differ.
    try:
        url = httpx2.URL(scheme="http", host=host)
    except httpx2.InvalidURL as error:
        shown = one_line(host, most=80)
        raise Forbidden(f"{shown!r} is no host name; write it in ASCII (xn--…)") from error
    return url.raw_host.decode("ascii")


def parse_opening(entry: str) -> Opening:
    """Read one entry of MIMAWARI_ALLOW_HOSTS."""
    text = entry.strip()
    if "/" in text:
        return Opening(_parse_network(text))
    whole = parse_address(text)
    if whole is not None:
        return Opening(_unscoped(whole, text))
    parts = _OPENING.fullmatch(text)
    if parts is None:
        raise _bad_opening(text, "write host, host:port, [v6]:port, an address or a CIDR")
    port = int(parts["port"]) if parts["port"] else None
    if port is not None and not _is_port(port):
        raise _bad_opening(text, f"write a port from 1 to {_HIGHEST_PORT}")
    address = parse_address(parts["host"])
    if address is not None:
        return Opening(_unscoped(address, text), port)
    try:
        return Opening(parse_name(parts["host"]), port)
    except Forbidden as error:
        raise _bad_opening(text, str(error)) from error


def _parse_network(text: str) -> Network:
    if not _CIDR.fullmatch(text):
        raise _bad_opening(text, "write a CIDR like 10.0.0.0/8 or fd00::/8, without a port")
    try:
        network = ip_network(text, strict=False)
    except ValueError as error:
        raise _bad_opening(text, "write a CIDR like 10.0.0.0/8 or fd00::/8") from error
    if network.network_address != ip_address(text.partition("/")[0]):
        raise _bad_opening(text, f"write {network} if you mean the whole network")
    return network


def _unscoped(address: Address, text: str) -> Network:
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        raise _bad_opening(text, "write the address without %")
    return ip_network(address)


def _bad_opening(text: str, advice: str) -> BadInput:
    shown = one_line(text, most=80)
    return BadInput(f"MIMAWARI_ALLOW_HOSTS: {shown!r} cannot be used; {advice}")


def _is_port(port: int) -> bool:
    return 1 <= port <= _HIGHEST_PORT


class Guard:
    """Turns a host into addresses that may be dialled, or refuses it whole."""

    def __init__(
        self, allow: Sequence[str] = (), resolve: Resolver | None = None, *, is_shut: bool = False
    ) -> None:
        self._openings = tuple(parse_opening(entry) for entry in allow)
        self._resolve = resolve or resolve_by_system
        # Then only what was opened is reached, the public internet not.
        self._is_shut = is_shut

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Make the guard that the settings ask for; whoever dials for us has this one."""
        return cls(settings.allow_hosts, is_shut=settings.is_demo)

    async def addresses(self, host: str, port: int) -> tuple[Address, ...]:
        """Resolve a host once; raise Forbidden unless every one of its addresses may be reached."""
        if not _is_port(port):
            raise Forbidden(f"{port} is no port; write one from 1 to {_HIGHEST_PORT}")
        literal = parse_address(host)
        if literal is not None:
            self._check(None, literal, port)
            return (literal,)
        name = parse_name(host)
        self._check_shut(name, port)
        self._check_local(name, port)
        answers = await self._ask(name, port)
        for address in answers:
            self._check(name, address, port)
        return answers

    def _check_local(self, name: str, port: int) -> None:
        if not _is_local(name):
            return
        openings = [opening for opening in self._openings if opening.port in {None, port}]
        if not any(_may_open_local(opening.where, name) for opening in openings):
            raise _not_public(name, port, "this machine itself")

    def _check_shut(self, name: str, port: int) -> None:
        """Refuse a name before anybody is asked for it, which would leave this machine too."""
        openings = [opening for opening in self._openings if opening.port in {None, port}]
        if self._is_shut and not _is_local(name) and name not in [one.where for one in openings]:
            raise _shut(name, port)

    async def _ask(self, name: str, port: int) -> tuple[Address, ...]:
        try:
            answers = await self._resolve(name, port)
        except OSError as error:
            raise Transient(f"{name} does not resolve: {error}", unsent=True) from error
        if not answers:
            raise Transient(f"{name} does not resolve: it has no addresses", unsent=True)
        try:
            return tuple(dict.fromkeys(ip_address(answer) for answer in answers))
        except ValueError as error:
            raise Forbidden(f"{name} resolves to what is no address") from error

    def _check(self, name: str | None, address: Address, port: int) -> None:
        if is_public(address) and not self._is_shut:
            return
        scoped = isinstance(address, IPv6Address) and address.scope_id is not None
        opened = any(opening.covers(name, address, port) for opening in self._openings)
        if scoped or not opened:
            if self._is_shut:
                raise _shut(name or str(address), port)
            raise _not_public(name, port, str(address))


def _is_local(name: str) -> bool:
    return name == "localhost" or name.endswith(".localhost")


def _may_open_local(where: str | Network, name: str) -> bool:
    if isinstance(where, str):
        return where == name
    return any(where.overlaps(loopback) for loopback in _LOOPBACKS)


def _shut(host: str, port: int) -> Forbidden:
    shown = one_line(host, most=80)
    return Forbidden(f"{shown}:{port} is not part of the demo, which nothing leaves")


def _not_public(name: str | None, port: int, address: str) -> Forbidden:
    shown = one_line(address, most=80)
    bare = f"[{shown}]" if ":" in shown else shown
    leads = f"{name} leads to {shown}, which" if name else shown
    return Forbidden(
        f"{leads} is not public; to reach it all the same,"
        f" add {name or bare}:{port} to MIMAWARI_ALLOW_HOSTS"
    )
