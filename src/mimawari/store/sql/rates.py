"""How much of its allowance each API client has used, shared by every API process."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlalchemy import BigInteger, case, delete, literal, select, update

from mimawari.columns import Instant
from mimawari.store.sql.engine import Database, Session
from mimawari.store.sql.rows import Saving, save_rows
from mimawari.store.sql.tables import rates


class SqlRates:
    """Allowances on SQL: a client's use drains away at an even rate."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take(self, client: str, cost: timedelta, window: timedelta) -> datetime | None:
        """Use up `cost` of a client's `window`; None if granted, else when it will be."""
        return await self._database.run(lambda s: self._take(s, client, cost, window))

    async def add(self, costs: Mapping[str, timedelta], window: timedelta) -> dict[str, datetime]:
        """Use up what clients have had already; return until when each has used its window."""
        return await self._database.run(lambda s: self._add(s, costs, window))

    def _add(
        self, session: Session, costs: Mapping[str, timedelta], window: timedelta
    ) -> dict[str, datetime]:
        now, dialect = self._database.clock.now(), self._database.dialect
        # In one order everywhere, so that two processes never wait for each other.
        names = sorted(costs)
        first = [{"client": name, "used_until": now} for name in names]
        # A row that is there already is only locked by this.
        save_rows(session, dialect, Saving(rates, change=("client",)), first)
        found = select(rates).where(rates.c.client.in_(names))
        used = {row.client: max(row.used_until, now) for row in session.execute(found)}
        # No debt grows beyond what is forgotten again in two windows.
        until = {name: min(used[name] + costs[name], now + 2 * window) for name in names}
        rows = [{"client": name, "used_until": until[name]} for name in names]
        save_rows(session, dialect, Saving(rates, change=("used_until",)), rows)
        session.execute(delete(rates).where(rates.c.used_until < now - window))
        return until

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
