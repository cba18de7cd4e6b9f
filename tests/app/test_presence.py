"""`mimawari ps`: who is alive, what it plays and what it is at."""

import asyncio
import json
import os
import signal
import socket
from datetime import timedelta

from sqlalchemy import select

from mimawari.app.ops import System
from mimawari.app.process.presence import FORGET_AFTER, list_processes, say_alive
from mimawari.app.roles import Role
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.job import NewJob, Want
from mimawari.kernel.reporting import LOG
from mimawari.kernel.watch import Watches
from mimawari.kernel.worker import ALIVE_FOR
from mimawari.settings import DEFAULTS
from mimawari.store.sql import SqlStore
from mimawari.store.sql.tables import processes
from tests.app.terminal import Terminal, wait_for

MINUTE = timedelta(minutes=1)


def system_on(store: SqlStore, clock: VirtualClock) -> System:
    """Open what a process has of the system."""
    return System(
        settings=DEFAULTS, clock=clock, store=store, watches=Watches([], DEFAULTS), reporter=LOG
    )


async def speak(system: System, name: str, *roles: Role) -> "asyncio.Task[None]":
    """Start a process that has said that it is alive."""
    task = asyncio.create_task(say_alive(system, name, roles))
    while name not in {one.name for one in await list_processes(system)}:
        await asyncio.sleep(0)
    return task


async def test_a_process_is_shown_with_its_parts_and_what_it_is_at(
    store: SqlStore, clock: VirtualClock
) -> None:
    system = system_on(store, clock)
    task = await speak(system, "box:1", Role.WORKER, Role.API)
    await store.queue.put([NewJob(kind="a.kind", target="a:1"), NewJob(kind="a.kind")])
    want = Want(kind="a.kind", most=5, lease_for=MINUTE)
    await store.queue.turn((), [want], "box:1")
    (shown,) = await list_processes(system)
    assert (shown.name, shown.roles, shown.is_alive) == ("box:1", ("api", "worker"), True)
    assert sorted(shown.doing) == ["a.kind", "a:1"]
    assert shown.started_at == shown.said_at == clock.now()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await list_processes(system) == []


async def test_one_that_was_killed_falls_silent_and_is_forgotten_after_a_day(
    store: SqlStore, clock: VirtualClock
) -> None:
    system = system_on(store, clock)
    row = {"name": "dead:1", "roles": "worker", "version": "1"}
    async with store.edit() as tx:
        await tx.save(processes, [{**row, "started_at": clock.now(), "said_at": clock.now()}])
    await clock.advance(ALIVE_FOR)
    task = await speak(system, "box:2", Role.WORKER)
    assert [one.is_alive for one in await list_processes(system)] == [False, True]
    await clock.advance(FORGET_AFTER)
    async with asyncio.timeout(20):
        while len(await list_processes(system)) > 1:
            await clock.advance(MINUTE)
    assert [one.name for one in await list_processes(system)] == ["box:2"]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_name_is_kept_once_however_often_it_is_said(
    store: SqlStore, clock: VirtualClock
) -> None:
    system = system_on(store, clock)
    tasks = [await speak(system, "box:3", Role.API) for _ in range(2)]
    async with store.read() as reader:
        assert len((await reader.execute(select(processes))).all()) == 1
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_the_command_shows_who_serves(terminal: Terminal) -> None:
    assert "No process is running" in terminal.run("ps").out
    with terminal.serve("--role", "worker") as serving:
        wait_for(lambda: "alive" in terminal.run("ps").out)
        (shown,) = json.loads(terminal.run("ps", "--json").out)
        assert shown["name"].startswith(f"{socket.gethostname()}:")
        assert int(shown["name"].rpartition(":")[2]) != os.getpid()
        assert (shown["roles"], shown["is_alive"]) == (["worker"], True)
        assert serving.stop(signal.SIGTERM) == 0
    assert json.loads(terminal.run("ps", "--json").out) == []
