"""What goes wrong by order: each mode's answer to a request, in real time where time matters."""

import asyncio
import json
import re
import socket
import struct
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import format_datetime
from html import escape
from pathlib import Path
from string import Template
from types import MappingProxyType
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from mimawari.sim.chance import Chance
from mimawari.sim.orders import Order
from mimawari.sim.part import Part

TEMPLATES = Path(__file__).parent / "templates"
DRIP_S = 0.5
MIB = 1024 * 1024
LOOK = "-v2"
NO_BODY = frozenset({204, 304})
HTML = "text/html; charset=utf-8"
_NAMES = re.compile(r"""\b(data-testid|class)=(\\?["'])(.*?)\2""")
_JAPANESE = re.compile(rb"(?:[\xe3-\xe9][\x80-\xbf]{2})+")
_JUNK = {"nul": b"\x00", "surrogates": b"\xed\xa0\x80", "escapes": rb"\u0000\ud800"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to a part, and how the part would answer if nothing went wrong."""

    request: Request
    part: Part
    now: datetime
    chance: Chance

    async def truly(self) -> Response:
        """Let the part answer."""
        return await self.part.answer(self.request)


async def answer_by(order: Order, asked: Asked) -> Response:
    """Answer a request as an order says."""
    return await ANSWERS[order.do](order.how, asked)


def change_layout(text: str) -> str:
    """Return a page as it looks after a redesign: other classes and other test ids."""

    def renamed(match: re.Match[str]) -> str:
        name, quote, values = match.groups()
        changed = " ".join(value + LOOK for value in values.split())
        return f"{name}={quote}{changed}{quote}"

    return _NAMES.sub(renamed, text)


def rename_keys(value: Any) -> Any:
    """Return JSON as it looks after a redesign: every key has another name."""
    if isinstance(value, dict):
        return {f"{name}V2": rename_keys(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [rename_keys(inner) for inner in value]
    return value


def read_template(name: str) -> Template:
    """Read one of the world's own pages."""
    return Template((TEMPLATES / name).read_text(encoding="utf-8"))


class Cut(Response):
    """No answer, or the start of one; then the connection is cut."""

    def __init__(self, start: Response | None = None, length: int = 0) -> None:
        super().__init__(status_code=start.status_code if start else 200)
        self.start = start
        self._length = length

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what there is to send, and cut the connection under the server's feet."""
        del scope
        if self.start is not None:
            kept = [pair for pair in self.start.raw_headers if pair[0] != b"content-length"]
            headers = [*kept, (b"content-length", str(self._length).encode())]
            status = self.start.status_code
            await send({"type": "http.response.start", "status": status, "headers": headers})
            body = bytes(self.start.body)
            await send({"type": "http.response.body", "body": body, "more_body": True})
        transport = getattr(getattr(send, "__self__", None), "transport", None)
        if transport is None:
            raise ConnectionResetError("the simulated site cut the connection")
        if self.start is not None:
            transport.close()
        else:
            # With nothing to linger for, closing sends a reset.
            taken = transport.get_extra_info("socket")
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            transport.abort()
        await _disconnected(receive)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _blocked(how: Mapping[str, Any], asked: Asked) -> Response:
    del how
    return asked.part.refusal()


async def _challenge(how: Mapping[str, Any], asked: Asked) -> Response:
    code, url = how["code"], asked.request.url
    page = read_template("challenge.html").substitute(
        kind={403: "managed", 503: "jsch"}[code],
        ray=f"{asked.chance.getrandbits(64):016x}",
        host=escape(url.hostname or "localhost"),
        path=escape(url.path),
    )
    headers = {"server": "cloudflare", "cf-mitigated": "challenge", "cache-control": "no-store"}
    return HTMLResponse(page, code, headers)


async def _status(how: Mapping[str, Any], asked: Asked) -> Response:
    del asked
    body = "" if how["code"] in NO_BODY else how["body"]
    return Response(body, how["code"], media_type=how["type"])


async def _rate_limited(how: Mapping[str, Any], asked: Asked) -> Response:
    after = str(how["retry_after"])
    if how["date"]:
        after = format_datetime(asked.now + timedelta(seconds=how["retry_after"]), usegmt=True)
    return Response("Too Many Requests", 429, {"retry-after": after}, "text/plain")


async def _gone(how: Mapping[str, Any], asked: Asked) -> Response:
    del how, asked
    return HTMLResponse("<h1>404 Not Found</h1>", 404)


async def _slow(how: Mapping[str, Any], asked: Asked) -> Response:
    # The body is read first, or waiting for the other side to leave would swallow it.
    await asked.request.body()
    try:
        async with asyncio.timeout(how["delay_s"]):
            await _disconnected(asked.request.receive)
    except TimeoutError:
        return await asked.truly()
    return Response(status_code=499)


async def _drip(how: Mapping[str, Any], asked: Asked) -> Response:
    del how, asked

    async def drops() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(DRIP_S)

    return StreamingResponse(drops(), media_type=HTML)


async def _endless(how: Mapping[str, Any], asked: Asked) -> Response:
    del how, asked

    async def lines() -> AsyncIterator[bytes]:
        while True:
            yield b"<p>and so on</p>\n" * 4096
            # The server may take all we give; others want their turn.
            await asyncio.sleep(0)

    return StreamingResponse(lines(), media_type=HTML)


async def _bomb(how: Mapping[str, Any], asked: Asked) -> Response:
    del asked
    kind = how["kind"]
    chunks: Iterator[bytes] = (bytes(MIB) for _ in range(how["size_mib"]))
    encodings = {"gzip": "gzip", "stacked": "gzip, gzip", "br": "br"}
    for _ in range({"gzip": 1, "stacked": 2}.get(kind, 0)):
        chunks = _gzipped(chunks)
    headers = {"content-encoding": encodings[kind]} if kind in encodings else None

    async def pieces() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk
            await asyncio.sleep(0)

    return StreamingResponse(pieces(), headers=headers, media_type=HTML)


def _gzipped(chunks: Iterator[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    for chunk in chunks:
        yield packer.compress(chunk) + packer.flush(zlib.Z_SYNC_FLUSH)
    yield packer.flush()


async def _empty(how: Mapping[str, Any], asked: Asked) -> Response:
    del how, asked
    return Response(media_type=HTML)


async def _changed_layout(how: Mapping[str, Any], asked: Asked) -> Response:
    del how
    # A site with more than classes and keys to change looks here, and changes them itself.
    asked.request.state.changed_layout = True
    answer = await asked.truly()
    if answer.headers.get("content-type", "").startswith("application/json"):
        body = json.dumps(rename_keys(json.loads(bytes(answer.body))), ensure_ascii=False).encode()
    else:
        body = change_layout(bytes(answer.body).decode(errors="replace")).encode()
    return _with_body(answer, body)


def _with_body(answer: Response, body: bytes) -> Response:
    left_out = {"content-length", "etag", "last-modified"}
    headers = {name: value for name, value in answer.headers.items() if name not in left_out}
    return Response(body, answer.status_code, headers)


async def _garbage(how: Mapping[str, Any], asked: Asked) -> Response:
    return Response(asked.chance.randbytes(how["size"]), media_type=HTML)


async def _wrong_length(how: Mapping[str, Any], asked: Asked) -> Response:
    answer = await asked.truly()
    return Cut(answer, len(answer.body) + how["missing"])


async def _reset(how: Mapping[str, Any], asked: Asked) -> Response:
    del how, asked
    return Cut()


async def _redirect(how: Mapping[str, Any], asked: Asked) -> Response:
    return RedirectResponse(str(asked.request.url) if how["loop"] else how["url"], how["code"])


async def _not_modified(how: Mapping[str, Any], asked: Asked) -> Response:
    del how
    if {"if-none-match", "if-modified-since"} & set(asked.request.headers.keys()):
        return Response(status_code=304)
    return await asked.truly()


async def _encoding(how: Mapping[str, Any], asked: Asked) -> Response:
    answer = await asked.truly()
    body = bytes(answer.body)
    if how["kind"] == "shift_jis":
        return _with_body(answer, body.decode(errors="replace").encode("shift_jis", "replace"))
    junk = _JUNK[how["kind"]]
    return _with_body(answer, _JAPANESE.sub(lambda match: match[0] + junk, body))


async def _nested(how: Mapping[str, Any], asked: Asked) -> Response:
    del asked
    if how["kind"] == "json":
        return Response(b"[" * how["depth"] + b"]" * how["depth"], media_type="application/json")
    return Response(b"<div>" * how["depth"], media_type=HTML)


async def _article(how: Mapping[str, Any], asked: Asked) -> Response:
    del how, asked
    return HTMLResponse(read_template("article.html").template)


ANSWERS: Mapping[str, Callable[[Mapping[str, Any], Asked], Awaitable[Response]]]
ANSWERS = MappingProxyType(
    {
        "blocked": _blocked,
        "challenge": _challenge,
        "status": _status,
        "rate_limited": _rate_limited,
        "gone": _gone,
        "slow": _slow,
        "drip": _drip,
        "endless": _endless,
        "bomb": _bomb,
        "empty": _empty,
        "changed_layout": _changed_layout,
        "garbage": _garbage,
        "wrong_length": _wrong_length,
        "reset": _reset,
        "redirect": _redirect,
        "not_modified": _not_modified,
        "encoding": _encoding,
        "nested": _nested,
        "article": _article,
    }
)
