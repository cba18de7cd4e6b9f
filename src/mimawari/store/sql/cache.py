"""The cache: values with a TTL, dropped by prefix."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import delete, select

from mimawari.columns import begins_with
from mimawari.kernel.values import Note
from mimawari.store.sql.engine import Database, Session
from mimawari.store.sql.tables import cache


class SqlCache:
    """The cache on SQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, key: str) -> bytes | None:
        """Return a value that has not run out."""
        fresh = (cache.c.key == key) & (cache.c.expires_at > self._database.clock.now())
        async with self._database.read() as connection:
            value: bytes | None = (
                await connection.execute(select(cache.c.value).where(fresh))
            ).scalar()
        return value

    async def set(self, key: str, value: bytes, ttl: timedelta) -> None:
        """Keep a value for a while."""
        change = {"value": value, "expires_at": self._database.clock.now() + ttl}

        def work(session: Session) -> None:
            upsert = self._database.dialect.upsert(cache, {"key": key, **change}, change)
            session.execute(upsert)

        await self._database.run(work)

    async def show(self, notes: Sequence[Note]) -> None:
        """Leave it: who looks into a database finds the rows themselves."""

    async def drop(self, prefix: str) -> int:
        """Forget every value whose key begins so; say how many there were."""
        begins = begins_with(cache.c.key, prefix)

        def work(session: Session) -> int:
            return session.execute(delete(cache).where(begins)).rowcount

        return await self._database.run(work)

    async def purge(self, now: datetime) -> int:
        """Forget what has run out; say how many."""

        def work(session: Session) -> int:
            return session.execute(delete(cache).where(cache.c.expires_at <= now)).rowcount

        return await self._database.run(work)
