"""Runs the streams watch on simulated streams in virtual time and judges it by their truth."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import httpx2
from pydantic import SecretStr
from sqlalchemy import func, select

from mimawari.app.judges.streams_plan import Script, draw_scripts
from mimawari.app.judges.streams_verdict import Evidence, Report, Told, judge
from mimawari.app.judges.virtual_run import START, Progress, open_ground
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.deliverer import Destination
from mimawari.settings import Settings
from mimawari.sim.sites.webhooks import KEY, Hooks
from mimawari.sim.sites.youtube.site import RESOLVER, Live
from mimawari.sim.world import World
from mimawari.sites.youtube import watch_url
from mimawari.store.sql import SqlStore
from mimawari.watches.streams import sync, watch
from mimawari.watches.streams.deliveries import WebhookDestination
from mimawari.watches.streams.models import Monitor, Status
from mimawari.watches.streams.runner import place
from mimawari.watches.streams.tables import stats

ADDRESS = "http://live.test"
STEP = timedelta(seconds=10)
AFTER = timedelta(minutes=2)
"""How long is watched after the last programme is over."""


async def check_streams(seed: int, count: int, progress: Progress) -> Report:
    """Watch so many programmes to their ends, and compare what was told with what was so."""
    return judge(await watch_streams(seed, draw_scripts(seed, count, START), progress))


async def watch_streams(seed: int, scripts: Sequence[Script], progress: Progress) -> Evidence:
    """Watch programmes while things go wrong with them, and gather all that was told of them."""
    clock = VirtualClock(START)
    live, hooks = Live(clock, seed, has_catalogue=False), Hooks(clock)
    world = World(clock, (live, hooks), seed)
    for script in scripts:
        live.put(script.programme)
    ends_at = max(script.programme.ends_at or START for script in scripts)
    given = {"streams_resolver_url": f"{ADDRESS}{RESOLVER}", "webhook_key": SecretStr(KEY)}
    async with open_ground(world, clock, watch, given, _open_destinations) as ground:
        await add_monitors(ground.store, ADDRESS, scripts, clock.now())
        async for _ in ground.pass_days(ends_at + AFTER - clock.now(), STEP, progress):
            pass
        segments = await count_segments(ground.store)
    return Evidence(
        seed=seed,
        scripts=scripts,
        told=list_told(hooks),
        requests=world.log.count({})["count"],
        segments=segments,
    )


def _open_destinations(
    store: SqlStore, clock: VirtualClock, settings: Settings, way: httpx2.AsyncBaseTransport
) -> Mapping[str, Destination]:
    return {sync.SCHEME: WebhookDestination(store, clock, settings, way)}


async def add_monitors(
    store: SqlStore, address: str, scripts: Sequence[Script], now: datetime
) -> None:
    """Monitor programmes, and have the world itself told of them."""
    async with store.edit() as tx:
        for script in scripts:
            video_id = script.programme.video_id
            monitor = Monitor(
                id=sync.new_monitor_id(),
                stream_url=watch_url(video_id),
                callback_url=f"{address}/hooks/{video_id}",
                config=script.config,
                metadata={"title": script.programme.title},
                status=Status.INITIALIZING,
                created_at=now,
            )
            await sync.add(tx, monitor, "check")
            place(tx, monitor)


async def count_segments(store: SqlStore) -> int:
    """Count the segments that were looked into."""
    async with store.read() as reader:
        found = await reader.execute(select(func.sum(stats.c.total_segments)))
    return int(found.scalar_one())


def list_told(hooks: Hooks) -> list[Told]:
    """List every webhook that came, as its receiver has it."""
    return [_make_told(one) for one in hooks.truth({})["deliveries"]]


def _make_told(delivery: Mapping[str, Any]) -> Told:
    return Told(
        at=datetime.fromisoformat(delivery["at"]),
        stream=delivery["name"],
        event_id=delivery["event_id"],
        is_verified=delivery["is_verified"],
        body=delivery["body"] or {},
    )
