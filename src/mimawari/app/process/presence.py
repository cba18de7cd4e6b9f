"""Who is alive: each process says so now and then, with the parts it plays."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from sqlalchemy import delete, select

from mimawari import __version__
from mimawari.app.roles import Role
from mimawari.edges.system import System
from mimawari.errors import StoreDown
from mimawari.kernel.job import State
from mimawari.kernel.worker import ALIVE_EVERY, ALIVE_FOR
from mimawari.store.sql.tables import jobs, processes

FORGET_AFTER = timedelta(days=1)

log = structlog.get_logger(component="presence")


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process as people see it: the parts it plays, since when, and what it is at."""

    name: str
    roles: tuple[str, ...]
    version: str
    started_at: datetime
    said_at: datetime
    is_alive: bool
    doing: tuple[str, ...]


async def say_alive(system: System, name: str, roles: Iterable[Role]) -> None:
    """Say every now and then that this process is alive, and at its end that it is not."""
    row = {
        "name": name, "roles": ",".join(sorted(roles)), "version": __version__,
        "started_at": system.clock.now(),
    }  # fmt: skip
    try:
        while True:
            await _say(system, {**row, "said_at": system.clock.now()})
            await system.clock.sleep(ALIVE_EVERY)
    finally:
        await _leave(system, name)


async def _say(system: System, row: dict[str, object]) -> None:
    now = system.clock.now()
    try:
        async with system.store.edit() as tx:
            await tx.save(processes, [row], ("roles", "version", "started_at", "said_at"))
            await tx.execute(delete(processes).where(processes.c.said_at < now - FORGET_AFTER))
    except StoreDown as error:
        log.warning("store down", result="retry", reason=str(error), next=str(ALIVE_EVERY))


async def _leave(system: System, name: str) -> None:
    try:
        async with system.store.edit() as tx:
            await tx.execute(delete(processes).where(processes.c.name == name))
    except StoreDown as error:
        log.warning("store down", result="left unsaid", reason=str(error))


async def list_processes(system: System) -> list[Process]:
    """List the processes of a day, the oldest first, with the jobs that each is at."""
    working = select(jobs.c.worker, jobs.c.kind, jobs.c.target).where(
        jobs.c.state == State.PROCESSING
    )
    now, doing = system.clock.now(), dict[str, list[str]]()
    async with system.store.read() as reader:
        for job in await reader.execute(working.order_by(jobs.c.id)):
            doing.setdefault(job.worker, []).append(job.target or job.kind)
        rows = await reader.execute(select(processes).order_by(processes.c.started_at))
    return [
        Process(
            name=row.name,
            roles=tuple(row.roles.split(",")),
            version=row.version,
            started_at=row.started_at,
            said_at=row.said_at,
            is_alive=row.said_at > now - ALIVE_FOR,
            doing=tuple(doing.get(row.name, ())),
        )
        for row in rows
    ]
