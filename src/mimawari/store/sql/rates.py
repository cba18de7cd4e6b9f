"""How much of its allowance each API client has used, shared by every API process."""

from datetime import datetime, timedelta

from sqlalchemy import BigInteger, case, delete, literal, select, update

from mimawari.columns import Instant
from mimawari.store.sql.engine import Database, Session
from mimawari.store.sql.tables import rates


class SqlRates:
    """Allowances on SQL: a client's use drains away at an even rate."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take(self, client: str, cost: timedelta, window: timedelta) -> datetime | None:
        """Use up `cost` of a client's `window`; None if granted, else when it will be."""
        return await self._database.run(lambda s: self._take(s, client, cost, window))

    def _take(
        self, session: Session, client: str, cost: timedelta, window: timedelta
    ) -> datetime | None:
        now = self._database.clock.now()
        start = literal(now, Instant)
        used = case((rates.c.used_until > start, rates.c.used_until), else_=start)
        # A time plus a number of microseconds, as both are stored.
        micros = literal(cost // timedelta(microseconds=1), BigInteger)
        row, room = rates.c.client == client, rates.c.used_until <= now + window - cost
        taken = update(rates).where(row, room).values(used_until=used + micros)
        found = select(rates.c.used_until).where(row)
        if session.execute(taken).rowcount == 1:
            return None
        until: datetime | None = session.execute(found).scalar()
        if until is None or until <= now + window - cost:
            # There was no row a moment ago; make it, or use the one another process has made.
            new, same = {"client": client, "used_until": now}, {"client": client}
            session.execute(self._database.dialect.upsert(rates, new, same))
            # A new client pays for forgetting those who have not come for a while.
            session.execute(delete(rates).where(rates.c.used_until < now - window))
            if session.execute(taken).rowcount == 1:
                return None
            until = session.execute(found).scalar_one()
        return until - window + cost
