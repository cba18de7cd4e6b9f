"""Measures the floor: the kernel's own statements in large batches, straight on the driver."""

import asyncio
import re
import sqlite3
import time
from collections.abc import Sequence
from typing import Any, Protocol

import asyncmy
import asyncpg
from sqlalchemy import make_url

from bench.ours import open_store
from bench.program import check, main, sqlite_path
from mimawari.ids import new_id
from mimawari.store.sql.engine import as_rows
from mimawari.store.sql.store import SqlStore

BATCH = 2000
SETTINGS = f"the same statements by {BATCH} on the bare driver, no worker, no tasks"
_NAME = re.compile(r"(?<!:):([a-z_]+)")

Rows = Sequence[Sequence[Any]]


class Driver(Protocol):
    """A bare connection."""

    async def run(self, sql: str, values: dict[str, Any]) -> Rows:
        """Run one statement with named values."""
        ...

    async def transaction(self, word: str) -> None:
        """Begin or commit."""
        ...


class Sqlite:
    """The standard library's driver."""

    def __init__(self, url: str) -> None:
        self._connection = sqlite3.connect(sqlite_path(url), isolation_level=None)
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "cache_size = -32000"):
            self._connection.execute(f"PRAGMA {pragma}")

    async def run(self, sql: str, values: dict[str, Any]) -> Rows:
        """Run one statement with named values."""
        return self._connection.execute(sql, values).fetchall()

    async def transaction(self, word: str) -> None:
        """Begin or commit."""
        self._connection.execute(word.replace("BEGIN", "BEGIN IMMEDIATE"))


class Postgres:
    """asyncpg."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def run(self, sql: str, values: dict[str, Any]) -> Rows:
        """Run one statement with named values."""
        names: list[str] = []

        def number(found: re.Match[str]) -> str:
            names.append(found[1])
            return f"${len(names)}"

        text = _NAME.sub(number, sql)
        rows: Rows = await self._connection.fetch(text, *(values[name] for name in names))
        return rows

    async def transaction(self, word: str) -> None:
        """Begin or commit."""
        await self._connection.execute(word)


class Mariadb:
    """asyncmy."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def run(self, sql: str, values: dict[str, Any]) -> Rows:
        """Run one statement with named values."""
        async with self._connection.cursor() as cursor:
            await cursor.execute(_NAME.sub(r"%(\1)s", sql), values)
            rows: Rows = await cursor.fetchall() if cursor.description else ()
            return rows

    async def transaction(self, word: str) -> None:
        """Begin or commit."""
        async with self._connection.cursor() as cursor:
            await cursor.execute(word)


async def connect(url: str) -> Driver:
    """Open a bare connection to any engine."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        return Sqlite(url)
    if parsed.get_backend_name() == "postgresql":
        return Postgres(await asyncpg.connect(url))
    connection = await asyncmy.connect(
        host=parsed.host,
        port=parsed.port,
        user=parsed.username,
        password=parsed.password,
        db=parsed.database,
        autocommit=True,
    )
    return Mariadb(connection)


class Floor:
    """Puts, claims and ends jobs with the kernel's statements and nothing else of it."""

    def __init__(self, store: SqlStore, driver: Driver) -> None:
        self._put, self._claim, self._end = store.queue.statements()
        self._driver = driver

    async def run(self, jobs: int) -> float:
        """Give the seconds that jobs take."""
        start = time.perf_counter()
        for _ in range(0, jobs, BATCH):
            await self._put_batch()
        for _ in range(0, jobs, BATCH):
            await self._driver.transaction("BEGIN")
            ids = await self._claim_batch()
            await self._end_batch(ids)
            await self._driver.transaction("COMMIT")
        return time.perf_counter() - start

    async def _put_batch(self) -> None:
        rows = [(new_id(), "bench.nothing", "{}", None, None, 100, 0, None) for _ in range(BATCH)]
        await self._driver.transaction("BEGIN")
        await self._driver.run(self._put, {**as_rows(rows), "now": 0})
        await self._driver.transaction("COMMIT")

    async def _claim_batch(self) -> list[str]:
        choose, *mark = self._claim
        values = {
            "kind": "bench.nothing",
            "now": 1,
            "most": BATCH,
            "worker": "floor",
            "lease_until": 2,
            "crashes": 2,
        }
        ids = [row[0] for row in await self._driver.run(choose, values)]
        for statement in mark:
            chosen = as_rows([(job_id,) for job_id in ids])
            await self._driver.run(statement, {**values, **chosen})
        return ids

    async def _end_batch(self, ids: Sequence[str]) -> None:
        ends = as_rows([(job_id, 1, "done", None, None) for job_id in ids])
        move, *rest = self._end
        await self._driver.run(move, {**ends, "now": 3})
        for statement in rest:
            await self._driver.run(statement, {**ends, "now": 3})


async def _floor(jobs: int, url: str) -> float:
    async with open_store(url) as store:
        driver = await connect(url)
        seconds = await Floor(store, driver).run(jobs)
        done = (await driver.run("SELECT count(*) FROM inbox WHERE state = 'done'", {}))[0][0]
        check(jobs, jobs, int(done))
    return seconds


def floor(jobs: int, url: str) -> float:
    """Give the seconds that the statements alone take."""
    return asyncio.run(_floor(jobs, url))


if __name__ == "__main__":
    main(floor, SETTINGS)
