"""The pauses: when breakers were open and limits on hold, kept with what made them so."""

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import delete, insert, select, update

from mimawari.ids import new_id
from mimawari.kernel.values import Pause
from mimawari.store.sql.engine import Database, Session
from mimawari.store.sql.tables import pauses
from mimawari.text import one_line


class SqlPauses:
    """The pauses on SQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, since: datetime, names: Collection[str] = ()) -> Sequence[Pause]:
        """List the pauses that were not over at a time, of all or of some, earliest first."""
        query = select(pauses).where(pauses.c.until_at > since)
        if names:
            query = query.where(pauses.c.name.in_(names))
        async with self._database.read() as connection:
            rows = await connection.execute(query.order_by(pauses.c.since_at, pauses.c.id))
        return [
            Pause(
                what=row.what, name=row.name, since=row.since_at, until=row.until_at,
                reason=row.reason,
            )
            for row in rows
        ]  # fmt: skip

    async def purge(self, before: datetime) -> int:
        """Forget pauses that were over before a time; say how many."""
        gone = delete(pauses).where(pauses.c.until_at < before)
        return await self._database.run(lambda session: session.execute(gone).rowcount)


def begin_pause(session: Session, pause: Pause) -> None:
    """Keep a pause as part of what begins it; one that goes on for the same reason is longer."""
    going = (
        (pauses.c.what == pause.what)
        & (pauses.c.name == pause.name)
        & (pauses.c.until_at > pause.since)
    )
    reason = one_line(pause.reason)
    query = select(pauses.c.id, pauses.c.reason).where(going).order_by(pauses.c.id.desc())
    last = session.execute(query.limit(1)).first()
    if last is not None and last.reason == reason:
        longer = update(pauses).where(pauses.c.id == last.id)
        session.execute(longer.values(until_at=pause.until))
        return
    if last is not None:
        end_pause(session, pause.what, pause.name, pause.since)
    values = {
        "id": new_id(),
        "what": pause.what,
        "name": pause.name,
        "since_at": pause.since,
        "until_at": pause.until,
        "reason": reason,
    }
    session.execute(insert(pauses).values(values))


def end_pause(session: Session, what: str, name: str, now: datetime) -> None:
    """Let what is still going on be over, as part of what ends it."""
    going = (pauses.c.what == what) & (pauses.c.name == name) & (pauses.c.until_at > now)
    session.execute(update(pauses).where(going).values(until_at=now))
