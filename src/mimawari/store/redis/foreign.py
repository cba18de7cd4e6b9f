"""Other programs' part in the hot watch's queues: what they put, claim and finish, kept in SQL.

They push and pop plain messages and know nothing of us. What they have done is found by looking,
and each of it becomes a change in SQL before Redis is told: a message they put is a job; one of
ours that they have popped, or one of their own, is claimed for them until a lease is over; a
result ends its job. What cannot be read is a dead letter.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from hashlib import sha256
from typing import Any

import structlog
from sqlalchemy import Row, select, text, union_all

from mimawari.columns import to_micros
from mimawari.errors import BadInput
from mimawari.ids import named_id
from mimawari.kernel.job import LIVE, NORMAL, End, NewJob, State
from mimawari.kernel.signal import JOBS
from mimawari.store.redis import names
from mimawari.store.redis.link import RedisLink
from mimawari.store.sql.arguments import dump, load
from mimawari.store.sql.engine import Database, Session, as_rows
from mimawari.store.sql.queue import SqlQueue
from mimawari.store.sql.tables import inbox, jobs
from mimawari.text import one_line

CRAWL, APPLY = "hot.crawl", "hot.apply"
LEASE_FOR = timedelta(minutes=10)
"""How long another program may keep what it has claimed, unless a setting says otherwise."""
NEAR = timedelta(days=1)
"""How far ahead another program's clock may be for its times to be taken as they are."""
WORKER = "another program"
MOST_KEPT = 64 * 1024
"""So much of a message that nobody understands is kept for a person to look at."""

log = structlog.get_logger(component="foreign")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that another program has done with a queue."""

    what: str
    queue: str
    name: str
    body: bytes

    @property
    def kind(self) -> str:
        """The kind of the queue's jobs."""
        return names.kind_of(self.queue)

    @property
    def about(self) -> tuple[str, str | bytes]:
        """What the script that forgets it must be told."""
        held = self.what == "held"
        return (f"!{self.queue}", self.body) if held else (self.queue, self.name)


@dataclass(frozen=True, slots=True)
class Held:
    """A job that another program holds from now on, and how it has written it, if it has."""

    row: Row[Any]
    raw: bytes = b""


class ForeignWork:
    """Takes part in what other programs do with the queues."""

    def __init__(self, database: Database, link: RedisLink, queue: SqlQueue) -> None:
        self.lease_for = LEASE_FOR
        self._database = database
        self._link = link
        self._queue = queue
        self._claim = [text(sql) for sql in database.dialect.claim_known()]

    async def take_in(self, findings: Sequence[Finding]) -> set[str]:
        """Keep in SQL what was found, then let Redis forget it or hold it for its owner.

        Return the jobs that SQL has otherwise than Redis thinks.
        """
        taken = {one.name: int(one.body) // 2 for one in findings if one.what == "taken"}
        texts = [one for one in findings if one.what in {"stranger", "held"}]
        if not (taken or texts):
            return set()

        def work(session: Session) -> tuple[list[Held], list[Finding]]:
            held = [Held(row) for row in self._claim_for_them(session, list(taken.items()))]
            over = [one for one in texts if self._take_in(session, one, held)]
            return held, over

        held, over = await self._database.run(work)
        await self._hold(held, [part for one in over for part in one.about])
        return taken.keys() - {one.row.id for one in held}

    async def _hold(self, held: Sequence[Held], over: Sequence[str | bytes]) -> None:
        """Let Redis hold jobs for another program, and forget texts that were taken in."""
        now = self._database.clock.now()
        told = [
            (names.queue_of(one.row.kind), str(names.usual_of(one.row.kind)), one.row.id,
             2 * (_token(one.row) + 1), to_micros(now + self.lease_for))
            for one in held
        ]  # fmt: skip
        raws = [one.raw for one in held]
        await self._link.run("adopt", to_micros(now), json.dumps(told), *raws, *over)

    def _claim_for_them(self, session: Session, seen: Sequence[tuple[str, int]]) -> list[Row[Any]]:
        if not seen:
            return []
        query = select(jobs).where(jobs.c.id.in_([job_id for job_id, _ in seen]))
        rows = {row.id: row for row in session.execute(query)}
        until = to_micros(self._database.clock.now() + self.lease_for)
        values = {**as_rows(seen), "worker": WORKER, "lease_until": until}
        claimed = {job.id for job in self._queue.run_claim(session, self._claim, values)}
        if claimed:
            log.info("claimed by another program", result="done", jobs=len(claimed))
        return [rows[job_id] for job_id, _ in seen if job_id in claimed]

    def _take_in(self, session: Session, one: Finding, held: list[Held]) -> bool:
        """Make of a message what it is to SQL; return whether Redis may forget it."""
        if (form := names.FORMS.get(one.kind)) is None:
            self._bury(session, one, "not ours: this queue takes no messages of other programs")
            return True
        try:
            args = form.parse(one.body)
        except BadInput as error:
            self._bury(session, one, str(error))
            return True
        if one.kind == APPLY:
            self._finish(session, one, args)
            return True
        return self._accept(session, one, args, held)

    def _accept(
        self, session: Session, one: Finding, args: Mapping[str, Any], held: list[Held]
    ) -> bool:
        """Make a job of a message, once; claim it for who has popped it already."""
        task_id = str(args.get("taskId", ""))
        known = self._find_task(session, task_id) if task_id else None
        if known is None:
            job = self._job_of(one, args)
            self._put(session, job)
            known = self._find_live(session, job.id)
        if one.what != "held" or known is None or known.state not in LIVE:
            return True
        if known.state == State.PENDING:
            rows = self._claim_for_them(session, [(known.id, known.token)])
            session.touch(JOBS, [row.id for row in rows])
            held += [Held(row, one.body) for row in rows]
        # It stands there for as long as its job lives, and goes with it.
        return False

    def _put(self, session: Session, job: NewJob) -> None:
        """Put a job, also where its target has a live one already: its sender wants its result."""
        if not self._queue.put_in(session, [job]):
            self._queue.put_in(session, [replace(job, dedupe_key=None)])
        log.info("taken from another program", what=job.kind, id=job.id, result="done")

    def _finish(self, session: Session, one: Finding, args: Mapping[str, Any]) -> None:
        """End the job that a result is of, if it lives, and put the result to be applied."""
        job = self._find_task(session, str(args["taskId"]))
        if job is not None and job.state in {State.DONE, State.PERMANENT_FAIL}:
            log.info("result of a task that is over", what=CRAWL, id=job.id, result="left out")
            return
        if job is not None and job.state == State.PENDING:
            self._claim_for_them(session, [(job.id, job.token)])
        if job is not None and job.state != State.FAILED:
            token = _token(job) + (job.state == State.PENDING)
            self._queue.end_in(session, [End(id=job.id, token=token, state=State.DONE)])
        self._queue.put_in(session, [self._job_of(one, args)])

    def _find_task(self, session: Session, task_id: str) -> Row[Any] | None:
        """Find the crawl that a task's name means: a job of that id, or a live one of that task."""
        columns = ("id", "kind", "state", "token")
        mine = [
            select(*(table.c[name] for name in columns)).where(
                table.c.id == task_id, table.c.kind == CRAWL
            )
            for table in (jobs, inbox)
        ]
        if (found := session.execute(union_all(*mine)).first()) is not None:
            return found
        says = select(*(jobs.c[name] for name in (*columns, "args"))).where(
            jobs.c.kind == CRAWL, jobs.c.args.contains(json.dumps(task_id), autoescape=True)
        )
        for row in session.execute(says):
            if load(row.args)[0].get("taskId") == task_id:
                return row
        return None

    @staticmethod
    def _find_live(session: Session, job_id: str) -> Row[Any] | None:
        return session.execute(select(jobs).where(jobs.c.id == job_id)).first()

    def _job_of(self, one: Finding, args: Mapping[str, Any]) -> NewJob:
        member = f"hot:{args['ipId']}"
        is_crawl = one.kind == CRAWL
        return NewJob(
            id=self._name(one, args),
            kind=one.kind,
            args=args,
            dedupe_key=member if is_crawl else None,
            target=member,
            priority=names.usual_of(one.kind) if not is_crawl else NORMAL,
            reason="asked for by another program" if is_crawl else None,
        )

    def _name(self, one: Finding, args: Mapping[str, Any]) -> str:
        """Name the job of a message: the same, however often the message is found."""
        said = int(args.get("createdAt", args.get("crawledAt", 0)))
        latest = (self._database.clock.now() + NEAR).timestamp()
        task_id = str(args.get("taskId", ""))
        words = (task_id, str(said)) if task_id else (one.name, sha256(one.body).hexdigest())
        return named_id(said * 1000 if 0 < said <= latest else _when(one), one.kind, *words)

    def _bury(self, session: Session, one: Finding, reason: str) -> None:
        """Make a dead letter of a message that nobody understands."""
        now = self._database.clock.now()
        digest = sha256(one.body).hexdigest()
        job_id = named_id(_when(one), one.kind, one.name, digest)
        row = {
            "id": job_id, "kind": one.kind, "args": dump({}), "dedupe_key": None, "target": None,
            "priority": NORMAL, "state": State.FAILED, "token": 0, "attempts": 0,
            "reason": one_line(reason), "blocked_by": None, "worker": None, "enqueued_at": now,
            "ended_at": now, "page": one.body[:MOST_KEPT],
        }  # fmt: skip
        session.execute(self._database.dialect.insert_new(inbox, row))
        session.touch(JOBS, [job_id], lasting=False)
        log.warning("message not understood", what=one.queue, id=job_id, result="failed",
                    reason=one_line(reason))  # fmt: skip


def _token(row: Row[Any]) -> int:
    return int(row.token)


def _when(one: Finding) -> int:
    """Tell when a message was set aside, in milliseconds; 0 if it was not."""
    micros = one.name.partition("-")[0]
    return int(micros) // 1000 if micros.isdigit() else 0
