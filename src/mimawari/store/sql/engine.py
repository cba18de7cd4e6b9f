"""Connections and transactions; the one place where a driver's errors become ours."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Any, TypeVar

from sqlalchemy import CursorResult, Executable, make_url
from sqlalchemy.exc import (
    DBAPIError,
    InterfaceError,
    InternalError,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from mimawari.errors import StoreDown
from mimawari.kernel.ports import Clock
from mimawari.store.sql.dialect import CONNECT_SECONDS, READ_ONLY, dialect_of
from mimawari.store.sql.signal import SqlSignal
from mimawari.text import one_line

CONTENTION_TRIES = 8

T = TypeVar("T")


_encode = json.JSONEncoder(separators=(",", ":")).encode


def as_rows(rows: Sequence[Sequence[Any]]) -> dict[str, str]:
    """Bind many rows as one value: one statement, one round trip."""
    return {"rows": _encode(rows)}


class Contention(StoreDown):
    """Two transactions were in each other's way; the same work may be done again."""


class Session:
    """One open transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        self.connection = connection
        self.topics: set[str] = set()

    async def execute(self, statement: Executable, values: Any = None) -> CursorResult[Any]:
        """Run one statement."""
        return await self.connection.execute(statement, values)

    def tell(self, topic: str) -> None:
        """Wake who waits for a topic, here and elsewhere, once this is committed."""
        self.topics.add(topic)


class Database:
    """One database of any engine."""

    def __init__(self, url: str, clock: Clock) -> None:
        parsed = make_url(url)
        self.clock = clock
        self.dialect = dialect_of(parsed)
        self.url = parsed.set(drivername=self.dialect.driver)
        self.engine = create_async_engine(self.url, **self.dialect.options(parsed))
        self.dialect.prepare(self.engine)
        self.signal = SqlSignal(self)
        self._line = asyncio.Lock() if self.dialect.writes_one_at_a_time else nullcontext()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """Open a connection for reading what is committed."""
        async with self._connection() as connection:
            options = {READ_ONLY: True}
            yield await connection.execution_options(**options)
            await connection.rollback()

    @asynccontextmanager
    async def write(self) -> AsyncIterator[Session]:
        """Open a transaction, commit it at the end, then wake who waits for what it put."""
        async with self._line, self._connection() as connection, connection.begin():
            session = Session(connection)
            yield session
            if self.dialect.announce is not None:
                for topic in sorted(session.topics):
                    values = {"topic": topic, "sender": self.signal.name}
                    await connection.execute(self.dialect.announce, values)
        for topic in session.topics:
            self.signal.tell(topic)

    async def run(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """Do work in a transaction, again if another one was in its way."""
        for _ in range(CONTENTION_TRIES):
            try:
                async with self.write() as session:
                    return await work(session)
            except Contention as error:
                last = error
        raise last

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[AsyncConnection]:
        connection = await self._connect()
        try:
            yield connection
        except DBAPIError as error:
            raise self._ours(error) from error
        finally:
            await asyncio.shield(self._release(connection))

    async def _connect(self) -> AsyncConnection:
        try:
            async with asyncio.timeout(CONNECT_SECONDS * 2):
                return await self.engine.connect()
        except (OSError, SQLAlchemyError, TimeoutError) as error:
            raise StoreDown(f"the database does not answer: {one_line(str(error))}") from error
        except Exception as error:
            # Drivers raise errors of their own while a server is starting or stopping.
            if type(error).__module__.split(".")[0] not in {"asyncpg", "asyncmy"}:
                raise
            raise StoreDown(f"the database does not answer: {one_line(str(error))}") from error

    async def _release(self, connection: AsyncConnection) -> None:
        try:
            await connection.close()
        except (OSError, SQLAlchemyError):
            await connection.invalidate()

    def _ours(self, error: DBAPIError) -> Exception:
        if self.dialect.contended(error):
            return Contention("another transaction was in the way")
        lost = isinstance(error, OperationalError | InterfaceError | InternalError)
        if not (lost or error.connection_invalidated):
            return error
        return StoreDown(f"the database did not answer: {one_line(str(error.orig))}")

    async def close(self) -> None:
        """Let go of every connection."""
        await self.signal.close()
        await self.engine.dispose()
