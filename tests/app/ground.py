"""The ground of the app's tests: the API on a real socket, and jobs in every state."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2

from mimawari.app.http.answering import start_api
from mimawari.app.http.listening import listen
from mimawari.app.ops import System, opened
from mimawari.app.reporting.reporters import open_reporter
from mimawari.kernel.job import End, NewJob, State, Want
from mimawari.kernel.ports import Clock
from mimawari.kernel.watch import Watch
from mimawari.settings import Settings
from mimawari.store.sql import SqlStore
from mimawari.watches import example
from tests.app.description import Sender

KEY = "the-key"
OTHER_KEY = "ключ"
KEYS = (KEY.encode(), OTHER_KEY.encode())
PATIENCE_SECONDS = 30.0
GUARDS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}


@dataclass(frozen=True, slots=True)
class Api:
    """The API as it is served, and what stands behind it."""

    http: httpx2.AsyncClient
    address: str
    system: System

    @property
    def store(self) -> SqlStore:
        """The store behind it."""
        return self.system.store

    @property
    def sender(self) -> Sender:
        """The holder of its key."""
        return Sender(address=self.address, header=f"X-API-Key: {KEY}")


@asynccontextmanager
async def open_api(
    url: str,
    folder: Path,
    *,
    rate: int = 1_000_000,
    clock: Clock | None = None,
    watches: Sequence[Watch] = (example,),
    keys: tuple[bytes, ...] = KEYS,
    **given: Any,
) -> AsyncIterator[Api]:
    """Serve the API on a free port, on a clock and with settings if any are given."""
    settings = Settings(data=folder, database_url=url, api_rate=rate, **given)
    async with open_reporter(settings) as reporter, opened(settings, watches, reporter) as system:
        if clock is not None:
            system.store.database.clock = clock
            system = replace(system, clock=clock)  # noqa: PLW2901 - the same system, otherwise timed
        taken = listen("127.0.0.1", 0)
        host, port = taken.getsockname()
        server, serving = start_api(system, keys, taken)
        address = f"http://{host}:{port}"
        try:
            async with httpx2.AsyncClient(
                base_url=address, headers={"X-API-Key": KEY}, timeout=PATIENCE_SECONDS
            ) as http:
                yield Api(http, address, system)
        finally:
            server.should_exit = True
            await serving


def check_error(response: httpx2.Response, status: int, code: str) -> str:
    """Insist on an error in its envelope with all guards, and return its sentence."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    check_guards(response)
    body = response.json()
    assert list(body) == ["error"]
    assert sorted(body["error"]) == ["code", "message"]
    assert body["error"]["code"] == code
    message: str = body["error"]["message"]
    assert message
    return message


def check_guards(response: httpx2.Response) -> None:
    """Insist on every security header, once."""
    for name, value in GUARDS.items():
        assert response.headers.get_list(name) == [value], name
    assert "server" not in response.headers


async def put(store: SqlStore, count: int = 1, **given: Any) -> list[str]:
    """Put jobs and return their ids, oldest first."""
    values: Mapping[str, Any] = {"kind": "example.read", "args": {"page": "a"}, **given}
    return await store.queue.put([NewJob(**values) for _ in range(count)])


async def end(store: SqlStore, state: State, *, kind: str = "example.read") -> str:
    """Put a job and end it in a state, whatever else waits; return its id."""
    (job_id,) = await put(store, kind=kind, priority=0)
    want = Want(kind=kind, most=1, lease_for=timedelta(minutes=5))
    (job,) = (await store.queue.turn((), [want], "w")).jobs
    assert job.id == job_id
    ended = End(id=job.id, token=job.token, state=state, reason=f"it ended {state}", page=b"<p>")
    await store.queue.turn([ended], (), "w")
    return job_id


async def until(
    condition: Callable[[], Awaitable[bool]], seconds: float = PATIENCE_SECONDS
) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(seconds):
        while True:
            if await condition():
                return
            await asyncio.sleep(0.02)


async def until_down(http: httpx2.AsyncClient, seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until the API says that it is not ready, which it looks up once a second."""

    async def is_down() -> bool:
        return (await http.get("/readyz")).status_code == 503

    await until(is_down, seconds)


async def until_ready(http: httpx2.AsyncClient, seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until the API says that it is ready."""

    async def is_ready() -> bool:
        return (await http.get("/readyz")).status_code == 200

    await until(is_ready, seconds)
