"""The cache: values with a TTL, dropped by prefix."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from mimawari.columns import to_micros
from mimawari.kernel.values import Note
from mimawari.store.redis import names
from mimawari.store.redis.link import RedisLink
from mimawari.store.sql.engine import Database
from mimawari.text import clean

TIMES = f"{names.PREFIX}cache-times"
NAMES = f"{names.PREFIX}cache-names"
_MILLISECOND = timedelta(milliseconds=1)


class RedisCache:
    """The cache in Redis alone: a value may be forgotten at any time."""

    def __init__(self, database: Database, link: RedisLink) -> None:
        self._database = database
        self._link = link

    async def get(self, key: str) -> bytes | None:
        """Return a value that has not run out."""
        name = clean(key)
        client = self._link.client
        async with client.pipeline(transaction=True) as both:
            both.zscore(TIMES, name)
            both.get(names.value_of(name))
            until, value = await self._link.asked(both.execute())
        # Our clock may run otherwise than the server's.
        if until is None or until <= to_micros(self._database.clock.now()):
            return None
        return bytes(value) if value is not None else None

    async def set(self, key: str, value: bytes, ttl: timedelta) -> None:
        """Keep a value for a while."""
        name = clean(key)
        until = to_micros(self._database.clock.now() + ttl)
        keys = (names.value_of(name), TIMES, NAMES)
        await self._link.run("keep", name, value, until, -(-ttl // _MILLISECOND), keys=keys)

    async def show(self, notes: Sequence[Note]) -> None:
        """Show records as hashes, for a while."""
        if not notes:
            return
        async with self._link.client.pipeline(transaction=False) as shown:
            for note in notes:
                key = names.value_of(clean(note.key))
                fields: dict[Any, Any] = dict(note.fields)
                shown.hset(key, mapping=fields)
                shown.pexpire(key, note.ttl)
            await self._link.asked(shown.execute())

    async def drop(self, prefix: str) -> int:
        """Forget every value whose key begins so; say how many there were."""
        return await self._forget("prefix", clean(prefix))

    async def purge(self, now: datetime) -> int:
        """Forget what has run out; say how many."""
        return await self._forget("until", to_micros(now))

    async def _forget(self, by: str, what: str | int) -> int:
        places = (names.PREFIX, f"{names.PREFIX}cache:")
        return int(await self._link.run("forget", by, what, *places, keys=(TIMES, NAMES)))
