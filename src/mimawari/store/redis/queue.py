"""The queue: Redis hands out jobs, and SQL, which has them, confirms each claim."""

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import text

from mimawari.columns import to_micros, to_time
from mimawari.errors import StoreDown
from mimawari.ids import new_id
from mimawari.kernel.job import End, Job, State, Turn, Want
from mimawari.store.redis import names
from mimawari.store.redis.link import RedisLink
from mimawari.store.redis.relay import RedisRelay
from mimawari.store.sql.engine import Database, Session, as_rows
from mimawari.store.sql.queue import SqlQueue

CONFIRM_FOR = timedelta(seconds=10)
"""How long a claim may stay unconfirmed before SQL is asked who has its jobs."""


class Handed(NamedTuple):
    """A job that Redis has handed out: as which want, and what SQL must have of it."""

    want: int
    id: str
    token: int


class RedisQueue(SqlQueue):
    """The queue on SQL, with the finding of work left to Redis."""

    def __init__(self, database: Database, link: RedisLink, relay: RedisRelay) -> None:
        super().__init__(database)
        self._link = link
        self._relay = relay
        self._lost_calls: set[str] = set()
        self._confirmed: set[str] = set()
        self._claim_known = [text(sql) for sql in database.dialect.claim_known()]

    async def turn(self, ends: Sequence[End], wants: Sequence[Want], worker: str) -> Turn:
        """End jobs and claim others; an end with a stale token is refused."""
        if not wants or any(end.state == State.PENDING for end in ends):
            # What is put back may be claimed again in this very turn.
            settled = await super().turn(ends, (), worker)
            jobs = await self._claim_late(wants, worker) if wants else ()
            return Turn(settled.accepted, settled.refused, jobs)
        return await self._claim_handed(ends, wants, worker)

    async def _claim_late(self, wants: Sequence[Want], worker: str) -> tuple[Job, ...]:
        """Claim after ends were settled, which must not be lost if nothing is handed out now."""
        try:
            return (await self._claim_handed((), wants, worker)).jobs
        except StoreDown:
            return ()

    async def _claim_handed(self, ends: Sequence[End], wants: Sequence[Want], worker: str) -> Turn:
        call = new_id()
        try:
            handed = await self._hand_out(call, wants)
        except StoreDown:
            # The claim may have been made, or be made yet: only its reply is known to be lost.
            self._lost_calls.add(call)
            if not ends:
                raise
            handed = []
        if not ends and not handed:
            return Turn(frozenset(), frozenset(), ())

        def work(session: Session) -> Turn:
            accepted, refused = self.settle_in(session, ends)
            return Turn(accepted, refused, self._confirm(session, handed, wants, worker))

        try:
            turn = await self._database.run(work)
        except StoreDown:
            self._relay.doubt([job.id for job in handed])
            raise
        if handed:
            self._confirmed.add(call)
        ours = {job.id for job in turn.jobs}
        if stale := [job.id for job in handed if job.id not in ours]:
            self._relay.doubt(stale)
            # What was claimed is at work whether the rest could be set right or not.
            with suppress(StoreDown):
                await self._relay.settle_doubts()
        return turn

    async def _disown_lost(self) -> None:
        """Take back what calls whose reply was lost have handed out, or would hand out yet."""
        if not self._lost_calls:
            return
        lost = sorted(self._lost_calls)
        until = to_micros(self._database.clock.now() + CONFIRM_FOR)
        ids = await self._link.run("disown", until, *lost, keys=names.CALLS)
        self._lost_calls.difference_update(lost)
        await self._relay.correct_surely([job_id.decode() for job_id in ids])

    async def _hand_out(self, call: str, wants: Sequence[Want]) -> list[Handed]:
        await self._disown_lost()
        now = self._database.clock.now()
        confirmed, self._confirmed = self._confirmed, set()
        said: list[str | int] = [call, to_micros(now + CONFIRM_FOR), " ".join(confirmed)]
        for want in wants:
            until = to_micros(now + want.lease_for)
            queue = (names.queue_of(want.kind), names.usual_of(want.kind))
            said += [*queue, want.most, until, int(want.suspects)]
        found = await self._link.run("claim", to_micros(now), *said, keys=names.CALLS)
        handed = json.loads(found)
        return [Handed(want, job_id, int(version) // 2) for want, job_id, version in handed]

    def _confirm(
        self, session: Session, handed: Sequence[Handed], wants: Sequence[Want], worker: str
    ) -> tuple[Job, ...]:
        """Claim in SQL what Redis has handed out; what SQL has otherwise is left out."""
        claimed: dict[str, Job] = {}
        for at, want in enumerate(wants):
            rows = as_rows([(job.id, job.token) for job in handed if job.want == at])
            if rows["rows"] == "[]":
                continue
            until = to_micros(self._database.clock.now() + want.lease_for)
            values = {**rows, "worker": worker, "lease_until": until}
            taken = self.run_claim(session, self._claim_known, values)
            claimed |= {job.id: job for job in taken}
        return tuple(claimed[job.id] for job in handed if job.id in claimed)

    async def expired(self, now: datetime, most: int) -> list[Job]:
        """List claimed jobs whose lease has run out; sets right what only Redis holds claimed."""
        lapsed = ("lapsed", to_micros(now), most, names.QUEUES)
        if ids := await self._link.run(*lapsed, keys=names.CALLS):
            lapsed_ids = [job_id.decode() for job_id in ids]
            self._relay.late["lapsed"] += await self._relay.correct_surely(lapsed_ids)
        return await super().expired(now, most)

    async def next_at(self, kinds: Collection[str]) -> datetime | None:
        """Tell when the next job of these kinds is due or the next lease of theirs runs out."""
        if not kinds:
            return None
        told = (" ".join(self._confirmed), *_queues(kinds))
        micros = await self._link.run("next", *told, keys=names.CALLS)
        return None if micros is None else to_time(int(micros))

    async def depths(self, kinds: Collection[str], most: int) -> Mapping[str, int]:
        """Count the due, unclaimed jobs of each kind, up to `most` of each."""
        if not kinds:
            return {}
        ordered = sorted(kinds)
        now = to_micros(self._database.clock.now())
        found: Sequence[Any] = await self._link.run("depths", now, *_queues(ordered))
        return {kind: min(depth, most) for kind, depth in zip(ordered, found, strict=True)}


def _queues(kinds: Collection[str]) -> list[str | int]:
    return [part for kind in kinds for part in (names.queue_of(kind), names.usual_of(kind))]
