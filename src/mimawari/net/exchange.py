"""One request and its reply: within a total deadline and a size, gzip or nothing."""

import asyncio
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx2

from mimawari.errors import Invalid, Transient
from mimawari.net.guard import Forbidden
from mimawari.net.page import Site

GZIP = 31
PLAIN = frozenset({"", "identity"})
ZIPPED = frozenset({"gzip", "x-gzip"})
CONNECT_SECONDS = 10.0
MOST_KEPT = 64 * 1024
STEP = 1024 * 1024
UNSENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
"""Raised before a connection was there to send anything on."""
SLICE = 16 * 1024
"""So many compressed bytes are unpacked at a time: what is left over is copied, once a slice."""
MOST_MEMBERS = 1000
"""A gzip file may have several parts; empty ones cost time and add nothing to the size."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What is asked of a site."""

    method: str
    url: httpx2.URL
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Timeout(Transient):
    """A site did not answer in time."""


async def exchange(transport: httpx2.AsyncBaseTransport, ask: Ask, site: Site) -> Reply:
    """Ask once and read the whole reply, or raise what went wrong."""
    seconds = site.deadline_for.total_seconds()
    limits = {"connect": CONNECT_SECONDS, "read": seconds, "write": seconds, "pool": seconds}
    try:
        request = httpx2.Request(
            ask.method, ask.url, headers=ask.headers, content=ask.body,
            extensions={"timeout": limits},
        )  # fmt: skip
        async with asyncio.timeout(seconds):
            return await _ask(transport, request, site)
    except (TimeoutError, httpx2.TimeoutException) as error:
        unsent = isinstance(error, UNSENT)
        raise Timeout(f"{ask.url.host} took longer than {seconds:g} s", unsent=unsent) from error
    except httpx2.HTTPError as error:
        words = str(error) or type(error).__name__
        unsent = isinstance(error, UNSENT)
        raise Transient(f"{ask.url.host} could not be read: {words}", unsent=unsent) from error


def is_unsent(error: BaseException) -> bool:
    """Return whether a request that failed has certainly not reached its site."""
    # What the guard forbids is refused before anything is dialled.
    return isinstance(error, Forbidden) or (isinstance(error, Transient) and error.unsent)


async def _ask(transport: httpx2.AsyncBaseTransport, request: httpx2.Request, site: Site) -> Reply:
    response = await transport.handle_async_request(request)
    response.request = request
    try:
        headers = {name.lower(): value for name, value in response.headers.items()}
        body = _Body(headers, site.most_bytes)
        async for chunk in response.aiter_raw():
            await body.feed(chunk)
        return Reply(response.status_code, headers, body.whole())
    finally:
        await response.aclose()


class _Body:
    """A body that never grows past its bound, zipped or not."""

    def __init__(self, headers: Mapping[str, str], most: int) -> None:
        self._most = most
        self._kept = bytearray()
        self._taken = 0
        self._members = 1
        coding = headers.get("content-encoding", "").strip().lower()
        if coding not in PLAIN | ZIPPED:
            # Other codings, and codings of codings, may swell to anything.
            raise Invalid(f"the site answered in {coding[:40]!r}, which we did not ask for")
        self._unzip = zlib.decompressobj(GZIP) if coding in ZIPPED else None
        length = headers.get("content-length", "")
        if length.isascii() and length.isdecimal() and int(length[:20]) > most:
            raise self._too_large()

    async def feed(self, chunk: bytes) -> None:
        """Take the next bytes as they came, giving way to others after each slice of work."""
        if self._unzip is None:
            self._add(chunk)
            return
        self._taken += len(chunk)
        if self._taken > self._most:
            raise self._too_large()
        for start in range(0, len(chunk), SLICE):
            self._unpack(chunk[start : start + SLICE])
            await asyncio.sleep(0)

    def _unpack(self, chunk: bytes) -> None:
        unzip = self._unzip
        while chunk and unzip is not None:
            if unzip.eof:
                # A file of several parts, one behind the other, is still one file.
                unzip = self._unzip = self._next_member()
            try:
                self._add(unzip.decompress(chunk, STEP))
            except zlib.error as error:
                raise Transient("the reply is no gzip though it says so") from error
            chunk = unzip.unconsumed_tail or unzip.unused_data

    def _next_member(self) -> "zlib._Decompress":
        self._members += 1
        if self._members > MOST_MEMBERS:
            raise Invalid(f"the reply has more than {MOST_MEMBERS} gzip parts")
        return zlib.decompressobj(GZIP)

    def whole(self) -> bytes:
        """Return the body, if it came to its end."""
        if self._unzip is not None and self._kept and not self._unzip.eof:
            raise Transient("the reply was cut short")
        return bytes(self._kept)

    def _add(self, chunk: bytes) -> None:
        self._kept += chunk
        if len(self._kept) > self._most:
            raise self._too_large()

    def _too_large(self) -> Invalid:
        return Invalid(
            f"the reply is larger than {self._most} bytes", page=bytes(self._kept[:MOST_KEPT])
        )
