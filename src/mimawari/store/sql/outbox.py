"""The outbox: a lane a key, and only the head of a lane is ever on its way."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    and_,
    case,
    delete,
    exists,
    func,
    insert,
    literal,
    select,
    update,
)

from mimawari.columns import Instant
from mimawari.ids import new_id
from mimawari.kernel.signal import OUTBOX
from mimawari.kernel.values import Delivery, Event, NewEvent, Released, Standing
from mimawari.store.sql.arguments import dump, load
from mimawari.store.sql.engine import Database, Session
from mimawari.store.sql.tables import attempts, lanes, outbox
from mimawari.text import one_line

PENDING, DELIVERED, FAILED = "pending", "delivered", "failed"
AGAIN = "again"
MOST_ATTEMPTS = 20
"""How many attempts of an event are kept."""


class SqlOutbox:
    """The outbox on SQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, events: Sequence[NewEvent]) -> None:
        """Accept events for good."""
        await self._database.run(lambda session: self.put_in(session, events))

    def put_in(self, session: Session, events: Sequence[NewEvent]) -> None:
        """Accept events as part of a transaction; their lanes stay locked until its end."""
        now = self._database.clock.now()
        # One order of lanes for all transactions, so that no two wait for each other.
        for event in sorted(events, key=lambda event: event.key):
            seq = self._lengthen(session, event.key, now)
            values = {
                "key": event.key,
                "seq": seq,
                "id": event.id,
                "kind": event.kind,
                "body": dump(event.body),
                "destination": event.destination,
                "state": PENDING,
                "attempts": 0,
                "created_at": now,
            }
            session.execute(insert(outbox).values(values))
        session.tell(OUTBOX)

    def _lengthen(self, session: Session, key: str, now: datetime) -> int:
        new = {
            "key": key,
            "last_seq": 1,
            "head_seq": 1,
            "due_at": now,
            "token": 0,
            "attempts": 0,
        }
        longer = {
            "last_seq": lanes.c.last_seq + 1,
            "due_at": func.coalesce(lanes.c.due_at, literal(now, Instant)),
        }
        session.execute(self._database.dialect.upsert(lanes, new, longer))
        query = select(lanes.c.last_seq).where(lanes.c.key == key)
        seq: int = session.execute(query).scalar_one()
        return seq

    async def take(
        self, now: datetime, most: int, lease_for: timedelta, owner: str | None = None
    ) -> list[Event]:
        """Take the first undelivered event of each key whose time has come, but no suspects."""
        good = (lanes.c.suspect == Standing.GOOD) & (lanes.c.due_at <= now)
        query = select(lanes.c.key).where(good).order_by(lanes.c.due_at).limit(most)
        return await self._take(query, now + lease_for, owner)

    async def has_suspects(self, now: datetime) -> bool:
        """Tell whether events whose time has come are to be taken alone."""
        query = select(lanes.c.key).where(_suspected(now)).limit(1)
        return await self._database.look(lambda session: session.execute(query).first() is not None)

    async def take_suspect(
        self, now: datetime, lease_for: timedelta, owner: str | None = None
    ) -> list[Event]:
        """Take one suspected event whose time has come, if there is any."""
        query = select(lanes.c.key).where(_suspected(now)).order_by(lanes.c.due_at).limit(1)
        return await self._take(query, now + lease_for, owner)

    async def _take(self, due: Select[Any], until: datetime, owner: str | None) -> list[Event]:
        def work(session: Session) -> list[Event]:
            free = due.with_for_update(skip_locked=True)
            keys = [row.key for row in session.execute(free)]
            if not keys:
                return []
            leased = {
                "due_at": until,
                "token": lanes.c.token + 1,
                "attempts": lanes.c.attempts + 1,
                "owner": owner,
            }
            session.execute(update(lanes).where(lanes.c.key.in_(keys)).values(leased))
            return self._heads(session, keys)

        return await self._database.run(work)

    async def release(self, owner: str, *, suspect: bool) -> list[Released]:
        """Give back what a process had in hand that its guard ended, due at once.

        If they are suspect, each is tried once more, alone; one that was alone is set aside.
        """

        def work(session: Session) -> list[Released]:
            held = select(lanes.c.key).where(lanes.c.owner == owner).with_for_update()
            keys = [row.key for row in session.execute(held)]
            if not keys:
                return []
            values: dict[str, Any] = {
                "due_at": self._database.clock.now(), "owner": None, "token": lanes.c.token + 1,
            }  # fmt: skip
            if suspect:
                is_good = lanes.c.suspect == Standing.GOOD
                values["suspect"] = case(
                    (is_good, int(Standing.SUSPECT)), else_=int(Standing.SET_ASIDE)
                )
            session.execute(update(lanes).where(lanes.c.key.in_(keys)).values(values))
            found = self._heads(session, keys)
            session.tell(OUTBOX)
            return [Released(id=one.id, kind=one.kind, standing=one.standing) for one in found]

        return await self._database.run(work)

    def _heads(self, session: Session, keys: Sequence[str]) -> list[Event]:
        head = and_(outbox.c.key == lanes.c.key, outbox.c.seq == lanes.c.head_seq)
        query = (
            select(outbox, lanes.c.token, lanes.c.suspect, lanes.c.attempts.label("attempt"))
            .select_from(lanes.join(outbox, head))
            .where(lanes.c.key.in_(keys))
            .order_by(outbox.c.created_at)
        )
        return [_event(row) for row in session.execute(query)]

    async def settle(self, deliveries: Sequence[Delivery]) -> frozenset[str]:
        """Record how attempts ended and return the ids that counted; a stale token is refused."""

        def work(session: Session) -> frozenset[str]:
            return frozenset([d.id for d in deliveries if self._settle_one(session, d)])

        return await self._database.run(work)

    def _settle_one(self, session: Session, delivery: Delivery) -> bool:
        query = (
            select(lanes)
            .join(outbox, and_(outbox.c.key == lanes.c.key, outbox.c.seq == lanes.c.head_seq))
            .where(outbox.c.id == delivery.id, lanes.c.token == delivery.token)
            .with_for_update()
        )
        lane = session.execute(query).first()
        if lane is None:
            return False
        session.execute(
            update(outbox)
            .where(outbox.c.key == lane.key, outbox.c.seq == lane.head_seq)
            .values(self._event_values(delivery, lane.attempts))
        )
        values = self._lane_values(delivery, lane)
        session.execute(update(lanes).where(lanes.c.key == lane.key).values(values))
        self._keep_attempt(session, delivery, lane.attempts)
        return True

    def _keep_attempt(self, session: Session, delivery: Delivery, number: int) -> None:
        """Keep what there is to be seen of an attempt, and of each event the last few."""
        if delivery.exchange is None and delivery.reason is None:
            return
        row = write_attempt(delivery, number, self._database.clock.now())
        session.execute(insert(attempts).values(row))
        if number > MOST_ATTEMPTS:
            mine = attempts.c.event_id == delivery.id
            old = mine & (attempts.c.number <= number - MOST_ATTEMPTS)
            session.execute(delete(attempts).where(old))

    async def record(self, delivery: Delivery) -> bool:
        """Record a person's own attempt of an event that has ended; say whether it had."""

        def work(session: Session) -> bool:
            mine = outbox.c.id == delivery.id
            query = select(outbox.c.state, outbox.c.attempts).where(mine).with_for_update()
            row = session.execute(query).first()
            if row is None or row.state == PENDING:
                return False
            number = row.attempts + 1
            values: dict[str, Any] = {"attempts": number}
            if delivery.delivered:
                values |= {"state": DELIVERED, "reason": None}
            session.execute(update(outbox).where(mine).values(values))
            self._keep_attempt(session, delivery, number)
            return True

        return await self._database.run(work)

    def _event_values(self, delivery: Delivery, attempts: int) -> dict[str, Any]:
        reason = None if delivery.reason is None else one_line(delivery.reason)
        values: dict[str, Any] = {"attempts": attempts, "reason": reason}
        if delivery.retry_at is None:
            state = DELIVERED if delivery.delivered else FAILED
            values |= {"state": state, "ended_at": self._database.clock.now()}
        return values

    def _lane_values(self, delivery: Delivery, lane: Row[Any]) -> dict[str, Any]:
        # The token moves on, so that an attempt is recorded once.
        token = lane.token + 1
        free = {"owner": None, "token": token}
        # What is set aside stays so, also if that cannot be recorded at once.
        is_aside = lane.suspect == Standing.SET_ASIDE
        if delivery.retry_at is not None:
            return {**free, "due_at": delivery.retry_at, **({} if is_aside else {"suspect": 0})}
        more = lane.head_seq < lane.last_seq
        due_at = self._database.clock.now() if more else None
        moved = {"head_seq": lane.head_seq + 1, "due_at": due_at, "attempts": 0}
        return {**free, **moved, "suspect": 0}

    async def next_at(self) -> datetime | None:
        """Tell when the next event may be taken."""
        async with self._database.read() as connection:
            earliest: datetime | None = (
                await connection.execute(select(func.min(lanes.c.due_at)))
            ).scalar()
        return earliest

    async def counts(self) -> Mapping[str, int]:
        """Count the events by state: pending, delivered, failed."""
        query = select(outbox.c.state, func.count().label("n")).group_by(outbox.c.state)
        async with self._database.read() as connection:
            found = {row.state: row.n for row in await connection.execute(query)}
        return {state: found.get(state, 0) for state in (PENDING, DELIVERED, FAILED)}

    async def purge(self, before: datetime) -> int:
        """Forget events that ended before a time; say how many."""

        def work(session: Session) -> int:
            gone = 0
            for state in (DELIVERED, FAILED):
                old = (outbox.c.state == state) & (outbox.c.ended_at < before)
                gone += session.execute(delete(outbox).where(old)).rowcount
            ownerless = ~exists().where(outbox.c.id == attempts.c.event_id)
            session.execute(delete(attempts).where(attempts.c.at < before, ownerless))
            empty = lanes.c.due_at.is_(None) & ~exists().where(outbox.c.key == lanes.c.key)
            session.execute(delete(lanes).where(empty))
            return gone

        return await self._database.run(work)


def _suspected(now: datetime) -> ColumnElement[bool]:
    return (lanes.c.suspect > Standing.GOOD) & (lanes.c.due_at <= now)


def write_attempt(delivery: Delivery, number: int, now: datetime) -> dict[str, Any]:
    """Write an attempt as a row."""
    ended = DELIVERED if delivery.delivered else FAILED
    row: dict[str, Any] = {
        "id": new_id(),
        "event_id": delivery.id,
        "number": number,
        "at": now,
        "result": ended if delivery.retry_at is None else AGAIN,
        "reason": None if delivery.reason is None else one_line(delivery.reason),
    }
    if (said := delivery.exchange) is None:
        return row
    took = None if said.took_for is None else said.took_for // timedelta(microseconds=1)
    request = {"address": said.address, "headers": dict(said.headers), "body": said.body}
    told = {"request": dump(request), "status": said.status, "answer": said.answer}
    return {**row, **told, "took_us": took}


def _event(row: Row[Any]) -> Event:
    body, _ = load(row.body)
    return Event(
        id=row.id, key=row.key, kind=row.kind, body=body, destination=row.destination,
        attempt=row.attempt, token=row.token, created_at=row.created_at,
        standing=Standing(row.suspect),
    )  # fmt: skip
