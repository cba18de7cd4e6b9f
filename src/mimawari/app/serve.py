"""One process that does it all, or the parts it is told to."""

import asyncio
import gc
import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from mimawari.app.ops import System, opened
from mimawari.app.process.aftermath import look_back
from mimawari.app.process.guard import ProcessGuard
from mimawari.app.process.presence import say_alive
from mimawari.app.process.record import RunningRecord, open_record
from mimawari.app.process.steady_clock import keep_marks
from mimawari.app.reporting.reporters import open_reporter
from mimawari.app.roles import Role
from mimawari.errors import StoreDown
from mimawari.kernel.deliverer import Deliverer, in_the_log
from mimawari.kernel.janitor import Janitor, Retention
from mimawari.kernel.ports import Reporter
from mimawari.kernel.running import Company
from mimawari.kernel.scheduler import Scheduler
from mimawari.kernel.values import Trouble
from mimawari.kernel.watch import Watch
from mimawari.kernel.worker import Worker
from mimawari.net.http import Fetcher
from mimawari.net.ways import open_ways
from mimawari.settings import Settings

if TYPE_CHECKING:
    from mimawari.app.http.answering import Doors
    from mimawari.app.http.listening import Api

AGAIN_SECONDS = 1.0

log = structlog.get_logger(component="serve")


Part = Callable[[], Awaitable[None]]


Around = Callable[[System, str | None], AbstractAsyncContextManager[None]]


@asynccontextmanager
async def nothing_around(_system: System, _address: str | None) -> AsyncIterator[None]:
    """Do nothing while the system runs."""
    yield


def worker_name() -> str:
    """Name this process so that a person finds it."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _parts(
    system: System, roles: Iterable[Role], record: RunningRecord | None
) -> Mapping[Role, Part]:
    store, clock, watches = system.store, system.clock, system.watches
    settings, reporter = system.settings, system.reporter
    destinations = {**in_the_log(), **watches.open_destinations(store, clock)}
    company = Company()
    retention = Retention(settings.keep_done, settings.keep_dead, settings.keep_events)

    async def work(role: Role) -> None:
        async with open_ways(settings, store, clock) as ways:
            worker = Worker(
                store, clock, watches, name=worker_name(), role=role,
                http=partial(Fetcher, ways), reporter=reporter, notes=record, company=company,
            )  # fmt: skip
            await worker.run()

    parts: dict[Role, Part] = {
        Role.SCHEDULER: Scheduler(
            store,
            clock,
            watches,
            batch=settings.scheduler_batch,
            deepest=settings.scheduler_deepest,
        ).run,
        Role.WORKER: partial(work, Role.WORKER),
        Role.MONITOR: partial(work, Role.MONITOR),
        Role.JANITOR: Janitor(
            store,
            clock,
            watches,
            every=settings.janitor_every,
            retention=retention,
            reporter=reporter,
        ).run,
        Role.DELIVERER: Deliverer(store, clock, destinations, reporter=reporter, notes=record).run,
    }
    return {role: part for role, part in parts.items() if role in roles}


async def _keep_going(name: str, part: Part, reporter: Reporter) -> None:
    """Run a part for ever: a bug in it is reported, and it starts again."""
    while True:
        try:
            await part()
        except Exception as error:  # noqa: BLE001 - one part's bug must not end the others
            line = {"what": name, "result": "restart", "next": f"{AGAIN_SECONDS}s"}
            trouble = Trouble(
                component="serve", message="a part failed", what=name, error=error, line=line
            )
            reporter.report(trouble)
        await asyncio.sleep(AGAIN_SECONDS)


async def serve(
    settings: Settings,
    watches: Sequence[Watch],
    *,
    roles: frozenset[Role] = frozenset(Role),
    around: Around = nothing_around,
    guard: ProcessGuard | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, then stop cleanly within 30 seconds."""
    stop = asyncio.Event()
    if guard is None:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    doors = _take_doors(settings) if Role.API in roles else None
    async with open_reporter(settings) as reporter, opened(settings, watches, reporter) as system:
        # What is loaded now stays; looking through it again and again for rubbish costs 0.1 s.
        gc.collect()
        gc.freeze()
        async with _guarded(guard, system, stop) as record:
            parts = [
                asyncio.create_task(_keep_going(role, part, reporter), name=role)
                for role, part in _parts(system, roles, record).items()
            ]
            presence = say_alive(system, worker_name(), roles)
            parts.append(asyncio.create_task(presence, name="presence"))
            parts.append(asyncio.create_task(keep_marks(system), name="clock"))
            apis = doors.answer(system, record) if doors else []
            if doors:
                parts.append(asyncio.create_task(_end_sessions(doors, system)))
                parts += [asyncio.create_task(_open(watch, system)) for watch in system.watches.all]
            async with around(system, doors.address if doors else None):
                await stop.wait()
            log.info("stopping", what="serve", reason="signal")
            await _stop(parts, apis)
    log.info("stopped", what="serve", result="done")


@asynccontextmanager
async def _guarded(
    guard: ProcessGuard | None, system: System, stop: asyncio.Event
) -> AsyncIterator[RunningRecord | None]:
    """Guard the loop while the system runs, after a look at processes that stood still before."""
    if guard is None:
        yield None
        return
    folder = system.settings.data / "running"
    await look_back(system, folder)
    record = _open_record(folder)
    guard.attach(stop.set, record)
    try:
        yield record
    finally:
        guard.detach()
        if record is not None:
            record.close()


def _open_record(folder: Path) -> RunningRecord | None:
    try:
        return open_record(folder, worker_name())
    except OSError as error:
        log.warning(
            "no record of what is in hand can be kept", what=str(folder), reason=error.strerror,
            next="an event that makes the process stand still is not set aside",
        )  # fmt: skip
        return None


def _take_doors(settings: Settings) -> "Doors":
    # What answers is a tenth of the program's memory, which who only works need not have.
    from mimawari.app.http.answering import take_doors  # noqa: PLC0415

    return take_doors(settings)


async def _end_sessions(doors: "Doors", system: System) -> None:
    # A session whose key is gone is ended when it is used, too.
    with suppress(StoreDown):
        await doors.end_sessions(system)


async def _open(watch: Watch, system: System) -> None:
    """Do what a watch does once beside a start, which goes on whatever comes of it."""
    if watch.opening is None:
        return
    try:
        await watch.opening(system.store, system.clock, system.settings)
    except Exception as error:  # noqa: BLE001 - a start goes on whatever comes of it
        trouble = Trouble(
            component="serve",
            message="an opening failed",
            what=watch.name,
            error=error,
            line={"what": watch.name, "result": "left alone"},
        )
        system.reporter.report(trouble)


async def _stop(parts: Sequence["asyncio.Task[Any]"], apis: Sequence["Api"]) -> None:
    for part in parts:
        part.cancel()
    for server, serving in apis:
        server.should_exit = True
        with suppress(asyncio.CancelledError):
            await serving
    await asyncio.gather(*parts, return_exceptions=True)
