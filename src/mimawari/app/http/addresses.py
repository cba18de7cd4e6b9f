"""The client address, host and origin of a request."""

import re
from collections.abc import MutableMapping
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

UNKNOWN = "unknown"
PORTS = {"http": 80, "https": 443}
WRONG_HOST = (
    "nothing is served under this name; open it under the address in MIMAWARI_PUBLIC_URL (set it to"
    " where people reach this), or under localhost or an IP address"
)
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[^:\[\]/@\s]+)(:(?P<port>[0-9]{1,5}))?", re.ASCII)
_PREFIX = 64
"""The length of an IPv6 network prefix: a client usually controls all addresses of its /64."""

Scope = MutableMapping[str, Any]


def address_of(scope: Scope) -> str:
    """Return the address that a request comes from; what is none is one client, unknown."""
    try:
        return str(ip_address((scope.get("client") or (UNKNOWN, 0))[0]))
    except ValueError:
        return UNKNOWN


def network_of(address: str) -> str:
    """Return the network that a client is counted by: its IPv4 address or its IPv6 /64."""
    if address == UNKNOWN:
        return address
    ip = ip_address(address)
    if not isinstance(ip, IPv6Address):
        return address
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ip_network((int(ip), _PREFIX), strict=False))


class Hosts:
    """Decides which hosts are served and which origins may send forms."""

    def __init__(self, public_url: str) -> None:
        parts = urlsplit(public_url)
        self._name = _to_ascii(parts.hostname or "")
        self._origin = (self._name, parts.port or PORTS.get(parts.scheme))
        self._scheme = parts.scheme
        self.is_secure = parts.scheme == "https"
        """Whether the public URL uses TLS, also where a proxy ends it."""

    def allows(self, scope: Scope) -> bool:
        """Return whether the host of a request is served."""
        given = [value for name, value in scope["headers"] if name == b"host"]
        return bool(given) and all(self._is_ours(_split(value)[0]) for value in given)

    def _is_ours(self, name: str) -> bool:
        if not name:
            return False
        if name in {self._name, "localhost"} or name.endswith(".localhost"):
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return True

    def sent_here(self, scope: Scope) -> bool:
        """Return whether a form was sent from our own pages, according to the browser."""
        headers = dict(scope["headers"])
        origin = headers.get(b"origin")
        if origin is None:
            return headers.get(b"sec-fetch-site", b"none") in {b"none", b"same-origin"}
        scheme, _, rest = origin.partition(b"://")
        name, port = _split(rest)
        known = PORTS.get(scheme.decode("latin-1"))
        if not name or known is None:
            return False
        if (name, port or known) == self._origin and scheme.decode() == self._scheme:
            return True
        # Behind a proxy that ends TLS the host is the same, but not the scheme.
        host, host_port = _split(headers.get(b"host", b""))
        return (name, port or known) == (host, host_port or known)


def _split(value: bytes) -> tuple[str, int | None]:
    """Split a host into its name and its port; what is no host has no name."""
    found = _HOST.fullmatch(value.decode("latin-1").lower())
    if found is None:
        return "", None
    name = found["name"].strip("[]").removesuffix(".")
    return name, int(found["port"]) if found["port"] else None


def _to_ascii(name: str) -> str:
    try:
        return name.encode("idna").decode("ascii") if name else name
    except UnicodeError:
        return name
