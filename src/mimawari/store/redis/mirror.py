"""How Redis is told what SQL has: live jobs, jobs that are over, and the schedule."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import Row, text

from mimawari.columns import to_micros
from mimawari.kernel.job import SUSPECT_AFTER, State
from mimawari.kernel.signal import JOBS, SCHEDULE
from mimawari.store.redis import names
from mimawari.store.redis.link import RedisLink
from mimawari.store.sql.engine import Database, Session, as_rows
from mimawari.text import clean

BATCH = 500
DEAD_LETTERS = 1000
"""So many of a queue are shown in Redis; SQL keeps all."""
PROCESSED_FOR = timedelta(hours=24)

# One value a batch: many small ones cost more to send than all else.
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode

_LIVE = (
    "id, kind, args, dedupe_key, target, priority, state, token, attempts, enqueued_at, due_at,"
    " crashes"
)
_OVER = "id, kind, args, dedupe_key, target, state, token, attempts, enqueued_at"


@dataclass(frozen=True, slots=True)
class Facts:
    """What SQL has of some jobs and targets: a target without a time is gone."""

    live: Sequence[Row[Any]] = ()
    over: Sequence[Row[Any]] = ()
    times: Sequence[tuple[str, str, int | None]] = ()


class Mirror:
    """Reads facts from SQL and tells Redis."""

    def __init__(self, link: RedisLink, database: Database, sender: str) -> None:
        self._link = link
        self._database = database
        self._sender = sender
        dialect = database.dialect
        ids = f"WHERE id IN (SELECT id FROM {dialect.rows(id='text')} r)"
        members = f"WHERE member IN (SELECT id FROM {dialect.rows(id='text')} r)"
        self._live = text(f"SELECT {_LIVE} FROM jobs {ids} ORDER BY due_at, id")
        self._over = text(f"SELECT {_OVER} FROM inbox {ids}")
        self._times = text(f"SELECT member, kind, next_at FROM schedule {members}")

    def read(self, session: Session, ids: Collection[str], members: Collection[str]) -> Facts:
        """Read what SQL has of some jobs and targets, as part of a transaction."""
        live: Sequence[Row[Any]] = ()
        over: Sequence[Row[Any]] = ()
        if ids:
            live = session.execute(self._live, _bound(ids)).all()
            left = set(map(clean, ids)) - {row.id for row in live}
            over = session.execute(self._over, _bound(left)).all() if left else ()
        return Facts(live, over, self._read_times(session, members) if members else ())

    def _read_times(
        self, session: Session, members: Collection[str]
    ) -> list[tuple[str, str, int | None]]:
        found = {
            row.member: (row.member, row.kind, int(row.next_at))
            for row in session.execute(self._times, _bound(members))
        }
        return [found.get(member, (member, "", None)) for member in sorted(map(clean, members))]

    async def tell(self, facts: Facts, *, force: bool = False) -> int:
        """Tell Redis, and return how many waiting jobs it did not know so.

        With force it also gives up what it holds to be newer.
        """
        if facts.over:
            await self._drop(facts.over, force=force)
        placed = 0
        for at in range(0, len(facts.live), BATCH):
            placed += await self._put(facts.live[at : at + BATCH], force=force)
        if facts.times:
            await self._place(facts.times)
        return placed

    async def forget(self, ids: Collection[str]) -> None:
        """Take out jobs that SQL knows nothing of, in whichever queue they are."""
        if ids:
            await self._link.run("vanish", names.QUEUES, *ids)

    async def _put(self, rows: Sequence[Row[Any]], *, force: bool) -> int:
        jobs = [
            (
                *_queue(row.kind), row.id, _version(row), str(row.priority), int(row.due_at),
                row.crashes >= SUSPECT_AFTER, row.state == State.PROCESSING,
                row.token > 0 and not row.attempts,
                names.key_of(row.kind, row.dedupe_key), names.message_of(row),
            )
            for row in rows
        ]  # fmt: skip
        call = (self._link.channel, f"{JOBS} {self._sender}")
        now = to_micros(self._database.clock.now())
        told = (now, *call, int(force), names.QUEUES, _encode(jobs))
        return int(await self._link.run("put", *told))

    async def _drop(self, rows: Sequence[Row[Any]], *, force: bool) -> None:
        jobs = [
            (
                *_queue(row.kind), row.id, 2 * row.token + 1,
                names.key_of(row.kind, row.dedupe_key),
                names.message_of(row) if row.state == State.FAILED else "", names.counted_of(row),
            )
            for row in rows
        ]  # fmt: skip
        now, seconds = int(self._database.clock.now().timestamp()), processed_seconds()
        told = (int(force), DEAD_LETTERS, now, seconds, _encode(jobs))
        await self._link.run("drop", *told, keys=names.PROCESSED)

    async def _place(self, times: Sequence[tuple[str, str, int | None]]) -> None:
        parts = [
            ("", member, "") if at is None else (names.schedule_of(kind), member, f"{at / 1e6:.6f}")
            for member, kind, at in times
        ]
        call = (self._link.channel, f"{SCHEDULE} {self._sender}")
        await self._link.run("place", *call, names.SCHEDULES, names.IPS, *_flat(parts))


def processed_seconds() -> int:
    """Return for how long a counted task is remembered."""
    return int(PROCESSED_FOR.total_seconds())


def _version(row: Row[Any]) -> int:
    return 2 * int(row.token) + int(row.state == State.PENDING)


def _queue(kind: str) -> tuple[str, str]:
    return names.queue_of(kind), str(names.usual_of(kind))


def _bound(names_: Collection[str]) -> dict[str, str]:
    return as_rows([(clean(name),) for name in sorted(names_)])


def _flat(parts: Sequence[Sequence[str]]) -> list[str]:
    return [part for group in parts for part in group]
