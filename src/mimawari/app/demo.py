"""The demo: the whole system on a simulated site, in a folder that is thrown away."""

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import uvicorn
from pydantic import SecretStr
from rich.console import Group
from rich.live import Live
from rich.table import Table
from sqlalchemy import select

from mimawari import log, show
from mimawari.app.keys import key_file
from mimawari.app.ops import System
from mimawari.app.serve import Uvicorn, listen, serve
from mimawari.errors import BadInput
from mimawari.kernel.values import Entry
from mimawari.kernel.why import why
from mimawari.settings import Settings, load_settings
from mimawari.sim.counting import CountingSite
from mimawari.watches import example
from mimawari.watches._template import sync
from mimawari.watches._template.tables import pages

SCALE = 60.0
PAGES = ("bridge", "garden", "harbour", "market", "station")
EVERY = timedelta(minutes=5)
REFRESH_SECONDS = 0.5


async def run_demo(seconds: float | None) -> None:
    """Serve the example watch and its site until stopped; a second is a minute."""
    with tempfile.TemporaryDirectory(prefix="mimawari-demo-") as folder:
        settings = _settings(Path(folder))
        with (settings.data / "log").open("w", encoding="utf-8") as lines:
            log.configure("info", lines)
            loop = asyncio.get_running_loop()
            if seconds is not None:
                loop.call_later(seconds, os.kill, os.getpid(), signal.SIGTERM)
            await serve(settings, [example], around=_shown)


@asynccontextmanager
async def _shown(system: System, address: str | None) -> AsyncIterator[None]:
    """Run the simulated site and show what happens for as long as the system runs."""
    async with _site(system):
        _greet(system, str(address))
        watching = asyncio.create_task(_watch(system))
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


def _settings(folder: Path) -> Settings:
    given = load_settings()
    update = {
        "data": folder, "database_url": "", "time_scale": SCALE, "api_keys": (),
        "allow_hosts": ("127.0.0.1",), "sentry_dsn": SecretStr(""), "bugsnag_key": SecretStr(""),
    }  # fmt: skip
    try:
        listen(given.host, given.port).close()
    except BadInput:
        # The usual port is taken, perhaps by a real system; the demo does not mind another.
        update["port"] = 0
    return given.model_copy(update=update)


@asynccontextmanager
async def _site(system: System) -> AsyncIterator[None]:
    taken = listen("127.0.0.1", 0)
    host, port = taken.getsockname()
    site = Uvicorn(uvicorn.Config(CountingSite(system.clock), log_config=None, access_log=False))
    serving = asyncio.create_task(site.serve([taken]))
    await _place_pages(system, f"http://{host}:{port}/page")
    try:
        yield
    finally:
        site.should_exit = True
        await serving


async def _place_pages(system: System, address: str) -> None:
    now = system.clock.now()
    async with system.store.edit() as tx:
        for number, page in enumerate(PAGES):
            url = f"{address}/{page}"
            await sync.save_page(tx, page, url, EVERY)
            tx.place(
                Entry(
                    member=sync.member_of(page),
                    kind="example.read",
                    args={"page": page, "url": url, "every_s": int(EVERY.total_seconds())},
                    next_at=now + EVERY * number / len(PAGES),
                    every=EVERY,
                    reason="first run, spread out",
                )
            )


def _greet(system: System, address: str) -> None:
    data = system.settings.data
    show.console.rule("Mimawari 見回り: the demo")
    show.console.print(
        "The whole system goes round to a simulated site of five pages; a second is a minute.\n"
        "In another terminal, try:\n\n"
        f"  key=$(cat {key_file(system.settings)})\n"
        f'  curl -H "X-API-Key: $key" "{address}/api/why?name=example:garden"\n'
        f'  curl -H "X-API-Key: $key" "{address}/api/jobs?limit=3"\n'
        f"  tail -f {data / 'log'}\n\n"
        "Ctrl-C stops it and leaves nothing behind.\n",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


async def _watch(system: System) -> None:
    with Live(console=show.console, auto_refresh=False, transient=False) as live:
        while True:
            live.update(await _picture(system), refresh=True)
            await asyncio.sleep(REFRESH_SECONDS)


async def _picture(system: System) -> Group:
    now = system.clock.now()
    table = Table("page", "number", "readings", "next round", "why")
    async with system.store.read() as reader:
        rows = (await reader.execute(select(pages).order_by(pages.c.name))).all()
    for row in rows:
        answer = await why(system.store, system.clock, system.watches, sync.member_of(row.name))
        table.add_row(
            row.name,
            str(row.number or "–"),
            str(row.readings),
            show.when(answer.next_at, now) if answer else "–",
            show.cell(answer.reason) if answer else "–",
        )
    counts = await system.store.queue.counts()
    line = "   ".join(f"{state} {count}" for state, count in counts.items())
    return Group(table, f"{now:%Y-%m-%d %H:%M} UTC   {line}")
