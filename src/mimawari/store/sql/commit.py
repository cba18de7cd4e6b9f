"""The commit: one transaction that proves the job is ours and then keeps all it learned."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Executable, Result, Table, select

from mimawari.errors import LeaseLost, StoreDown
from mimawari.ids import new_id
from mimawari.kernel.job import End, Job, NewJob, State
from mimawari.kernel.values import Entry, NewEvent
from mimawari.store.sql.cursor import SqlCursor
from mimawari.store.sql.engine import Database, Opened, Session
from mimawari.store.sql.not_found import SqlNotFoundTx
from mimawari.store.sql.outbox import SqlOutbox
from mimawari.store.sql.queue import SqlQueue
from mimawari.store.sql.rows import Saving, save_rows
from mimawari.store.sql.schedule import SqlSchedule
from mimawari.store.sql.tables import inbox

LOOKS = 10
LOOK_AGAIN = timedelta(milliseconds=500)


class SqlTx:
    """What a task says to its commit."""

    def __init__(self, opened: Opened, database: Database, job: Job | None) -> None:
        self._opened = opened
        self._dialect = database.dialect
        self.not_found = SqlNotFoundTx(opened, database.dialect, database.clock.now)
        self._job = job
        self.jobs: list[NewJob] = []
        self.events: list[NewEvent] = []
        self.cursors: dict[str, str] = {}
        self.entries: list[Entry] = []
        self.new_entries: list[Entry] = []
        self.removed: list[str] = []
        self.next: tuple[datetime, str | None] | None = None

    async def execute(self, statement: Executable, values: Any = None) -> Result[Any]:
        """Run one SQLAlchemy statement of a watch on its own tables."""
        return await self._opened.execute(statement, values)

    async def save(
        self,
        table: Table,
        rows: Sequence[Mapping[str, Any]],
        change: Sequence[str] = (),
        keys: Sequence[str] = (),
    ) -> None:
        """Insert rows alike in one statement; where a key is taken, change some columns."""
        if rows:
            saving = Saving(table, tuple(change), tuple(keys))
            await self._opened.run(lambda session: save_rows(session, self._dialect, saving, rows))

    def put(self, *jobs: NewJob) -> None:
        """Enqueue follow-up jobs."""
        self.jobs.extend(jobs)

    def emit(self, key: str, kind: str, body: Mapping[str, Any], *, destination: str) -> None:
        """Send an event."""
        event = NewEvent(key=key, kind=kind, body=body, destination=destination, id=new_id())
        self.events.append(event)

    def move(self, cursor: str, value: str) -> None:
        """Move a cursor."""
        self.cursors[cursor] = value

    def place(self, *entries: Entry) -> None:
        """Set targets on the schedule."""
        self.entries.extend(entries)

    def place_new(self, *entries: Entry) -> None:
        """Set targets that are not on the schedule yet."""
        self.new_entries.extend(entries)

    def remove(self, *members: str) -> None:
        """Take targets off the schedule."""
        self.removed.extend(members)

    def next_run(self, at: datetime, reason: str | None = None) -> None:
        """Set when the job's target runs next."""
        if self._job is None or self._job.target is None:
            raise ValueError("there is no target to run again")
        self.next = (at, reason)


def _by_key(new: NewJob) -> tuple[str, str]:
    return (new.dedupe_key or "", new.id)


class SqlCommit:
    """Opens commits."""

    def __init__(
        self,
        database: Database,
        queue: SqlQueue,
        schedule: SqlSchedule,
        cursor: SqlCursor,
        outbox: SqlOutbox,
    ) -> None:
        self._database = database
        self._queue = queue
        self._schedule = schedule
        self._cursor = cursor
        self._outbox = outbox

    @asynccontextmanager
    async def open(
        self, job: Job, state: State = State.DONE, reason: str | None = None
    ) -> AsyncIterator[SqlTx]:
        """Open the transaction that ends a job; refuses with LeaseLost before any effect."""
        sealed = False
        try:
            async with self._database.write() as opened:
                # The fence comes first: it locks the job's row against everybody else.
                end = End(id=job.id, token=job.token, state=state, reason=reason)
                if not await opened.run(lambda session: self._queue.end_in(session, [end])):
                    raise LeaseLost(f"job {job.id} is not ours any more")
                tx = SqlTx(opened, self._database, job)
                yield tx
                await opened.run(lambda session: self._seal(session, job, tx))
                sealed = True
        except StoreDown:
            if not (sealed and await self._is_in(job)):
                raise

    @asynccontextmanager
    async def edit(self) -> AsyncIterator[SqlTx]:
        """Open a transaction for a person's change, which no job owns."""
        async with self._database.write() as opened:
            tx = SqlTx(opened, self._database, None)
            yield tx
            await opened.run(lambda session: self._seal(session, None, tx))

    def _seal(self, session: Session, job: Job | None, tx: SqlTx) -> None:
        # One order for all transactions, so that no two wait for each other.
        if tx.jobs:
            self._queue.put_in(session, sorted(tx.jobs, key=_by_key))
        for name in sorted(tx.cursors):
            self._cursor.move_in(session, name, tx.cursors[name])
        if tx.entries:
            self._schedule.put_in(session, tx.entries)
        if tx.new_entries:
            self._schedule.add_in(session, tx.new_entries)
        if tx.removed:
            self._schedule.remove_in(session, tx.removed)
        if tx.next is not None and job is not None and job.target is not None:
            self._schedule.next_run_in(session, job.target, *tx.next)
        if tx.events:
            self._outbox.put_in(session, tx.events)

    async def _is_in(self, job: Job) -> bool:
        """Find out, when the reply to COMMIT was lost, whether it was carried out."""
        query = select(inbox.c.token).where(inbox.c.id == job.id)
        for _ in range(LOOKS):
            try:
                async with self._database.read() as connection:
                    found = (await connection.execute(query)).scalar()
            except StoreDown:
                await self._database.clock.sleep(LOOK_AGAIN)
            else:
                return found == job.token
        return False
