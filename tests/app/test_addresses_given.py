"""Whatever takes an address or a path takes the worst of them: quickly, and without a word on it.

The fields are found in the descriptions of both APIs and in the forms of the pages.
"""

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr
from selectolax.lexbor import LexborHTMLParser as HTMLParser

from mimawari.app.http.api import make_app, make_internal_app
from mimawari.watches import INSTALLED
from tests.app.ground import KEY, Api, open_api
from tests.conftest import Databases
from tests.sim.ground import serve
from tests.web.ground import Browser, open_site

INTERNAL = "the-installations-own-key"
NAMED = re.compile(r"(^|_)(url|uri|address|host|path|file|link|origin|proxy|reference)s?($|_)")
MEANT = re.compile(r"\b(address|url|path|file)\b", re.IGNORECASE)
FORMATS = frozenset({"uri", "uri-reference", "hostname", "ipv4", "ipv6", "path", "file-path"})
KNOWN = {
    ("POST", "/api/notify/targets", "url"),
    ("PATCH", "/api/notify/targets/{target_id}", "url"),
    ("POST", "/api/v1/monitors", "stream_url"),
    ("POST", "/api/v1/monitors", "callback_url"),
}
"""Some that must be among those found."""
FORMS = {("/notify", "url")}
ANSWER_SECONDS, BEAT_SECONDS = 2.0, 1.0
LONG = 10_000


@dataclass(frozen=True, slots=True)
class Field:
    """A field that takes an address, a path or a reference."""

    method: str
    path: str
    name: str
    place: str
    body: Mapping[str, Any]

    @property
    def key(self) -> tuple[str, str, str]:
        """Which one it is."""
        return (self.method, self.path, self.name)


def is_meant(name: str, schema: Mapping[str, Any]) -> bool:
    """Say whether a field takes an address, a path or a reference."""
    options = [schema, *schema.get("anyOf", ()), schema.get("items", {})]
    if not any(one.get("type") == "string" for one in options):
        return False
    if any("enum" in one or one.get("format") == "date-time" for one in options):
        return False
    described = " ".join(str(one.get("description", "")) for one in options)
    formats = {one.get("format") for one in options}
    return bool(NAMED.search(name) or MEANT.search(described) or formats & FORMATS)


def find_fields(document: Mapping[str, Any]) -> Iterator[Field]:
    """Find the fields in the bodies, queries and paths of an API."""
    parts = document["components"]["schemas"]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody", {}).get("content", {})
            schema = resolve(body.get("application/json", {}).get("schema", {}), parts)
            usual = make_usual(schema, parts)
            for name, one in schema.get("properties", {}).items():
                if is_meant(name, resolve(one, parts)):
                    yield Field(method.upper(), path, name, "body", usual)
            for one in operation.get("parameters", ()):
                if is_meant(one["name"], {**one["schema"], **one}):
                    yield Field(method.upper(), path, one["name"], one["in"], usual)


def resolve(schema: Mapping[str, Any], parts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Look a schema up where it is referred to."""
    found: Mapping[str, Any] = (
        parts[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    )
    return found


def make_usual(schema: Mapping[str, Any], parts: Mapping[str, Any]) -> dict[str, Any]:
    """Make a body with what is required, as usual as the description lets us."""
    made: dict[str, Any] = {}
    for name in schema.get("required", ()):
        one = resolve(schema["properties"][name], parts)
        if one.get("type") == "object":
            made[name] = make_usual(one, parts)
            continue
        values = [*one.get("examples", []), *one.get("enum", []), one.get("minimum", "x")]
        made[name] = values[0]
    return made


def make_pairs(folder: Path) -> list[tuple[str, str]]:
    """Make addresses of what is there, and the same of what is not; of one length each."""
    folder.mkdir()
    os.mkfifo(folder / "fifo")
    (folder / "file").write_text("json://127.0.0.1:1/", encoding="utf-8")
    (folder / "closed").mkdir(mode=0o000)
    there = [
        "/dev/ptmx", "/proc/self/environ", "/etc/passwd", str(folder), f"{folder}/fifo",
        f"{folder}/closed",
    ]  # fmt: skip
    pairs = [(f"{form}{path}", f"{form}{path[:-1]}~") for path in there for form in ("file:", "")]
    return [*pairs, ("file:///etc/passwd", "file:///etc/passw~")]


ALONE = (
    *("http://127.0.0.1:1", "http://169.254.169.254/", "http://localhost:1/", "http://[::1]:1/"),
    *(
        "json://127.0.0.1:1",
        "https://2130706433/",
        "env:PATH",
        "http://10.0.0.1/",
        "http://a@b@c:/",
    ),
    *("x" * LONG, "http://" + "a." * (LONG // 2), "file:/" + "a/" * (LONG // 2), "../" * 1000),
    *("http://a/\x00\x1b[2J", "file:/tmp/\x01\r\nX: y", "\u202e\x7f\x85", "javascript:alert(1)"),
)


@dataclass(slots=True)
class Beat:
    """The longest time in which the event loop did not turn."""

    longest: float = 0.0

    async def watch(self) -> None:
        """Beat until cancelled."""
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.05)
            self.longest = max(self.longest, time.monotonic() - before - 0.05)


@asynccontextmanager
async def beating() -> AsyncIterator[Beat]:
    """Watch the loop as long as the block lasts."""
    beat = Beat()
    task = asyncio.create_task(beat.watch())
    try:
        yield beat
    finally:
        task.cancel()


async def send(http: httpx2.AsyncClient, field: Field, value: str) -> httpx2.Response:
    """Give a value to a field, and insist on an answer in time that is no fault of ours."""
    path = re.sub(r"\{(\w+)\}", lambda found: fill(found, field, value), field.path)
    began = time.monotonic()
    response = await http.request(
        field.method,
        path,
        json={**field.body, field.name: value} if field.place == "body" else None,
        params={field.name: value} if field.place == "query" else None,
    )
    assert time.monotonic() - began < ANSWER_SECONDS, (field.key, value[:80])
    assert response.status_code < 500, (field.key, value[:80], response.text)
    if response.status_code == 201:
        # What was made is taken away, so that the next value meets the same state.
        made = response.json()
        await http.delete(f"{path}/{made.get('id') or made.get('monitor_id')}")
    return response


def fill(found: re.Match[str], field: Field, value: str) -> str:
    """Fill in a part of a path; others are the first of their kind."""
    if field.place == "path" and found[1] == field.name:
        return str(httpx2.QueryParams({"": value}))[1:]
    return "1"


def strip(response: httpx2.Response, value: str) -> tuple[int, str]:
    """Return an answer without the value itself; one that is no error tells when it was given."""
    is_error = response.status_code >= 400
    return response.status_code, response.text.replace(value, "…") if is_error else ""


def find_form_fields(page: str) -> Iterator[Field]:
    """Find the fields of a page's forms, with what the forms hold otherwise."""
    for form in HTMLParser(page).css('form[method="post"]'):
        inputs = [one.attributes for one in form.css("input, textarea, select")]
        usual = {str(one["name"]): one.get("value") or "x" for one in inputs if one.get("name")}
        for one in inputs:
            name = str(one.get("name"))
            is_text = one.get("type") in {None, "text", "url", "search"}
            if is_text and (NAMED.search(name) or one.get("type") == "url"):
                yield Field("POST", str(form.attributes.get("action")), name, "form", usual)


async def see_pages(visitor: Browser) -> dict[str, str]:
    """Look at the pages that are one link away from the first one, and their forms."""
    pages: dict[str, str] = {}
    waiting = ["/"]
    while waiting:
        path = waiting.pop()
        response = await visitor.get(path)
        if response.status_code != 200 or "html" not in response.headers["content-type"]:
            continue
        pages[path] = response.text
        links = [one.attributes.get("href") or "" for one in HTMLParser(response.text).css("a")]
        inner = {link.partition("?")[0].partition("#")[0] for link in links if link[:1] == "/"}
        waiting += sorted(inner - pages.keys() - set(waiting))
    return pages


@pytest.fixture
async def api(databases: Databases, tmp_path: Path) -> AsyncIterator[Api]:
    given: dict[str, Any] = {"internal_key": SecretStr(INTERNAL), "webhook_key": "k"}
    async with open_api(await databases.ready(), tmp_path, watches=INSTALLED, **given) as found:
        yield found


def public_fields(api: Api) -> list[Field]:
    return list(find_fields(make_app(api.system, (KEY.encode(),)).openapi()))


async def test_fields_are_found_by_themselves(api: Api) -> None:
    assert {field.key for field in public_fields(api)} >= KNOWN


async def test_no_address_is_a_fault_of_ours_or_says_what_is_there(
    api: Api, tmp_path: Path
) -> None:
    await api.http.post("/api/notify/targets", json={"name": "phone", "url": "env:HOOK"})
    pairs = make_pairs(tmp_path / "there")
    async with beating() as beat:
        for field in public_fields(api):
            for there, gone in pairs:
                first = strip(await send(api.http, field, there), there)
                assert first == strip(await send(api.http, field, gone), gone), (field.key, there)
            for value in ALONE:
                await send(api.http, field, value)
    assert beat.longest < BEAT_SECONDS


async def test_sending_to_a_path_says_nothing_of_what_is_there(api: Api, tmp_path: Path) -> None:
    async def tried(kept: str) -> str:
        name = str(time.monotonic_ns())
        added = await api.http.post("/api/notify/targets", json={"name": name, "url": kept})
        if added.status_code != 201:
            return f"{added.status_code} {added.text}".replace(kept, "…")
        began = time.monotonic()
        sent = await api.http.post(f"/api/notify/targets/{added.json()['id']}/test")
        assert time.monotonic() - began < ANSWER_SECONDS, kept
        assert sent.status_code == 200, sent.text
        return str(sent.json()["error"]).replace(kept, "…")

    async with beating() as beat:
        for there, gone in make_pairs(tmp_path / "there"):
            assert await tried(there) == await tried(gone), there
    assert beat.longest < BEAT_SECONDS


async def test_the_internal_api_takes_no_address_badly(api: Api, tmp_path: Path) -> None:
    app = make_internal_app(api.system, INTERNAL.encode())
    values = [one for pair in make_pairs(tmp_path / "there") for one in pair] + list(ALONE)
    async with serve(app) as http, beating() as beat:
        http.headers["X-Internal-API-Key"] = INTERNAL
        for field in find_fields(app.openapi()):
            for value in values:
                await send(http, field, value)
    assert beat.longest < BEAT_SECONDS


async def test_no_form_takes_an_address_badly(databases: Databases, tmp_path: Path) -> None:
    values = [one for pair in make_pairs(tmp_path / "there") for one in pair] + list(ALONE)
    async with open_site(await databases.ready(), tmp_path / "data") as visitor:
        await visitor.log_in()
        pages = await see_pages(visitor)
        found = {one.key: one for page in pages.values() for one in find_form_fields(page)}
        assert {(path, name) for _, path, name in found} >= FORMS
        token = await visitor.token()
        async with beating() as beat:
            for field in found.values():
                for value in values:
                    began = time.monotonic()
                    data = {**field.body, field.name: value, "token": token}
                    response = await visitor.http.post(field.path, data=data)
                    assert time.monotonic() - began < ANSWER_SECONDS, (field.key, value[:80])
                    assert response.status_code < 500, (field.key, value[:80])
        assert beat.longest < BEAT_SECONDS
