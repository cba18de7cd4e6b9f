"""A process that runs the monitors of one pod: it reports to the gateway and has no database."""

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, cast

import structlog
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from structlog.contextvars import bind_contextvars

from mimawari.app.http.listening import Uvicorn, listen
from mimawari.app.process.guard import ProcessGuard
from mimawari.errors import BadInput
from mimawari.kernel.clock import RealClock, ScaledClock
from mimawari.kernel.context import Context
from mimawari.kernel.ports import Clock, Store
from mimawari.kernel.watch import Watches
from mimawari.net.gateway import open_gateway, open_ports
from mimawari.net.http import Fetcher
from mimawari.net.ways import open_ways
from mimawari.settings import Settings
from mimawari.watches.streams import watch
from mimawari.watches.streams.pods.process import PodWorker
from mimawari.watches.streams.pods.spec import name_pod

STOP_SECONDS = 25.0
"""How long what is under way may take after a stop; the cluster kills after 30 s."""

log = structlog.get_logger(component="monitor")


async def run_monitor(
    settings: Settings, monitor_id: str, pod_name: str, guard: ProcessGuard
) -> None:
    """Run monitors until they are over, or until SIGTERM or SIGINT."""
    if not settings.internal_key.get_secret_value():
        raise BadInput("set INTERNAL_API_KEY to the key of the gateway's internal API")
    clock = _clock(settings)
    settings = settings.model_copy(update={"proxies": settings.proxies or _proxies()})
    is_shared = settings.streams_per_pod > 1
    if not is_shared:
        bind_contextvars(monitor_id=monitor_id)
    watches = Watches([watch], settings)
    async with open_gateway(settings) as gateway:
        # Of a store a check uses its limiter, its breakers and its memory, and nothing else.
        store = cast("Store", open_ports(gateway, clock))
        async with open_ways(settings, store, clock) as ways:
            http = partial(Fetcher, ways)
            worker = PodWorker(
                gateway,
                clock,
                lambda: Context(store, clock, watches, http),
                pod_name or name_pod(monitor_id),
            )
            async with _healthy(settings, worker):
                await _until_stopped(worker, worker.run(is_shared=is_shared), guard)
    log.info("stopped", what=pod_name, result="done")


def _clock(settings: Settings) -> Clock:
    if settings.time_scale == 1.0 or settings.time_anchor is None:
        return RealClock()
    return ScaledClock(settings.time_scale, settings.time_anchor)


def _proxies() -> tuple[str, ...]:
    """Take the proxy that the pod was given, if any."""
    given = os.environ.get("HTTPS_PROXY") or os.environ.get("HTTP_PROXY")
    return (given,) if given else ()


async def _until_stopped(
    worker: PodWorker, work: Coroutine[Any, Any, None], guard: ProcessGuard
) -> None:
    running = asyncio.ensure_future(work)
    stopped = asyncio.Event()
    guard.attach(stopped.set)
    try:
        waiting = asyncio.ensure_future(stopped.wait())
        await asyncio.wait([running, waiting], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if not running.done():
            log.info("stopping", what="monitor", reason="signal")
            worker.stop()
            done, _ = await asyncio.wait([running], timeout=STOP_SECONDS)
            if not done:
                log.warning("stopped in the midst of a check", result="left to whoever comes next")
                running.cancel()
                return
        await running
    finally:
        guard.detach()


@asynccontextmanager
async def _healthy(settings: Settings, worker: PodWorker) -> AsyncIterator[None]:
    """Answer whoever asks after the health of this process."""

    async def healthz(_: Request) -> JSONResponse:
        return JSONResponse({"status": "alive"})

    async def readyz(_: Request) -> JSONResponse:
        if worker.is_ready:
            return JSONResponse({"status": "ready"})
        return JSONResponse({"status": "the gateway has not answered yet"}, 503)

    app = Starlette(routes=[Route("/healthz", healthz), Route("/readyz", readyz)])
    config = uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=2
    )
    server = Uvicorn(config)
    serving = asyncio.create_task(server.serve([listen(settings.host, settings.port)]))
    try:
        yield
    finally:
        server.should_exit = True
        await serving
