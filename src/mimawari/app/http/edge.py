"""The edge: what every request passes before any code of ours looks at it."""

import asyncio
import math
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from mimawari.app.http import keys
from mimawari.app.http.addresses import WRONG_HOST, Hosts, address_of, network_of
from mimawari.app.http.allowance import PER, Allowance
from mimawari.app.http.envelope import envelope_bytes
from mimawari.app.http.guesses import MOST_KNOWN, Guesses
from mimawari.app.http.strict_json import check_json
from mimawari.errors import BadInput, StoreDown
from mimawari.kernel.ports import Reporter
from mimawari.kernel.rights import Caller, find_holder
from mimawari.kernel.values import Trouble
from mimawari.kernel.watch import Manners
from mimawari.store.sql.engine import impatient

MOST_BYTES = 1024 * 1024
READS = frozenset({"GET", "HEAD"})
HEALTH = frozenset({"/healthz", "/readyz"})
OPEN = HEALTH | {"/openapi.json"}
CALLS_A_GUESS, LEAST_GUESSES = 30, 5
"""Attempts with unknown keys allowed: one for this many calls allowed, and at least so many."""
RETRY_SOON = ((b"retry-after", b"5"),)
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


class Refusal(Exception):
    """A request that ends at the edge."""

    def __init__(
        self, status: int, code: str, message: str, headers: tuple[tuple[bytes, bytes], ...] = ()
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = headers


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a key."""

    name: str
    """Identifies the holder in counts and logs; the key itself is never written."""
    caller: Caller | None = None
    """The identity, for routes that check it."""


class Lock(Protocol):
    """Knows the keys that are given in a header."""

    @property
    def header(self) -> str:
        """The header that a key is given in."""
        ...

    def find(self, given: bytes) -> Holder | None:
        """Return who holds a key; None if it is none of ours."""
        ...


@dataclass(frozen=True, slots=True)
class ApiLock:
    """Opened by the API keys."""

    keys: tuple[bytes, ...] = field(repr=False)
    header: str = "X-API-Key"

    def find(self, given: bytes) -> Holder | None:
        """Return who holds a key; None if it is none of ours."""
        which = keys.matches(given, self.keys)
        if which is None:
            return None
        return Holder(f"key {keys.fingerprint(self.keys[which])}")


@dataclass(frozen=True, slots=True)
class InternalLock:
    """Opened by the installation's own key, and by the tokens that are made with it."""

    key: bytes = field(repr=False)
    header: str = "X-Internal-API-Key"

    def find(self, given: bytes) -> Holder | None:
        """Return who holds the key or a token; None if it is neither."""
        caller = find_holder(self.key, given)
        return None if caller is None else Holder(caller.name, caller)


class Doorkeeper:
    """Authenticates requests and limits how often keys can be guessed."""

    def __init__(self, lock: Lock, guesses: Guesses, rate: int) -> None:
        self.lock = lock
        self._guesses = guesses
        self._most = max(LEAST_GUESSES, rate // CALLS_A_GUESS)
        self._known: set[tuple[str, str]] = set()
        self._meeting: dict[tuple[str, str], asyncio.Task[datetime | None]] = {}

    async def find(self, scope: Message) -> Holder | None:
        """Return the holder of the key; raise Refusal where the network has no attempts left.

        The first use of a key from a network is counted like a wrong key, so that a refusal does
        not reveal whether the key was right. Later uses are not counted and never refused for it.
        """
        given = dict(scope["headers"]).get(self.lock.header.lower().encode(), b"")
        if not given:
            return None
        network, holder = network_of(address_of(scope)), self.lock.find(given)
        pair = (network, holder.name if holder else "")
        if pair in self._known:
            return holder
        until = await (self._take(network) if holder is None else self._meet(pair))
        if until is not None:
            raise _too_many(until - self._guesses.now())
        return holder

    async def _meet(self, pair: tuple[str, str]) -> datetime | None:
        """Count the first use of a key from a network once, also for concurrent requests."""
        if pair not in self._meeting:
            self._meeting[pair] = asyncio.create_task(self._take_soon(pair[0]))
            self._meeting[pair].add_done_callback(lambda _: self._meeting.pop(pair, None))
        until = await asyncio.shield(self._meeting[pair])
        if until is None:
            if len(self._known) > MOST_KNOWN:
                self._known.clear()
            self._known.add(pair)
        return until

    async def _take(self, network: str) -> datetime | None:
        try:
            return await self._guesses.take(f"guess {network}", self._most, PER)
        except StoreDown as error:
            raise Refusal(503, "store_down", str(error), RETRY_SOON) from error

    async def _take_soon(self, network: str) -> datetime | None:
        return await self._guesses.take_soon(f"guess {network}", self._most, PER)


def _too_many(span: timedelta) -> Refusal:
    seconds = max(1, math.ceil(span.total_seconds()))
    retry = ((b"retry-after", str(seconds).encode()),)
    return Refusal(429, "rate_limited", f"too many requests; again in {seconds} s", retry)


@dataclass(frozen=True, slots=True)
class Owed:
    """The manners of some routes, and who counts how often they are read."""

    manners: Manners
    reads: Allowance


class Edge:
    """ASGI middleware: headers, host, key, allowance, size and strict JSON, in this order."""

    def __init__(
        self,
        app: App,
        doorkeeper: Doorkeeper,
        allowance: Allowance,
        reporter: Reporter,
        owed: Sequence[Owed] = (),
        hosts: Hosts | None = None,
    ) -> None:
        self._app = app
        self._doorkeeper = doorkeeper
        self._hosts = hosts
        self._allowance = allowance
        self._reporter = reporter
        self._owed = owed

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Let a request through, or end it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        started = False

        async def send_guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        try:
            with impatient():
                await self._admit(scope)
                body = await read_body(scope, receive)
                await self._app(scope, replay(body, receive), send_guarded)
        except Refusal as refusal:
            await refuse(send_guarded, self._worded(scope, refusal))
        except Exception as error:
            self._reporter.report(_trouble(scope, error))
            if started:
                raise
            bug = Refusal(500, "internal", "a bug of ours; the log has it")
            await refuse(send_guarded, self._worded(scope, bug))

    async def _admit(self, scope: Message) -> None:
        path = scope["path"]
        if self._hosts is not None and path not in HEALTH and not self._hosts.allows(scope):
            raise Refusal(421, "wrong_host", WRONG_HOST)
        if path in OPEN:
            return
        lock, holder = self._doorkeeper.lock, await self._doorkeeper.find(scope)
        if holder is None:
            network = network_of(address_of(scope))
            await count(self._allowance, f"address {network}", scope["method"])
            message = f"give a valid key in the header {lock.header}; see `mimawari doctor`"
            raise Refusal(401, "unauthorized", message, ((b"www-authenticate", b"ApiKey"),))
        client = holder.name
        scope.setdefault("state", {}).update(client=client, caller=holder.caller)
        await count(self._allowance, client, scope["method"])
        owed = self._owed_for(scope)
        if owed is not None and scope["method"] in READS:
            await count(owed.reads, f"{client} {owed.manners.prefixes[0]}", scope["method"])

    def _owed_for(self, scope: Message) -> Owed | None:
        covering = (owed for owed in self._owed if owed.manners.covers(scope["path"]))
        return next(covering, None)

    def _worded(self, scope: Message, refusal: Refusal) -> Refusal:
        """Say a refusal in the words of the routes that it is for."""
        owed = self._owed_for(scope)
        if owed is not None:
            refusal.code = owed.manners.codes.get(refusal.code, refusal.code)
        return refusal


async def count(allowance: Allowance, client: str, method: str) -> None:
    """Count a request of a client, or refuse it; a read never waits for the store."""
    if method in READS:
        until = allowance.use_for_read(client)
    else:
        try:
            until = await allowance.use_for_write(client)
        except StoreDown:
            # The request itself will say that the store is down.
            return
    if until is not None:
        raise _too_many(until - allowance.now())


def _trouble(scope: Message, error: Exception) -> Trouble:
    """Tell of a request by its route: in its path, query, headers and body are others' words."""
    route = scope.get("route")
    return Trouble(
        component="api",
        message="a request failed",
        what=f"{scope['method']} {route.path}" if route else "no route",
        error=error,
        line={"what": scope["path"], "result": "500"},
    )


async def read_body(scope: Message, receive: Receive) -> bytes:
    """Read a body within bounds, and refuse JSON that is not strictly so."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refusal(400, "disconnected", "the client went away")
        body += message.get("body", b"")
        if len(body) > MOST_BYTES:
            raise Refusal(413, "too_large", f"a body may have {MOST_BYTES} bytes at the most")
        if not message.get("more_body"):
            break
    # Of two headers another reader may believe the other one.
    types = [value for name, value in scope["headers"] if name == b"content-type"] or [b"json"]
    if body and any(value.split(b";")[0].strip().lower().endswith(b"json") for value in types):
        try:
            check_json(bytes(body))
        except BadInput as error:
            raise Refusal(400, error.code, str(error)) from error
    return bytes(body)


def replay(body: bytes, receive: Receive) -> Receive:
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def refuse(send: Send, refusal: Refusal) -> None:
    content = envelope_bytes(refusal.code, str(refusal))
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(content)).encode()),
        *refusal.headers,
    ]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
