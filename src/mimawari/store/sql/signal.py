"""How a put in one process wakes a sleeper in another, and what listening costs.

PostgreSQL calls (LISTEN): nothing while idle. SQLite: the write-ahead log's time is looked at
four times a second, no statement. MariaDB: one statement a second on a table of three rows.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog
from sqlalchemy import select

from mimawari.errors import StoreDown
from mimawari.ids import new_id
from mimawari.kernel.clock import RealClock
from mimawari.kernel.signal import TOPICS, Bell, LocalSignal
from mimawari.store.sql import tables as t

if TYPE_CHECKING:
    from mimawari.store.sql.engine import Database

LOOK = timedelta(milliseconds=250)
POLL = timedelta(seconds=1.05)
AGAIN = timedelta(seconds=1)

log = structlog.get_logger(component="signal")


class SqlSignal(LocalSignal):
    """Rings the bells of this process for what other processes put."""

    def __init__(self, database: "Database") -> None:
        super().__init__()
        self.name = new_id()
        self._database = database
        # How often the outside is looked at is a matter of real time on any clock.
        self._clock = RealClock()
        self._ear: asyncio.Task[None] | None = None
        self._seen = (0, 0)
        self._is_closing = False

    def bell(self, *topics: str) -> Bell:
        """Return a bell, and listen from the first one on."""
        if self._ear is None:
            self._seen = self._stamp()
            self._ear = asyncio.create_task(self._listen())
        return super().bell(*topics)

    async def close(self) -> None:
        """Stop listening."""
        # A driver may swallow the cancelling, so the ears are told as well.
        self._is_closing = True
        if self._ear is not None:
            self._ear.cancel()
            with suppress(asyncio.CancelledError):
                await self._ear

    async def _listen(self) -> None:
        hear = {"file": self._watch_file, "listen": self._hear_calls, "poll": self._poll}
        await self._keep_hearing(hear[self._database.dialect.ear])

    async def _keep_hearing(self, hear: Callable[[], Awaitable[None]]) -> None:
        """Hear until this is closed, whatever goes wrong meanwhile."""
        while not self._is_closing:
            try:
                await hear()
            except (StoreDown, OSError):
                pass
            except Exception:
                # Who gives up here sleeps through every call from now on.
                log.exception("listening failed", result="retry", next=str(AGAIN))
            await self._clock.sleep(AGAIN)

    def heard(self, topic: str) -> None:
        """Do what is to be done when another process has put something."""
        self.tell(topic)

    def _tell_all(self) -> None:
        for topic in TOPICS:
            self.heard(topic)

    async def _watch_file(self) -> None:
        while True:
            await self._clock.sleep(LOOK)
            stamp = self._stamp()
            if stamp != self._seen:
                self._seen = stamp
                self._tell_all()

    def _stamp(self) -> tuple[int, int]:
        log = Path(f"{self._database.url.database}-wal")
        try:
            status = log.stat()
        except FileNotFoundError:
            return (0, 0)
        return (status.st_mtime_ns, status.st_size)

    async def _poll(self) -> None:
        seen: dict[str, int] = {}
        while True:
            async with self._database.read() as connection:
                rows = await connection.execute(select(t.bells.c.topic, t.bells.c.rung))
                rung = {row.topic: row.rung for row in rows}
            for topic in TOPICS:
                if rung.get(topic) != seen.get(topic):
                    self.heard(topic)
            seen = rung
            await self._clock.sleep(POLL)

    async def _hear_calls(self) -> None:
        closed = asyncio.Event()

        def called(_connection: object, _pid: int, _channel: str, payload: str) -> None:
            topic, _, sender = payload.partition(" ")
            if sender != self.name:
                self.heard(topic)

        async with self._database.held() as opened:
            driver: Any = await opened.run(lambda s: s.connection.connection.driver_connection)
            driver.add_termination_listener(lambda _: closed.set())
            await driver.add_listener("mimawari", called)
            # Something may have been put while nobody listened.
            self._tell_all()
            await closed.wait()
