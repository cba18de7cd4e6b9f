"""Workers die anywhere in a spell of 404s: nothing is lost, and every effect is undone once."""

import asyncio
import signal
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import make_url, select

from mimawari.kernel import control
from mimawari.kernel.clock import RealClock, VirtualClock
from mimawari.kernel.job import State
from mimawari.kernel.not_found import NotFoundRun, RunState
from mimawari.sites.yahoo_realestate import SITE
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade
from mimawari.store.sql.tables import not_found, outbox
from mimawari.watches.rentals import tasks
from mimawari.watches.rentals.site_check import KIND
from mimawari.watches.rentals.tables import properties
from tests.conftest import Databases
from tests.faults.hot_world import ShiftedClock
from tests.faults.lines import list_lines
from tests.faults.rentals_world import (
    Town,
    gather_404s,
    kept,
    opened_town,
    put_round,
    work_and_check,
    work_until_line,
)
from tests.faults.test_hot_kills import dead_or_idle, drained
from tests.faults.world import FULL, PATIENCE_SECONDS, kill, spawn
from tests.servers import BACKENDS
from tests.stores import address_of, open_store

KILLS = 40 if FULL else 4
START = datetime(2026, 6, 1, 12, 30, tzinfo=UTC)


LINES = list_lines(control, "_Check")
SLICE = LINES if FULL else LINES[-12::5]


async def held(store: SqlStore) -> None:
    """Wait until the site is on hold."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            run = await store.not_found.find(SITE.name)
            if run is not None and run.state is RunState.HELD:
                return
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("backend", BACKENDS if FULL else ("sqlite",))
async def test_rooms_and_jobs_of_a_run_of_404s_come_back_once_whoever_dies(
    backend: str, databases: Databases
) -> None:
    """Every room is as it was, its job is there once, and each is read once in the end."""
    url = databases.fresh(backend)
    clock = VirtualClock(START)
    async with opened_town(clock) as town:
        shift = clock.now() - RealClock().now()
        store = open_store(url, ShiftedClock(shift))
        await upgrade(store.database)
        await put_round(store, town)
        worker = spawn(work_and_check, url, town.address, shift, None)
        await drained(store)
        kill(worker)
        before = await kept(store, town.address)
        order = town.world.orders.add({"part": "rentals", "do": "gone"})
        await put_round(store, town)
        for number in range(KILLS):
            # Each dies somewhere else: in the commits of 404s, in the control, in the hold.
            doomed = spawn(work_and_check, url, town.address, shift, 5 + number * 23 % 97)
            await dead_or_idle(doomed, store)
            kill(doomed)
            assert doomed.exitcode == -signal.SIGKILL
        heir = spawn(work_and_check, url, town.address, shift, None)
        await held(store)
        kill(heir)
        assert await kept(store, town.address) == before
        counts = await store.queue.counts(tasks.DETAIL)
        assert counts[State.PERMANENT_FAIL] == 0
        async with store.read() as reader:
            assert (await reader.execute(select(not_found))).all() == []
            told = (await reader.execute(select(outbox.c.kind))).scalars().all()
        assert "rentals.ended" not in told
        town.world.orders.remove(order["id"])
        asked_before = len(town.asked())
        later = shift + timedelta(hours=2)
        heir = spawn(work_and_check, url, town.address, later, None)
        await drained(store)
        kill(heir)
        assert await kept(store, town.address) == before
        asked = Counter(one["path"] for one in town.asked()[asked_before:])
        rooms = {path: n for path, n in asked.items() if path.startswith("/rent/detail/")}
        assert len(rooms) == len(before["properties"])
        # The control request went to one of them.
        assert sum(rooms.values()) <= len(rooms) + 1
        await store.close()


@asynccontextmanager
async def in_question(databases: Databases, town: Town) -> AsyncIterator[tuple[Path, timedelta]]:
    """Have five rooms in a row found 404, and the control request not made yet; give the file."""
    url = databases.fresh("sqlite")
    shift = town.world.clock.now() - RealClock().now()
    store = open_store(url, ShiftedClock(shift))
    await upgrade(store.database)
    await put_round(store, town)
    worker = spawn(work_and_check, url, town.address, shift, None)
    await drained(store)
    kill(worker)
    town.world.orders.add({"part": "rentals", "do": "gone"})
    await put_round(store, town)
    worker = spawn(gather_404s, url, town.address, shift)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not is_in(await store.not_found.find(SITE.name), RunState.CONTROL):
            await asyncio.sleep(0.05)
    # It may be at work on others, which must wait.
    await asyncio.sleep(0.2)
    kill(worker)
    await store.close()
    yield Path(make_url(url).database or ""), shift


def is_in(run: NotFoundRun | None, state: RunState) -> bool:
    return run is not None and run.state is state


async def end_with(
    store: SqlStore, town: Town, shift: timedelta, line: tuple[str, int], end: RunState
) -> int | None:
    """Have the control job die before a line, and others go on; tell how the first one ended."""
    url = address_of(store)
    doomed = spawn(work_until_line, url, town.address, shift, line)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while doomed.exitcode is None and not is_in(await store.not_found.find(SITE.name), end):
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.1)
        kill(doomed)
        heir = spawn(work_and_check, url, town.address, shift, None)
        while not is_in(await store.not_found.find(SITE.name), end):
            await asyncio.sleep(0.02)
        if end is RunState.COUNTING:
            await drained(store)
    kill(heir)
    return doomed.exitcode


def copy_database(file: Path, copy: Path) -> None:
    """Copy a database with what is in its log."""
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)


async def list_rooms(store: SqlStore, *, ended: bool = False) -> set[str]:
    """List the properties that are kept, all or those that are said to be off the market."""
    query = select(properties.c.property_id)
    async with store.read() as reader:
        found = query.where(properties.c.status == "ended") if ended else query
        return set((await reader.execute(found)).scalars())


async def told_gone(store: SqlStore) -> list[str]:
    query = select(outbox.c.key).where(outbox.c.kind == "rentals.ended")
    async with store.read() as reader:
        return sorted((await reader.execute(query)).scalars())


async def check_held(store: SqlStore, now: datetime) -> None:
    """Insist on one hold, in which every room is as it was and waits to be read."""
    run = await store.not_found.find(SITE.name)
    assert run is not None
    assert (run.holds, await told_gone(store)) == (1, [])
    assert await list_rooms(store, ended=True) == set()
    counts = await store.queue.counts(tasks.DETAIL)
    assert counts[State.PERMANENT_FAIL] == 0
    assert counts[State.PENDING] + counts[State.PROCESSING] == len(await list_rooms(store))
    [waits] = await store.queue.list(9, kind=KIND, state=State.PENDING)
    assert waits.next_at is not None
    assert waits.next_at > now


@pytest.mark.parametrize("end", [RunState.HELD, RunState.COUNTING])
async def test_the_control_job_may_die_between_any_two_lines(
    end: RunState, databases: Databases, tmp_path: Path
) -> None:
    """On hold nothing is gone and all jobs wait; where the site is well each is told gone once."""
    clock = VirtualClock(START)
    died = 0
    async with opened_town(clock) as town, in_question(databases, town) as (file, shift):
        gone = await list_rooms(open_store(f"sqlite:///{file}", clock), ended=True)
        assert len(gone) >= 4
        if end is RunState.COUNTING:
            town.world.orders.clear()
        for number, line in enumerate(SLICE):
            again = tmp_path / f"{number}.db"
            copy_database(file, again)
            store = open_store(f"sqlite:///{again}", ShiftedClock(shift))
            died += await end_with(store, town, shift, line, end) == -signal.SIGKILL
            async with store.read() as reader:
                assert (await reader.execute(select(not_found))).all() == []
            if end is RunState.HELD:
                await check_held(store, ShiftedClock(shift).now())
            else:
                counts = await store.queue.counts(tasks.DETAIL)
                assert counts[State.PERMANENT_FAIL] == len(gone)
                assert await list_rooms(store, ended=True) == gone
                assert await told_gone(store) == sorted(f"rentals:{one}" for one in gone)
            await store.close()
    assert died
