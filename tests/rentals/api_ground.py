"""The ground of the tests of the rentals watch's API: on a socket, with a worker beside it."""

import asyncio
import csv
import io
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2

from mimawari.kernel.clock import Mark, VirtualClock
from mimawari.kernel.job import End, State, Want
from mimawari.kernel.rounds import BLINK_SECONDS, Rounds
from mimawari.kernel.watch import Watches
from mimawari.kernel.worker import ALIVE, ALIVE_FOR
from mimawari.watches.rentals import tasks, watch
from tests.app.ground import PATIENCE_SECONDS, Api, open_api
from tests.rentals.scene import ADDRESS, AREA, Scene, open_scene

START = datetime(2026, 1, 5, 12, tzinfo=UTC)
"""So soon after the site's beginning that there is little to catch up with."""
SECOND = timedelta(seconds=1)
NOBODY = f"{ADDRESS}/rent/detail/{'0' * 44}/"
"""The address of a room that there never was."""


class Beside:
    """The same time for those who wait beside a worker, so that it is known when they do."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.sleeping = 0

    def now(self) -> datetime:
        """Return the time."""
        return self._clock.now()

    def mark(self) -> Mark:
        """Return this moment in true time."""
        return self._clock.mark()

    async def sleep(self, span: timedelta) -> None:
        """Sleep until the clock has been moved on by as long as said."""
        until = self._clock.now() + span
        self.sleeping += 1
        try:
            while self._clock.now() < until:
                await asyncio.sleep(BLINK_SECONDS)
        finally:
            self.sleeping -= 1


@dataclass(frozen=True, slots=True)
class Rooms:
    """The API with the rentals watch, the site it reads, and workers that work when asked to."""

    api: Api
    scene: Scene
    waits: Beside
    lists_only: Rounds
    """A worker that leaves the details in the queue alone."""

    @property
    def http(self) -> httpx2.AsyncClient:
        """A client with a key."""
        return self.api.http

    async def get(self, path: str, **params: Any) -> Any:
        """Ask and insist on an answer."""
        response = await self.http.get(f"/api{path}", params=params)
        assert response.status_code == 200, response.text
        return response.json()

    async def rows(self, path: str, **params: Any) -> list[dict[str, str]]:
        """Ask for a file and read it as a spreadsheet does."""
        response = await self.http.get(f"/api{path}", params={"format": "csv", **params})
        assert response.status_code == 200, response.text
        assert response.headers["content-type"] == "text/csv; charset=utf-8"
        text = response.content.decode("utf-8")
        assert text.startswith("\ufeff")
        return list(csv.DictReader(io.StringIO(text[1:], newline="")))

    async def pages(self, path: str, name: str, given_as: str, **params: Any) -> list[Any]:
        """Follow the pages of a list to its end and return all there is, each page bounded."""
        found: list[Any] = []
        while True:
            page = await self.get(path, **params)
            assert 0 < len(page[name]) <= params["limit"]
            found += page[name]
            if page["next"] is None:
                return found
            params[given_as] = page["next"]

    async def post(self, path: str, **body: Any) -> httpx2.Response:
        """Send a body while nobody works."""
        return await self.http.post(f"/api{path}", json=body)

    async def say_alive(self) -> None:
        """Let the API know that somebody works, as a worker does each minute."""
        await self.api.store.cache.set(ALIVE, b"test", ALIVE_FOR)

    async def send(
        self, path: str, body: Mapping[str, Any], worker: Rounds | None = None
    ) -> httpx2.Response:
        """Send a body, and let a worker work and time pass until it is answered."""
        rounds = worker or self.scene.rounds
        await self.say_alive()
        asking = asyncio.create_task(self.post(path, **body))
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self._settle(asking)
            while not asking.done():
                await rounds.work()
                await self._settle(asking)
                if not asking.done():
                    await rounds.pass_time(SECOND)
                    await self._settle(asking)
        return await asking

    async def _settle(self, asking: "asyncio.Task[httpx2.Response]") -> None:
        """Wait until a request is answered, or has heard what there was to hear and waits."""
        for _ in range(10):
            await asyncio.sleep(0)
        while not (asking.done() or self.waits.sleeping):
            await asyncio.sleep(BLINK_SECONDS)

    async def walk(self, url: str = AREA, limit: int = 100) -> Any:
        """Walk over a list to its end, and read no detail."""
        response = await self.send("/scrape/list", {"url": url, "limit": limit}, self.lists_only)
        assert response.status_code == 200, response.text
        return response.json()

    async def end_details(self, *states: State) -> list[str]:
        """End as many details of the queue as told, each in its state; return their ids."""
        ended = []
        for state in states:
            want = Want(kind=tasks.DETAIL, most=1, lease_for=timedelta(minutes=1))
            (job,) = (await self.api.store.queue.turn((), [want], "test")).jobs
            end = End(id=job.id, token=job.token, state=state, reason="so it was told")
            await self.api.store.queue.turn([end], (), "test")
            ended.append(job.id)
        return ended

    def urls(self, path: str = AREA) -> list[str]:
        """List the addresses of the rooms that are in an area now, by the site's own word."""
        area = path.removeprefix(f"{ADDRESS}/rent/search/").strip("/")
        truth = self.scene.world.parts["rentals"].truth({"area": area})
        return [ADDRESS + room["path"] for room in truth["rooms"]]


@asynccontextmanager
async def open_rooms(url: str, folder: Path, **given: Any) -> AsyncIterator[Rooms]:
    """Serve the API with the rentals watch on a database and a site of its own."""
    clock = VirtualClock(START)
    waits = Beside(clock)
    settings = {"rentals_url": ADDRESS, **given}
    async with (
        open_api(url, folder, clock=waits, watches=(watch,), **settings) as api,
        open_scene(api.store, clock, **given) as scene,
    ):
        some = Watches([replace(watch, tasks=(tasks.scrape_list,))], scene.settings)
        lists_only = Rounds(api.store, clock, some, {}, scene.http)
        yield Rooms(api, scene, waits, lists_only)
