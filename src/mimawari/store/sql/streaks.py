"""The streaks: failures in a row of each target or kind."""

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import delete, select

from mimawari.kernel.values import Failed, Streak
from mimawari.store.sql.engine import Database, Session
from mimawari.store.sql.tables import streaks
from mimawari.text import one_line


class SqlStreaks:
    """The streaks on SQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def count(self, failed: Sequence[Failed]) -> None:
        """Add failures to the streaks of their subjects."""
        if not failed:
            return
        now = self._database.clock.now()

        def work(session: Session) -> None:
            # One order for all transactions, so that no two wait for each other.
            for one in sorted(failed, key=lambda one: one.subject):
                said = {
                    "kind": one.kind,
                    "job_id": one.job_id,
                    "reason": one_line(one.reason),
                    "last_at": now,
                }
                dead = int(one.is_dead)
                first = {"subject": one.subject, "failures": 1, "dead": dead, "began_at": now}
                more = {"failures": streaks.c.failures + 1, "dead": streaks.c.dead + dead}
                upsert = self._database.dialect.upsert(streaks, {**said, **first}, {**said, **more})
                session.execute(upsert)

        await self._database.run(work)

    async def end(self, subjects: Collection[str]) -> None:
        """Forget the streaks of subjects of which a job went well."""
        gone = delete(streaks).where(streaks.c.subject.in_(subjects))
        if subjects:
            await self._database.run(lambda session: session.execute(gone))

    async def list(self) -> list[Streak]:
        """List all streaks, the newest failure first."""
        query = select(streaks).order_by(streaks.c.last_at.desc(), streaks.c.subject)
        async with self._database.read() as connection:
            return [Streak(**row._asdict()) for row in await connection.execute(query)]

    async def purge(self, before: datetime) -> int:
        """Forget streaks whose last failure was before a time; say how many."""
        old = delete(streaks).where(streaks.c.last_at < before)
        return await self._database.run(lambda session: session.execute(old).rowcount)
