"""All ports on one SQL database, with Redis to find work, watch the time, wake and cache."""

from mimawari.kernel.ports import Clock
from mimawari.store.redis import names
from mimawari.store.redis.cache import RedisCache
from mimawari.store.redis.foreign import ForeignWork
from mimawari.store.redis.link import RedisLink
from mimawari.store.redis.mirror import Mirror
from mimawari.store.redis.queue import RedisQueue
from mimawari.store.redis.relay import RedisRelay
from mimawari.store.redis.schedule import RedisSchedule
from mimawari.store.redis.signal import RedisSignal
from mimawari.store.sql import SqlStore
from mimawari.store.sql.commit import SqlCommit

PING_FOR_MS = 10_000


class RedisStore(SqlStore):
    """The kernel's ports on SQL and Redis."""

    def __init__(self, url: str, link: RedisLink, clock: Clock) -> None:
        super().__init__(url, clock)
        self.link = link
        database = self.database
        signal = RedisSignal(database, self.link)
        mirror = Mirror(self.link, database, signal.name)
        self.foreign = ForeignWork(database, self.link, self.queue)
        self.relay = RedisRelay(database, self.link, mirror, self.foreign)
        database.relay = self.relay
        self.signal = database.signal = signal
        signal.relay = self.relay
        self.queue = RedisQueue(database, self.link, self.relay)
        self.schedule = RedisSchedule(database, self.queue, self.link, self.relay)
        self.cache = RedisCache(database, self.link)
        self._commit = SqlCommit(database, self.queue, self.schedule, self.cursor, self.outbox)

    async def ping(self) -> None:
        """Raise StoreDown unless the database answers, and Redis takes orders."""
        await super().ping()
        await self.link.asked(self.link.client.set(f"{names.PREFIX}ping", 1, px=PING_FOR_MS))

    async def close(self) -> None:
        """Let go of every connection."""
        await self.relay.close()
        await super().close()
        await self.link.close()
