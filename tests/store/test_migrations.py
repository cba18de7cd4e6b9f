"""Migrations: from nothing to what the code expects, once, whoever else does the same."""

import asyncio
import multiprocessing
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, cast

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Float, MetaData, inspect, text
from sqlalchemy.dialects import mysql

from mimawari.errors import BadInput
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.job import NewJob
from mimawari.notify.tables import metadata as notify
from mimawari.store.sql import SqlStore
from mimawari.store.sql.engine import Session
from mimawari.store.sql.migrate import find_version, upgrade
from mimawari.store.sql.tables import metadata
from mimawari.watches.books.tables import metadata as books
from mimawari.watches.hot.tables import metadata as hot
from mimawari.watches.prices.tables import metadata as prices
from mimawari.watches.rentals.tables import metadata as rentals
from mimawari.watches.streams.tables import metadata as streams
from tests.conftest import Databases

HEAD = "0018"
ALL = [metadata, books, hot, notify, prices, rentals, streams]
"""The tables of the kernel and of every watch."""


@pytest.fixture
def url(engine: str, databases: Databases) -> str:
    """A new empty database on each engine in turn."""
    return databases.fresh(engine)


@pytest.fixture
async def empty(url: str, clock: VirtualClock) -> AsyncIterator[SqlStore]:
    """A store without any table."""
    store = SqlStore(url, clock)
    yield store
    await store.close()


def is_other_type(*given: Any) -> bool | None:
    """Take MariaDB's DOUBLE for the FLOAT(53) it was made from; None leaves it to alembic."""
    stored, wanted = given[-2:]
    is_double = isinstance(stored, mysql.DOUBLE) and isinstance(wanted, Float)
    return False if is_double and wanted.precision == 53 else None


def differences(session: Session) -> list[Any]:
    """Compare what is there with what the code expects, columns, types, indexes and all."""
    options = {"compare_type": is_other_type}
    context = MigrationContext.configure(session.connection, opts=options)
    return list(compare_metadata(context, cast("MetaData", ALL)))


async def test_an_empty_database_is_brought_to_the_head(empty: SqlStore) -> None:
    before = await find_version(empty.database)
    assert (before.current, before.needed, before.is_current) == (None, HEAD, False)
    assert await upgrade(empty.database) == before
    after = await find_version(empty.database)
    assert (after.current, after.is_current) == (HEAD, True)
    assert await empty.queue.put([NewJob(kind="t")])


async def test_asking_for_the_version_changes_nothing(empty: SqlStore) -> None:
    await find_version(empty.database)
    names = await empty.database.look(lambda session: inspect(session.connection).get_table_names())
    assert names == []


async def test_the_migrated_tables_are_what_the_code_expects(empty: SqlStore) -> None:
    await upgrade(empty.database)
    assert await empty.database.look(differences) == []


async def test_a_missing_index_or_column_would_be_noticed(empty: SqlStore, engine: str) -> None:
    await upgrade(empty.database)
    where = " ON jobs" if engine == "mariadb" else ""

    def spoil(session: Session) -> None:
        session.execute(text(f"DROP INDEX jobs_claim{where}"))
        session.execute(text("ALTER TABLE meta ADD COLUMN more INTEGER"))

    await empty.database.run(spoil)
    found = await empty.database.look(differences)
    assert sorted(difference[0] for difference in found) == ["add_index", "remove_column"]


@pytest.mark.parametrize("engine", ["mariadb"])
async def test_names_are_exact_in_every_table_of_mariadb(engine: str, empty: SqlStore) -> None:
    """Look at what a comparison of tables does not: their engine and how they compare text."""
    await upgrade(empty.database)
    query = text(
        "SELECT table_name, engine, table_collation FROM information_schema.tables"
        " WHERE table_schema = DATABASE() AND table_name <> 'alembic_version'"
        " AND table_type = 'BASE TABLE'"
    )
    async with empty.read() as reader:
        rows = (await reader.execute(query)).all()
    assert engine == "mariadb"
    assert {row[0] for row in rows} == {name for tables in ALL for name in tables.tables}
    assert {tuple(row[1:]) for row in rows} == {("InnoDB", "utf8mb4_nopad_bin")}


@pytest.mark.parametrize("engine", ["postgresql"])
async def test_text_is_compared_by_code_points_in_every_table_of_postgresql(
    engine: str, empty: SqlStore
) -> None:
    """A migration that adds text ends with `compare_by_code_points`."""
    await upgrade(empty.database)
    query = text(
        "SELECT table_name || '.' || column_name FROM information_schema.columns"
        " WHERE table_schema = current_schema() AND data_type IN ('text', 'character varying')"
        " AND collation_name IS DISTINCT FROM 'C'"
    )
    async with empty.read() as reader:
        others = set((await reader.execute(query)).scalars())
    assert engine == "postgresql"
    # PostgreSQL changes neither a generated column nor those that it is made from. They are
    # compared for equality, which no collation alters, and nothing is sorted by them.
    generated = {"monitors.active_url", "monitors.status", "monitors.stream_url"}
    assert others == {"alembic_version.version_num", *generated}


async def test_upgrading_again_changes_nothing_and_loses_nothing(empty: SqlStore) -> None:
    await upgrade(empty.database)
    [job_id] = await empty.queue.put([NewJob(kind="t")])
    for _ in range(3):
        assert (await upgrade(empty.database)).is_current
    assert await empty.queue.find(job_id) is not None
    assert await empty.database.look(differences) == []


async def test_processes_that_upgrade_at_once_all_succeed(url: str, clock: VirtualClock) -> None:
    async with AsyncExitStack() as stack:
        stores = [SqlStore(url, clock) for _ in range(3)]
        for store in stores:
            stack.push_async_callback(store.close)
        async with asyncio.timeout(20):
            versions = await asyncio.gather(*(upgrade(store.database) for store in stores))
        assert sorted(version.is_current for version in versions) == [False, True, True]
        for store in stores:
            assert (await find_version(store.database)).is_current
        assert await stores[0].database.look(differences) == []


async def test_a_process_may_upgrade_while_another_that_has_done_so_lives_on(
    empty: SqlStore, url: str, clock: VirtualClock
) -> None:
    await upgrade(empty.database)
    second = SqlStore(url, clock)
    try:
        async with asyncio.timeout(10):
            assert (await upgrade(second.database)).is_current
    finally:
        await second.close()


async def test_databases_of_one_server_are_upgraded_apart(
    empty: SqlStore, engine: str, databases: Databases, clock: VirtualClock
) -> None:
    await upgrade(empty.database)
    other = SqlStore(databases.fresh(engine), clock)
    try:
        async with asyncio.timeout(10):
            assert (await upgrade(other.database)).current is None
    finally:
        await other.close()


async def give_up(urls: list[str]) -> None:
    """Start many upgrades, give up all but the first while they wait, and make one more."""
    stores = [SqlStore(url, VirtualClock()) for url in urls]
    started = [asyncio.create_task(upgrade(store.database)) for store in stores[:-1]]
    for _ in range(20):
        await asyncio.sleep(0)
    for waiting in started[1:]:
        waiting.cancel()
    await asyncio.gather(*started, return_exceptions=True)
    await upgrade(stores[-1].database)
    for store in stores:
        await store.close()


def run_give_up(urls: list[str]) -> None:
    asyncio.run(give_up(urls))


async def test_upgrades_that_were_given_up_hold_up_neither_others_nor_the_end(
    databases: Databases,
) -> None:
    urls = [databases.fresh("sqlite") for _ in range(6)]
    process = multiprocessing.get_context("spawn").Process(target=run_give_up, args=(urls,))
    process.start()
    try:
        await asyncio.to_thread(process.join, 20)
        assert process.exitcode == 0
    finally:
        process.kill()
        process.join()


async def test_a_database_of_a_newer_version_is_refused_unchanged(empty: SqlStore) -> None:
    await upgrade(empty.database)
    newer = text("UPDATE alembic_version SET version_num = '9999'")
    await empty.database.run(lambda session: session.execute(newer).rowcount)
    for ask in (find_version, upgrade):
        with pytest.raises(BadInput, match="version 9999, which is newer") as raised:
            await ask(empty.database)
        assert raised.value.code == "database_newer"
    async with empty.read() as reader:
        found = await reader.execute(text("SELECT version_num FROM alembic_version"))
    assert found.scalar_one() == "9999"
