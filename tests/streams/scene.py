"""The streams watch at work on simulated streams, in virtual time."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import httpx2
from pydantic import SecretStr

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.deliverer import Deliverer
from mimawari.kernel.rounds import Rounds
from mimawari.kernel.watch import Watches
from mimawari.net.http import Fetcher
from mimawari.net.reader import Reader
from mimawari.net.ways import open_ways
from mimawari.settings import DEFAULTS, Settings
from mimawari.sim.sites.webhooks import KEY, Hooks
from mimawari.sim.sites.youtube.programme import Programme, Shot, Upset
from mimawari.sim.sites.youtube.site import Live
from mimawari.sim.world import World
from mimawari.store.sql import SqlStore
from mimawari.watches.streams import actions, queries, sync, watch
from mimawari.watches.streams.actions import Client
from mimawari.watches.streams.deliveries import WebhookDestination
from mimawari.watches.streams.models import Monitor, State
from mimawari.watches.streams.queries import Sending, View
from mimawari.watches.streams.runner import member_of
from mimawari.watches.streams.schemas.requests import MonitorIn

EVENING = datetime(2026, 6, 1, 11, tzinfo=UTC)
"""Eight in the evening in Tokyo."""
HOST = "127.0.0.1"
ADDRESS = f"http://{HOST}"
CALLBACK = f"{ADDRESS}/hooks/seen"
VIDEO = "wP7n3kRz4Qs"
OTHER = "hT2m9vXc8Lw"
RESOLVER = "/resolve"
LEAST: Mapping[str, Any] = {"blackout_threshold_sec": 6, "silence_threshold_sec": 6}
"""Short thresholds, so that little has to be shown."""


class Scene:
    """The watch, the streams it looks at, who is told of them, and a way to let time pass."""

    def __init__(self, store: SqlStore, world: World, live: Live, rounds: Rounds) -> None:
        self.inside = httpx2.ASGITransport(app=world)
        self.store = store
        self.world = world
        self.live = live
        self.rounds = rounds

    @property
    def clock(self) -> VirtualClock:
        """The clock of all."""
        return self.rounds.clock

    @property
    def settings(self) -> Settings:
        """What the watch goes by."""
        return self.rounds.watches.settings

    @property
    def watches(self) -> Watches:
        """The one watch there is."""
        return self.rounds.watches

    def put(self, *what: Shot | Upset, **given: Any) -> Programme:
        """Put a stream in that begins now, unless something else is said."""
        values = {"video_id": VIDEO, "title": "夜の配信", "starts_at": self.clock.now(), **given}
        shots = tuple(one for one in what if isinstance(one, Shot))
        upsets = tuple(one for one in what if isinstance(one, Upset))
        programme = Programme(shots=shots, upsets=upsets, **values)
        self.live.put(programme)
        return programme

    async def add(self, video: str = VIDEO, callback: str = CALLBACK, **config: Any) -> Monitor:
        """Have a stream monitored."""
        body = MonitorIn.model_validate(
            {
                "stream_url": f"https://www.youtube.com/watch?v={video}",
                "callback_url": callback,
                "config": config,
                "metadata": {"channel_name": "星くず", "custom_data": {"n": 1}},
            }
        )
        return await actions.add(self, body, Client(name="test", is_counted=False))

    def order(self, part: str = "live", **order: Any) -> int:
        """Have a site misbehave, and return the number of the order."""
        return int(self.world.orders.add({"part": part, **order})["id"])

    def send_by(self, way: httpx2.AsyncBaseTransport) -> None:
        """Send webhooks by another way."""
        webhooks = WebhookDestination(self.store, self.clock, self.settings, way=way)
        self.rounds.deliverer = Deliverer(self.store, self.clock, {sync.SCHEME: webhooks})

    async def pass_time(self, seconds: float) -> None:
        """Let time pass."""
        await self.rounds.pass_time(timedelta(seconds=seconds))

    def received(self, name: str = "seen") -> list[dict[str, Any]]:
        """List the attempts that reached the receiver, in order."""
        query = {"name": name}
        found: list[dict[str, Any]] = self.world.parts["hooks"].truth(query)["deliveries"]
        return found

    def told(self, name: str = "seen") -> list[str]:
        """List the types of the events that arrived, in order."""
        return [one["body"]["event_type"] for one in self.received(name)]

    def bodies(self, event_type: str) -> list[dict[str, Any]]:
        """List what arrived of one type."""
        bodies = [one["body"] for one in self.received()]
        return [body for body in bodies if body["event_type"] == event_type]

    def body(self, event_type: str) -> dict[str, Any]:
        """Return what arrived of one type, which is one."""
        [body] = self.bodies(event_type)
        return body

    def seen(self, path: str, part: str = "live") -> list[dict[str, Any]]:
        """List what was asked for under a path, by the world's own log."""
        query = {"part": part, "path": path, "limit": "10000"}
        found: list[dict[str, Any]] = self.world.log.list(query)["seen"]
        return found

    def times(self, path: str, part: str = "live") -> list[float]:
        """List when something was asked for, in seconds since the scene was set."""
        start = EVENING.timestamp()
        seen = self.seen(path, part)
        return [datetime.fromisoformat(one["at"]).timestamp() - start for one in seen]

    def segments(self, video: str = VIDEO) -> list[int]:
        """List the sequences of the segments that were asked for, in order."""
        paths = [one["path"].rpartition("/")[2] for one in self.seen(f"/live/{video}/144p/")]
        return [int(path.partition(".")[0]) for path in paths if path[0].isdigit()]

    async def show(self, monitor: Monitor) -> View:
        """Show how a monitor stands."""
        return await actions.find(self, monitor.id)

    async def state(self, monitor: Monitor) -> State:
        """Show what a monitor that is not over goes on from."""
        async with self.store.read() as reader:
            found = await sync.find_active(reader, monitor.id)
        assert found is not None
        return found[1]

    async def sendings(self, monitor: Monitor) -> list[Sending]:
        """List what is kept of what was told, oldest first."""
        async with self.store.read() as reader:
            found, _ = await queries.list_events(reader, monitor.id, 500, 0)
        return list(found)[::-1]

    async def is_scheduled(self, monitor: Monitor) -> bool:
        """Say whether a monitor is on the schedule."""
        return await self.store.schedule.find(member_of(monitor.id)) is not None


def at(seconds: float) -> datetime:
    """Return the time so many seconds after the scene was set."""
    return EVENING + timedelta(seconds=seconds)


def since(written: str) -> float:
    """Read a written time as seconds since the scene was set."""
    return (datetime.fromisoformat(written) - EVENING).total_seconds()


@asynccontextmanager
async def open_scene(
    store: SqlStore, clock: VirtualClock, reader: Reader, **given: Any
) -> AsyncIterator[Scene]:
    """Set the watch to work on a store, on streams of its own."""
    settings = DEFAULTS.model_copy(
        update={
            "streams_resolver_url": f"{ADDRESS}{RESOLVER}",
            "webhook_key": SecretStr(KEY),
            "allow_hosts": (HOST,),
            **given,
        }
    )
    live = Live(clock, 1, has_catalogue=False)
    world = World(clock, (live, Hooks(clock)), 1)
    inside = httpx2.ASGITransport(app=world)
    async with open_ways(settings, store, clock, inside=inside) as opened:
        # What looks into media starts slowly; all scenes share one.
        ways = replace(opened, reader=reader, viewer=reader)
        webhooks = WebhookDestination(store, clock, settings, way=inside)
        watches = Watches([watch], settings)
        rounds = Rounds(store, clock, watches, {sync.SCHEME: webhooks}, partial(Fetcher, ways))
        yield Scene(store, world, live, rounds)
