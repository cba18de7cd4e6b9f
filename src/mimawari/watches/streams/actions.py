"""What people ask for: add a monitor, stop one."""

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from mimawari.columns import EPOCH
from mimawari.edges.system import System
from mimawari.errors import BadInput, NotFound, Transient
from mimawari.kernel.ports import Tx
from mimawari.net.guard import Guard
from mimawari.net.webhook import check_callback
from mimawari.settings import Settings
from mimawari.watches.streams import queries, sync
from mimawari.watches.streams.errors import INVALID_URL, Duplicate, TooMany
from mimawari.watches.streams.models import ACTIVE, Monitor, Status
from mimawari.watches.streams.queries import View
from mimawari.watches.streams.runners import open_runner, start_in, stop_in
from mimawari.watches.streams.schemas.requests import MonitorIn
from mimawari.watches.streams.urls import check_stream, parse_stream, platform_of

MADE_A_MINUTE = 10
MINUTE = timedelta(minutes=1)
LOOK_UP_FOR = timedelta(seconds=5)
"""How long the names of a new monitor's addresses are looked up before they are taken as given."""
GONE_FOR = timedelta(seconds=30)
"""How long whoever stops a monitor waits for its runner to be gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Who asks, and whether it is counted how often."""

    name: str
    is_counted: bool


async def add(system: System, asked: MonitorIn, client: Client) -> Monitor:
    """Monitor a stream from now on, unless it is monitored already or there are too many."""
    monitor = make_monitor(system.settings, asked)
    await check_addresses(system.settings, monitor)
    now = system.clock.now()
    monitor = replace(monitor, created_at=now)
    async with system.store.edit() as tx:
        await keep_new(tx, monitor, system.settings, client.name)
        if client.is_counted:
            # Only what was taken counts: who asks for the same again is told that.
            await _check_pace(tx, client.name, now)
    return monitor


def make_monitor(settings: Settings, asked: MonitorIn) -> Monitor:
    """Make a monitor of what is asked for, or say what to give instead."""
    if not settings.webhook_key.get_secret_value():
        raise BadInput(
            "webhooks cannot be signed yet; set WEBHOOK_SIGNING_KEY to a secret that their"
            " receiver knows too, and start again",
            code="INVALID_CONFIG",
        )
    return Monitor(
        id=sync.new_monitor_id(),
        stream_url=parse_stream(asked.stream_url, settings.streams_platforms),
        callback_url=asked.callback_url,
        config=asked.config.make(),
        metadata=asked.metadata,
        status=Status.INITIALIZING,
        created_at=EPOCH,
    )


async def keep_new(tx: Tx, monitor: Monitor, settings: Settings, created_by: str) -> None:
    """Keep a new monitor and run it, if there is room for it."""
    await sync.take_turn(tx)
    await _check_taken(tx, monitor.stream_url)
    await _check_room(tx, settings)
    await sync.add(tx, monitor, created_by)
    await start_in(tx, monitor, settings)


async def check_addresses(settings: Settings, monitor: Monitor) -> None:
    """Refuse a stream that may never be fetched, or a callback that may never be called."""
    guard = Guard.of(settings)
    try:
        async with asyncio.timeout(LOOK_UP_FOR.total_seconds()):
            await check_callback(guard, monitor.callback_url)
            if platform_of(monitor.stream_url) == "hls":
                await check_stream(guard, monitor.stream_url)
    except BadInput as error:
        raise BadInput(str(error), code=INVALID_URL) from error
    except (Transient, TimeoutError):
        # A name that is not known now may be known by the time it is needed.
        return


async def _check_taken(tx: Tx, stream_url: str) -> None:
    if await sync.is_taken(tx, stream_url):
        raise Duplicate(f"{stream_url} is monitored already; stop that monitor first")


async def _check_room(tx: Tx, settings: Settings) -> None:
    most = settings.streams_most
    if await sync.count_active(tx) >= most:
        raise TooMany(
            f"{most} streams are monitored, which is as many as there may be; stop one, or raise"
            " MAX_MONITORS",
            code="MAX_MONITORS_EXCEEDED",
        )


async def _check_pace(tx: Tx, client: str, now: datetime) -> None:
    made = await sync.list_made(tx, client, now - MINUTE)
    if len(made) > MADE_A_MINUTE:
        again_at = made[-MADE_A_MINUTE - 1] + MINUTE
        seconds = max(1, round((again_at - now).total_seconds()))
        raise TooMany(
            f"{MADE_A_MINUTE} monitors were added within a minute; again in {seconds} s",
            code="RATE_LIMIT_EXCEEDED",
        )


async def find(system: System, monitor_id: str) -> View:
    """Find a monitor, or say that there is none."""
    async with system.store.read() as reader:
        view = await queries.find_view(reader, monitor_id)
    if view is None:
        raise NotFound(f"no monitor goes by the id {monitor_id!r}")
    return view


async def stop(system: System, monitor_id: str) -> View:
    """Stop a monitor, and wait until nothing of it runs; one that is over stays as it is."""
    view = await find(system, monitor_id)
    runner = open_runner(system.store, system.clock, system.settings)
    if view.monitor.status in ACTIVE:
        now = system.clock.now()
        async with system.store.edit() as tx:
            if await sync.end(tx, view.monitor, Status.STOPPED, "stopped by request", now):
                await stop_in(tx, monitor_id, system.settings)
    await runner.wait_gone(monitor_id, system.clock.now() + GONE_FOR)
    return await find(system, monitor_id)
