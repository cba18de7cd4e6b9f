"""The only way out: a connector that checks where it dials, and dials what it checked."""

import asyncio
import ssl
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from ipaddress import IPv6Address
from itertools import chain, zip_longest

import httpcore2
import httpx2

from mimawari.net.guard import Address, Forbidden, Guard
from mimawari.net.proxies import Egress, ProxyUrl, ask_tunnel

MOST_TRIED = 4
MOST_CONNECTIONS = 100
MOST_KEPT = 20
KEPT_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a connection is opened, beside where to; the timeout counts for all of it."""

    timeout: float | None = None
    local_address: str | None = None
    socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None


class Dialer(httpcore2.AsyncNetworkBackend):
    """Opens connections to checked addresses only, through the egress proxy if there is one."""

    def __init__(self, guard: Guard, egress: Egress | None = None) -> None:
        self.guard = guard
        self.egress = egress
        self._network = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the interface is httpcore's
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Resolve a host once and open a connection to one of the addresses that were checked."""
        options = Options(
            timeout=timeout, local_address=local_address, socket_options=socket_options
        )
        try:
            async with asyncio.timeout(timeout):
                addresses = await self.guard.addresses(host, port)
                return await self.dial(addresses, port, options)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(f"{host}:{port} did not answer in time") from error

    async def dial(
        self, addresses: Sequence[Address], port: int, options: Options
    ) -> httpcore2.AsyncNetworkStream:
        """Open a connection to the first that answers of addresses which the guard gave."""
        *others, last = _by_turns(addresses)[:MOST_TRIED]
        # One address that swallows everything leaves time for the others.
        share = None if options.timeout is None else options.timeout / (len(others) + 1)
        shared = replace(options, timeout=share)
        for address in others:
            with suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout):
                return await self._open(address, port, shared)
        return await self._open(last, port, shared)

    async def connect_unix_socket(
        self, path: str, *_: object, **__: object
    ) -> httpcore2.AsyncNetworkStream:
        """Refuse: nothing public is behind a socket of this machine."""
        raise Forbidden(f"{path} is a socket of this machine; give an http address")

    async def _open(
        self, address: Address, port: int, options: Options
    ) -> httpcore2.AsyncNetworkStream:
        proxy = self.egress.current if self.egress else None
        if proxy is None:
            return await self._reach(str(address), port, options)
        host = f"[{address}]" if isinstance(address, IPv6Address) else str(address)
        try:
            async with asyncio.timeout(options.timeout):
                return await self._tunnel(proxy, f"{host}:{port}", options)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(f"the proxy {proxy} did not answer in time") from error

    async def _tunnel(
        self, proxy: ProxyUrl, target: str, options: Options
    ) -> httpcore2.AsyncNetworkStream:
        stream = await self._reach(proxy.host, proxy.port, options)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(stream.aclose)
            await ask_tunnel(stream, proxy, target)
            stack.pop_all()
        return stream

    async def _reach(self, host: str, port: int, options: Options) -> httpcore2.AsyncNetworkStream:
        return await self._network.connect_tcp(
            host,
            port,
            timeout=options.timeout,
            local_address=options.local_address,
            socket_options=options.socket_options,
        )


class _GuardedTransport(httpx2.AsyncHTTPTransport):
    def __init__(self, dialer: Dialer, ssl_context: ssl.SSLContext) -> None:
        super().__init__(verify=ssl_context, trust_env=False)
        through_proxies = dialer.egress is not None and dialer.egress.current is not None
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=ssl_context,
            max_connections=MOST_CONNECTIONS,
            # A kept connection would still go through a proxy that was left since.
            max_keepalive_connections=0 if through_proxies else MOST_KEPT,
            keepalive_expiry=KEPT_SECONDS,
            http1=True,
            http2=False,
            network_backend=dialer,
        )


def transport(
    dialer: Dialer, ssl_context: ssl.SSLContext | None = None
) -> httpx2.AsyncBaseTransport:
    """Make a transport for an HTTP client that dials with the dialer and asks no environment."""
    return _GuardedTransport(dialer, ssl_context or httpx2.create_ssl_context(trust_env=False))


def _by_turns(addresses: Sequence[Address]) -> list[Address]:
    """Put the families in turns, the first one first, so that a dead one delays little."""
    first = [address for address in addresses if address.version == addresses[0].version]
    second = [address for address in addresses if address.version != addresses[0].version]
    turns = chain.from_iterable(zip_longest(first, second))
    return [address for address in turns if address is not None]
