"""The ground of the streams watch's fault tests: a stream with a black-out, and who watches it."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import select
from starlette.types import Message, Receive, Scope, Send

from mimawari.app.judges.virtual_run import list_seen
from mimawari.app.roles import Role
from mimawari.app.serve import serve
from mimawari.kernel.clock import RealClock, ScaledClock
from mimawari.settings import DEFAULTS, Settings
from mimawari.sim.sites.webhooks import KEY, Hooks
from mimawari.sim.sites.youtube.programme import Programme
from mimawari.sim.sites.youtube.site import RESOLVER, Live
from mimawari.sim.world import World
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade
from mimawari.watches.streams import queries, sync, watch
from mimawari.watches.streams.models import Config, Monitor, Status
from mimawari.watches.streams.queries import Sending, View
from mimawari.watches.streams.runner import place
from mimawari.watches.streams.state import parse_state
from mimawari.watches.streams.tables import states
from tests.faults.world import PATIENCE_SECONDS, kill, running_site, spawn
from tests.stores import BESIDE, open_store

ROLES = frozenset({Role.SCHEDULER, Role.MONITOR, Role.DELIVERER})
BLINK_SECONDS = 0.02
SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a process that watches is told."""

    url: str
    folder: str
    address: str
    scale: float
    anchor: datetime

    def settings(self) -> Settings:
        """Return settings that lead to the world."""
        database, _, redis = self.url.partition(BESIDE)
        return DEFAULTS.model_copy(
            update={
                "database_url": database,
                "redis_url": redis,
                "data": Path(self.folder),
                "streams_resolver_url": f"{self.address}{RESOLVER}",
                "allow_hosts": (self.address.removeprefix("http://"),),
                "webhook_key": type(DEFAULTS.webhook_key)(KEY),
                "time_scale": self.scale,
                "time_anchor": self.anchor,
            }
        )


async def watch_streams(given: Given) -> None:
    """Serve all that watches streams until killed."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    await serve(given.settings(), [watch], roles=ROLES)


def list_children(pid: int) -> list[int]:
    """List the processes that a process has started and that run still."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


def is_there(pid: int) -> bool:
    """Say whether a process runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@dataclass(slots=True)
class Watcher:
    """Whoever watches, killed and started again."""

    given: Given
    process: BaseProcess | None = None
    children: set[int] = field(default_factory=set)

    def start(self) -> None:
        """Start watching, again or for the first time."""
        self.process = spawn(watch_streams, self.given)

    def kill(self) -> None:
        """Kill whoever watches as a power cut does, and remember what it had started."""
        process = self.process
        if process is not None and process.pid is not None and process.is_alive():
            os.kill(process.pid, signal.SIGSTOP)
            self.children |= set(list_children(process.pid))
            kill(process)

    async def insist_on_no_orphans(self) -> None:
        """Wait until nothing runs of what those who were killed had started."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while any(map(is_there, self.children)):
                await asyncio.sleep(BLINK_SECONDS)


Moment = Callable[[str, bool], bool]
"""Says of a path, and whether it was answered, that the moment to strike has come."""


class Struck:
    """A world in front of which something happens at a moment that is waited for."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._moment: Moment | None = None
        self._strike: Callable[[], None] = lambda: None

    def await_moment(self, moment: Moment, strike: Callable[[], None]) -> asyncio.Event:
        """Strike once when a moment has come; the event is set then."""
        come = asyncio.Event()

        def act() -> None:
            self._moment = None
            strike()
            come.set()

        self._moment, self._strike = moment, act
        return come

    def forget(self) -> None:
        """Wait for no moment any more."""
        self._moment = None

    def _look(self, path: str, *, is_answered: bool) -> None:
        if self._moment is not None and self._moment(path, is_answered):
            self._strike()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, and look before and after it whether the moment has come."""
        if scope["type"] != "http":
            return
        if self._moment is None:
            await self.world(scope, receive, send)
            return
        path = scope["path"]

        async def send_seen(message: Message) -> None:
            # The answer is decided and has its effects, but whoever asked has not heard it.
            if message["type"] == "http.response.start":
                self._look(path, is_answered=True)
            await send(message)

        self._look(path, is_answered=False)
        await self.world(scope, receive, send_seen)


@dataclass(frozen=True, slots=True)
class Studio:
    """A stream and its receiver on a clock of their own, the store, and who watches."""

    clock: ScaledClock
    live: Live
    hooks: Hooks
    struck: Struck
    store: SqlStore
    given: Given
    watcher: Watcher

    async def monitor(self, video_id: str, callback_url: str = "", **config: Any) -> Monitor:
        """Have a stream monitored, as whoever asks for it by the API."""
        now = self.clock.now()
        monitor = Monitor(
            id=sync.new_monitor_id(),
            stream_url=f"https://www.youtube.com/watch?v={video_id}",
            callback_url=callback_url or f"{self.given.address}/hooks/{video_id}",
            config=Config(**config),
            metadata={"video": video_id},
            status=Status.INITIALIZING,
            created_at=now,
        )
        async with self.store.edit() as tx:
            await sync.add(tx, monitor, "test")
            place(tx, monitor)
        return monitor

    async def view(self, monitor: Monitor) -> View:
        """Look at a monitor."""
        async with self.store.read() as reader:
            found = await queries.find_view(reader, monitor.id)
        assert found is not None
        return found

    async def events(self, monitor: Monitor) -> list[Sending]:
        """List what was told, oldest first."""
        async with self.store.read() as reader:
            found, _ = await queries.list_events(reader, monitor.id, 500, 0)
        return list(found)[::-1]

    async def last_sequence(self, monitor: Monitor) -> int:
        """Tell up to where the list was read."""
        async with self.store.read() as reader:
            query = select(states.c.state).where(states.c.monitor_id == monitor.id)
            state = parse_state((await reader.execute(query)).scalar_one())
        assert state.reading.sequence is not None
        return state.reading.sequence

    async def until_checked(self, monitor: Monitor) -> None:
        """Wait until one more check was kept."""
        before = (await self.view(monitor)).last_check_at
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (await self.view(monitor)).last_check_at == before:
                await asyncio.sleep(BLINK_SECONDS)

    def first_sequence(self) -> int:
        """Tell with which segment the watching began."""
        paths = [seen["path"] for seen in list_seen(self.struck.world, part="live")]
        return int(Path(next(path for path in paths if path.endswith(".ts"))).stem)

    async def until_sent(self, monitor: Monitor) -> None:
        """Wait until it is known of every event that it was taken."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not all(one.status == "sent" for one in await self.events(monitor)):
                await asyncio.sleep(BLINK_SECONDS)

    def asked(self, path: str) -> list[Mapping[str, Any]]:
        """List the requests for a path, whatever became of them."""
        return list(list_seen(self.struck.world, path=path))

    def arrivals(self, name: str) -> list[Mapping[str, Any]]:
        """List what came to a receiver."""
        found: list[Mapping[str, Any]] = self.hooks.truth({"name": name})["deliveries"]
        return found

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not is_so():
                await asyncio.sleep(BLINK_SECONDS)

    def put(self, programme: Programme) -> None:
        """Broadcast a programme."""
        self.live.put(programme)


@asynccontextmanager
async def open_studio(url: str, folder: Path, scale: float) -> AsyncIterator[Studio]:
    """Make the tables, serve the world, and end whoever watches in the end."""
    anchor = RealClock().now()
    clock = ScaledClock(scale, anchor)
    store = open_store(url, clock)
    await upgrade(store.database)
    live, hooks = Live(clock, 1, has_catalogue=False), Hooks(clock)
    struck = Struck(World(clock, (live, hooks), 1))
    async with running_site(struck) as address:
        given = Given(url=url, folder=str(folder), address=address, scale=scale, anchor=anchor)
        watcher = Watcher(given)
        try:
            yield Studio(clock, live, hooks, struck, store, given, watcher)
        finally:
            watcher.kill()
            await store.close()


def first_effects(arrivals: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """List what a receiver heeds: each event once, however often it came."""
    found: dict[str, Mapping[str, Any]] = {}
    for one in arrivals:
        found.setdefault(one["event_id"], one)
    return list(found.values())
