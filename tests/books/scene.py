"""The books watch at work in virtual time on a catalogue that does as a test tells it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
from pydantic import SecretStr
from sqlalchemy import select
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.rounds import Rounds
from mimawari.kernel.watch import Watches
from mimawari.net.http import Fetcher
from mimawari.net.ways import open_ways
from mimawari.settings import DEFAULTS, Settings
from mimawari.sim.world import World
from mimawari.store.sql import SqlStore
from mimawari.watches.books import cursors, jobs, quota, watch
from mimawari.watches.books.collecting import make_run
from mimawari.watches.books.models import BookJob, KeptCursor, Run, Search
from mimawari.watches.books.quota import Usage
from mimawari.watches.books.tables import books, runs

NOON = datetime(2026, 6, 1, 3, tzinfo=UTC)
"""Noon in Tokyo."""
ADDRESS = "http://books.test"
HOUR = timedelta(hours=1)
DAY_OVER = "Quota exceeded for quota metric 'Queries' and limit 'Queries per day'"

Meanwhile = Callable[[], Awaitable[None]]
Total = Callable[[int], int | None]
"""Tells how many volumes a page that starts there says there are; None says nothing of it."""


def volume(number: int, *, isbn: bool = True) -> dict[str, Any]:
    """Make up a volume; each tenth digit of its ISBN is right."""
    digits = f"978{number:09d}"
    total = sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(digits))
    identifier = {"type": "ISBN_13", "identifier": digits + str(-total % 10)}
    shown = {"title": f"Book {number}", "industryIdentifiers": [identifier] if isbn else []}
    return {"id": f"v{number}", "volumeInfo": shown}


class Catalogue:
    """Volumes behind an API, and what goes wrong with it."""

    name = "books"

    def __init__(self, volumes: int = 0) -> None:
        self.volumes = [volume(number) for number in range(volumes)]
        self.total: Total = lambda _start: len(self.volumes)
        self.replies: list[Response] = []
        """Given instead of volumes, one after the other."""
        self.meanwhile: Meanwhile | None = None
        """Done once while a page is on its way."""

    def owns(self, path: str) -> bool:
        """Own the API."""
        return path.startswith("/books/")

    async def answer(self, request: Request) -> Response:
        """Answer with a page, or with what was told."""
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        if self.replies:
            return self.replies.pop(0)
        start = int(request.query_params["startIndex"])
        items = self.volumes[start : start + int(request.query_params["maxResults"])]
        total = self.total(start)
        reply: dict[str, Any] = {"kind": "books#volumes"}
        reply |= {} if total is None else {"totalItems": total}
        return JSONResponse(reply | ({"items": items} if items else {}))

    def truth(self, query: Mapping[str, str]) -> Any:
        """Tell nothing."""
        del query

    def refusal(self) -> Response:
        """Refuse."""
        return JSONResponse({"error": {"code": 403, "message": "no"}}, 403)


def refuse(code: int, message: str = "Service temporarily unavailable.") -> Response:
    """Make a reply that is no success."""
    return JSONResponse({"error": {"code": code, "message": message, "errors": []}}, code)


class Scene:
    """The watch, the catalogue it reads, and a way to let time pass."""

    def __init__(self, world: World, catalogue: Catalogue, rounds: Rounds) -> None:
        self.world = world
        self.catalogue = catalogue
        self.rounds = rounds
        self.store = rounds.store
        self.clock = rounds.clock

    @property
    def settings(self) -> Settings:
        """What the watch goes by."""
        return self.rounds.watches.settings

    async def add_job(self, name: str = "new", **given: Any) -> BookJob:
        """Keep a job, which is due at once."""
        search = Search(**{"name": name, "queries": ("subject:fiction",), **given})
        async with self.store.edit() as tx:
            return await jobs.add_job(tx, search, self.settings, self.clock.now())

    async def change_job(self, change: Callable[[BookJob], Search], name: str = "new") -> BookJob:
        """Change a job."""
        async with self.store.edit() as tx:
            return await jobs.change_job(tx, name, change, self.settings, self.clock.now())

    async def reset(self, name: str = "new") -> int:
        """Let a job begin anew."""
        async with self.store.edit() as tx:
            return await jobs.reset_job(tx, name, self.settings, self.clock.now())

    async def pass_time(self, **span: float) -> None:
        """Let time pass."""
        await self.rounds.pass_time(timedelta(**span))

    def asked(self) -> list[tuple[int, int]]:
        """List what the site was asked for, by its own log: where from, and how many."""
        found = self.world.log.list({"part": "books", "limit": "10000"})["seen"]
        queries = [httpx2.QueryParams(one["query"]) for one in found]
        return [(int(one["startIndex"]), int(one["maxResults"])) for one in queries]

    async def runs(self) -> list[Run]:
        """List the runs, the first one first."""
        async with self.store.read() as reader:
            found = await reader.execute(select(runs).order_by(runs.c.started_at, runs.c.id))
            return [make_run(row) for row in found]

    async def last_run(self) -> Run:
        """Find the newest run."""
        return (await self.runs())[-1]

    async def cursor(self, name: str = "new") -> KeptCursor:
        """Find the one cursor of a job."""
        async with self.store.read() as reader:
            (found,) = await cursors.list_cursors(reader, name)
        return found

    async def usage(self) -> Usage:
        """Tell how many calls were made today."""
        async with self.store.read() as reader:
            return await quota.find_usage(reader, self.settings, self.clock.now())

    async def titles(self) -> list[str]:
        """List the titles of all books."""
        async with self.store.read() as reader:
            return sorted((await reader.execute(select(books.c.title))).scalars())


@asynccontextmanager
async def open_scene(
    store: SqlStore,
    clock: VirtualClock,
    catalogue: Catalogue,
    broken: Exception | None = None,
    **given: Any,
) -> AsyncIterator[Scene]:
    """Open the watch on a store; where it is given, the way to the site breaks once like this."""
    world = World(clock, (catalogue,), 1)
    inside: httpx2.AsyncBaseTransport = httpx2.ASGITransport(app=world)
    inside = inside if broken is None else _Breaking(inside, broken)
    with TemporaryDirectory() as folder:
        usual = {
            "google_books_url": ADDRESS, "books_key": SecretStr("a-key"), "data": Path(folder)
        }  # fmt: skip
        settings = DEFAULTS.model_copy(update={**usual, **given})
        async with _open(store, clock, settings, inside) as rounds:
            yield Scene(world, catalogue, rounds)


@asynccontextmanager
async def _open(
    store: SqlStore, clock: VirtualClock, settings: Settings, inside: httpx2.AsyncBaseTransport
) -> AsyncIterator[Rounds]:
    async with open_ways(settings, store, clock, inside=inside) as ways:
        watches = Watches([watch], settings)
        destinations = watches.open_destinations(store, clock)
        yield Rounds(store, clock, watches, destinations, partial(Fetcher, ways))


class _Breaking(httpx2.AsyncBaseTransport):
    """A way that breaks at the first request for volumes, as the guard or the network would."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, error: Exception) -> None:
        self._inner = inner
        self._error: Exception | None = error

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        error = self._error
        if error is not None and "volumes" in request.url.path:
            self._error = None
            raise error
        return await self._inner.handle_async_request(request)
