"""The queue: claims and ends that arrive together share one transaction."""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from sqlalchemy import Row, case, delete, insert, select, text, update
from sqlalchemy.exc import IntegrityError

from mimawari.columns import to_micros, to_time
from mimawari.kernel.job import SUSPECT_AFTER, End, Job, JobView, Lease, NewJob, State, Turn, Want
from mimawari.kernel.signal import JOBS
from mimawari.store.sql.arguments import dump, load
from mimawari.store.sql.engine import Database, Session, as_rows
from mimawari.store.sql.jobs import SqlJobs
from mimawari.store.sql.tables import inbox, jobs
from mimawari.text import clean

_NEW = (
    "{insert} jobs (id, kind, args, dedupe_key, target, priority, state, due_at, token,"
    " attempts, crashes, reason, enqueued_at) SELECT r.id, r.kind, r.args, r.dedupe_key, r.target,"
    " r.priority, 'pending', r.due_at, 0, 0, 0, r.reason, :now FROM {rows} r"
    " WHERE NOT EXISTS (SELECT 1 FROM inbox i WHERE i.id = r.id){ignore} RETURNING id"
)


class SqlQueue(SqlJobs):
    """The queue on SQL."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        dialect = database.dialect
        self._new = text(
            _NEW.format(
                rows=dialect.rows(
                    id="text",
                    kind="text",
                    args="text",
                    dedupe_key="text",
                    target="text",
                    priority="int",
                    due_at="int",
                    reason="text",
                ),
                insert=dialect.insert_word,
                ignore=dialect.ignore_word,
            )
        )
        self._claim = [text(sql) for sql in dialect.claim(suspects=False)]
        self._claim_suspects = [text(sql) for sql in dialect.claim(suspects=True)]
        self._end = [text(sql) for sql in dialect.end()]
        self._extend = text(dialect.extend())

    def statements(self) -> tuple[str, list[str], list[str]]:
        """Show the hot statements: put, claim and end, for those who measure or explain them."""
        return self._new.text, [part.text for part in self._claim], [p.text for p in self._end]

    async def put(self, new: Sequence[NewJob]) -> list[str]:
        """Accept jobs for good and return the new ones' ids; a key that lives is left out."""
        if not new:
            return []
        return await self._database.run(lambda session: self.put_in(session, new))

    def put_in(self, session: Session, new: Sequence[NewJob]) -> list[str]:
        """Accept jobs as part of a transaction."""
        now = self._database.clock.now()
        rows = [
            (
                job.id,
                job.kind,
                dump(job.args),
                _clean(job.dedupe_key),
                _clean(job.target),
                job.priority,
                to_micros(job.run_at or now),
                _clean(job.reason),
            )
            for job in new
        ]
        result = session.execute(self._new, {**as_rows(rows), "now": to_micros(now)})
        accepted = set(result.scalars().all())
        session.tell(JOBS)
        session.touch(JOBS, accepted)
        return [job.id for job in new if job.id in accepted]

    def live_keys(self, session: Session, keys: Sequence[str | None]) -> frozenset[str]:
        """Tell which keys a live job holds, also one that is just ending elsewhere."""
        named = {_clean(key): key for key in keys if key is not None}
        held = select(jobs.c.dedupe_key).where(jobs.c.dedupe_key.in_(list(named)))
        found = session.execute(held).scalars() if named else ()
        return frozenset(named[key] for key in found if key in named)

    async def turn(self, ends: Sequence[End], wants: Sequence[Want], worker: str) -> Turn:
        """End jobs and claim others in one transaction; an end with a stale token is refused."""

        def work(session: Session) -> Turn:
            accepted, refused = self.settle_in(session, ends)
            claimed: list[Job] = []
            for want in wants:
                # One suspect in a turn, whatever its kind.
                free = all(job.crashes < SUSPECT_AFTER for job in claimed)
                claimed += self._take(session, want, worker, suspects=want.suspects and free)
            return Turn(accepted, refused, tuple(claimed))

        if not ends and not wants:
            return Turn(frozenset(), frozenset(), ())
        return await self._database.run(work)

    def settle_in(
        self, session: Session, ends: Sequence[End]
    ) -> tuple[frozenset[str], frozenset[str]]:
        """End jobs as part of a transaction; tell which ends count and which are refused."""
        accepted = self.end_in(session, ends)
        refused = frozenset(end.id for end in ends) - accepted
        if refused:
            late = self._ended_before(session, [end for end in ends if end.id in refused])
            accepted, refused = accepted | late, refused - late
        return accepted, refused

    def end_in(self, session: Session, ends: Sequence[End]) -> frozenset[str]:
        """End jobs as part of a transaction; return the ids of those that were ours."""
        once = {end.id: end for end in ends}.values()
        final = [end for end in once if end.state != State.PENDING]
        moved = self._move_to_inbox(session, final) if final else set()
        for end in once:
            if end.state == State.PENDING and self._put_back(session, end):
                moved.add(end.id)
                session.touch(JOBS, [end.id])
        return frozenset(moved)

    def _move_to_inbox(self, session: Session, ends: Sequence[End]) -> set[str]:
        move, *rest = self._end
        rows = {
            end.id: (end.id, end.token, end.state, _clean(end.reason), _clean(end.blocked_by))
            for end in ends
        }
        now = {"now": to_micros(self._database.clock.now())}
        values = {**as_rows(list(rows.values())), **({} if rest else now)}
        ours = set((session.execute(move, values)).scalars().all())
        if rest and ours:
            keep, drop = rest
            session.execute(keep, {**as_rows([rows[job_id] for job_id in ours]), **now})
            session.execute(drop, as_rows([(job_id,) for job_id in ours]))
        for end in ends:
            if end.page is not None and end.id in ours:
                page = update(inbox).where(inbox.c.id == end.id).values(page=end.page)
                session.execute(page)
        session.touch(JOBS, ours, lasting=False)
        return ours

    def _put_back(self, session: Session, end: End) -> bool:
        values = {
            "state": State.PENDING,
            "due_at": end.run_at or self._database.clock.now(),
            "attempts": jobs.c.attempts - (0 if end.attempt_used else 1),
            "crashes": jobs.c.crashes + (1 if end.crashed else 0),
            "reason": _clean(end.reason),
            "blocked_by": _clean(end.blocked_by),
            "worker": None,
        }
        ours = (
            (jobs.c.id == end.id) & (jobs.c.token == end.token) & (jobs.c.state == State.PROCESSING)
        )
        return session.execute(update(jobs).where(ours).values(values)).rowcount == 1

    async def settle_stop(self, ends: Sequence[End]) -> frozenset[str]:
        """End jobs that a process had in hand when its guard ended it; return those that counted.

        Each is a suspect from now on, also one that another process has claimed since, which stays
        there. One whose lease has run out since, and that nobody has claimed, is ended as well.
        """

        def work(session: Session) -> frozenset[str]:
            suspect = {
                "stops": jobs.c.stops + 1,
                "crashes": case(
                    (jobs.c.crashes < SUSPECT_AFTER, SUSPECT_AFTER), else_=jobs.c.crashes
                ),
            }
            for end in ends:
                known = jobs.c.id == end.id
                session.execute(update(jobs).where(known).values(suspect))
                waits = (jobs.c.token == end.token) & (jobs.c.state == State.PENDING)
                held = update(jobs).where(known, waits).values(state=State.PROCESSING)
                session.execute(held)
            accepted = self.end_in(session, ends)
            session.touch(JOBS, [end.id for end in ends if end.id not in accepted])
            session.tell(JOBS)
            return accepted

        return await self._database.run(work) if ends else frozenset()

    def _ended_before(self, session: Session, ends: Sequence[End]) -> frozenset[str]:
        # The reply to an earlier commit of the same end may have been lost on its way.
        tokens = {end.id: end.token for end in ends if end.state != State.PENDING}
        found = session.execute(select(inbox.c.id, inbox.c.token).where(inbox.c.id.in_(tokens)))
        return frozenset(row.id for row in found if row.token == tokens[row.id])

    def _take(self, session: Session, want: Want, worker: str, *, suspects: bool) -> list[Job]:
        now = self._database.clock.now()
        values = {
            "kind": want.kind,
            "now": to_micros(now),
            "most": want.most,
            "worker": worker,
            "lease_until": to_micros(now + want.lease_for),
            "crashes": SUSPECT_AFTER,
        }
        taken = self.run_claim(session, self._claim, values)
        if suspects and len(taken) < want.most:
            taken += self.run_claim(session, self._claim_suspects, {**values, "most": 1})
        return taken

    def run_claim(
        self, session: Session, statements: Sequence[Any], values: dict[str, Any]
    ) -> list[Job]:
        """Run the statements of a claim as part of a transaction and return the claimed jobs."""
        choose, *mark = statements
        rows = session.execute(choose, values).all()
        if mark and rows:
            chosen = as_rows([(row.id,) for row in rows])
            session.execute(mark[0], {**values, **chosen})
        ahead = 1 if mark else 0
        ordered = sorted(rows, key=attrgetter("priority", "due_at", "id"))
        return [_job(row, ahead) for row in ordered]

    async def extend(self, leases: Sequence[Lease]) -> frozenset[str]:
        """Keep claims alive and return the ids of those that were lost."""
        if not leases:
            return frozenset()
        return await self._database.run(lambda session: self._extend_in(session, leases))

    def _extend_in(self, session: Session, leases: Sequence[Lease]) -> frozenset[str]:
        kept = 0
        for until, group in groupby(sorted(leases, key=attrgetter("until")), attrgetter("until")):
            rows = as_rows([(lease.id, lease.token) for lease in group])
            values = {**rows, "until": to_micros(until)}
            kept += session.execute(self._extend, values).rowcount
        session.touch(JOBS, [lease.id for lease in leases], lasting=False)
        if kept == len(leases):
            return frozenset()
        held = select(jobs.c.id, jobs.c.token).where(
            jobs.c.id.in_([lease.id for lease in leases]), jobs.c.state == State.PROCESSING
        )
        ours = {(row.id, row.token) for row in session.execute(held)}
        return frozenset(lease.id for lease in leases if (lease.id, lease.token) not in ours)

    async def hasten(self, key: str, priority: int) -> JobView | None:
        """Let the live job that holds a key go before others, at its own time; return it."""
        behind = (jobs.c.dedupe_key == key) & (jobs.c.priority > priority)

        def work(session: Session) -> None:
            waits = jobs.c.state == State.PENDING
            found = session.execute(select(jobs.c.id).where(behind, waits)).scalars().all()
            session.execute(update(jobs).where(behind, waits).values(priority=priority))
            session.touch(JOBS, found)

        await self._database.run(work)
        return await self.find_live(key)

    async def requeue(self, job_id: str) -> bool:
        """Bring a dead letter (`failed`) back with all its attempts; say whether there was one."""

        def work(session: Session) -> bool:
            dead = (inbox.c.id == job_id) & (inbox.c.state == State.FAILED)
            same = [
                inbox.c[name]
                for name in ("id", "kind", "args", "dedupe_key", "target", "priority", "token")
            ]
            row = session.execute(select(*same).where(dead).with_for_update()).first()
            if row is None:
                return False
            now = self._database.clock.now()
            values = {
                **row._asdict(),
                "state": State.PENDING,
                "due_at": now,
                "attempts": 0,
                "crashes": 0,
                "enqueued_at": now,
                "reason": "brought back by hand",
            }
            live = select(jobs.c.id).where(jobs.c.dedupe_key == row.dedupe_key)
            if row.dedupe_key is not None and session.execute(live).first():
                return False
            session.execute(insert(jobs).values(values))
            session.execute(delete(inbox).where(dead))
            session.tell(JOBS)
            session.touch(JOBS, [job_id])
            return True

        try:
            return await self._database.run(work)
        except IntegrityError:
            # Its key came to life again at the same moment.
            return False


def _clean(value: str | None) -> str | None:
    return None if value is None else clean(value)


def _job(row: Row[Any], ahead: int) -> Job:
    args, broken = load(row.args)
    return Job(
        id=row.id,
        kind=row.kind,
        args=args,
        dedupe_key=row.dedupe_key,
        target=row.target,
        token=row.token + ahead,
        attempt=row.attempts + ahead,
        crashes=row.crashes,
        stops=row.stops,
        enqueued_at=to_time(row.enqueued_at),
        broken=broken,
    )
