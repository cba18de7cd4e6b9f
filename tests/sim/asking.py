"""How tests ask a simulated site, and how they read its answers by themselves."""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any
from unicodedata import normalize
from urllib.parse import urlencode

import uvicorn
from selectolax.lexbor import LexborHTMLParser, LexborNode
from starlette.requests import Request
from starlette.responses import Response

from mimawari.sim.part import Part
from tests.captured import FOLDER, read_captured

FIXTURES = FOLDER / "google_books"
KEY = {"x-goog-api-key": "a-key"}
BIG = "03/13/13991"
AREAS = (BIG, "03/14/14991", "03/11/11991", "03/12/12991", "06/27/27991")


async def ask(
    part: Part,
    url: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    changed: bool | None = None,
) -> Response:
    """Ask a part of the world in process, as the world itself does."""
    path, _, query = url.partition("?")
    lines = {"host": f"{part.name}.test"} | dict(headers or {})
    scope = {
        "type": "http",
        "method": method,
        "scheme": "http",
        "server": (f"{part.name}.test", 80),
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in lines.items()],
        "state": {} if changed is None else {"changed_layout": changed},
    }
    return await part.answer(Request(scope))


@asynccontextmanager
async def running(part: Part) -> AsyncIterator[str]:
    """Serve a part alone on a free port of loopback, and give its address."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        response = await part.answer(Request(scope, receive))
        await response(scope, receive, send)

    config = uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        serving = asyncio.create_task(server.serve([taken]))
        try:
            yield f"http://127.0.0.1:{taken.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving


def html_of(response: Response) -> str:
    return bytes(response.body).decode()


def embedded(html: str) -> Any:
    """Return the page object, which is strict JSON among outer keys without quotes."""
    found = re.search(
        r"window\.__SERVER_SIDE_CONTEXT__ = \{common: (.*?), page: (\{.*\}), mode: \"pc\"\};\n",
        html,
    )
    assert found is not None
    json.loads(found[1])
    return json.loads(found[2])


async def read_list(site: Part, area: str) -> list[str]:
    """Walk a list by the site's own links to its end."""
    path: str | None = f"/rent/search/{area}/"
    found = []
    while path:
        found.append(html_of(await ask(site, path)))
        path = embedded(found[-1])["paginationContext"]["nextPageUrl"]
    return found


def text_of(node: LexborHTMLParser | LexborNode, selector: str) -> str:
    found = node.css_first(selector)
    assert found is not None, selector
    return " ".join(found.text().split())


def yen(label: str, rent_yen: int = 0) -> int:
    """Read an amount in any of the site's ways of writing it."""
    plain = normalize("NFKC", label).replace(",", "").strip()
    if plain in {"-", "なし"}:
        return 0
    if months := re.fullmatch(r"([0-9.]+)ヶ月", plain):
        return int(Decimal(months[1]) * rent_yen)
    amount = re.fullmatch(r"([0-9.]+)(万?)円", plain)
    assert amount is not None, label
    return int(Decimal(amount[1]) * (10_000 if amount[2] else 1))


def m2(label: str) -> float:
    found = re.fullmatch(r"([0-9.]+)m(?:<sup>)?2(?:</sup>)?", label)
    assert found is not None, label
    return float(found[1])


def layout(label: str) -> str:
    return "1R" if label == "ワンルーム" else label


def label_of(stop: Any) -> str:
    bus = f"バス{stop['bus_minutes']}分 " if stop["bus_minutes"] else ""
    return f"{stop['station']}駅/{stop['line']} {bus}徒歩{stop['walk_minutes']}分"


def rooms_in(truth: Any) -> dict[str, Any]:
    return {room["id"]: room for room in truth["rooms"]}


async def call(api: Part, headers: Mapping[str, str] = KEY, /, **asked: object) -> tuple[int, Any]:
    """Call the API of books, and read its answer."""
    response = await ask(api, f"/books/v1/volumes?{urlencode(asked)}", headers=headers)
    return response.status_code, json.loads(bytes(response.body))


def captured(name: str) -> Any:
    """Read a reply of the real API, where there are any."""
    return read_captured(FIXTURES / name)
