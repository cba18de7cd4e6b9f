"""How a put in one process wakes a sleeper in another: Redis calls, nothing while idle."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from redis.asyncio.client import PubSub

from mimawari.errors import StoreDown
from mimawari.kernel.signal import JOBS, OUTBOX, SCHEDULE, Bell
from mimawari.store.redis.link import ANSWER_FOR, RedisLink
from mimawari.store.sql.engine import Database
from mimawari.store.sql.signal import SqlSignal

if TYPE_CHECKING:
    from mimawari.store.redis.relay import RedisRelay

TOLD_BY_REDIS = (JOBS, SCHEDULE)
QUIET_FOR = timedelta(seconds=5)
"""How long no call may come before the connection is tried: a dead one is as silent."""


class RedisSignal(SqlSignal):
    """Rings for jobs and targets once they are in Redis, and for the rest as SQL does."""

    relay: "RedisRelay"

    def __init__(self, database: Database, link: RedisLink) -> None:
        super().__init__(database)
        self._link = link
        self._second_ear: asyncio.Task[None] | None = None

    def bell(self, *topics: str) -> Bell:
        """Return a bell, and listen from the first one on."""
        if self._second_ear is None:
            self._second_ear = asyncio.create_task(self._keep_hearing(self._hear_calls_of_redis))
            self.relay.start()
        return super().bell(*topics)

    def heard(self, topic: str) -> None:
        """Ring for events; what else SQL tells of is on its way to Redis, or was left behind."""
        if topic == OUTBOX:
            self.tell(topic)
        else:
            self.relay.stir()

    async def close(self) -> None:
        """Stop listening."""
        if self._second_ear is not None:
            self._is_closing = True
            self._second_ear.cancel()
            with suppress(asyncio.CancelledError):
                await self._second_ear
        await super().close()

    async def _hear_calls_of_redis(self) -> None:
        async with self._link.listen() as calls:
            await self._link.asked(calls.subscribe(self._link.channel))
            while not self._is_closing:
                call = await self._hear_one(calls)
                if call["type"] == "subscribe":
                    # Something may have been put while nobody listened.
                    self._tell_jobs_and_targets()
                elif call["type"] == "message":
                    topic, _, sender = call["data"].decode().partition(" ")
                    if sender != self.name:
                        self.tell(topic)

    async def _hear_one(self, calls: PubSub) -> Mapping[str, Any]:
        """Return the next message; raise StoreDown where the connection has died in silence."""
        seconds = QUIET_FOR.total_seconds()
        call = await self._link.asked(calls.get_message(timeout=seconds))
        if call is None:
            await self._link.asked(calls.ping())
            seconds = ANSWER_FOR.total_seconds()
            call = await self._link.asked(calls.get_message(timeout=seconds))
        if call is None:
            raise StoreDown("Redis does not answer on the connection that hears calls")
        heard: Mapping[str, Any] = call
        return heard

    def _tell_jobs_and_targets(self) -> None:
        for topic in TOLD_BY_REDIS:
            self.tell(topic)
