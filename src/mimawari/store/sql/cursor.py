"""Cursors: where each reader has come to."""

from collections.abc import Mapping

from sqlalchemy import delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from mimawari.columns import begins_with
from mimawari.store.sql.engine import Database, Session
from mimawari.store.sql.tables import cursors
from mimawari.text import clean


class SqlCursor:
    """The cursors on SQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, name: str) -> str | None:
        """Tell where a reader has come to."""
        async with self._database.read() as connection:
            query = select(cursors.c.value).where(cursors.c.name == name)
            value: str | None = (await connection.execute(query)).scalar()
        return value

    async def move(self, name: str, value: str, seen: str | None) -> bool:
        """Set a new place if the old one is still `seen`; say whether it was."""

        def work(session: Session) -> bool:
            row = cursors.c.name == name
            query = select(cursors.c.value).where(row).with_for_update()
            if session.execute(query).scalar() != seen:
                return False
            statement = (
                insert(cursors).values(name=name, value=clean(value))
                if seen is None
                else update(cursors).where(row).values(value=clean(value))
            )
            session.execute(statement)
            return True

        try:
            return await self._database.run(work)
        except IntegrityError:
            # Somebody else set the first place at the same moment.
            return False

    def move_in(self, session: Session, name: str, value: str) -> None:
        """Set a place as part of a transaction."""
        change = {"value": clean(value)}
        upsert = self._database.dialect.upsert(cursors, {"name": name, **change}, change)
        session.execute(upsert)

    async def remove(self, name: str) -> bool:
        """Forget a place; say whether it was there."""

        def work(session: Session) -> bool:
            row = cursors.c.name == name
            return session.execute(delete(cursors).where(row)).rowcount == 1

        return await self._database.run(work)

    async def list(self, prefix: str = "") -> Mapping[str, str]:
        """List places by name."""
        query = select(cursors).order_by(cursors.c.name)
        if prefix:
            query = query.where(begins_with(cursors.c.name, prefix))
        async with self._database.read() as connection:
            return {row.name: row.value for row in await connection.execute(query)}
