"""Catches notifications on a real socket, answers as it is told, and remembers them."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from mimawari.settings import DEFAULTS, Settings


@dataclass(slots=True)
class Catcher:
    """A receiver of what apprise's json:// and others post."""

    port: int = 0
    answers: dict[str, tuple[int, str]] = field(default_factory=dict)
    """What is answered at a path, and with which text or, of a redirection, to where."""
    caught: list[tuple[str, Any]] = field(default_factory=list)
    hangs: set[str] = field(default_factory=set)

    def url(self, path: str = "hook", scheme: str = "json") -> str:
        """Return the address of a path for apprise."""
        return f"{scheme}://127.0.0.1:{self.port}/{path}"

    @property
    def settings(self) -> Settings:
        """Settings that open the guard for this catcher alone."""
        return DEFAULTS.model_copy(update={"allow_hosts": (f"127.0.0.1:{self.port}",)})

    def bodies(self, path: str = "hook") -> list[str]:
        """List what was caught at a path."""
        return [body["message"] for at, body in self.caught if at == f"/{path}"]

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take one request and close the connection."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line, *rest = head.split("\r\n")
            headers = dict(one.lower().split(": ", 1) for one in rest if ": " in one)
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            path = line.split(" ")[1]
            self.caught.append((path, json.loads(body)))
            if path in self.hangs:
                await asyncio.Event().wait()
            status, text = self.answers.get(path, (200, "ありがとう"))
            where = f"Location: {text}\r\n" if status in range(300, 400) else ""
            told = text.encode()
            reply = (
                f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{where}"
                f"Content-Length: {len(told)}\r\nConnection: close\r\n\r\n"
            )
            writer.write(reply.encode() + told)
            await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def open_catcher() -> AsyncIterator[Catcher]:
    """Open a catcher on a free port."""
    catcher = Catcher()
    server = await asyncio.start_server(catcher.answer, "127.0.0.1", 0)
    catcher.port = server.sockets[0].getsockname()[1]
    try:
        yield catcher
    finally:
        server.close()
