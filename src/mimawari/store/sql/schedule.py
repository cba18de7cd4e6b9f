"""The schedule: members with a next time, taken by whoever moves them on first."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, bindparam, delete, func, select, update

from mimawari.kernel.signal import SCHEDULE
from mimawari.kernel.values import Entry, Move
from mimawari.store.sql.arguments import dump, load
from mimawari.store.sql.engine import Database, Session
from mimawari.store.sql.queue import SqlQueue
from mimawari.store.sql.rows import Saving, save_rows
from mimawari.store.sql.tables import schedule, streaks

_MOVE = (
    update(schedule)
    .where(schedule.c.member == bindparam("of"))
    .values(next_at=bindparam("to"), reason=bindparam("why"))
)


class SqlSchedule:
    """The schedule on SQL."""

    def __init__(self, database: Database, queue: SqlQueue) -> None:
        self._database = database
        self._queue = queue

    async def put(self, entries: Sequence[Entry]) -> None:
        """Set each member's entry; a waiting scheduler hears of it, also in another process."""
        await self._database.run(lambda session: self.put_in(session, entries))

    def put_in(self, session: Session, entries: Sequence[Entry]) -> None:
        """Set entries as part of a transaction."""
        # Of two entries of one member the last counts; one order, so that no two wait in a ring.
        once = {entry.member: _values(entry) for entry in entries}
        rows = [once[member] for member in sorted(once)]
        if rows:
            change = [name for name in rows[0] if name != "member"]
            save_rows(session, self._database.dialect, Saving(schedule, tuple(change)), rows)
        session.tell(SCHEDULE)
        session.touch(SCHEDULE, once)

    async def add(self, entries: Sequence[Entry]) -> int:
        """Set the entries of members that are not there yet; say how many."""
        return await self._database.run(lambda session: self.add_in(session, entries))

    def add_in(self, session: Session, entries: Sequence[Entry]) -> int:
        """Set entries of new members as part of a transaction; say how many."""
        added = 0
        for entry in sorted(entries, key=lambda entry: entry.member):
            new = self._database.dialect.insert_new(schedule, _values(entry))
            added += session.execute(new).rowcount
        if added:
            session.tell(SCHEDULE)
            session.touch(SCHEDULE, [entry.member for entry in entries])
        return added

    async def due(self, now: datetime, most: int, without: Collection[str] = ()) -> list[Entry]:
        """List the entries whose time has come, earliest first, of all but some kinds."""
        query = select(schedule).where(schedule.c.next_at <= now).order_by(schedule.c.next_at)
        if without:
            query = query.where(schedule.c.kind.not_in(without))
        async with self._database.read() as connection:
            return [entry_of(row) for row in await connection.execute(query.limit(most))]

    async def advance(self, moves: Sequence[Move]) -> int:
        """Move members on and enqueue their jobs in one step; say how many jobs are new."""

        def work(session: Session) -> int:
            won = _unmoved(session, moves)
            if not won:
                return 0
            session.execute(
                _MOVE,
                [{"of": m.member, "to": m.next_at, "why": m.reason} for m in won],
            )
            session.touch(SCHEDULE, [move.member for move in won])
            new = [move.job for move in won if move.job is not None]
            # A key that lives is not waited for: who ends its job may be waiting for the member.
            lives = self._queue.live_keys(session, [job.dedupe_key for job in new])
            free = [job for job in new if job.dedupe_key not in lives]
            return len(self._queue.put_in(session, free)) if free else 0

        return await self._database.run(work)

    def next_run_in(self, session: Session, member: str, at: datetime, reason: str | None) -> None:
        """Set a member's next time as part of a transaction; one that was removed stays so."""
        row = schedule.c.member == member
        values = {"next_at": at, "reason": reason}
        session.execute(update(schedule).where(row).values(values))
        session.tell(SCHEDULE)
        session.touch(SCHEDULE, [member])

    async def next_at(self, without: Collection[str] = ()) -> datetime | None:
        """Tell the earliest time on the schedule, of all but some kinds."""
        query = select(func.min(schedule.c.next_at))
        if without:
            query = query.where(schedule.c.kind.not_in(without))
        async with self._database.read() as connection:
            earliest: datetime | None = (await connection.execute(query)).scalar()
        return earliest

    async def find(self, member: str) -> Entry | None:
        """Find one member's entry."""
        async with self._database.read() as connection:
            query = select(schedule).where(schedule.c.member == member)
            row = (await connection.execute(query)).first()
        return None if row is None else entry_of(row)

    async def list(self, most: int, after: str = "") -> list[Entry]:
        """List entries by member, a page at a time."""
        query = select(schedule).where(schedule.c.member > after).order_by(schedule.c.member)
        async with self._database.read() as connection:
            return [entry_of(row) for row in await connection.execute(query.limit(most))]

    async def remove(self, member: str) -> bool:
        """Forget a member; say whether it was there."""
        return await self._database.run(lambda session: self.remove_in(session, [member])) == 1

    def remove_in(self, session: Session, members: Sequence[str]) -> int:
        """Forget members as part of a transaction; say how many were there."""
        # Nothing of theirs runs any more, so that nothing would ever end a row of failures.
        session.execute(delete(streaks).where(streaks.c.subject.in_(members)))
        gone = delete(schedule).where(schedule.c.member.in_(members))
        session.touch(SCHEDULE, members)
        return int(session.execute(gone).rowcount)

    async def count(self) -> int:
        """Count the members."""
        async with self._database.read() as connection:
            query = select(func.count()).select_from(schedule)
            members: int = (await connection.execute(query)).scalar_one()
        return members

    async def kinds(self) -> frozenset[str]:
        """Return the kinds that have members."""
        async with self._database.read() as connection:
            rows = await connection.execute(select(schedule.c.kind).distinct())
            return frozenset(row.kind for row in rows)


def _unmoved(session: Session, moves: Sequence[Move]) -> list[Move]:
    """Hold the members that nobody has moved on, in one order so that no two wait in a ring."""
    held = (
        select(schedule.c.member, schedule.c.next_at)
        .where(schedule.c.member.in_([move.member for move in moves]))
        .order_by(schedule.c.member)
        .with_for_update()
    )
    seen = {row.member: row.next_at for row in session.execute(held)}
    return [move for move in moves if seen.get(move.member) == move.seen_at]


def _values(entry: Entry) -> dict[str, Any]:
    return {
        "member": entry.member,
        "kind": entry.kind,
        "args": dump(entry.args),
        "next_at": entry.next_at,
        "every_us": entry.every // timedelta(microseconds=1),
        "reason": entry.reason,
    }


def entry_of(row: Row[Any]) -> Entry:
    """Make an entry of its row."""
    args, _ = load(row.args)
    return Entry(
        member=row.member,
        kind=row.kind,
        args=args,
        next_at=row.next_at,
        every=timedelta(microseconds=row.every_us),
        reason=row.reason,
    )
