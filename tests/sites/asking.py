"""A small real server with answers laid out beforehand, and the plainest way to ask it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import ParamSpec, TypeVar

import httpx2

from mimawari.net.page import Known, Page, Site
from mimawari.net.verdict import judge, parse_retry_after

P = ParamSpec("P")
T = TypeVar("T")
ASKED_AT = datetime(2026, 11, 1, tzinfo=UTC)


@dataclass
class Answers:
    """What a server answers by path, and what it was asked."""

    url: str = ""
    replies: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def put(self, path: str, body: bytes, *, status: int = 200, **headers: str) -> None:
        """Lay out the answer for a path."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.replies[path] = (status, named, body)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request and hang up."""
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        target = first.split(" ")[1]
        self.asked.append(target)
        self.headers.append(
            {name.lower(): text for name, _, text in (line.partition(": ") for line in lines)}
        )
        status, headers, body = self.replies.get(target.partition("?")[0], (404, {}, b""))
        named = {"Content-Length": str(len(body)), "Connection": "close"} | headers
        head = "".join(f"{name}: {text}\r\n" for name, text in named.items())
        writer.write(f"HTTP/1.1 {status} OK\r\n{head}\r\n".encode() + body)
        await writer.drain()
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def serve_answers() -> AsyncIterator[Answers]:
    """Serve answers on a free port."""
    answers = Answers()
    server = await asyncio.start_server(answers.answer, "127.0.0.1", 0)
    async with server:
        answers.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield answers


class PlainHttp:
    """Asks without limits, and judges as every fetcher does."""

    async def fetch(
        self,
        site: Site,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        known: Known | None = None,
    ) -> Page:
        """Return the page, or raise what its verdict says."""
        assert known is None
        async with httpx2.AsyncClient(timeout=60) as client:
            reply = await client.request(method, url, headers=headers, content=body)
        page = Page(
            url=url,
            status=reply.status_code,
            headers={name.lower(): text for name, text in reply.headers.items()},
            body=reply.content,
            fetched_at=ASKED_AT,
        )
        assert len(page.body) <= site.most_bytes
        verdict = (site.judge(page) if site.judge else None) or judge(page)
        until = parse_retry_after(page.headers.get("retry-after"), ASKED_AT)
        error = replace(verdict, until=verdict.until or until).error(site.name, page.body)
        if error is not None:
            raise error
        return replace(page, outcome=verdict.outcome)

    async def read(self, parse: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a parser aside, as far as a test needs it."""
        return await asyncio.to_thread(parse, *args, **kwargs)
