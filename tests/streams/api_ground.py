"""The ground of the tests of the streams watch's API: on a socket, with nobody at work."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.job import Job, NewJob, Want
from mimawari.kernel.watch import Watch
from mimawari.watches.streams import watch
from mimawari.watches.streams.outside import CHECK
from mimawari.watches.streams.runner import member_of
from tests.app.ground import Api, open_api

MONITORS = "/api/v1/monitors"
NOON = datetime(2026, 6, 1, 3, 0, tzinfo=UTC)
KEY = "the-signing-key"
CALLBACK = "https://93.184.215.14/hook"
"""A public address, for which no name need be looked up."""


def video_of(number: int) -> str:
    """Name a video."""
    return f"video{number:06d}"


def url_of(number: int) -> str:
    """Write the usual address of a video."""
    return f"https://www.youtube.com/watch?v={video_of(number)}"


def body_of(number: int = 0, **given: Any) -> dict[str, Any]:
    """Make up what is asked for."""
    return {"stream_url": url_of(number), "callback_url": CALLBACK, **given}


@dataclass(frozen=True, slots=True)
class Desk:
    """The API with the streams watch, and the clock it goes by."""

    api: Api
    clock: VirtualClock

    @property
    def http(self) -> httpx2.AsyncClient:
        """A client with a key."""
        return self.api.http

    async def post(self, body: Any, **given: Any) -> httpx2.Response:
        """Ask for a monitor."""
        return await self.http.post(MONITORS, json=body, **given)

    async def add(self, number: int = 0, **given: Any) -> str:
        """Add a monitor, insist that it is taken, and return its id."""
        response = await self.post(body_of(number, **given))
        assert response.status_code == 201, response.text
        found: str = response.json()["monitor_id"]
        return found

    async def get(self, path: str = "", **params: Any) -> Any:
        """Ask and insist on an answer."""
        response = await self.http.get(f"{MONITORS}{path}", params=params)
        assert response.status_code == 200, response.text
        return response.json()

    async def stop(self, monitor_id: str) -> Mapping[str, Any]:
        """Stop a monitor and insist on an answer."""
        response = await self.http.delete(f"{MONITORS}/{monitor_id}")
        assert response.status_code == 200, response.text
        found: Mapping[str, Any] = response.json()
        return found

    async def claim(self, monitor_id: str) -> Job:
        """Begin a check of a monitor, as a worker does."""
        member = member_of(monitor_id)
        args = {"monitor_id": monitor_id}
        new = NewJob(kind=CHECK, args=args, dedupe_key=member, target=member)
        await self.api.store.queue.put([new])
        want = Want(kind=CHECK, most=1, lease_for=timedelta(minutes=5))
        (job,) = (await self.api.store.queue.turn((), [want], "test")).jobs
        return job


@asynccontextmanager
async def open_desk(
    url: str, folder: Path, watched: Watch = watch, **given: Any
) -> AsyncIterator[Desk]:
    """Serve the API with the streams watch alone, while time stands still."""
    clock = VirtualClock(NOON)
    settings = {"webhook_key": KEY, **given}
    async with open_api(url, folder, clock=clock, watches=(watched,), **settings) as api:
        yield Desk(api, clock)
