"""The schedule: Redis tells whose time has come, and SQL, which has the targets, what it is."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import select

from mimawari.columns import to_micros, to_time
from mimawari.kernel.values import Entry
from mimawari.store.redis import names
from mimawari.store.redis.link import RedisLink
from mimawari.store.redis.relay import RedisRelay
from mimawari.store.sql.engine import Database
from mimawari.store.sql.queue import SqlQueue
from mimawari.store.sql.schedule import SqlSchedule, entry_of
from mimawari.store.sql.tables import schedule


class RedisSchedule(SqlSchedule):
    """The schedule on SQL, with the watching of the time left to Redis."""

    def __init__(
        self, database: Database, queue: SqlQueue, link: RedisLink, relay: RedisRelay
    ) -> None:
        super().__init__(database, queue)
        self._link = link
        self._relay = relay

    async def due(self, now: datetime, most: int, without: Collection[str] = ()) -> list[Entry]:
        """List the entries whose time has come, earliest first, of all but some kinds."""
        while members := await self._due_in_redis(now, most, without):
            entries = await self._find_all(members)
            ours = [each for each in entries if each.next_at <= now and each.kind not in without]
            if len(ours) < len(members):
                await self._relay.correct_times(members)
            if ours:
                return sorted(ours, key=lambda entry: entry.next_at)[:most]
        return []

    async def _due_in_redis(self, now: datetime, most: int, without: Collection[str]) -> list[str]:
        until = f"{to_micros(now) / 1e6:.6f}"
        left_out = map(names.schedule_of, without)
        found = await self._link.run("due", names.SCHEDULES, until, most, *left_out)
        pairs = zip(found[::2], found[1::2], strict=True)
        return [names.member_from(key.decode(), name.decode()) for key, name in pairs]

    async def next_at(self, without: Collection[str] = ()) -> datetime | None:
        """Tell the earliest time on the schedule, of all but some kinds."""
        left_out = map(names.schedule_of, without)
        seconds = await self._link.run("first", names.SCHEDULES, *left_out)
        if seconds is None:
            # Redis may have been emptied a moment ago.
            return await super().next_at(without)
        return to_time(round(float(seconds) * 1e6))

    async def _find_all(self, members: list[str]) -> list[Entry]:
        query = select(schedule).where(schedule.c.member.in_(members))
        async with self._database.read() as connection:
            return [entry_of(row) for row in await connection.execute(query)]
