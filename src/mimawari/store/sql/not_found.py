"""Runs of 404s: one row a site, and one row for each job that may have to be undone."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, delete, insert, select, update

from mimawari.kernel.control import TRIAL_FOR
from mimawari.kernel.job import State
from mimawari.kernel.not_found import NotFound, NotFoundRun, RunState
from mimawari.kernel.signal import JOBS
from mimawari.kernel.values import Pause
from mimawari.store.sql.arguments import dump, load
from mimawari.store.sql.breaker import CLOSED, KIND, OPEN
from mimawari.store.sql.dialect import Dialect
from mimawari.store.sql.engine import Database, Opened, Session
from mimawari.store.sql.pauses import begin_pause, end_pause
from mimawari.store.sql.tables import breakers, inbox, jobs, not_found, not_found_runs, streaks
from mimawari.text import one_line

_MOVED = (
    "id", "kind", "args", "dedupe_key", "target", "priority", "token", "attempts", "enqueued_at",
)  # fmt: skip


class SqlNotFoundRuns:
    """Runs of 404s on SQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, site: str) -> NotFoundRun | None:
        """Return the current run of a site, without locking it."""
        query = select(not_found_runs).where(not_found_runs.c.site == site)
        async with self._database.read() as connection:
            row = (await connection.execute(query)).first()
        return None if row is None else _run(row)


class SqlNotFoundTx:
    """What a transaction does with a run of 404s."""

    def __init__(self, opened: Opened, dialect: Dialect, now: Callable[[], datetime]) -> None:
        self._opened = opened
        self._dialect = dialect
        self._now = now

    async def find(self, site: str) -> NotFoundRun | None:
        """Return the current run of a site, without locking it."""
        query = select(not_found_runs).where(not_found_runs.c.site == site)
        row = (await self._opened.execute(query)).first()
        return None if row is None else _run(row)

    async def lock(self, site: str) -> NotFoundRun:
        """Return the current run of a site, locked until the transaction ends."""
        new = {"site": site, **_values(NotFoundRun(site=site))}
        await self._opened.execute(self._dialect.upsert(not_found_runs, new, {"site": site}))
        query = select(not_found_runs).where(not_found_runs.c.site == site).with_for_update()
        return _run((await self._opened.execute(query)).one())

    async def save(self, run: NotFoundRun) -> None:
        """Replace a run that is locked."""
        mine = not_found_runs.c.site == run.site
        await self._opened.execute(update(not_found_runs).where(mine).values(_values(run)))

    async def add(self, item: NotFound) -> None:
        """Add a job to the run of its site."""
        values = {
            "site": item.site, "job_id": item.job_id, "kind": item.kind, "target": item.target,
            "at": item.at, "undo": dump(item.undo),
        }  # fmt: skip
        await self._opened.execute(insert(not_found).values(values))

    async def list(self, site: str, before: datetime | None = None) -> Sequence[NotFound]:
        """List the jobs of a run, oldest first: all, or those that ended before a time."""
        query = select(not_found).where(not_found.c.site == site)
        if before is not None:
            query = query.where(not_found.c.at <= before)
        rows = await self._opened.execute(query.order_by(not_found.c.at, not_found.c.job_id))
        return [
            NotFound(
                site=row.site, job_id=row.job_id, kind=row.kind, target=row.target, at=row.at,
                undo=load(row.undo)[0],
            )
            for row in rows
        ]  # fmt: skip

    async def drop(self, items: Sequence[NotFound], *, end_streaks: bool) -> None:
        """Remove jobs from their run; `end_streaks` forgets the failures of their targets."""
        ids = [item.job_id for item in items]
        await self._opened.execute(delete(not_found).where(not_found.c.job_id.in_(ids)))
        if end_streaks:
            subjects = sorted({item.target or item.kind for item in items})
            await self._opened.execute(delete(streaks).where(streaks.c.subject.in_(subjects)))

    async def requeue(self, items: Sequence[NotFound], reason: str, blocked_by: str) -> None:
        """Return ended jobs to their places in the queue, with the attempt that was used up."""
        ids = [item.job_id for item in items]
        said = {"reason": one_line(reason), "blocked_by": blocked_by}
        await self._opened.run(lambda session: _requeue(session, ids, said))

    async def hasten(self, key: str) -> None:
        """Make the pending job with this key due now."""
        waits = (jobs.c.dedupe_key == key) & (jobs.c.state == State.PENDING)
        now = self._now()

        def work(session: Session) -> None:
            found = session.execute(select(jobs.c.id).where(waits)).scalars().all()
            session.execute(update(jobs).where(waits).values(due_at=now))
            session.tell(JOBS)
            session.touch(JOBS, found)

        await self._opened.run(work)

    async def hold(self, run: NotFoundRun, until: datetime, reason: str) -> None:
        """Open the breaker of a run's site until a time."""
        now = self._now()
        values = {
            "state": OPEN,
            "failures": run.answers,
            "until_at": until,
            "trial_for_us": round(TRIAL_FOR.total_seconds() * 1_000_000),
            "reason": one_line(reason),
        }
        new = {"site": run.site, **values}
        pause = Pause(what=KIND, name=run.site, since=now, until=until, reason=reason)

        def work(session: Session) -> None:
            session.execute(self._dialect.upsert(breakers, new, values))
            begin_pause(session, pause)

        await self._opened.run(work)

    async def release(self, site: str) -> None:
        """Close the breaker of a site."""
        now = self._now()
        values = {"state": CLOSED, "failures": 0, "until_at": None, "reason": None}

        def work(session: Session) -> None:
            session.execute(update(breakers).where(breakers.c.site == site).values(values))
            end_pause(session, KIND, site, now)

        await self._opened.run(work)


def _requeue(session: Session, ids: Sequence[str], said: dict[str, Any]) -> None:
    """Move ended jobs back; of those whose key is taken by now only the live one stays."""
    mine = inbox.c.id.in_(ids)
    ended = session.execute(select(*(inbox.c[name] for name in _MOVED)).where(mine)).all()
    keys = [row.dedupe_key for row in ended if row.dedupe_key is not None]
    live = select(jobs.c.dedupe_key).where(jobs.c.dedupe_key.in_(keys))
    taken = set(session.execute(live).scalars()) if keys else set()
    session.execute(delete(inbox).where(mine))
    for row in ended:
        if row.dedupe_key in taken:
            continue
        values = {
            **row._asdict(), **said, "state": State.PENDING, "due_at": row.enqueued_at,
            "attempts": max(0, row.attempts - 1), "crashes": 0,
        }  # fmt: skip
        session.execute(insert(jobs).values(values))
        taken |= {row.dedupe_key} - {None}
    session.tell(JOBS)
    session.touch(JOBS, [row.id for row in ended])


def _values(run: NotFoundRun) -> dict[str, Any]:
    return {
        "state": run.state, "answers": run.answers, "holds": run.holds,
        "item_asked": run.item_asked, "began_at": run.began_at,
    }  # fmt: skip


def _run(row: Row[Any]) -> NotFoundRun:
    return NotFoundRun(
        site=row.site, state=RunState(row.state), answers=row.answers, holds=row.holds,
        item_asked=bool(row.item_asked), began_at=row.began_at,
    )  # fmt: skip
