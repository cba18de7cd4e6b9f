"""All ports on one SQL database."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from mimawari.errors import StoreDown
from mimawari.kernel.job import Job, State
from mimawari.kernel.ports import Cache, Clock
from mimawari.store.sql.breaker import SqlBreaker
from mimawari.store.sql.cache import SqlCache
from mimawari.store.sql.commit import SqlCommit, SqlTx
from mimawari.store.sql.cursor import SqlCursor
from mimawari.store.sql.engine import Database, Reader, impatient
from mimawari.store.sql.limiter import SqlLimiter
from mimawari.store.sql.not_found import SqlNotFoundRuns
from mimawari.store.sql.outbox import SqlOutbox
from mimawari.store.sql.pauses import SqlPauses
from mimawari.store.sql.queue import SqlQueue
from mimawari.store.sql.schedule import SqlSchedule
from mimawari.store.sql.sessions import SqlSessions
from mimawari.store.sql.streaks import SqlStreaks
from mimawari.store.sql.tables import meta

PING = "ping"
PING_SECONDS = 3.0


class SqlStore:
    """The kernel's ports on SQLite, PostgreSQL or MariaDB."""

    def __init__(self, url: str, clock: Clock) -> None:
        self.database = Database(url, clock)
        self.queue = SqlQueue(self.database)
        self.schedule = SqlSchedule(self.database, self.queue)
        self.limiter = SqlLimiter(self.database)
        self.breaker = SqlBreaker(self.database)
        self.pauses = SqlPauses(self.database)
        self.streaks = SqlStreaks(self.database)
        self.not_found = SqlNotFoundRuns(self.database)
        self.sessions = SqlSessions(self.database)
        self.cursor = SqlCursor(self.database)
        self.outbox = SqlOutbox(self.database)
        self.cache: Cache = SqlCache(self.database)
        self.signal = self.database.signal
        self._commit = SqlCommit(self.database, self.queue, self.schedule, self.cursor, self.outbox)

    def commit(
        self, job: Job, state: State = State.DONE, reason: str | None = None
    ) -> AbstractAsyncContextManager[SqlTx]:
        """Open the transaction that ends a job; refuses with LeaseLost before any effect."""
        return self._commit.open(job, state, reason)

    def edit(self) -> AbstractAsyncContextManager[SqlTx]:
        """Open a transaction for a person's change, which no job owns."""
        return self._commit.edit()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Reader]:
        """Look at what is committed."""
        async with self.database.read() as reader:
            yield reader

    async def ping(self) -> None:
        """Raise StoreDown unless the database can be read and written to soon."""
        change = {"name": PING, "value": self.database.clock.now().isoformat()}
        statement = self.database.dialect.upsert(meta, change, change)
        try:
            with impatient():
                async with asyncio.timeout(PING_SECONDS):
                    await self.database.check_space()
                    await self.database.run(lambda session: session.execute(statement).rowcount)
        except TimeoutError as error:
            message = f"the database did not answer within {PING_SECONDS:g} s"
            raise StoreDown(message) from error

    async def close(self) -> None:
        """Let go of every connection."""
        await self.database.close()
