"""The list of egress proxies: which one is in use, and when the next is taken."""

import asyncio
import base64
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal
from urllib.parse import SplitResult, unquote, urlsplit

import httpcore2
import structlog

from mimawari.errors import BadInput
from mimawari.kernel.clock import Mark
from mimawari.kernel.ports import Clock
from mimawari.net.guard import Forbidden, parse_address, parse_name

log = structlog.get_logger(component="egress")

MOST_FAILURES = 10
REST_FOR = timedelta(minutes=30)
PROBE_FOR = timedelta(seconds=5)
MOST_REPLY_BYTES = 16 * 1024
_STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3})(?: [^\r\n]*)?\r\n")
_GRANTED = range(200, 300)

Reason = Literal["blocked", "timeout", "network"]
"""What counts against a proxy."""


@dataclass(frozen=True, slots=True)
class ProxyUrl:
    """An HTTP proxy; shown without its password."""

    host: str
    port: int
    user: str | None = field(default=None, repr=False)
    password: str = field(default="", repr=False)

    def __str__(self) -> str:
        """Name the proxy as a log may show it."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


Healthy = Callable[[ProxyUrl], Awaitable[bool]]


def parse_proxy(url: str) -> ProxyUrl:
    """Read http://user:password@host:port; the error never repeats what may be a password."""
    advice = "write a proxy as http://host:port or http://user:password@host:port"
    if not url.isascii() or not url.isprintable() or " " in url:
        raise BadInput(f"a proxy's address has characters that no address has; {advice}")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        # Its sentence may quote the password.
        raise BadInput(f"a proxy's address cannot be read; {advice}") from None
    if parts.scheme != "http":
        raise BadInput(f"a proxy must be an http:// one; {advice}")
    if parts.path not in {"", "/"} or parts.query or parts.fragment:
        raise BadInput(f"a proxy's address has more than a host and a port; {advice}")
    host = parts.hostname or ""
    if not _is_host(host) or port == 0:
        raise BadInput(f"a proxy's address has no usable host or port; {advice}")
    user, password = _parse_login(parts)
    return ProxyUrl(host, port or 80, user, password)


def _is_host(host: str) -> bool:
    if parse_address(host) is not None:
        return "%" not in host
    try:
        return bool(parse_name(host))
    except Forbidden:
        return False


def _parse_login(parts: SplitResult) -> tuple[str | None, str]:
    if parts.username is None:
        return None, ""
    user, password = unquote(parts.username), unquote(parts.password or "")
    if ":" in user or not (user + password).isprintable():
        raise BadInput("a proxy's user may hold no colon, and neither part control characters")
    return user, password


async def ask_tunnel(stream: httpcore2.AsyncNetworkStream, proxy: ProxyUrl, target: str) -> None:
    """Ask an open proxy for a tunnel to a target; raise ConnectError unless it is granted."""
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if proxy.user is not None:
        login = base64.b64encode(f"{proxy.user}:{proxy.password}".encode())
        lines.append(f"Proxy-Authorization: Basic {login.decode('ascii')}")
    request = "".join(f"{line}\r\n" for line in (*lines, ""))
    try:
        reply = await _exchange(stream, request.encode("ascii"))
    except (httpcore2.ReadError, httpcore2.WriteError) as error:
        raise httpcore2.ConnectError(f"the proxy {proxy} broke off") from error
    status = _STATUS.match(reply)
    head, end, rest = reply.partition(b"\r\n\r\n")
    if status is None or not end or len(head) + len(end) > MOST_REPLY_BYTES:
        raise httpcore2.ConnectError(f"the proxy {proxy} gave no HTTP answer that can be read")
    if int(status[1]) not in _GRANTED:
        code = int(status[1])
        raise httpcore2.ConnectError(f"the proxy {proxy} answered {code} to CONNECT {target}")
    # Through a new tunnel the client speaks first; bytes before that are the proxy's own.
    if rest:
        raise httpcore2.ConnectError(f"the proxy {proxy} spoke into the tunnel to {target}")


async def _exchange(stream: httpcore2.AsyncNetworkStream, request: bytes) -> bytes:
    await stream.write(request)
    reply = b""
    while b"\r\n\r\n" not in reply and len(reply) <= MOST_REPLY_BYTES:
        piece = await stream.read(MOST_REPLY_BYTES)
        if not piece:
            break
        reply += piece
    return reply


def connect_probe(host: str) -> Healthy:
    """Make the check that a proxy is healthy: it opens a tunnel to a known host in 5 seconds."""

    async def is_healthy(proxy: ProxyUrl) -> bool:
        try:
            async with asyncio.timeout(PROBE_FOR.total_seconds()):
                await _probe(proxy, f"{host}:443")
        except (TimeoutError, httpcore2.ConnectError) as error:
            reason = str(error) or "no answer in time"
            log.info("proxy checked", who="egress", what=str(proxy), result="bad", reason=reason)
            return False
        return True

    return is_healthy


async def _probe(proxy: ProxyUrl, target: str) -> None:
    stream = await httpcore2.AnyIOBackend().connect_tcp(proxy.host, proxy.port)
    try:
        await ask_tunnel(stream, proxy, target)
    finally:
        await stream.aclose()


class Egress:
    """Holds on to one proxy while it works, and takes the next healthy one when it does not."""

    def __init__(self, urls: Sequence[str], clock: Clock, healthy: Healthy) -> None:
        self._proxies = tuple(dict.fromkeys(parse_proxy(url) for url in urls))
        self._clock = clock
        self._healthy = healthy
        self._current = self._proxies[0] if self._proxies else None
        self._failures = 0
        self._left: dict[ProxyUrl, Mark] = {}
        self._switching = False

    @property
    def current(self) -> ProxyUrl | None:
        """The proxy in use; None if requests go out directly."""
        return self._current

    def worked(self, proxy: ProxyUrl | None) -> None:
        """Note that a request through a proxy went well."""
        if proxy == self._current:
            self._failures = 0

    async def failed(self, reason: Reason, proxy: ProxyUrl | None) -> None:
        """Note a failure through a proxy; at the tenth in a row take the next healthy one."""
        if proxy is None or proxy != self._current:
            return
        self._failures += 1
        # Who fails while the next one is being looked for need not look too.
        if self._failures < MOST_FAILURES or self._switching:
            return
        self._switching = True
        try:
            await self._switch(proxy, f"{MOST_FAILURES} failures in a row, the last: {reason}")
        finally:
            self._switching = False

    async def _switch(self, left: ProxyUrl, reason: str) -> None:
        following = await self._find_healthy(left)
        self._failures = 0
        facts = {"who": "egress", "what": str(left), "reason": reason}
        if following is None:
            log.warning("no other proxy is healthy", **facts, result="kept", next=str(left))
            return
        self._left[left] = self._clock.mark()
        self._current = following
        log.warning("proxy switched", **facts, result="left", next=str(following))

    async def _find_healthy(self, left: ProxyUrl) -> ProxyUrl | None:
        place = self._proxies.index(left)
        for proxy in (*self._proxies[place + 1 :], *self._proxies[:place]):
            if not self._is_resting(proxy) and await self._healthy(proxy):
                return proxy
        return None

    def _is_resting(self, proxy: ProxyUrl) -> bool:
        since = self._left.get(proxy)
        return since is not None and self._clock.mark().elapsed_since(since) < REST_FOR
