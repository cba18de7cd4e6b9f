"""The relay: tells Redis what SQL has committed, at once where it can, and later where not.

A transaction that lets a job or a target become due leaves a row of their names in SQL. Once it
is committed Redis is told, and the row is struck out. Who dies in between leaves the row to the
others, who hear of every commit from SQL. Telling twice does no harm: a job carries its version,
and SQL refuses the claim of a job that it knows better.
"""

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog
from sqlalchemy import Select, delete, func, insert, select

from mimawari.errors import StoreDown
from mimawari.ids import new_id
from mimawari.kernel.clock import RealClock
from mimawari.kernel.signal import JOBS, SCHEDULE
from mimawari.store.redis import names
from mimawari.store.redis.foreign import Finding, ForeignWork
from mimawari.store.redis.link import RedisLink
from mimawari.store.redis.mirror import BATCH, Facts, Mirror, processed_seconds
from mimawari.store.sql.engine import Database, Session
from mimawari.store.sql.tables import inbox, jobs, relay, schedule
from mimawari.text import clean

LOOK = timedelta(seconds=2)
"""How often Redis is asked whether it is still the one that was filled."""
SOON = timedelta(seconds=1)
"""How soon what went wrong is tried again."""
OWN_FOR = timedelta(seconds=2)
"""How long a commit's own process has to tell of it, while Redis answers, before others do."""

FINDINGS = 100
"""How much of what other programs have done is taken in at once."""
SHORT = 20
"""A queue of so few messages is looked through at each look, a longer one where it seems odd."""
ALL_EVERY = 20
"""At so many looks also the queues are looked at that no other program has a part in."""

MOST_UNTOLD = 10_000

FILLING = "being filled by "
FILLING_FOR = timedelta(seconds=5)
"""Who says nothing for so long while filling Redis has died; another one begins anew."""

log = structlog.get_logger(component="relay")


@dataclass(frozen=True, slots=True)
class Sealed:
    """What one transaction leaves for Redis."""

    facts: Facts
    row_id: str | None


@dataclass(slots=True)
class Told:
    """What Redis was told: the rows to strike out, and the times that must still be right."""

    rows: list[str] = field(default_factory=list)
    times: dict[str, tuple[str, str, int | None]] = field(default_factory=dict)


@dataclass(slots=True)
class Untold:
    """The names of what this process could not tell Redis, to be told again before all else."""

    jobs: set[str] = field(default_factory=set)
    members: set[str] = field(default_factory=set)
    rows: list[str] = field(default_factory=list)

    def add(self, sealed: Sealed) -> None:
        """Add what a transaction has left; what there is no room for stands in SQL all the same."""
        if len(self.jobs) + len(self.members) >= MOST_UNTOLD:
            return
        self.jobs.update(row.id for row in (*sealed.facts.live, *sealed.facts.over))
        self.members.update(time[0] for time in sealed.facts.times)
        if sealed.row_id is not None:
            self.rows.append(sealed.row_id)


class RedisRelay:
    """Keeps Redis as SQL is."""

    def __init__(
        self, database: Database, link: RedisLink, mirror: Mirror, foreign: ForeignWork
    ) -> None:
        self._foreign = foreign
        self._looks = 0
        self._database = database
        self._link = link
        self._mirror = mirror
        # How soon another is told is a matter of real time on any clock.
        self._clock = RealClock()
        self._again_at = self._clock.now()
        self._told = Told()
        self._untold = Untold()
        self._doubted: set[str] = set()
        self._first_seen: dict[str, datetime] = {}
        self.late: Counter[str] = Counter()
        """How many waiting jobs Redis learned of only by a look for what it had missed, by how."""
        self._stirred = asyncio.Event()
        self._is_behind = True
        self._run_id = ""
        self._is_closing = False
        self._work: asyncio.Task[None] | None = None

    def seal(self, session: Session) -> Sealed:
        """Write down, in the transaction, what is to be told; return it."""
        lasting, passing = session.touched.lasting, session.touched.passing
        facts = self._mirror.read(session, lasting[JOBS] | passing[JOBS], lasting[SCHEDULE])
        row_id = None
        if lasting[JOBS] or lasting[SCHEDULE]:
            row_id = new_id()
            touched = [sorted(map(clean, lasting[topic])) for topic in (JOBS, SCHEDULE)]
            row = {"id": row_id, "sealed_at": self._clock.now(), "names": json.dumps(touched)}
            session.execute(insert(relay).values(row))
        return Sealed(facts, row_id)

    async def pass_on(self, sealed: Sealed) -> None:
        """Tell Redis; what cannot be told now is told later."""
        self.start()
        if self._clock.now() < self._again_at:
            # Nobody waits for a Redis that was away a moment ago.
            self._untold.add(sealed)
            self.stir()
            return
        try:
            await self._mirror.tell(sealed.facts)
        except StoreDown as error:
            self._untold.add(sealed)
            self.stir()
            self._again_at = self._clock.now() + SOON
            log.warning("not told yet", result="retry", reason=str(error), next=str(SOON))
            return
        if sealed.row_id is not None:
            self._told.rows.append(sealed.row_id)
        self._told.times.update({time[0]: time for time in sealed.facts.times})

    def start(self) -> None:
        """Begin to look after Redis, once."""
        if self._work is None and not self._is_closing:
            self._work = asyncio.create_task(self._look_after())

    def stir(self) -> None:
        """Look soon whether something was committed that Redis was not told of."""
        self.start()
        self._is_behind = True
        self._stirred.set()

    def doubt(self, ids: Collection[str]) -> None:
        """Ask SQL about jobs of which nobody knows whether they were claimed."""
        if ids:
            self._doubted.update(ids)
            self.stir()

    async def settle_doubts(self) -> int:
        """Correct the jobs in doubt; return how many wait again."""
        doubted, self._doubted = self._doubted, set()
        return await self.correct_surely(doubted)

    async def correct_surely(self, ids: Collection[str]) -> int:
        """Correct some jobs, which stay in doubt where it fails; return how many wait again."""
        try:
            return await self.correct(ids) if ids else 0
        except BaseException:
            self.doubt(ids)
            raise

    async def _tell_late(self, facts: Facts, *, force: bool = False) -> int:
        """Tell what nobody waits for the telling of, and wake this process's own sleepers."""
        placed = await self._mirror.tell(facts, force=force)
        for topic, is_told in ((JOBS, facts.live), (SCHEDULE, facts.times)):
            if is_told:
                self._database.signal.tell(topic)
        return placed

    async def correct(self, ids: Collection[str]) -> int:
        """Let Redis have some jobs as SQL has them; return how many waiting ones it had not so."""
        facts = await self._database.look(lambda session: self._mirror.read(session, ids, ()))
        placed = await self._tell_late(facts, force=True)
        known = {row.id for row in (*facts.live, *facts.over)}
        await self._mirror.forget(set(ids) - known)
        return placed

    async def correct_times(self, members: Collection[str]) -> None:
        """Let Redis have some targets' times as SQL has them."""
        await self._mirror.tell(await self._read((), members))

    async def close(self) -> None:
        """Stop, with the rows of what was told struck out if that is possible."""
        # A driver may swallow the cancelling, so the work is told as well.
        self._is_closing = True
        if self._work is not None:
            self._stirred.set()
            self._work.cancel()
            with suppress(asyncio.CancelledError):
                await self._work
            with suppress(StoreDown):
                await self._strike_out()

    async def _look_after(self) -> None:
        while not self._is_closing:
            try:
                await self.look()
            except StoreDown as error:
                self._is_behind, self._run_id = True, ""
                log.warning("store down", result="retry", reason=str(error), next=str(SOON))
            except Exception:
                # Who gives up here leaves Redis behind for good, and nobody would notice.
                self._is_behind, self._run_id = True, ""
                log.exception("relay failed", result="retry", next=str(SOON))
            if not self._is_behind:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK.total_seconds()):
                        await self._stirred.wait()
            self._stirred.clear()
            if not self._is_closing:
                await self._clock.sleep(SOON)

    async def look(self) -> None:
        """See to it that Redis is the one that was filled, and that nothing is left untold."""
        said, findings = await self.find_changes()
        await self._refill(said)
        await self._tell_untold()
        await self._strike_out()
        await self._take_in(findings)
        await self.settle_doubts()
        if self._looks % ALL_EVERY == 1:
            await self._restore_schedules()
        if self._is_behind:
            # Whoever stirs meanwhile is not to be overheard.
            self._is_behind = False
            if await self._sweep():
                self._is_behind = True

    async def _tell_untold(self) -> None:
        """Tell what this process could not tell when it was committed."""
        untold, self._untold = self._untold, Untold()
        if not (untold.jobs or untold.members):
            return
        try:
            facts = await self._read(sorted(untold.jobs), untold.members)
            await self._tell_late(facts)
        except BaseException:
            self._untold.jobs |= untold.jobs
            self._untold.members |= untold.members
            self._untold.rows += untold.rows
            raise
        self._told.rows += untold.rows
        self._told.times.update({time[0]: time for time in facts.times})

    async def find_changes(self) -> tuple[str, list[Finding]]:
        """Return which Redis this says it is, and what other programs have done there."""
        now = int(self._database.clock.now().timestamp())
        shared = [
            part
            for kind in names.FORMS
            for part in (names.queue_of(kind), str(names.usual_of(kind)))
        ]
        told = (now, processed_seconds(), FINDINGS, SHORT, int(self._looks % ALL_EVERY == 0))
        keys = (names.EPOCH, names.QUEUES, *names.PROCESSED)
        self._looks += 1
        found: Sequence[bytes] = await self._link.run("look", *told, *shared, keys=keys)
        parts = zip(*(found[at::4] for at in range(1, 5)), strict=True)
        return found[0].decode(), [
            Finding(what.decode(), queue.decode(), name.decode(), body)
            for what, queue, name, body in parts
        ]

    async def _take_in(self, findings: Sequence[Finding]) -> None:
        """Keep what other programs have done; jobs that stood nowhere are told again."""
        lost = {one.name for one in findings if one.what == "lost"}
        self.late["lost"] += await self.correct_surely(lost)
        self.doubt(await self._foreign.take_in(findings))

    async def _restore_schedules(self) -> None:
        """Tell the times of the kinds that have fewer members in Redis than in SQL."""
        counting = select(schedule.c.kind, func.count().label("n")).group_by(schedule.c.kind)
        rows = await self._database.look(lambda session: session.execute(counting).all())
        async with self._link.client.pipeline(transaction=False) as counted:
            for row in rows:
                counted.zcard(names.schedule_of(row.kind))
            found = await self._link.asked(counted.execute()) if rows else []
        for row, count in zip(rows, found, strict=True):
            if count < row.n:
                members = select(schedule.c.member).where(schedule.c.kind == row.kind)
                await self._tell_members(members)
                log.warning("schedule restored", what=row.kind, result="done", members=row.n)

    async def _tell_members(self, query: Select[tuple[str]]) -> None:
        after = ""
        ordered = query.order_by(schedule.c.member).limit(BATCH)
        while some := await self._list(ordered.where(schedule.c.member > after)):
            await self._tell_late(await self._read((), some))
            after = some[-1]

    async def _refill(self, said: str) -> None:
        """Tell a Redis everything that was emptied, restarted or exchanged."""
        if (self._run_id and said == self._run_id) or said.startswith(FILLING):
            return
        server = await self._link.asked(self._link.client.info("server"))
        run_id = str(server["run_id"])
        if said != run_id:
            await self._fill(run_id)
        self._run_id = run_id

    async def _fill(self, run_id: str) -> None:
        mine = f"{FILLING}{new_id()}"
        await self._link.asked(self._link.client.set(names.EPOCH, mine, px=FILLING_FOR))
        now = int(self._database.clock.now().timestamp())
        old = (names.OLD_EPOCH, names.QUEUES, *names.PROCESSED)
        await self._link.run("clear", now, keys=old)
        told = await self._tell_all(mine)
        if await self._link.run("filled", mine, run_id, 0, keys=(names.EPOCH,)):
            log.info("Redis filled", result="done", reason="it was empty or new", **told)
        else:
            # It was emptied again meanwhile.
            self._is_behind = True

    async def _tell_all(self, mine: str) -> dict[str, int]:
        counts: defaultdict[str, int] = defaultdict(int)
        milliseconds = FILLING_FOR // timedelta(milliseconds=1)
        members = select(schedule.c.member).order_by(schedule.c.member)
        dead = select(inbox.c.id).where(inbox.c.state == "failed").order_by(inbox.c.id)
        for name, query, column in (
            ("members", members, schedule.c.member),
            ("jobs", select(jobs.c.id).order_by(jobs.c.id), jobs.c.id),
            ("dead letters", dead, inbox.c.id),
        ):
            after = ""
            while some := await self._list(query.where(column > after).limit(BATCH)):
                ids, times = ((), some) if name == "members" else (some, ())
                await self._tell_late(await self._read(ids, times))
                after = some[-1]
                await self._link.run("filled", mine, mine, milliseconds, keys=(names.EPOCH,))
                counts[name.replace(" ", "_")] += len(some)
        return dict(counts)

    async def _list(self, query: Select[tuple[str]]) -> list[str]:
        def work(session: Session) -> list[str]:
            return list(session.execute(query).scalars())

        return await self._database.look(work)

    async def _read(self, ids: Sequence[str], members: Collection[str]) -> Facts:
        return await self._database.look(lambda session: self._mirror.read(session, ids, members))

    async def _sweep(self) -> bool:
        """Tell what others have left untold; say whether there may be more."""
        query = select(relay).order_by(relay.c.id).limit(BATCH)
        found = await self._database.look(lambda session: session.execute(query).all())
        # A new row is most likely being told by its own process just now. How old it is we see
        # for ourselves: the clock of the machine that wrote it may be hours ahead of this one.
        now = self._clock.now()
        self._first_seen = {row.id: self._first_seen.get(row.id, now) for row in found}
        rows = [row for row in found if self._first_seen[row.id] <= now - OWN_FOR]
        if not rows:
            return bool(found)
        touched = [json.loads(row.names) for row in rows]
        ids = {name for some, _ in touched for name in some}
        members = {name for _, some in touched for name in some}
        facts = await self._read(sorted(ids), members)
        self.late["swept"] += await self._tell_late(facts)
        self._told.rows += [row.id for row in rows]
        self._told.times.update({time[0]: time for time in facts.times})
        await self._strike_out()
        return len(rows) < len(found) or len(found) == BATCH

    async def _strike_out(self) -> None:
        """Strike out what was told, and tell times again that were overtaken on their way."""
        told, self._told = self._told, Told()
        try:
            while told.times:
                facts = await self._read((), told.times)
                changed = {time[0]: time for time in facts.times if told.times[time[0]] != time}
                await self._tell_late(Facts(times=list(changed.values())))
                told.times = changed
            gone = delete(relay).where(relay.c.id.in_(told.rows))
            if told.rows:
                await self._database.run(lambda session: session.execute(gone).rowcount)
        except StoreDown:
            self._told.rows += told.rows
            self._told.times = {**told.times, **self._told.times}
            raise
