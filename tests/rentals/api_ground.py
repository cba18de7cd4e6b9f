"""The ground of the tests of the rentals watch's API: on a socket, with a worker beside it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.job import End, State, Want
from mimawari.kernel.rounds import Rounds
from mimawari.kernel.watch import Watches
from mimawari.kernel.worker import ALIVE, ALIVE_FOR
from mimawari.watches.rentals import tasks, watch
from tests.app.asking import Asking
from tests.app.beside import Beside
from tests.app.ground import open_api
from tests.rentals.scene import ADDRESS, AREA, Scene, open_scene

START = datetime(2026, 1, 5, 12, tzinfo=UTC)
"""So soon after the site's beginning that there is little to catch up with."""
NOBODY = f"{ADDRESS}/rent/detail/{'0' * 44}/"
"""The address of a room that there never was."""


@dataclass(frozen=True, slots=True)
class Rooms(Asking):
    """The API with the rentals watch, the site it reads, and workers that work when asked to."""

    scene: Scene
    waits: Beside
    lists_only: Rounds
    """A worker that leaves the details in the queue alone."""

    async def say_alive(self) -> None:
        """Let the API know that somebody works, as a worker does each minute."""
        await self.api.store.cache.set(ALIVE, b"test", ALIVE_FOR)

    async def send(
        self, path: str, body: Mapping[str, Any], worker: Rounds | None = None
    ) -> httpx2.Response:
        """Send a body, and let a worker work and time pass until it is answered."""
        rounds = worker or self.scene.rounds
        await self.say_alive()
        return await self.waits.answer(self.post(path, **body), rounds)

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
