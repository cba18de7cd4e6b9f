"""The gateway, as processes without a database see it: one limiter, breaker and memory for all."""

from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

import httpx2

from mimawari.errors import BadInput, Forbidden, StoreDown, Wait
from mimawari.kernel.ports import Clock
from mimawari.kernel.values import BreakerPolicy, BreakerView, Grant, Limit
from mimawari.settings import Settings
from mimawari.text import one_line

ANSWER_SECONDS = 20.0
_LATER = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.UNAUTHORIZED, HTTPStatus.REQUEST_TIMEOUT}
"""Refusals that may pass: a key is changed on both sides, one after the other."""


class Gateway:
    """Speaks with the internal API; one that does not answer is StoreDown, a refusal BadInput."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def ask(self, method: str, path: str, **given: Any) -> Mapping[str, Any]:
        """Ask once, and return what is answered."""
        try:
            reply = await self._client.request(method, path, **given)
        except httpx2.HTTPError as error:
            words = one_line(str(error) or type(error).__name__, most=200)
            raise StoreDown(f"the gateway does not answer: {words}") from error
        if reply.status_code == HTTPStatus.OK:
            answer: Mapping[str, Any] = reply.json()
            return answer
        code, words = _told(reply)
        if reply.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR or reply.status_code in _LATER:
            raise StoreDown(f"the gateway answers {reply.status_code}: {words}")
        if reply.status_code == HTTPStatus.FORBIDDEN:
            raise Forbidden(words)
        raise BadInput(words, code=code)

    async def post(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask a route of the ports."""
        return await self.ask("POST", f"/internal/v1{path}", json=dict(body))


@asynccontextmanager
async def open_gateway(settings: Settings) -> AsyncIterator[Gateway]:
    """Open a way to the gateway that the settings name, and to nobody else."""
    key = settings.internal_key.get_secret_value()
    async with httpx2.AsyncClient(
        base_url=settings.gateway_url,
        headers={"X-Internal-API-Key": key},
        timeout=ANSWER_SECONDS,
        trust_env=False,
    ) as client:
        yield Gateway(client)


def _told(reply: httpx2.Response) -> tuple[str, str]:
    try:
        error = reply.json()["error"]
        return str(error["code"]), one_line(str(error["message"]), most=300)
    except (ValueError, KeyError, TypeError):
        return "unknown", f"status {reply.status_code}"


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _wait(told: Mapping[str, Any] | None) -> Wait | None:
    if told is None:
        return None
    return Wait(datetime.fromisoformat(told["until"]), told["reason"], told["blocked_by"])


class GatewayLimiter:
    """The limiter of the gateway."""

    def __init__(self, gateway: Gateway, clock: Clock) -> None:
        self._gateway = gateway
        self._clock = clock

    async def acquire(self, limit: Limit, caller: str) -> Grant | Wait:
        """Give leave for one request now, or say until when and why there is none."""
        # Leave counts from before it was asked for: it is never used when it has run out there.
        mark = self._clock.mark()
        # The gateway knows the count and the window of the limit.
        body = {"name": limit.name, "caller": caller}
        told = await self._gateway.post("/limits/acquire", body)
        wait = _wait(told.get("wait"))
        if wait is not None:
            return wait
        return Grant(limit.name, told["grant_id"], mark, timedelta(seconds=told["valid_for"]))

    async def settle(self, grant: Grant) -> None:
        """Say that the request is over, which frees its place in the window sooner."""
        await self._gateway.post("/limits/settle", {"name": grant.limit, "grant_id": grant.id})

    async def release(self, grant: Grant) -> None:
        """Give back leave for a request that was certainly not sent."""
        await self._gateway.post("/limits/release", {"name": grant.limit, "grant_id": grant.id})

    async def hold(self, name: str, until: datetime, reason: str) -> None:
        """Give no leave before a time, as a site's Retry-After asks."""
        body = {"name": name, "until": until.isoformat(), "reason": one_line(reason)}
        await self._gateway.post("/limits/hold", body)


class GatewayBreaker:
    """The breakers of the gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def check(self, site: str) -> Wait | None:
        """Say until when to stay away; after that time let exactly one caller try."""
        return _wait((await self._gateway.post("/breakers/check", {"site": site})).get("wait"))

    async def failed(
        self, site: str, policy: BreakerPolicy, reason: str, until: datetime | None = None
    ) -> BreakerView:
        """Count one refusal and tell what follows; how patient to be the gateway knows."""
        del policy
        body = {"site": site, "reason": one_line(reason)}
        told = await self._gateway.post(
            "/breakers/failed", {**body, "until": until.isoformat() if until else None}
        )
        return _view(site, told) or BreakerView(site, "closed", 0, None, None)

    async def worked(self, site: str) -> None:
        """Close the breaker and forget the failures."""
        await self._gateway.post("/breakers/worked", {"site": site})

    async def find(self, site: str) -> BreakerView | None:
        """Tell how a breaker stands; changes nothing."""
        return _view(site, await self._gateway.post("/breakers/find", {"site": site}))


def _view(site: str, told: Mapping[str, Any]) -> BreakerView | None:
    if told["state"] is None:
        return None
    until = _moment(told["until"])
    return BreakerView(site, told["state"], told["failures"], until, told["reason"])


class GatewayCache:
    """What the gateway remembers."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def get(self, key: str) -> bytes | None:
        """Return a value that has not run out."""
        value = (await self._gateway.post("/cache/get", {"key": key}))["value"]
        return None if value is None else b64decode(value)

    async def set(self, key: str, value: bytes, ttl: timedelta) -> None:
        """Keep a value for a while."""
        body = {"key": key, "value": b64encode(value).decode(), "ttl": ttl.total_seconds()}
        await self._gateway.post("/cache/set", body)


@dataclass(frozen=True, slots=True)
class GatewayPorts:
    """What a process without a database has of a store."""

    limiter: GatewayLimiter
    breaker: GatewayBreaker
    cache: GatewayCache


def open_ports(gateway: Gateway, clock: Clock) -> GatewayPorts:
    """Make the ports that a gateway stands behind."""
    return GatewayPorts(
        GatewayLimiter(gateway, clock), GatewayBreaker(gateway), GatewayCache(gateway)
    )
