"""The ground for all watches at once: one world, and processes of every role that die."""

import asyncio
import json
import os
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import structlog
from pydantic import SecretStr
from sqlalchemy import select

from mimawari.app.roles import Role
from mimawari.app.serve import serve
from mimawari.kernel.clock import ScaledClock
from mimawari.kernel.job import State
from mimawari.kernel.watch import Task, Watch
from mimawari.settings import DEFAULTS, Settings
from mimawari.sim.sites.mercari.api import ITEM, PRODUCT
from mimawari.sim.sites.webhooks import KEY
from mimawari.sim.sites.youtube.site import RESOLVER
from mimawari.store.sql import SqlStore
from mimawari.store.sql.tables import jobs
from mimawari.watches import INSTALLED
from mimawari.watches.books.jobs import PAGE
from mimawari.watches.books.tables import cursors
from mimawari.watches.hot import franchises
from mimawari.watches.prices import products
from mimawari.watches.prices.tables import results
from mimawari.watches.rentals import tasks as rentals
from mimawari.watches.streams.outside import CHECK
from tests.faults.world import name_of, spawn
from tests.stores import BESIDE

WORKING = (Role.WORKER, Role.MONITOR)
ORDERING = (Role.SCHEDULER, Role.JANITOR, Role.DELIVERER)
LEAST_LEASE, CHECK_FOR = timedelta(minutes=12), timedelta(minutes=2)
"""Who falls more than five minutes behind a stream goes on with what is newest there."""
LOST_WITHIN = timedelta(minutes=10)
"""No target is asked for again by the same process so soon, unless its job was cut short."""
STILL_ASKED = timedelta(minutes=2)
"""So long after a death the world may answer what was on its way."""
BUSY_SECONDS = 5.0
SETTLED_SECONDS = 0.2
"""How long the database may take to end what a process asked of it before it died."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a process is told."""

    url: str
    folder: str
    address: str
    scale: float
    anchor: datetime
    calls: int

    def settings(self, name: str) -> Settings:
        """Return settings that lead to the world, which knows the process by its name."""
        database, _, redis = self.url.partition(BESIDE)
        given = {
            "database_url": database,
            "redis_url": redis,
            "data": Path(self.folder),
            "contact": name,
            "allow_hosts": (self.address.removeprefix("http://"),),
            "mercari_url": self.address,
            "mercari_api_url": self.address,
            "rentals_url": self.address,
            "google_books_url": self.address,
            "streams_resolver_url": f"{self.address}{RESOLVER}",
            "webhook_key": SecretStr(KEY),
            "books_key": SecretStr("key"),
            "books_calls": self.calls,
            "prices_first_pages": 5,
            "time_scale": self.scale,
            "time_anchor": self.anchor,
        }
        return DEFAULTS.model_copy(update=given)


def stretched(watches: Sequence[Watch]) -> list[Watch]:
    """Give leases and jobs as much real time as a busy machine needs."""
    return [replace(watch, tasks=tuple(map(_stretched, watch.tasks))) for watch in watches]


def _stretched(task: Task) -> Task:
    least = CHECK_FOR if task.kind == CHECK else LEAST_LEASE
    lease = max(least, task.lease_for)
    return replace(task, lease_for=lease, timeout_for=max(4 * lease, task.timeout_for))


async def work_all(given: Given, name: str, roles: tuple[Role, ...]) -> None:
    """Serve some roles for all watches until killed."""
    lines = (Path(given.folder) / f"{name}.log").open("w", encoding="utf-8")
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(20),
        processors=[
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.WriteLoggerFactory(lines),
    )
    await serve(given.settings(name), stretched(INSTALLED), roles=frozenset(roles))


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A job that died with its process: what it was about, and so what it may have asked for."""

    name: str
    at: datetime
    kind: str
    about: tuple[str, ...]


@dataclass(slots=True)
class Crew:
    """Processes of every role, of which one is replaced now and then."""

    given: Given
    clock: ScaledClock
    store: SqlStore
    losses: list[Loss] = field(default_factory=list)
    deaths: int = 0
    _alive: list[tuple[str, tuple[Role, ...], BaseProcess]] = field(default_factory=list)
    _hired: int = 0

    def hire(self, roles: tuple[Role, ...]) -> None:
        """Start one more process."""
        self._hired += 1
        name = f"{roles[0]}-{self._hired}"
        self._alive.append((name, roles, spawn(work_all, self.given, name, roles)))

    def places(self, roles: tuple[Role, ...]) -> list[int]:
        """Tell which of the processes play these roles."""
        return [at for at, one in enumerate(self._alive) if one[1] == roles]

    async def find_busy(self, kinds: frozenset[str]) -> int:
        """Wait a moment for a worker with a job of some kinds in hand, and tell its place."""
        places = self.places(WORKING)
        names = {_worker_name(self._alive[place][2]): place for place in places}
        query = select(jobs.c.worker).where(
            jobs.c.state == State.PROCESSING, jobs.c.kind.in_(kinds)
        )
        with suppress(TimeoutError):
            async with asyncio.timeout(BUSY_SECONDS):
                while True:
                    async with self.store.read() as reader:
                        found = [*(await reader.execute(query)).scalars()]
                    if busy := [names[one] for one in found if one in names]:
                        return busy[0]
                    await asyncio.sleep(0.01)
        return places[0]

    async def kill(self, place: int) -> tuple[Role, ...]:
        """Kill one of the processes, note what died with it, and tell its roles."""
        name, roles, process = self._alive.pop(place)
        assert process.pid is not None
        assert process.exitcode is None, f"{name} has ended by itself: {process.exitcode}"
        os.kill(process.pid, signal.SIGKILL)
        at = self.clock.now()
        await asyncio.to_thread(process.join)
        await asyncio.sleep(SETTLED_SECONDS)
        self.losses += [Loss(name=name, at=at, **one) for one in await self._lost(process)]
        self.deaths += 1
        return roles

    async def disband(self, roles: tuple[Role, ...]) -> None:
        """Kill all that play these roles."""
        while places := self.places(roles):
            await self.kill(places[0])

    async def _lost(self, process: BaseProcess) -> list[dict[str, Any]]:
        worker = _worker_name(process)
        mine = (jobs.c.worker == worker) & (jobs.c.state == State.PROCESSING)
        async with self.store.read() as reader:
            rows = (await reader.execute(select(jobs).where(mine))).all()
            return [
                {"kind": row.kind, "about": await _about(reader, row)}
                for row in rows
                if row.kind in ASKING
            ]


def _worker_name(process: BaseProcess) -> str:
    """Name a process as it names itself in the queue."""
    return f"{socket.gethostname()}:{process.pid}"


async def _about(reader: Any, row: Any) -> tuple[str, ...]:
    """Tell what a job asks for, in words of which each of its requests has one."""
    args = json.loads(row.args)
    match row.kind:
        case franchises.KIND:
            ip = await franchises.find_ip(reader, int(row.target.partition(":")[2]))
            return (ip.keyword,) if ip else ()
        case products.LIST:
            product = await products.find_product(reader, args["productId"])
            return (product.setting.keyword,) if product else ()
        case products.DETAIL:
            wanted = results.c.id == args["mercariCrawlResultId"]
            found = await reader.execute(select(results.c.external_id).where(wanted))
            return tuple(found.scalars())
        case rentals.DETAIL:
            return (args["property_id"],)
        case rentals.LIST:
            return (args["url"], str(args["page"]))
        case _:
            job_name = row.target.partition(":")[2]
            wanted = cursors.c.job_name == job_name
            found = await reader.execute(select(cursors.c.start_index).where(wanted))
            return (job_name, str(found.scalar() or 0))


ASKING = frozenset(
    {franchises.KIND, products.LIST, products.DETAIL, rentals.DETAIL, rentals.LIST, PAGE}
)


def find_lost(
    asked: Sequence[Mapping[str, Any]], losses: Sequence[Loss], queries: Mapping[str, str]
) -> Iterator[tuple[Loss, list[int]]]:
    """Tell of each loss the numbers of the requests whose answers were lost with it."""
    for loss in losses:
        yield (
            loss,
            [
                seen["n"]
                for seen in asked
                if name_of(seen) == loss.name
                and loss.at - LOST_WITHIN
                < datetime.fromisoformat(seen["at"])
                < loss.at + STILL_ASKED
                and _is_about(seen, loss, queries)
            ],
        )


def _is_about(seen: Mapping[str, Any], loss: Loss, queries: Mapping[str, str]) -> Any:
    asked = {name: found[0] for name, found in parse_qs(seen["query"]).items()}
    match loss.kind, loss.about:
        case ((franchises.KIND | products.LIST), (keyword,)):
            return (seen["searched"] or {}).get("keyword") == keyword
        case (products.DETAIL, (item_id,)):
            return (seen["path"], asked.get("id")) in {(ITEM, item_id), (PRODUCT + item_id, None)}
        case (rentals.DETAIL, (property_id,)):
            return property_id in seen["path"]
        case (rentals.LIST, (url, page)):
            return seen["path"] in url and asked.get("page", "1") == page
        case (_, (job_name, start)):
            return asked.get("q") == queries[job_name] and asked.get("startIndex") == start
        case _:
            return False
