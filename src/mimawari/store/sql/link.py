"""How a database is reached: a server over its async driver, a file in threads of its own.

Both run the same plain functions on a plain connection. A whole transaction is one such
function, so a file costs one hop to its thread however many statements there are.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

T = TypeVar("T")
Work = Callable[[Connection], T]

READ_ONLY = "mimawari_read_only"
READERS = 4


class Line(Protocol):
    """One connection, opened by its first use."""

    async def run(self, work: Work[T]) -> T:
        """Run a plain function on the connection."""
        ...

    async def close(self) -> None:
        """Let go of the connection; what was not committed never happened."""
        ...


class Link(Protocol):
    """The way to one database."""

    @property
    def engine(self) -> Engine:
        """The plain engine, for events."""
        ...

    def line(self, *, read_only: bool) -> Line:
        """Return a connection that is not open yet."""
        ...

    async def close(self) -> None:
        """Let go of everything."""
        ...


class ServerLink:
    """A server, over an async driver."""

    def __init__(self, url: URL, options: dict[str, Any]) -> None:
        self._engine = create_async_engine(url, **options)

    @property
    def engine(self) -> Engine:
        """The plain engine, for events."""
        return self._engine.sync_engine

    def line(self, *, read_only: bool) -> Line:
        """Return a connection that is not open yet."""
        del read_only
        return _ServerLine(self._engine.connect())

    async def close(self) -> None:
        """Let go of everything."""
        await self._engine.dispose()


class _ServerLine:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection
        self._open = False

    async def run(self, work: Work[T]) -> T:
        if not self._open:
            await self._connection.start()
            self._open = True
        try:
            return await self._connection.run_sync(work)
        except asyncio.CancelledError:
            # Nobody knows what the server makes of a step that was cut short.
            await asyncio.shield(self._connection.invalidate())
            raise

    async def close(self) -> None:
        if self._open:
            await asyncio.shield(self._connection.close())


class FileLink:
    """A file: one thread writes, some read."""

    def __init__(self, url: URL, options: dict[str, Any]) -> None:
        self._engine = create_engine(url, **options)
        self._writer = ThreadPoolExecutor(1, "sqlite-writer")
        self._readers = ThreadPoolExecutor(READERS, "sqlite-reader")

    @property
    def engine(self) -> Engine:
        """The plain engine, for events."""
        return self._engine

    def line(self, *, read_only: bool) -> Line:
        """Return a connection that is not open yet."""
        threads = self._readers if read_only else self._writer
        return _FileLine(self._engine, threads, read_only=read_only)

    async def close(self) -> None:
        """Let go of everything."""
        for threads in (self._writer, self._readers):
            await asyncio.to_thread(threads.shutdown)
        self._engine.dispose()


class _FileLine:
    def __init__(self, engine: Engine, threads: Executor, *, read_only: bool) -> None:
        self._engine = engine
        self._threads = threads
        self._options = {READ_ONLY: read_only}
        self._connection: Connection | None = None

    async def run(self, work: Work[T]) -> T:
        return await self._hop(lambda: work(self._opened()))

    def _opened(self) -> Connection:
        if self._connection is None:
            self._connection = self._engine.connect().execution_options(**self._options)
        return self._connection

    async def close(self) -> None:
        if self._connection is not None:
            await self._hop(self._connection.close)

    async def _hop(self, step: Callable[[], T]) -> T:
        """Run a step in a thread; who is cancelled meanwhile waits for its end all the same."""
        future = asyncio.get_running_loop().run_in_executor(self._threads, step)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await asyncio.wait({future})
            raise
