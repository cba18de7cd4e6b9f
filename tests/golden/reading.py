"""Send all requests of golden data to the program, and reduce the responses to JSON values."""

import asyncio
import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.golden.normal import make_normal
from tests.golden.pages import read_text
from tests.golden.program import KEY, POD_TOKEN, Doors, environment, run, serving

HERE = Path(__file__).parent
REQUESTS = HERE / "requests"
LANGUAGES = ("ja", "en")
OPEN = "open"
"""The area of pages that are requested without a session."""
RESPONSE_SECONDS = 60.0
SHELVES = ("api", "internal", "pages", "commands")
"""The files of requests."""
Responses = dict[str, dict[str, Any]]
"""Responses by the name of their file and by the request."""


@dataclass(frozen=True, slots=True)
class Request:
    """The path of a GET request or a command line, and where its response is kept."""

    shelf: str
    area: str
    text: str


def list_requests(*shelves: str) -> Iterator[Request]:
    """List the requests of some files: a section names an area, every other line is a request."""
    for shelf in shelves or SHELVES:
        area = ""
        for line in (REQUESTS / f"{shelf}.txt").read_text(encoding="utf-8").splitlines():
            if line.startswith("["):
                area = line.strip("[]")
            elif line.strip() and not line.startswith("#"):
                yield Request(shelf, area, line.strip())


def read_responses(folder: Path, database: str, shelves: Sequence[str] = SHELVES) -> Responses:
    """Upgrade a database and return the responses to all requests of some files."""
    with environment(folder, database):
        responses = asyncio.run(_request_all(shelves))
        for request in _choose("commands", shelves):
            ended = run(request.text.split(" "))
            name = f"commands-{request.area}"
            responses.setdefault(name, {})[request.text] = _read_command(ended, request.text)
    normal = make_normal(folder, database)
    return {name: normal(name, found) for name, found in responses.items()}


def _read_command(ended: Any, text: str) -> dict[str, Any]:
    response: dict[str, Any] = {"code": ended.code}
    if ended.err:
        response["err"] = ended.err.splitlines()
    if "--json" in text and ended.out:
        return {**response, "json": json.loads(ended.out)}
    if "--csv" in text:
        return {**response, "csv": _read_csv(ended.out)}
    return {**response, "text": [line.rstrip() for line in ended.out.splitlines()]}


def _choose(shelf: str, shelves: Sequence[str]) -> list[Request]:
    return list(list_requests(shelf)) if shelf in shelves else []


async def _request_all(shelves: Sequence[str]) -> Responses:
    responses: Responses = {}
    async with serving() as doors:
        requests = [*_choose("api", shelves), *_choose("internal", shelves)]
        await _request_apis(doors, requests, responses)
        for language in LANGUAGES if "pages" in shelves else ():
            await _request_pages(doors, language, responses)
    return responses


async def _request_apis(doors: Doors, requests: Sequence[Request], responses: Responses) -> None:
    """Request the routes of the public and the internal API."""
    async with (
        _client(doors.public, {"X-API-Key": KEY}) as public,
        _client(doors.internal, {"X-Internal-API-Key": POD_TOKEN}) as internal,
    ):
        for request in requests:
            client = public if request.shelf == "api" else internal
            found = _read(await client.get(request.text), doors)
            name = f"{request.shelf}-{request.area}"
            responses.setdefault(name, {})[request.text] = found


async def _request_pages(doors: Doors, language: str, responses: Responses) -> None:
    """Request the pages in a language, before and after logging in."""
    headers = {"Accept-Language": language}
    async with _client(doors.public, headers) as visitor, _client(doors.public, headers) as client:
        entered = await client.post("/login", data={"key": KEY})
        assert entered.status_code == 303, entered.text
        for request in list_requests("pages"):
            sender = visitor if request.area == OPEN else client
            name = f"pages-{request.area}-{language}"
            found = _read(await sender.get(request.text), doors)
            responses.setdefault(name, {})[request.text] = found


def _client(address: str, headers: Mapping[str, str]) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=address, headers=dict(headers), timeout=RESPONSE_SECONDS)


def _read(response: httpx2.Response, doors: Doors) -> dict[str, Any]:
    """Reduce a response to its status and its body."""
    kind = response.headers.get("content-type", "").partition(";")[0]
    found: dict[str, Any] = {"status": response.status_code}
    for name in ("location", "content-disposition"):
        if name in response.headers:
            found[name] = response.headers[name]
    text = response.text.replace(doors.public, "http://app")
    match kind:
        case "application/json":
            return {**found, "json": json.loads(text)}
        case "text/csv":
            return {**found, "csv": _read_csv(text)}
        case "text/html":
            return {**found, "text": _read_page(text, response.url.path)}
    return {**found, "type": kind, "text": text.splitlines()}


def _read_page(html: str, path: str) -> list[Any]:
    """Reduce a page to its lines, without the frame of all pages on all but one of them."""
    return [_read_line(line) for line in read_text(html, with_frame=path == "/")]


def _read_line(line: str) -> Any:
    # Where a page shows JSON, the order of its keys is the engine's: PostgreSQL keeps none.
    if line.startswith("{") and line.endswith("}"):
        with suppress(json.JSONDecodeError):
            return json.loads(line)
    return line


def _read_csv(text: str) -> dict[str, Any]:
    rows = list(csv.reader(io.StringIO(text, newline="")))
    return {"columns": rows[0] if rows else [], "rows": rows[1:]}


def list_parameters(text: str) -> set[str]:
    """List the names of a request's query parameters."""
    return set(re.findall(r"[?&]([^=&]+)=", text))
