"""Every route of the internal API is open to those who need it, and what it takes is their own.

The routes are found in the app, and what they take in its description: a new one is looked at too.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import SecretStr

from mimawari.app.http.api import make_internal_app
from mimawari.app.http.edge import OPEN
from mimawari.ids import new_id
from mimawari.kernel.rights import find_holder, make_token
from mimawari.kernel.values import Limit
from mimawari.sites.youtube import SITE
from mimawari.watches.streams.outside import CHECK, RESOLVE
from mimawari.watches.streams.pods.spec import name_pod
from tests.app.ground import check_error
from tests.conftest import Databases
from tests.sim.ground import serve
from tests.streams.api_ground import Desk, open_desk

KEY = "the-installations-own-key"
ORIGIN = "http://resolver.example:81"
STATUS = ("PUT", "/internal/v1/monitors/{monitor_id}/status")
FAR = "9990-01-01T00:00:00+00:00"
WELL_SHAPED = {
    "limit": ("rentals.detail", "robots https://example.org"),
    "site": ("yahoo_realestate", "mercari"),
    "key": ("web:once:0", "robots https://example.org"),
    "pod": ("stream-monitor-other",),
}
"""Names that are no pod's: of limits, sites, keys of the cache and pods."""
FOREIGN = tuple(name for names in WELL_SHAPED.values() for name in names)

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Door:
    """One way into the internal API: a method and a path."""

    method: str
    path: str
    schema: Mapping[str, Any]

    @property
    def name(self) -> tuple[str, str]:
        """Which one it is."""
        return (self.method, self.path)


@dataclass(frozen=True, slots=True)
class Inside:
    """The internal API, its doors, and two pods with a monitor each."""

    http: httpx2.AsyncClient
    desk: Desk
    app: FastAPI
    mine: str
    other: str

    @property
    def doors(self) -> list[Door]:
        """Find every door of the app that needs a key."""
        described = self.app.openapi()
        parts = described["components"]["schemas"]
        found = []
        for route in list_routes(self.app.routes):
            path = getattr(route, "path", "?")
            if path in OPEN:
                continue
            # What is mounted or no route of the API would pass by all that is checked here.
            assert isinstance(route, APIRoute), path
            for method in route.methods or ():
                operation = described["paths"][path][method.lower()]
                body = operation.get("requestBody", {}).get("content", {})
                schema = body.get("application/json", {}).get("schema", {})
                found.append(Door(method, path, {**schema, "parts": parts}))
        return found

    async def knock(
        self, door: Door, key: str | None, monitor_id: str, body: Any = None
    ) -> httpx2.Response:
        """Come to a door with a key, for a monitor."""
        pod = name_pod(self.mine if key is None else monitor_id)
        return await self.http.request(
            door.method,
            door.path.replace("{monitor_id}", monitor_id),
            params={"pod": pod} if door.method == "GET" else None,
            json=body,
            headers={} if key is None else {"X-Internal-API-Key": key},
        )


def list_routes(routes: Iterable[Any]) -> Iterator[Any]:
    """List routes, and those of the routers among them."""
    for route in routes:
        inner = getattr(route, "original_router", None)
        if inner is None:
            yield route
        else:
            yield from list_routes(inner.routes)


def token_of(monitor_id: str) -> str:
    """Return the token of a monitor's pod."""
    return make_token(KEY.encode(), name_pod(monitor_id))


def make_value(schema: Mapping[str, Any], parts: Mapping[str, Any], name: str) -> Any:
    """Make a value as a description wants it, with a name where there is room for one."""
    if "$ref" in schema:
        schema = parts[schema["$ref"].rpartition("/")[2]]
    if schema.get("type") == "object":
        inner = {one: schema["properties"][one] for one in schema.get("required", [])}
        return {one: make_value(value, parts, name) for one, value in inner.items()}
    given = {"date-time": FAR, "base64": "AA=="}
    if schema.get("format") in given:
        return given[schema["format"]]
    if schema.get("type") == "number":
        return 1
    return new_id() if "36" in schema.get("pattern", "") else name


def make_bodies(door: Door, names: tuple[str, ...]) -> Iterator[Any]:
    """Make a body for each name; None where a door takes none."""
    schema = {name: value for name, value in door.schema.items() if name != "parts"}
    if not schema:
        yield None
        return
    for name in names:
        yield make_value(schema, door.schema["parts"], name)


@pytest.fixture
async def inside(databases: Databases, tmp_path: Path) -> AsyncIterator[Inside]:
    given: dict[str, Any] = {
        "streams_runner": "kubernetes",
        "internal_key": SecretStr(KEY),
        "streams_resolver_url": f"{ORIGIN}/resolve",
    }
    async with open_desk(await databases.ready(), tmp_path, **given) as desk:
        app = make_internal_app(desk.api.system, KEY.encode())
        mine, other = await desk.add(1), await desk.add(2)
        async with serve(app) as http:
            yield Inside(http, desk, app, mine, other)


def is_of_monitors(door: Door) -> bool:
    """Say whether a door is one of the monitors', which has codes of its own."""
    return "/monitors" in door.path


def check_refused(door: Door, response: httpx2.Response) -> None:
    """Insist that somebody who is known was refused."""
    check_error(response, 403, "FORBIDDEN" if is_of_monitors(door) else "forbidden")


async def test_all_routes_are_found(inside: Inside) -> None:
    names = [door.name for door in inside.doors]
    assert STATUS in names
    assert ("POST", "/internal/v1/cache/set") in names
    assert len(names) >= 12


async def test_without_a_key_that_fits_every_route_is_closed(inside: Inside) -> None:
    good = token_of(inside.mine)
    other_key = make_token(b"another-key-altogether", name_pod(inside.mine))
    named_anew = good.replace(inside.mine, inside.other)
    for door in inside.doors:
        for key in (None, "", "x", good[:-1], good + "0", other_key, named_anew, "." + good):
            response = await inside.knock(door, key, inside.mine, {})
            check_error(response, 401, "UNAUTHORIZED" if is_of_monitors(door) else "unauthorized")


async def test_the_installations_key_opens_the_report_of_the_description_and_nothing_else(
    inside: Inside,
) -> None:
    for door in inside.doors:
        for body in make_bodies(door, (CHECK, *FOREIGN)):
            response = await inside.knock(door, KEY, inside.mine, body)
            if door.name == STATUS:
                assert response.status_code == 200, response.text
            else:
                check_refused(door, response)
    check = {"version": 1, "id": new_id(), "stream_status": "live", "state": "{}", "reason": "x"}
    [door] = [one for one in inside.doors if one.name == STATUS]
    check_refused(door, await inside.knock(door, KEY, inside.mine, {"check": check}))


async def test_a_pod_gets_nowhere_with_a_name_that_is_not_its_own(inside: Inside) -> None:
    for door in inside.doors:
        if "{monitor_id}" in door.path:
            continue
        for body in make_bodies(door, FOREIGN):
            check_refused(door, await inside.knock(door, token_of(inside.mine), inside.other, body))
    cache = inside.desk.api.store.cache
    assert [await cache.get(key) for key in WELL_SHAPED["key"]] == [None, None]
    assert await inside.desk.api.store.breaker.list() == []


async def test_a_pod_gets_nowhere_with_the_monitor_of_another_one(inside: Inside) -> None:
    of_monitors = [one for one in inside.doors if "{monitor_id}" in one.path]
    assert of_monitors
    for door in of_monitors:
        # Whether there is such a monitor it does not learn either.
        for monitor_id in (inside.other, "mon-unknown"):
            for body in ({"pod": name_pod(inside.mine)}, {"pod": name_pod(monitor_id)}, {}):
                check_refused(
                    door, await inside.knock(door, token_of(inside.mine), monitor_id, body)
                )
    shown = await inside.desk.get(f"/{inside.other}")
    assert shown["status"] == "initializing"


async def test_a_pod_is_let_in_for_all_that_it_needs(inside: Inside) -> None:
    names = {
        "limits": (CHECK, RESOLVE, f"robots {ORIGIN}"),
        "breakers": (SITE.name,),
        "cache": (f"robots {ORIGIN}",),
        "monitors": (name_pod(inside.mine),),
    }
    for door in inside.doors:
        for body in make_bodies(door, names[door.path.split("/")[3]]):
            response = await inside.knock(door, token_of(inside.mine), inside.mine, body)
            assert response.status_code == 200, (door.name, response.text)


async def test_what_a_pod_holds_up_is_free_again_after_a_day(inside: Inside) -> None:
    door = {one.path.split("/v1/")[1]: one for one in inside.doors}
    api, now = inside.desk.api, inside.desk.clock.now()
    day = now + timedelta(days=1)
    held = {"name": RESOLVE, "until": FAR, "reason": "x"}
    await inside.knock(door["limits/hold"], token_of(inside.mine), inside.mine, held)
    wait = await api.store.limiter.peek(api.system.watches.limit(RESOLVE))
    assert wait is not None
    assert wait.until == day
    failed = {"site": SITE.name, "until": FAR, "reason": "x"}
    for _ in range(5):
        await inside.knock(door["breakers/failed"], token_of(inside.mine), inside.mine, failed)
    view = await api.store.breaker.find(SITE.name)
    assert view is not None
    assert view.until == day
    kept = {"key": f"robots {ORIGIN}", "value": "AA==", "ttl": 366 * 86_400}
    refused = await inside.knock(door["cache/set"], token_of(inside.mine), inside.mine, kept)
    check_error(refused, 422, "bad_input")


async def test_how_often_a_site_may_be_asked_is_never_a_pods_word(inside: Inside) -> None:
    [door] = [one for one in inside.doors if one.path.endswith("/limits/acquire")]
    body = {"name": f"robots {ORIGIN}", "caller": inside.mine}
    given = await inside.knock(door, token_of(inside.mine), inside.mine, body)
    assert given.json()["grant_id"]
    more = {**body, "count": 1_000_000, "per": 1}
    check_error(
        await inside.knock(door, token_of(inside.mine), inside.mine, more), 422, "bad_input"
    )
    limit = Limit(f"robots {ORIGIN}", 60, timedelta(minutes=1))
    assert await inside.desk.api.store.limiter.used(limit) == 1


async def test_a_pod_without_a_monitor_has_no_rights_any_more(inside: Inside) -> None:
    await inside.desk.stop(inside.mine)
    for door in inside.doors:
        if is_of_monitors(door):
            continue
        for body in make_bodies(door, (CHECK, SITE.name, f"robots {ORIGIN}")):
            check_refused(door, await inside.knock(door, token_of(inside.mine), inside.mine, body))


@pytest.mark.parametrize(
    "given",
    [b"", b".", b"a", b"a.", b".a", b"a.b", b"\xff.\xff", b"A.b", b"a" * 300 + b".b", b"a..b\n"],
)
def test_what_is_no_token_is_nobodys(given: bytes) -> None:
    assert find_holder(KEY.encode(), given) is None


def test_a_token_names_its_pod_and_is_the_same_each_time() -> None:
    token = make_token(KEY.encode(), "stream-monitor-x")
    assert token == make_token(KEY.encode(), "stream-monitor-x")
    assert KEY not in token
    holder = find_holder(KEY.encode(), token.encode())
    assert holder is not None
    assert holder.pod == "stream-monitor-x"
    assert make_token(b"another", "stream-monitor-x") != token
