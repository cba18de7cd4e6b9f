"""How Redis is reached; the one place where its errors become ours."""

from collections.abc import Awaitable
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.commands.core import AsyncScript
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ConnectionError,  # noqa: A004 - Redis's own
    MasterDownError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TimeoutError,  # noqa: A004 - Redis's own
)

from mimawari.errors import StoreDown
from mimawari.text import one_line

OLDEST = 7
LUA = Path(__file__).parent / "lua"
ANSWER_FOR = timedelta(seconds=2)
"""Who does not answer for so long is taken to be away."""

_DOWN = (
    AuthenticationError,
    BusyLoadingError,
    ConnectionError,
    MasterDownError,
    OutOfMemoryError,
    ReadOnlyError,
    TimeoutError,
    OSError,
)
_REFUSALS = ("OOM", "READONLY", "MISCONF", "LOADING", "MASTERDOWN", "NOREPLICAS", "NOAUTH", "BUSY")
"""How answers begin by which a server says that it takes no orders now."""

T = TypeVar("T")


class Server(NamedTuple):
    """A Redis server: its version, and what it drops when its memory is full, if it is bounded."""

    version: str
    drops: str

    @property
    def advice(self) -> str:
        """What to do about it, if anything."""
        if int(self.version.partition(".")[0]) < OLDEST:
            return f"install Redis {OLDEST} or newer: a script must happen whole or not at all"
        if self.drops.startswith("allkeys"):
            return "set its maxmemory-policy to noeviction or volatile-lru: this one drops queues"
        return ""


class RedisLink:
    """The way to one Redis database, and our scripts on it."""

    def __init__(self, url: str) -> None:
        self.url = url
        seconds = ANSWER_FOR.total_seconds()
        self.client = Redis.from_url(
            url,
            socket_timeout=seconds,
            socket_connect_timeout=seconds,
            # Whoever asks decides whether to ask again: a claim must not be made twice.
            retry=Retry(NoBackoff(), 0),
        )
        number = self.client.connection_pool.connection_kwargs.get("db") or 0
        # Channels are shared by all databases of a server.
        self.channel = f"animetop:wake:{number}"
        shared = (LUA / "_places.lua").read_text(encoding="utf-8")
        self._scripts = {
            path.stem: self._script(path.read_text(encoding="utf-8"), shared)
            for path in sorted(LUA.glob("[a-z]*.lua"))
        }

    def _script(self, text: str, shared: str) -> AsyncScript:
        first, rest = text.split("\n", 1)
        script: AsyncScript = self.client.register_script(f"{first}\n{shared}\n{rest}")
        return script

    async def run(self, name: str, *args: str | int | bytes, keys: tuple[str, ...] = ()) -> Any:
        """Run one of our scripts, which happens whole or not at all."""
        return await self.asked(self._scripts[name](keys=list(keys), args=list(args)))

    async def asked(self, answer: Awaitable[T]) -> T:
        """Wait for an answer, and make its errors ours."""
        try:
            return await answer
        except _DOWN as error:
            raise _down(error) from error
        except ResponseError as error:
            if not str(error).startswith(_REFUSALS):
                raise
            raise _down(error) from error

    async def find_server(self) -> Server:
        """Tell which server this is, and what it does when its memory is full."""
        told = await self.asked(self.client.info())
        full = "" if not told["maxmemory"] else str(told["maxmemory_policy"])
        return Server(str(told["redis_version"]), full)

    def listen(self) -> PubSub:
        """Return a connection that hears calls."""
        return self.client.pubsub()

    async def close(self) -> None:
        """Let go of every connection."""
        await self.client.aclose()


def _down(error: BaseException) -> StoreDown:
    words = one_line(str(error)) or type(error).__name__
    return StoreDown(f"Redis does not answer: {words}")
