"""The queue's readers: what is asked of jobs without changing them, and their forgetting."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Row, Select, TextClause, delete, func, null, select, text, true, union_all

from mimawari.columns import to_micros, to_time
from mimawari.kernel.job import ENDED, LIVE, Job, JobView, State
from mimawari.store.sql.arguments import load
from mimawari.store.sql.engine import Database, Session, as_rows
from mimawari.store.sql.tables import inbox, jobs

PURGE_BATCH = 1000

_COMMON = (
    "id", "kind", "state", "args", "dedupe_key", "target", "priority", "attempts", "reason",
    "blocked_by", "worker", "enqueued_at",
)  # fmt: skip


class SqlJobs:
    """Reads jobs, live and ended."""

    def __init__(self, database: Database) -> None:
        self._database = database
        kinds = database.dialect.rows(kind="text")
        self._first = text(
            f"SELECT MIN(due_at) FROM jobs WHERE kind IN (SELECT kind FROM {kinds} r)"
        )

    async def expired(self, now: datetime, most: int) -> list[Job]:
        """List claimed jobs whose lease has run out; changes nothing."""
        found: list[Job] = []
        async with self._database.read() as connection:
            for kind in await self.kinds():
                held = (jobs.c.kind == kind) & (jobs.c.state == State.PROCESSING)
                query = select(jobs).where(held, jobs.c.due_at <= now).order_by(jobs.c.due_at)
                found += [_job(row) for row in await connection.execute(query.limit(most))]
        return found[:most]

    async def find_jobs(self, ids: Collection[str]) -> list[Job]:
        """Find live jobs as they are claimed, whoever has them now."""
        if not ids:
            return []
        query = select(jobs).where(jobs.c.id.in_(ids)).order_by(jobs.c.id)
        async with self._database.read() as connection:
            return [_job(row) for row in await connection.execute(query)]

    async def next_at(self, kinds: Collection[str]) -> datetime | None:
        """Tell when the next job of these kinds is due or the next lease of theirs runs out."""
        if not kinds:
            return None
        values = as_rows([(kind,) for kind in kinds])
        micros = await self._database.look(lambda s: s.execute(self._first, values).scalar())
        return None if micros is None else to_time(micros)

    async def depths(self, kinds: Collection[str], most: int) -> Mapping[str, int]:
        """Count the due, unclaimed jobs of each kind, up to `most` of each."""
        if not kinds:
            return {}
        names = sorted(kinds)
        now = to_micros(self._database.clock.now())
        values: dict[str, str | int] = {"now": now, "most": most}
        values |= {f"kind_{at}": name for at, name in enumerate(names)}
        counting = _depths(len(names))
        rows = await self._database.look(lambda s: s.execute(counting, values).all())
        return {names[row.at]: row.n for row in rows}

    async def kinds(self) -> frozenset[str]:
        """Name the kinds that have live jobs."""
        async with self._database.read() as connection:
            rows = await connection.execute(select(jobs.c.kind).distinct())
            return frozenset(row.kind for row in rows)

    async def counts(self, kind: str | None = None) -> Mapping[State, int]:
        """Count the jobs in each state, of all kinds or of one."""
        counting = [
            select(table.c.state, func.count().label("n"))
            .where(true() if kind is None else table.c.kind == kind)
            .group_by(table.c.state)
            for table in (jobs, inbox)
        ]
        grouped = union_all(*counting)
        async with self._database.read() as connection:
            found = {row.state: row.n for row in await connection.execute(grouped)}
        return {state: found.get(state, 0) for state in State}

    async def find(self, job_id: str) -> JobView | None:
        """Find one job, live or ended."""
        return await self._find_first(
            _live().where(jobs.c.id == job_id), _ended().where(inbox.c.id == job_id)
        )

    async def find_live(self, key: str) -> JobView | None:
        """Find the live job that holds a key."""
        return await self._find_first(_live().where(jobs.c.dedupe_key == key))

    async def _find_first(self, *queries: Select[Any]) -> JobView | None:
        async with self._database.read() as connection:
            for query in queries:
                row = (await connection.execute(query)).first()
                if row is not None:
                    return _view(row)
        return None

    async def list(
        self,
        most: int,
        *,
        before: str | None = None,
        state: State | None = None,
        kind: str | None = None,
    ) -> list[JobView]:
        """List jobs, newest first, a page at a time: those with an id below `before`."""
        found: list[JobView] = []
        async with self._database.read() as connection:
            for query, table, states in ((_live(), jobs, LIVE), (_ended(), inbox, ENDED)):
                if state is not None and state not in states:
                    continue
                chosen = query.order_by(table.c.id.desc()).limit(most)
                for column, value in ((table.c.state, state), (table.c.kind, kind)):
                    chosen = chosen if value is None else chosen.where(column == value)
                if before is not None:
                    chosen = chosen.where(table.c.id < before)
                found += [_view(row) for row in await connection.execute(chosen)]
        return sorted(found, key=lambda view: view.id, reverse=True)[:most]

    async def page(self, job_id: str) -> bytes | None:
        """Return the page that was kept with a dead letter."""
        async with self._database.read() as connection:
            query = select(inbox.c.page).where(inbox.c.id == job_id)
            page: bytes | None = (await connection.execute(query)).scalar()
        return page

    async def purge(self, state: State, before: datetime, kind: str | None = None) -> int:
        """Forget jobs that ended so before a time, of all kinds or of one; say how many."""
        total = 0
        after: str | None = ""
        while after is not None:
            gone, after = await self._purge_some(state, before, kind, after)
            total += gone
        return total

    async def _purge_some(
        self, state: State, before: datetime, kind: str | None, after: str
    ) -> tuple[int, str | None]:
        """Forget some in the order of their making; tell where to go on, if anywhere."""
        some = select(inbox.c.id, inbox.c.enqueued_at, inbox.c.ended_at)
        some = some.where(inbox.c.state == state, inbox.c.id > after).order_by(inbox.c.id)
        if kind is not None:
            some = some.where(inbox.c.kind == kind)
        async with self._database.read() as connection:
            rows = (await connection.execute(some.limit(PURGE_BATCH))).all()
        old = [row.id for row in rows if row.ended_at < before]
        if old:
            await self._database.run(lambda session: self._forget(session, old))
        # What was put after that time has ended after it too, and so has all that follows.
        over = len(rows) < PURGE_BATCH or all(row.enqueued_at >= before for row in rows)
        return len(old), None if over else rows[-1].id

    @staticmethod
    def _forget(session: Session, ids: Sequence[str]) -> None:
        session.execute(delete(inbox).where(inbox.c.id.in_(ids)))


@cache
def _depths(kinds: int) -> TextClause:
    """Compose the count for so many kinds, once."""
    due = "state = 'pending' AND due_at <= :now LIMIT :most"
    counts = [
        f"SELECT {at} AS at, COUNT(*) AS n FROM"
        f" (SELECT 1 FROM jobs WHERE kind = :kind_{at} AND {due}) some_{at}"
        for at in range(kinds)
    ]
    return text(" UNION ALL ".join(counts))


def _live() -> Select[Any]:
    common = [jobs.c[name] for name in _COMMON]
    return select(*common, jobs.c.due_at, null().label("ended_at"), null().label("page_bytes"))


def _ended() -> Select[Any]:
    common = [inbox.c[name] for name in _COMMON]
    size = func.length(inbox.c.page).label("page_bytes")
    return select(*common, null().label("due_at"), inbox.c.ended_at, size)


def _view(row: Row[Any]) -> JobView:
    args, broken = load(row.args)
    return JobView(
        id=row.id, kind=row.kind, state=State(row.state), args=args, dedupe_key=row.dedupe_key,
        target=row.target, priority=row.priority, attempts=row.attempts, next_at=row.due_at,
        reason=row.reason or broken, blocked_by=row.blocked_by, worker=row.worker,
        enqueued_at=row.enqueued_at, ended_at=row.ended_at, page_bytes=row.page_bytes,
    )  # fmt: skip


def _job(row: Row[Any]) -> Job:
    args, broken = load(row.args)
    return Job(
        id=row.id, kind=row.kind, args=args, dedupe_key=row.dedupe_key, target=row.target,
        token=row.token, attempt=row.attempts, crashes=row.crashes,
        stops=row.stops, enqueued_at=row.enqueued_at, broken=broken,
    )  # fmt: skip
