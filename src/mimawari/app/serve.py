"""One process that does it all, or the parts it is told to."""

import asyncio
import gc
import os
import signal
import socket
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from functools import partial
from typing import Any

import structlog
import uvicorn

from mimawari.app.api import make_app
from mimawari.app.keys import load_keys
from mimawari.app.ops import System, opened
from mimawari.app.reporting import open_reporter
from mimawari.app.roles import Role
from mimawari.errors import BadInput
from mimawari.kernel.deliverer import Deliverer, LogDestination
from mimawari.kernel.janitor import Janitor, Retention
from mimawari.kernel.ports import Reporter
from mimawari.kernel.scheduler import Scheduler
from mimawari.kernel.values import Trouble
from mimawari.kernel.watch import Watch
from mimawari.kernel.worker import Worker
from mimawari.net.http import Fetcher
from mimawari.net.ways import open_ways
from mimawari.settings import Settings

AGAIN_SECONDS = 1.0
BACKLOG = 2048

log = structlog.get_logger(component="serve")


Part = Callable[[], Awaitable[None]]


Around = Callable[[System, str | None], AbstractAsyncContextManager[None]]


@asynccontextmanager
async def nothing_around(_system: System, _address: str | None) -> AsyncIterator[None]:
    """Do nothing while the system runs."""
    yield


class Uvicorn(uvicorn.Server):
    """Uvicorn without signal handlers of its own: stopping is decided in one place."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield


def worker_name() -> str:
    """Name this process so that a person finds it."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _parts(system: System, roles: Iterable[Role]) -> Mapping[Role, Part]:
    store, clock, watches = system.store, system.clock, system.watches
    settings, reporter = system.settings, system.reporter
    retention = Retention(settings.keep_done, settings.keep_dead, settings.keep_events)

    async def work() -> None:
        async with open_ways(settings, store, clock) as ways:
            http = partial(Fetcher, ways)
            worker = Worker(store, clock, watches, name=worker_name(), http=http, reporter=reporter)
            await worker.run()

    parts: dict[Role, Part] = {
        Role.SCHEDULER: Scheduler(
            store,
            clock,
            watches,
            batch=settings.scheduler_batch,
            deepest=settings.scheduler_deepest,
        ).run,
        Role.WORKER: work,
        Role.JANITOR: Janitor(
            store,
            clock,
            watches,
            every=settings.janitor_every,
            retention=retention,
            reporter=reporter,
        ).run,
        Role.DELIVERER: Deliverer(store, clock, {"log": LogDestination()}, reporter=reporter).run,
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


def listen(host: str, port: int) -> socket.socket:
    """Take the API's address, or say what to do if somebody else has it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named outright, TCP is known to the event loop, which then sends each reply without delay.
    taken = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((host, port))
        # Two may bind one port at once, but only one may listen on it.
        taken.listen(BACKLOG)
    except OSError as error:
        taken.close()
        raise BadInput(
            f"cannot listen on {host}:{port}: {error.strerror}; stop what listens there,"
            " or set MIMAWARI_PORT to another port (0 takes a free one)",
            code="address_taken",
        ) from error
    return taken


async def serve(
    settings: Settings,
    watches: Sequence[Watch],
    *,
    roles: frozenset[Role] = frozenset(Role),
    around: Around = nothing_around,
) -> None:
    """Serve until SIGTERM or SIGINT, then stop cleanly within 30 seconds."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    api_keys = load_keys(settings) if Role.API in roles else ()
    taken = listen(settings.host, settings.port) if Role.API in roles else None
    async with open_reporter(settings) as reporter, opened(settings, watches, reporter) as system:
        # What is loaded now stays; looking through it again and again for rubbish costs 0.1 s.
        gc.collect()
        gc.freeze()
        parts = [
            asyncio.create_task(_keep_going(role, part, reporter), name=role)
            for role, part in _parts(system, roles).items()
        ]
        api = start_api(system, api_keys, taken) if taken is not None else None
        async with around(system, _address(taken)):
            await stop.wait()
        log.info("stopping", what="serve", reason="signal")
        await _stop(parts, api)
    log.info("stopped", what="serve", result="done")


Api = tuple[Uvicorn, "asyncio.Task[Any]"]


def start_api(system: System, api_keys: tuple[bytes, ...], taken: socket.socket) -> Api:
    """Serve the API on a socket; its task ends soon after `should_exit` is set."""
    config = uvicorn.Config(
        make_app(system, api_keys),
        log_config=None,
        access_log=False,
        server_header=False,
        # Whom we count is who connects: anybody can write X-Forwarded-For.
        proxy_headers=False,
        timeout_graceful_shutdown=5,
    )
    server = Uvicorn(config)
    return server, asyncio.create_task(server.serve([taken]), name="api")


def _address(taken: socket.socket | None) -> str | None:
    if taken is None:
        return None
    host, port = taken.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def _stop(parts: Sequence["asyncio.Task[Any]"], api: Api | None) -> None:
    for part in parts:
        part.cancel()
    if api is not None:
        api[0].should_exit = True
        with suppress(asyncio.CancelledError):
            await api[1]
    await asyncio.gather(*parts, return_exceptions=True)
