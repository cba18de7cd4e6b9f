"""What the simulated receiver of webhooks promises: it takes what is signed and fresh, no other."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from mimawari.errors import Transient
from mimawari.kernel.clock import VirtualClock
from mimawari.net.webhook import EVENT_ID, SIGNATURE, TIMESTAMP, Hook, post, sign
from mimawari.sim.sites.webhooks import KEY, Hooks
from mimawari.sim.world import World

URL = "http://world.test/hooks/alerts"
BODY = '{"event_type": "stream.started", "言葉": "見回り"}'.encode()


@pytest.fixture
def hooks(clock: VirtualClock) -> Hooks:
    return Hooks(clock)


@pytest.fixture
def inside(clock: VirtualClock, hooks: Hooks) -> httpx2.ASGITransport:
    return httpx2.ASGITransport(app=World(clock, (hooks,), 1))


@pytest.fixture
async def http(inside: httpx2.ASGITransport) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(transport=inside) as http:
        yield http


def signed(clock: VirtualClock, body: bytes = BODY, key: str = KEY, late: float = 0) -> Any:
    timestamp = str(int(clock.now().timestamp() - late))
    return {
        SIGNATURE: sign(key.encode(), timestamp, body),
        TIMESTAMP: timestamp,
        EVENT_ID: "event-1",
    }


async def test_what_we_send_is_taken_and_remembered(
    clock: VirtualClock, hooks: Hooks, inside: httpx2.ASGITransport
) -> None:
    hook = Hook(url=URL, body=BODY, event_id="event-1")
    assert (await post(inside, hook, KEY.encode(), clock)).status == 204
    assert hooks.truth({}) == {
        "count": 1,
        "deliveries": [
            {
                "n": 1,
                "at": clock.now().isoformat(),
                "name": "alerts",
                "event_id": "event-1",
                "timestamp": str(int(clock.now().timestamp())),
                "is_verified": True,
                "body": json.loads(BODY),
                "status": 204,
            }
        ],
    }


async def test_what_is_signed_with_another_key_is_refused_and_remembered(
    clock: VirtualClock, hooks: Hooks, inside: httpx2.ASGITransport
) -> None:
    hook = Hook(url=URL, body=BODY, event_id="event-1")
    with pytest.raises(Transient, match="401"):
        await post(inside, hook, b"another", clock)
    [delivery] = hooks.truth({})["deliveries"]
    assert (delivery["is_verified"], delivery["status"]) == (False, 401)


@pytest.mark.parametrize(
    "change",
    [
        {SIGNATURE: ""},
        {SIGNATURE: "sha256=" + "0" * 64},
        {SIGNATURE: "\u00e9"},
        {TIMESTAMP: ""},
        {TIMESTAMP: "0"},
        {TIMESTAMP: "\u00b2"},
    ],
)
async def test_a_changed_signature_or_time_is_refused(
    http: httpx2.AsyncClient, clock: VirtualClock, change: dict[str, str]
) -> None:
    lines = {name: value.encode("latin-1") for name, value in {**signed(clock), **change}.items()}
    assert (await http.post(URL, content=BODY, headers=lines)).status_code == 401


async def test_a_changed_body_is_refused(http: httpx2.AsyncClient, clock: VirtualClock) -> None:
    reply = await http.post(URL, content=BODY + b" ", headers=signed(clock))
    assert reply.status_code == 401


@pytest.mark.parametrize(("late", "status"), [(300, 204), (301, 401), (-300, 204), (-301, 401)])
async def test_a_time_further_off_than_five_minutes_is_refused(
    http: httpx2.AsyncClient, clock: VirtualClock, late: int, status: int
) -> None:
    reply = await http.post(URL, content=BODY, headers=signed(clock, late=late))
    assert reply.status_code == status


async def test_another_key_may_be_set(clock: VirtualClock) -> None:
    inside = httpx2.ASGITransport(app=World(clock, (Hooks(clock, key="another"),), 1))
    async with httpx2.AsyncClient(transport=inside) as http:
        reply = await http.post(URL, content=BODY, headers=signed(clock, key="another"))
        assert reply.status_code == 204


@pytest.mark.parametrize("body", [b"", b"{", b"NaN", b'"\\ud800"', b"\xff", b"[" * 100_000])
async def test_a_body_that_is_no_json_is_remembered_as_none(
    http: httpx2.AsyncClient, clock: VirtualClock, body: bytes
) -> None:
    assert (await http.post(URL, content=body, headers=signed(clock, body))).status_code == 204
    [delivery] = (await http.get("http://world.test/_truth/hooks")).json()["deliveries"]
    assert delivery["body"] is None


async def test_deliveries_are_found_by_name_and_after_a_number(
    http: httpx2.AsyncClient, clock: VirtualClock, hooks: Hooks
) -> None:
    for name in ("a", "b", "a"):
        url = f"http://world.test/hooks/{name}"
        await http.post(url, content=BODY, headers=signed(clock))
    assert [one["n"] for one in hooks.truth({"name": "a"})["deliveries"]] == [1, 3]
    assert [one["n"] for one in hooks.truth({"after": "1"})["deliveries"]] == [2, 3]
    assert (await http.get("http://world.test/_truth/hooks?after=x")).status_code == 400


async def test_orders_make_it_fail(
    http: httpx2.AsyncClient, clock: VirtualClock, hooks: Hooks
) -> None:
    order = {"part": "hooks", "do": "status", "code": 500, "times": 2}
    assert (await http.post("http://world.test/_control", json=order)).status_code == 201
    statuses = []
    for _ in range(3):
        statuses.append((await http.post(URL, content=BODY, headers=signed(clock))).status_code)
        await clock.advance(timedelta(seconds=1))
    assert statuses == [500, 500, 204]
    assert hooks.truth({})["count"] == 1


async def test_people_see_what_came_and_nothing_in_it_becomes_markup(
    http: httpx2.AsyncClient, clock: VirtualClock
) -> None:
    body = b'{"title": "<script>alert(1)</script>"}'
    await http.post(URL, content=body, headers=signed(clock, body))
    page = (await http.get(URL)).text
    assert "event-1" in page
    assert "&lt;script&gt;" in page
    assert "<script>" not in page


async def test_there_is_nothing_else(http: httpx2.AsyncClient) -> None:
    assert (await http.get("http://world.test/hooks/")).status_code == 404
    assert (await http.get("http://world.test/hooks/a/b")).status_code == 404
    assert (await http.put(URL)).status_code == 405
