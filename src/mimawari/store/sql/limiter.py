"""The limiter: every grant is a row, so that restarts and other processes know of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from sqlalchemy import Executable, Row, delete, insert, select, update

from mimawari.errors import Wait
from mimawari.ids import new_id
from mimawari.kernel.clock import Mark
from mimawari.kernel.limits import NOTHING, START_FOR, VALID_FOR, Given, Hold, count_used, wait_for
from mimawari.kernel.values import Grant, Limit, Pause
from mimawari.store.sql.engine import Database, Session
from mimawari.store.sql.pauses import begin_pause
from mimawari.store.sql.tables import grants, limits
from mimawari.text import one_line

_MICROSECOND = timedelta(microseconds=1)
_RETURNED = 0
"""The number of the grant that was given back last, until there is a new one."""

log = structlog.get_logger(component="limiter")


@dataclass(frozen=True, slots=True)
class _Past:
    """The newest grants of a limit, newest first, and the one that was given back last."""

    numbers: Sequence[int]
    given: Sequence[Given]
    returned: Given | None

    def kept_from(self, limit: Limit, number: int) -> int:
        """Return the oldest number that is still needed once a grant has this number."""
        numbers = (number, *self.numbers)
        return numbers[limit.count - 1] if len(numbers) >= limit.count else _RETURNED + 1


class SqlLimiter:
    """The limiter on SQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def acquire(self, limit: Limit, caller: str) -> Grant | Wait:
        """Give leave for one request now, or say until when and why there is none."""

        def work(session: Session) -> Grant | Wait:
            given = self._lock(session, limit.name)
            now = self._database.clock.mark()
            past = _find_past(session, limit)
            wait = self._wait(session, limit, past, now)
            if wait is not None:
                return wait
            number = given + 1
            grant, row = _make_grant(limit, caller, now, number)
            self._give(session, limit, row, past.kept_from(limit, number))
            return grant

        verdict = await self._database.run(work)
        self._log(limit, caller, verdict)
        return verdict

    async def settle(self, grant: Grant) -> None:
        """Say that the request is over, which frees its place in the window sooner."""
        now = self._database.clock.mark()
        row = (grants.c.limit_name == grant.limit) & (grants.c.id == grant.id)
        values = {"settled_at": now.wall, "settled_ticks": now.ticks}
        earlier = grants.c.settled_ticks > now.ticks

        def work(session: Session) -> None:
            session.execute(update(grants).where(row, earlier).values(values))

        await self._database.run(work)

    async def release(self, grant: Grant) -> None:
        """Give back leave for a request that was certainly not sent."""
        ours = grants.c.limit_name == grant.limit
        row = ours & (grants.c.id == grant.id) & (grants.c.number != _RETURNED)

        def work(session: Session) -> None:
            self._lock(session, grant.limit)
            if session.execute(select(grants.c.id).where(row)).first() is None:
                return
            session.execute(delete(grants).where(ours, grants.c.number == _RETURNED))
            session.execute(update(grants).where(row).values(number=_RETURNED))

        await self._database.run(work)

    async def hold(self, name: str, until: datetime, reason: str) -> None:
        """Give no leave before a time, as a site's Retry-After asks."""

        def work(session: Session) -> None:
            self._lock(session, name)
            now = self._database.clock.mark()
            held = _hold(session.execute(select(limits).where(limits.c.name == name)).first())
            if held is not None and held.span - now.elapsed_since(held.since) > until - now.wall:
                return
            values = {
                "held_at": now.wall,
                "held_boot": now.boot,
                "held_ticks": now.ticks,
                "held_for_us": (until - now.wall) // _MICROSECOND,
                "held_reason": one_line(reason),
            }
            session.execute(update(limits).where(limits.c.name == name).values(values))
            if until > now.wall:
                pause = Pause(what="hold", name=name, since=now.wall, until=until, reason=reason)
                begin_pause(session, pause)

        await self._database.run(work)

    async def peek(self, limit: Limit) -> Wait | None:
        """Tell what `acquire` would wait for, without taking anything."""
        now = self._database.clock.mark()
        return await self._database.look(
            lambda session: self._wait(session, limit, _find_past(session, limit), now)
        )

    async def used(self, limit: Limit) -> int:
        """Count the grants that the site may still hold against us, up to the limit's count."""
        now = self._database.clock.mark()
        past = await self._database.look(lambda session: _find_past(session, limit))
        return count_used(limit, past.given, now)

    def _lock(self, session: Session, name: str) -> int:
        upsert = self._database.dialect.upsert(limits, {"name": name, "given": 0}, {"name": name})
        session.execute(upsert)
        query = select(limits.c.given).where(limits.c.name == name).with_for_update()
        given: int = session.execute(query).scalar_one()
        return given

    def _wait(self, session: Session, limit: Limit, past: _Past, now: Mark) -> Wait | None:
        held = select(limits).where(limits.c.name == limit.name)
        hold = _hold(session.execute(held).first())
        span, reason = wait_for(limit, past.given, hold, now, past.returned)
        if span <= NOTHING:
            return None
        return Wait(self._database.clock.now() + span, reason, f"limit {limit.name}")

    def _give(self, session: Session, limit: Limit, row: Mapping[str, Any], kept_from: int) -> None:
        past = (grants.c.limit_name == limit.name) & (grants.c.number < kept_from)
        number = row["number"]
        statements: Sequence[Executable] = (
            insert(grants).values(row),
            update(limits).where(limits.c.name == limit.name).values(given=number),
            delete(grants).where(past),
        )
        for statement in statements:
            session.execute(statement)

    def _log(self, limit: Limit, caller: str, verdict: Grant | Wait) -> None:
        now = self._database.clock.now()
        following = verdict.until if isinstance(verdict, Wait) else now + limit.spacing
        log.info(
            "limit",
            what=limit.name,
            caller=caller,
            result="wait" if isinstance(verdict, Wait) else "granted",
            now=round(now.timestamp()),
            next=round(following.timestamp()),
            wait=round((following - now).total_seconds()) if isinstance(verdict, Wait) else 0,
            reason=verdict.reason if isinstance(verdict, Wait) else "free",
        )


def _make_grant(
    limit: Limit, caller: str, now: Mark, number: int
) -> tuple[Grant, Mapping[str, Any]]:
    grant = Grant(limit.name, new_id(), now, START_FOR)
    row = {
        "limit_name": limit.name,
        "number": number,
        "id": grant.id,
        "caller": caller,
        "boot": now.boot,
        "granted_at": now.wall,
        "granted_ticks": now.ticks,
        "settled_at": now.wall + VALID_FOR,
        "settled_ticks": now.ticks + VALID_FOR.total_seconds(),
    }
    return grant, row


def _find_past(session: Session, limit: Limit) -> _Past:
    newest = select(grants).where(grants.c.limit_name == limit.name)
    # The one that was given back comes first, then those that count, newest first.
    order = ((grants.c.number == _RETURNED).desc(), grants.c.number.desc())
    rows = session.execute(newest.order_by(*order).limit(limit.count + 1)).all()
    returned = [_given(row) for row in rows if row.number == _RETURNED]
    counted = [row for row in rows if row.number != _RETURNED][: limit.count]
    return _Past(
        numbers=[row.number for row in counted],
        given=[_given(row) for row in counted],
        returned=returned[0] if returned else None,
    )


def _given(row: Row[Any]) -> Given:
    return Given(
        granted=Mark(row.granted_at, row.boot, row.granted_ticks),
        settled=Mark(row.settled_at, row.boot, row.settled_ticks),
    )


def _hold(row: Row[Any] | None) -> Hold | None:
    if row is None or row.held_at is None:
        return None
    since = Mark(row.held_at, row.held_boot, row.held_ticks)
    return Hold(since, timedelta(microseconds=row.held_for_us), row.held_reason)
