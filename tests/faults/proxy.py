"""A TCP proxy that loses replies: the COMMIT (or another word) arrives, its answer does not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Proxy:
    """Passes bytes on, but for the replies to some words while it is armed."""

    def __init__(self, host: str, port: int, word: bytes = b"COMMIT") -> None:
        self._target = (host, port)
        self._word = word
        self._lines = self._dead = 0
        self._armed = 0
        self._every = 1
        self._passed = 0
        self.lost = 0
        self.address = ("", 0)

    def arm(self, times: int, *, every: int = 1) -> None:
        """Lose so many replies: that to each such word, or to one in every so many."""
        self._armed = times
        self._every = every

    def cut_silently(self) -> None:
        """Swallow all that goes over today's lines, which stay open; new ones work."""
        self._dead = self._lines

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Join one client to the server."""
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.close()
            return
        losing = asyncio.Event()
        self._lines += 1
        line = self._lines
        ways = {
            asyncio.create_task(self._forth(line, reader, far_writer, losing)),
            asyncio.create_task(self._back(line, far_reader, writer, losing)),
        }
        # Whichever way ends first, and also at the end of the test, both are closed.
        with suppress(asyncio.CancelledError):
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        far_writer.close()
        writer.close()

    async def _forth(
        self,
        line: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        losing: asyncio.Event,
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if self._armed and self._word in data:
                    self._passed += 1
                    if self._passed % self._every == 0:
                        self._armed -= 1
                        losing.set()
                if line <= self._dead:
                    continue
                writer.write(data)
                await writer.drain()

    async def _back(
        self,
        line: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        losing: asyncio.Event,
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if losing.is_set():
                    # The server has done it, and nobody will ever hear of it.
                    self.lost += 1
                    return
                if line <= self._dead:
                    continue
                writer.write(data)
                await writer.drain()


@asynccontextmanager
async def lossy(host: str, port: int, word: bytes = b"COMMIT") -> AsyncIterator[Proxy]:
    """Run a proxy before a server."""
    proxy = Proxy(host, port, word)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.address = server.sockets[0].getsockname()
    try:
        yield proxy
    finally:
        server.close()
