"""How a database is reached: a server over its async driver, a file in threads of its own.

Both run the same plain functions on a plain connection. A whole transaction is one such
function, so a file costs one hop to its thread however many statements there are.
"""

import asyncio
import shutil
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from mimawari.errors import StoreDown
from mimawari.kernel.loop import whole

T = TypeVar("T")
Work = Callable[[Connection], T]

READ_ONLY = "mimawari_read_only"
LOCK_SECONDS = "mimawari_lock_seconds"
"""How long a transaction waits for the write lock of its file."""
READERS = 4
LEAST_FREE = 16 * 1024 * 1024


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

    async def perform(self, work: Work[T], *, read_only: bool) -> T:
        """Run a plain function on a connection of its own."""
        ...

    def line(self) -> Line:
        """Return a connection for several steps, not open yet."""
        ...

    async def check_space(self) -> None:
        """Raise StoreDown if what is written next may find no space."""
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

    async def perform(self, work: Work[T], *, read_only: bool) -> T:
        """Run a plain function on a connection of its own."""
        del read_only
        line = self.line()
        try:
            return await line.run(work)
        finally:
            await line.close()

    def line(self) -> Line:
        """Return a connection for several steps, not open yet."""
        return _ServerLine(self._engine.connect())

    async def check_space(self) -> None:
        """Leave it to the server, which watches its own disk."""

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

    async def perform(self, work: Work[T], *, read_only: bool) -> T:
        """Run a plain function on a connection of its own."""

        def step() -> T:
            return _perform(self._engine, work, read_only=read_only)

        return await _hop(self._readers if read_only else self._writer, step)

    def line(self) -> Line:
        """Return a connection for several steps, not open yet."""
        return _FileLine(self._engine, self._writer)

    async def check_space(self) -> None:
        """Look at the file's disk: a small write may fit into the log that is there already."""
        await _hop(self._readers, partial(_check_space, Path(self._engine.url.database or "")))

    async def close(self) -> None:
        """Let go of everything."""
        for threads in (self._writer, self._readers):
            await asyncio.to_thread(threads.shutdown)
        self._engine.dispose()


class _FileLine:
    def __init__(self, engine: Engine, thread: Executor) -> None:
        self._engine = engine
        self._thread = thread
        self._connection: Connection | None = None

    async def run(self, work: Work[T]) -> T:
        return await _hop(self._thread, lambda: work(self._opened()))

    def _opened(self) -> Connection:
        if self._connection is None:
            self._connection = self._engine.connect()
        return self._connection

    async def close(self) -> None:
        if self._connection is not None:
            await _hop(self._thread, self._connection.close)


def _perform(engine: Engine, work: Work[T], *, read_only: bool) -> T:
    with engine.connect().execution_options(**{READ_ONLY: read_only}) as connection:
        return work(connection)


class NearLink:
    """A file, used in the thread of whoever asks: quicker, where nothing else waits meanwhile."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    async def perform(self, work: Work[T], *, read_only: bool) -> T:
        """Run a plain function on a connection of its own."""
        return _perform(self.engine, work, read_only=read_only)

    def line(self) -> Line:
        """Return a connection for several steps, not open yet."""
        return _NearLine(self.engine)

    async def check_space(self) -> None:
        """Look at the file's disk."""
        _check_space(Path(self.engine.url.database or ""))

    async def close(self) -> None:
        """Let go of everything."""
        self.engine.dispose()


class _NearLine:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection: Connection | None = None

    async def run(self, work: Work[T]) -> T:
        if self._connection is None:
            self._connection = self._engine.connect()
        return work(self._connection)

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


def _check_space(file: Path) -> None:
    free = shutil.disk_usage(file.parent).free
    if free < LEAST_FREE:
        raise StoreDown(
            f"the disk of the database has {free // 1024} KiB left; make room for"
            f" {LEAST_FREE // 1024 // 1024} MiB at least"
        )


async def _hop(threads: Executor, step: Callable[[], T]) -> T:
    """Run a step in a thread; who is cancelled meanwhile waits for its end all the same."""
    try:
        work = asyncio.get_running_loop().run_in_executor(threads, step)
    except RuntimeError as error:
        raise StoreDown("the database is closed: the process is stopping") from error
    return await whole(work)
