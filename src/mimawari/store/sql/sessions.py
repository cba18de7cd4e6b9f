"""Sessions of the pages and one-time login links; secrets are stored as hashes."""

from collections.abc import Collection, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from sqlalchemy import Row, delete, insert, select, update

from mimawari.kernel.sessions import Session
from mimawari.store.sql import engine
from mimawari.store.sql.tables import login_links, sessions


class SqlSessions:
    """The sessions on SQL."""

    def __init__(self, database: engine.Database) -> None:
        self._database = database

    async def begin(self, session: Session, secret: str) -> None:
        """Keep a session under the hash of its secret."""
        row = {**asdict(session), "secret_hash": _hash(secret)}
        await self._database.run(lambda opened: opened.execute(insert(sessions).values(row)))

    async def find(self, secret: str) -> Session | None:
        """Find the session of a secret, by its hash."""
        query = select(sessions).where(sessions.c.secret_hash == _hash(secret))
        async with self._database.read() as connection:
            row = (await connection.execute(query)).first()
        return None if row is None else _make(row)

    async def touch(self, session_id: str, now: datetime, address: str) -> None:
        """Record the time and address of a session's last request."""
        seen = update(sessions).where(sessions.c.id == session_id)
        seen = seen.values(seen_at=now, address=address)
        await self._database.run(lambda opened: opened.execute(seen))

    async def list(self) -> Sequence[Session]:
        """List the sessions, the most recently used first."""
        query = select(sessions).order_by(sessions.c.seen_at.desc(), sessions.c.id.desc())
        async with self._database.read() as connection:
            return [_make(row) for row in await connection.execute(query)]

    async def end(self, session_id: str) -> bool:
        """End a session; return whether it existed."""
        ended = delete(sessions).where(sessions.c.id == session_id)
        return await self._database.run(lambda opened: opened.execute(ended).rowcount) == 1

    async def end_without(self, keys: Collection[str]) -> int:
        """End the sessions of all keys except these; return how many."""
        ended = delete(sessions).where(sessions.c.key.not_in(keys))
        return await self._database.run(lambda opened: opened.execute(ended).rowcount)

    async def offer(self, secret: str, good_for: timedelta) -> None:
        """Keep a link that logs in once, by the hash of its secret."""
        row = {"secret_hash": _hash(secret), "expires_at": self._database.clock.now() + good_for}
        await self._database.run(lambda opened: opened.execute(insert(login_links).values(row)))

    async def redeem(self, secret: str) -> bool:
        """Use up a link; return True to exactly one caller, if it has not expired."""
        good = login_links.c.expires_at > self._database.clock.now()
        used = delete(login_links).where(login_links.c.secret_hash == _hash(secret), good)
        return await self._database.run(lambda opened: opened.execute(used).rowcount) == 1

    async def purge(self, begun_before: datetime) -> int:
        """Delete sessions begun before a time and expired links; return how many."""
        old = delete(sessions).where(sessions.c.made_at < begun_before)
        past = delete(login_links).where(login_links.c.expires_at <= self._database.clock.now())

        def work(opened: engine.Session) -> int:
            return opened.execute(old).rowcount + opened.execute(past).rowcount

        return await self._database.run(work)


def _hash(secret: str) -> str:
    # Secrets are long and random, so one round is enough and needs no salt.
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _make(row: Row[Any]) -> Session:
    return Session(
        id=row.id, key=row.key, key_number=row.key_number, made_at=row.made_at,
        seen_at=row.seen_at, address=row.address, agent=row.agent,
    )  # fmt: skip
