"""Transactions: all or nothing, done again after contention, and errors that are ours."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, insert, select, text, update
from sqlalchemy.exc import IntegrityError, ProgrammingError

from mimawari.errors import BadInput, StoreDown
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.job import NewJob
from mimawari.store.sql import SqlStore
from mimawari.store.sql.engine import CONTENTION_TRIES, Contention, Session
from mimawari.store.sql.tables import meta

SERVERS = pytest.mark.parametrize("engine", ["postgresql", "mariadb"])
UNREACHABLE = {
    "postgresql": "postgresql://someone:secret@127.0.0.1:{port}/nowhere",
    "mariadb": "mariadb://someone:secret@127.0.0.1:{port}/nowhere",
    "sqlite": "sqlite:////nowhere/at/all/{port}.db",
}


@pytest.fixture
async def twin(store: SqlStore, clock: VirtualClock) -> AsyncIterator[SqlStore]:
    """The same database as another process opens it."""
    twin = SqlStore(store.database.url.render_as_string(hide_password=False), clock)
    yield twin
    await twin.close()


def write(name: str, value: str = "") -> Any:
    return insert(meta).values(name=name, value=value)


def adds(*names: str) -> Callable[[Session], None]:
    """Return work that adds rows."""

    def work(session: Session) -> None:
        for name in names:
            session.execute(write(name))

    return work


async def names(store: SqlStore) -> list[str]:
    async with store.read() as reader:
        return list((await reader.execute(select(meta.c.name).order_by(meta.c.name))).scalars())


def in_use(store: SqlStore) -> int:
    """Count the connections that are out of the pool."""
    pool: Any = store.database.link.engine.pool
    count: int = pool.checkedout()
    return count


async def check_usable(store: SqlStore) -> None:
    """Write more often than there are connections, and leave none behind."""
    async with asyncio.timeout(20):
        await asyncio.gather(*(store.database.run(adds(f"use {n}")) for n in range(40)))
    assert len([name for name in await names(store) if name.startswith("use ")]) == 40
    assert in_use(store) == 0


async def test_work_is_kept_whole_and_its_result_returned(store: SqlStore) -> None:
    def work(session: Session) -> str:
        adds("a", "b")(session)
        return "done"

    assert await store.database.run(work) == "done"
    assert await names(store) == ["a", "b"]


async def test_an_error_of_the_work_rolls_it_back(store: SqlStore) -> None:
    def work(session: Session) -> None:
        adds("a")(session)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await store.database.run(work)
    assert await names(store) == []
    await check_usable(store)


async def test_an_error_in_the_body_of_a_write_rolls_it_back(store: SqlStore) -> None:
    async def fail() -> None:
        async with store.database.write() as opened:
            await opened.execute(write("a"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await names(store) == []
    await check_usable(store)


async def test_a_write_is_seen_by_others_only_when_it_is_over(
    store: SqlStore, twin: SqlStore
) -> None:
    async with store.database.write() as opened:
        await opened.execute(write("a"))
        found = await opened.execute(select(meta.c.name))
        assert found.scalars().all() == ["a"]
        assert await names(twin) == []
    assert await names(twin) == ["a"]


async def test_a_broken_rule_of_a_table_is_not_a_store_that_is_down(store: SqlStore) -> None:
    await store.database.run(adds("a"))
    with pytest.raises(IntegrityError):
        await store.database.run(adds("b", "a"))

    async def again() -> None:
        async with store.database.write() as opened:
            await opened.execute(write("b"))
            await opened.execute(write("a"))

    with pytest.raises(IntegrityError):
        await again()
    assert await names(store) == ["a"]
    await check_usable(store)


@SERVERS
async def test_a_wrong_statement_is_not_a_store_that_is_down(engine: str, store: SqlStore) -> None:
    del engine
    wrong = text("SELECT nothing FROM nowhere")
    with pytest.raises(ProgrammingError):
        await store.database.look(lambda session: session.execute(wrong).all())
    await check_usable(store)


async def test_a_write_that_is_cancelled_between_steps_changes_nothing(store: SqlStore) -> None:
    reached = asyncio.Event()

    async def hang() -> None:
        async with store.database.write() as opened:
            await opened.execute(write("a"))
            reached.set()
            await asyncio.Event().wait()

    for _ in range(20):
        reached.clear()
        hanging = asyncio.create_task(hang())
        async with asyncio.timeout(10):
            await reached.wait()
            hanging.cancel()
            with pytest.raises(asyncio.CancelledError):
                await hanging
    assert await names(store) == []
    await check_usable(store)


@SERVERS
async def test_a_write_that_is_cancelled_while_it_waits_for_a_row_changes_nothing(
    engine: str, store: SqlStore, twin: SqlStore
) -> None:
    del engine
    await store.database.run(adds("row"))
    started = asyncio.Event()

    def wait_for_row(session: Session) -> None:
        adds("a")(session)
        started.set()
        session.execute(update(meta).values(value="ours"))

    async with twin.database.write() as holder:
        await holder.execute(update(meta).values(value="theirs"))
        waiting = asyncio.create_task(store.database.run(wait_for_row))
        async with asyncio.timeout(10):
            await started.wait()
            # The statement is on its way, and the server answers others meanwhile.
            assert await names(store) == ["row"]
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
    await check_usable(store)
    async with store.read() as reader:
        query = select(meta.c.name, meta.c.value).where(~meta.c.name.startswith("use "))
        assert [tuple(row) for row in await reader.execute(query)] == [("row", "theirs")]


async def test_work_cancelled_at_any_moment_is_whole_and_leaves_no_connection_behind(
    store: SqlStore,
) -> None:
    for moment in range(0, 600, 10):
        running = asyncio.create_task(store.database.run(adds(f"{moment} a", f"{moment} b")))
        for _ in range(moment):
            await asyncio.sleep(0)
        running.cancel()
        async with asyncio.timeout(10):
            await asyncio.gather(running, return_exceptions=True)
    found = await names(store)
    assert {name[:-1] + "a" for name in found} == {name for name in found if name.endswith("a")}
    assert {name[:-1] + "b" for name in found} == {name for name in found if name.endswith("b")}
    await check_usable(store)


@SERVERS
async def test_work_that_met_a_deadlock_is_done_again(
    engine: str, store: SqlStore, twin: SqlStore
) -> None:
    """Let two lock two rows crosswise, each holding its first before it asks for its second."""
    del engine
    await store.database.run(adds("x", "y"))
    both_hold, tries = asyncio.Barrier(2), {"xy": 0, "yx": 0}

    def cross(order: str) -> Callable[[Session], None]:
        def work(session: Session) -> None:
            tries[order] += 1
            first, second = (update(meta).where(meta.c.name == name) for name in order)
            session.execute(first.values(value=meta.c.value + order))
            if tries[order] == 1:
                driver: Any = session.connection.connection.dbapi_connection
                driver.run_async(lambda _: both_hold.wait())
            session.execute(second.values(value=meta.c.value + order))

        return work

    async with asyncio.timeout(20):
        await asyncio.gather(store.database.run(cross("xy")), twin.database.run(cross("yx")))
    # Whoever is done again may come before the other once more, and meet it in the same way.
    assert sum(tries.values()) > 2
    async with store.read() as reader:
        values = (await reader.execute(select(meta.c.value))).scalars().all()
    assert {"".join(sorted(value)) for value in values} == {"xxyy"}


async def test_contention_without_end_is_given_up_as_a_store_that_is_down(store: SqlStore) -> None:
    tries = []

    def work(session: Session) -> None:
        session.execute(write("a"))
        tries.append(1)
        raise Contention("another transaction was in the way")

    with pytest.raises(StoreDown, match="in the way"):
        await store.database.run(work)
    assert len(tries) == CONTENTION_TRIES
    assert await names(store) == []


@pytest.mark.parametrize("engine", sorted(UNREACHABLE))
async def test_a_database_that_cannot_be_reached_is_said_in_one_sentence(
    engine: str, clock: VirtualClock
) -> None:
    with socket.socket() as taken:
        # It is bound and never listens, so nobody else is given the port either.
        taken.bind(("127.0.0.1", 0))
        store = SqlStore(UNREACHABLE[engine].format(port=taken.getsockname()[1]), clock)
        for ask in (store.ping, store.queue.kinds, lambda: store.queue.put([NewJob(kind="t")])):
            with pytest.raises(StoreDown) as raised:
                await ask()
            sentence = str(raised.value)
            assert sentence.startswith("the database does not answer: ")
            assert len(sentence.splitlines()) == 1
            assert len(sentence) < 300
            assert "secret" not in sentence
        await store.close()


@pytest.mark.parametrize("engine", ["sqlite"])
async def test_fifty_writers_on_one_file_all_succeed(
    engine: str, store: SqlStore, clock: VirtualClock
) -> None:
    del engine
    url = store.database.url.render_as_string(hide_password=False)
    stores = [SqlStore(url, clock) for _ in range(5)]

    async def add(number: int) -> None:
        async with stores[number % 5].database.write() as opened:
            found = await opened.execute(select(func.count()).select_from(meta))
            await opened.execute(write(f"{number}", f"{found.scalar_one()}"))

    async with asyncio.timeout(60):
        await asyncio.gather(*(add(number) for number in range(50)))
    async with store.read() as reader:
        counted = (await reader.execute(select(meta.c.value))).scalars().all()
    assert sorted(map(int, counted)) == list(range(50))
    for each in stores:
        await each.close()


@pytest.mark.parametrize(
    "url",
    [
        "oracle://someone:secret@host/name",
        "redis://host/0",
        "sqlite://",
        "sqlite:///:memory:",
    ],
)
def test_a_database_we_do_not_know_is_refused_with_advice(url: str, clock: VirtualClock) -> None:
    with pytest.raises(BadInput, match="sqlite:///") as raised:
        SqlStore(url, clock)
    assert "secret" not in str(raised.value)


async def test_a_file_is_made_where_there_is_none(tmp_path: Path, clock: VirtualClock) -> None:
    path = tmp_path / "a b'c é.db"
    store = SqlStore(f"sqlite:///{path}", clock)
    found = await store.database.look(lambda session: session.execute(text("SELECT 1")).scalar())
    assert (found, path.exists()) == (1, True)
    await store.close()


async def test_a_file_that_was_closed_is_a_store_that_is_down(
    tmp_path: Path, clock: VirtualClock
) -> None:
    closed = SqlStore(f"sqlite:///{tmp_path}/closed.db", clock)
    await closed.close()
    with pytest.raises(StoreDown, match="is stopping"):
        await closed.database.run(lambda session: session.execute(write("a")).rowcount)
