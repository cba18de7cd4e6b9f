"""The demo: all watches on the simulated world, in a folder that is thrown away."""

import asyncio
import gc
import os
import signal
import socket
import sys
import tempfile
import webbrowser
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Thread

import uvicorn
from pydantic import SecretStr
from rich.progress import BarColumn, Progress, TextColumn

from mimawari import log, show
from mimawari.app.demo.cast import PACE, PROGRAMMES, SEED, STARTS_AT, TRADED, add_present
from mimawari.app.demo.past import DAYS, lay_past
from mimawari.app.demo.play import play
from mimawari.app.http.keys import key_file
from mimawari.app.http.listening import Uvicorn, listen
from mimawari.app.ops import System
from mimawari.app.serve import serve
from mimawari.app.world import HOST
from mimawari.errors import BadInput
from mimawari.kernel.clock import Mark, RealClock, ScaledClock, VirtualClock
from mimawari.kernel.ports import Clock
from mimawari.kernel.watch import Watch
from mimawari.settings import DEFAULTS, Settings, load_settings
from mimawari.sim.mail_server import Mail
from mimawari.sim.sites.webhooks import KEY
from mimawari.sim.sites.youtube.site import RESOLVER, Live
from mimawari.sim.world import World, make_world
from mimawari.watches import INSTALLED
from mimawari.web.session import ONCE_FOR, make_once

SOON = """Everything is made up, and nothing leaves this machine. The link logs in once.
In the first two minutes, without a click: a ranking that moves, a price alert, a site that
turns us away and is left alone for an hour, a search for books that comes to its end, a stream
that goes black and its webhook, and a mail with new books."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What a demo needs before it starts."""

    world: World
    address: str
    settings: Settings
    seconds: float | None


class WorldClock:
    """The clock of a world: a virtual one while its past is laid in, another from then on."""

    def __init__(self, past: Clock) -> None:
        self._clock = past

    def go_by(self, clock: Clock) -> None:
        """Go by another clock from now on."""
        self._clock = clock

    def now(self) -> datetime:
        """Return the time, aware and in UTC."""
        return self._clock.now()

    def mark(self) -> Mark:
        """Return this moment in true time."""
        return self._clock.mark()

    async def sleep(self, span: timedelta) -> None:
        """Sleep for as long as said on the clock of now."""
        await self._clock.sleep(span)


async def run_demo(seconds: float | None, scale: float) -> None:
    """Serve all watches and their world until stopped; by itself after some seconds if said."""
    with tempfile.TemporaryDirectory(prefix="mimawari-demo-") as name:
        folder = Path(name)
        with (folder / "log").open("w", encoding="utf-8") as lines:
            # Of what is laid in only trouble is worth a line.
            log.configure("warning", lines)
            async with staged(folder, seconds, scale) as stage:
                log.configure("info", lines, stage.settings.zone)
                watches = _stretched(INSTALLED, scale)
                await serve(stage.settings, watches, around=partial(_shown, stage))


@asynccontextmanager
async def staged(folder: Path, seconds: float | None, scale: float) -> AsyncIterator[Stage]:
    """Lay the past in, and serve the world on loopback from then on."""
    past = VirtualClock(STARTS_AT - timedelta(days=DAYS))
    clock = WorldClock(past)
    world = make_world(clock, SEED, TRADED)
    # What is made now stays; looking through it again and again for rubbish takes a while.
    gc.freeze()
    with listen(HOST, 0) as taken:
        address = f"http://{HOST}:{taken.getsockname()[1]}"
        async with world.find(Mail).open(HOST) as smtp_port:
            settings = _settings(folder, address, smtp_port)
            with _progress() as shown:
                line = shown.add_task(f"{DAYS} days are laid in", total=1.0)
                await lay_past(
                    settings, world, past, lambda done: shown.update(line, completed=done)
                )
            anchor = find_anchor(scale, RealClock().now())
            clock.go_by(ScaledClock(scale, anchor))
            settings = settings.model_copy(update={"time_scale": scale, "time_anchor": anchor})
            async with _served(world, taken):
                yield Stage(world=world, address=address, settings=settings, seconds=seconds)


def find_anchor(scale: float, now: datetime) -> datetime:
    """Tell from when scaled time must be counted for the demo's own time to begin now."""
    return now + (now - STARTS_AT) / (scale - 1)


def _settings(folder: Path, address: str, smtp_port: int) -> Settings:
    """Point everything at the world, whatever the environment says, and nothing elsewhere."""
    given = {
        "data": folder,
        "port": _find_port(load_settings().port),
        "is_demo": True,
        "allow_hosts": (address.removeprefix("http://"),),
        "mercari_url": address,
        "mercari_api_url": address,
        "rentals_url": address,
        "google_books_url": address,
        "streams_resolver_url": f"{address}{RESOLVER}",
        "webhook_key": SecretStr(KEY),
        "books_key": SecretStr("demo"),
        "smtp_host": HOST,
        "smtp_port": smtp_port,
        "smtp_security": "none",
        "mail_from": "books@example.org",
        "mail_to": ("you@example.org",),
        **PACE,
    }
    return DEFAULTS.model_copy(update=given)


def _find_port(wanted: int) -> int:
    try:
        listen(HOST, wanted).close()
    except BadInput:
        # The usual port is taken, perhaps by a real system; the demo does not mind another.
        return 0
    return wanted


def _stretched(watches: Sequence[Watch], scale: float) -> list[Watch]:
    """Give jobs as much real time as they have usually: this machine works no faster."""
    return [
        replace(
            watch,
            tasks=tuple(
                replace(
                    task, lease_for=task.lease_for * scale, timeout_for=task.timeout_for * scale
                )
                for task in watch.tasks
            ),
        )
        for watch in watches
    ]


@asynccontextmanager
async def _served(world: World, taken: socket.socket) -> AsyncIterator[None]:
    live = world.find(Live)
    for programme in PROGRAMMES:
        live.put(programme)
    config = uvicorn.Config(
        world, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=2
    )
    server = Uvicorn(config)
    serving = asyncio.create_task(server.serve([taken]))
    try:
        yield
    finally:
        server.should_exit = True
        await serving


@asynccontextmanager
async def _shown(stage: Stage, system: System, address: str | None) -> AsyncIterator[None]:
    """Add what is watched from now on, tell where to look, and let things go wrong."""
    await add_present(system)
    word = await make_once(system.store.sessions, ONCE_FOR * stage.settings.time_scale)
    link = f"{address}/login?once={word}"
    _greet(stage, system, link)
    _open_browser(link)
    if stage.seconds is not None:
        loop = asyncio.get_running_loop()
        loop.call_later(stage.seconds, os.kill, os.getpid(), signal.SIGTERM)
    playing = asyncio.create_task(play(stage.world, partial(_say, stage.world)))
    try:
        yield
    finally:
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)


def _greet(stage: Stage, system: System, link: str) -> None:
    scale = stage.settings.time_scale
    show.console.rule("Mimawari 見回り: the demo")
    show.facts(
        {
            "look": link,
            "key": f"cat {key_file(system.settings)}",
            "world": f"{stage.address}/",
            "mail": f"{stage.address}/mail/",
            "webhooks": f"{stage.address}/hooks/demo",
            "log": f"tail -f {system.settings.data / 'log'}",
            "a second is": f"{scale:g} s",
            "stop": "Ctrl-C, which leaves nothing behind",
        }
    )
    show.console.print(f"\n{SOON}\n", highlight=False, markup=False, soft_wrap=True)


def _say(world: World, words: str) -> None:
    now = world.clock.now().astimezone(DEFAULTS.zone)
    show.console.print(f"{now:%H:%M}  {words}", highlight=False, markup=False)


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        console=show.complaints,
        transient=True,
        disable=not show.complaints.is_terminal,
    )


def _open_browser(link: str) -> None:
    """Open the link where somebody sits before a screen; whether that works is no matter."""
    has_screen = sys.platform == "darwin" or {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys()
    if has_screen and show.console.is_terminal:
        # A browser may take its time, for which nobody waits.
        Thread(target=webbrowser.open, args=(link,), daemon=True).start()
