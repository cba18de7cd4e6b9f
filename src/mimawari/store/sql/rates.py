"""How much of its allowance each API client has used, shared by every API process."""

from datetime import datetime, timedelta

from sqlalchemy import case, insert, literal, update
from sqlalchemy.exc import IntegrityError

from mimawari.store.sql.engine import Database, Session
from mimawari.store.sql.tables import Instant, rates


class SqlRates:
    """Allowances on SQL: a client's use drains away at an even rate."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take(self, client: str, cost: timedelta, window: timedelta) -> datetime | None:
        """Use up `cost` of a client's `window`; None if granted, else when it will be."""
        try:
            return await self._database.run(lambda s: self._take(s, client, cost, window))
        except IntegrityError:
            # Its first request came to two processes at once; now the row is there.
            return await self._database.run(lambda s: self._take(s, client, cost, window))

    async def _take(
        self, session: Session, client: str, cost: timedelta, window: timedelta
    ) -> datetime | None:
        now = self._database.clock.now()
        row = rates.c.client == client
        start = literal(now, Instant)
        used = case((rates.c.used_until > start, rates.c.used_until), else_=start)
        micros = cost // timedelta(microseconds=1)
        room = rates.c.used_until <= now + window - cost
        taken = update(rates).where(row, room).values(used_until=used + micros)
        if (await session.execute(taken)).rowcount == 1:
            return None
        found = (await session.execute(rates.select().where(row))).first()
        if found is not None:
            until: datetime = found.used_until
            return until - window + cost
        await session.execute(insert(rates).values(client=client, used_until=now + cost))
        return None

    async def purge(self, now: datetime) -> int:
        """Forget the clients who have used up nothing."""

        async def work(session: Session) -> int:
            idle = rates.delete().where(rates.c.used_until < now)
            return (await session.execute(idle)).rowcount

        return await self._database.run(work)
