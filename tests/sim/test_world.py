"""What the simulated world promises: every request is seen, and its own pages tell the truth."""

import asyncio
from datetime import timedelta
from email.utils import parsedate_to_datetime
from itertools import count
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from protego import Protego
from starlette.requests import Request

from mimawari.kernel.clock import VirtualClock
from mimawari.sim.part import Part
from mimawari.sim.world import Log, World, make_world
from tests.sim.ground import PAGE, Toy, serve


async def seen(http: httpx2.AsyncClient, query: str = "") -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = (await http.get(f"/_seen{query}")).json()["seen"]
    return listed


async def test_a_request_is_seen_with_all_that_tells_it_from_others(
    http: httpx2.AsyncClient, clock: VirtualClock
) -> None:
    await clock.advance(timedelta(minutes=5))
    clock.step(timedelta(hours=1))
    await http.get("/toy/a?x=1&y=%20", headers={"user-agent": "a careful reader"})
    assert await seen(http) == [
        {
            "n": 1,
            "at": "2026-01-01T01:05:00+00:00",
            "ticks": 300.0,
            "part": "toy",
            "method": "GET",
            "path": "/toy/a",
            "query": "x=1&y=%20",
            "status": 200,
            "order": None,
            "searched": None,
            "user_agent": "a careful reader",
        }
    ]


async def test_a_request_is_seen_before_it_is_answered(http: httpx2.AsyncClient) -> None:
    await http.post("/_control", json={"do": "slow", "delay_s": 3600})
    asking = asyncio.create_task(http.get("/toy/a"))
    async with asyncio.timeout(30):
        while not await seen(http):
            pass
    assert [entry["status"] for entry in await seen(http)] == [None]
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


async def test_what_the_world_is_asked_about_itself_is_not_seen(http: httpx2.AsyncClient) -> None:
    for path in ("/", "/_seen", "/_seen/count", "/_control", "/_truth/toy", "/nowhere"):
        await http.get(path)
    assert await seen(http) == []


async def test_seen_requests_are_found_by_part_and_path(http: httpx2.AsyncClient) -> None:
    for path in ("/toy/a", "/toy/ab", "/other/a", "/_toy/image", "/robots.txt"):
        await http.get(path)

    async def paths(query: str) -> list[str]:
        return [entry["path"] for entry in await seen(http, query)]

    assert await paths("?part=toy") == ["/toy/a", "/toy/ab"]
    assert await paths("?part=toy:page") == ["/_toy/image"]
    assert await paths("?part=robots") == ["/robots.txt"]
    assert await paths("?path=/toy/a") == ["/toy/a", "/toy/ab"]
    assert await paths("?part=other&path=/toy") == []
    assert len(await paths("?part=&path=")) == 5


async def test_seen_requests_are_read_a_page_at_a_time_and_each_once(
    http: httpx2.AsyncClient,
) -> None:
    for number in range(10):
        await http.get(f"/toy/{number}")
        await http.get(f"/other/{number}")
    after, found = 0, []
    while True:
        reply = (await http.get(f"/_seen?part=toy&after={after}&limit=3")).json()
        if not reply["seen"]:
            break
        assert reply["next"] > after
        after = reply["next"]
        found += [entry["path"] for entry in reply["seen"]]
    assert found == [f"/toy/{number}" for number in range(10)]
    assert reply["next"] == after


@pytest.mark.parametrize(
    "query",
    ["limit=x", "limit=-1", "limit=99999", "after=1.5", "after=\uff11", "limit=" + "9" * 5000],
)
async def test_a_bad_question_gets_a_sentence(http: httpx2.AsyncClient, query: str) -> None:
    reply = await http.get(f"/_seen?{query}")
    assert reply.status_code == 400
    assert set(reply.json()["error"]) == {"code", "message"}


async def test_requests_are_counted_by_part_and_path(http: httpx2.AsyncClient) -> None:
    for path in ("/toy/a", "/toy/b", "/toy/b", "/other/a", "/_toy/image"):
        await http.get(path)
    for query, expected in (
        ("", 5),
        ("?part=toy", 3),
        ("?part=other", 1),
        ("?part=toy:page", 1),
        ("?part=nobody", 0),
        ("?path=/toy/b", 2),
        ("?part=other&path=/toy", 0),
    ):
        reply = await http.get(f"/_seen/count{query}")
        assert reply.json() == {"count": expected, "exact": True}


def request(path: str, agent: str = "x") -> Request:
    headers = [(b"host", b"world"), (b"user-agent", agent.encode())]
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": headers}
    return Request(scope)


@given(paths=st.lists(st.sampled_from(("/a", "/b")), max_size=40), most=st.integers(1, 20))
def test_counts_stay_exact_when_the_first_requests_are_forgotten(
    paths: list[str], most: int
) -> None:
    log = Log(VirtualClock(), most)
    for path in paths:
        log.add("toy", request(path))
    assert log.count({}) == log.count({"part": "toy"}) == {"count": len(paths), "exact": True}
    listed = log.list({})["seen"]
    assert [entry["path"] for entry in listed] == paths[-most:]
    assert [entry["n"] for entry in listed] == [*range(1, len(paths) + 1)][-most:]
    by_path = {"count": paths[-most:].count("/a"), "exact": len(paths) <= most}
    assert log.count({"path": "/a"}) == by_path


def test_a_request_takes_little_room_however_long_it_is() -> None:
    log = Log(VirtualClock())
    entry = log.add("toy", request("/" + "a" * 100_000, "b" * 100_000))
    assert len(entry.path) == len(entry.user_agent) == 2000


async def test_the_truth_is_told_as_it_is_now(http: httpx2.AsyncClient, toy: Toy) -> None:
    toy.page = "new"
    assert (await http.get("/_truth/toy?a=1")).json() == {"page": "new", "a": "1"}


@pytest.mark.parametrize(
    ("path", "status"), [("/_truth/toy?bad=1", 400), ("/_truth/nobody", 404), ("/_truth/", 404)]
)
async def test_a_question_without_an_answer_gets_a_sentence(
    http: httpx2.AsyncClient, path: str, status: int
) -> None:
    reply = await http.get(path)
    assert reply.status_code == status
    assert reply.json()["error"]["message"]


@pytest.mark.parametrize(
    "path", ["/nowhere", "/toy", "/_nothing", "/_control/x", "/%00", "/a//b", "/...", "/a%3Fb%23c"]
)
async def test_a_path_that_is_nobodys_is_not_found(http: httpx2.AsyncClient, path: str) -> None:
    reply = await http.get(path)
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize("host", ["[", "a/toy/b", "a b", "a?b", "\xe9", "a:b", "[::1", "a:999999"])
@pytest.mark.parametrize("path", ["/", "/toy/a", "/robots.txt", "/_seen"])
async def test_an_odd_host_is_refused(http: httpx2.AsyncClient, host: str, path: str) -> None:
    reply = await http.get(path, headers={b"host": host.encode("latin-1")})
    assert reply.status_code == 400


async def test_a_question_mark_inside_a_path_stays_there(http: httpx2.AsyncClient) -> None:
    await http.get("/toy/a%3Fb%23c?d=e")
    assert [(entry["path"], entry["query"]) for entry in await seen(http)] == [
        ("/toy/a?b#c", "d=e")
    ]


async def test_the_first_page_is_for_people(http: httpx2.AsyncClient) -> None:
    await http.get("/toy/a")
    reply = await http.get("/")
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    for words in ("/_truth/toy", "/_truth/other", "2026-01-01T00:00:00+00:00", "<b>1</b> requests"):
        assert words in reply.text
    assert "$" not in reply.text


async def test_robots_may_do_anything_until_an_order_says_otherwise(
    http: httpx2.AsyncClient,
) -> None:
    rules = Protego.parse((await http.get("/robots.txt")).text)
    assert rules.can_fetch("/toy/a", "mimawari")
    body = "User-agent: *\nDisallow: /toy/\n"
    order = {"path": "/robots.txt", "do": "status", "code": 200, "body": body}
    assert (await http.post("/_control", json=order)).status_code == 201
    reply = await http.get("/robots.txt")
    assert reply.headers["content-type"].startswith("text/plain")
    rules = Protego.parse(reply.text)
    assert not rules.can_fetch("/toy/a", "mimawari")
    assert rules.can_fetch("/other/a", "mimawari")
    assert (await http.get("/toy/a")).status_code == 200


async def test_a_page_that_is_known_is_not_sent_again_until_it_changes(
    http: httpx2.AsyncClient, toy: Toy, clock: VirtualClock
) -> None:
    first = await http.get("/toy/a")
    assert parsedate_to_datetime(first.headers["last-modified"]) == clock.now()
    await clock.advance(timedelta(hours=1))
    for header, mark in (("if-none-match", "etag"), ("if-modified-since", "last-modified")):
        again = await http.get("/toy/a", headers={header: first.headers[mark]})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == first.headers["etag"]
        assert again.headers["last-modified"] == first.headers["last-modified"]
    toy.page = "changed"
    for header, mark in (("if-none-match", "etag"), ("if-modified-since", "last-modified")):
        again = await http.get("/toy/a", headers={header: first.headers[mark]})
        assert (again.status_code, again.text) == (200, "changed")
        assert again.headers["etag"] != first.headers["etag"]
        assert parsedate_to_datetime(again.headers["last-modified"]) == clock.now()
    assert [entry["status"] for entry in await seen(http)] == [200, 304, 304, 200, 200]


async def test_a_tag_counts_more_than_a_time(http: httpx2.AsyncClient) -> None:
    first = await http.get("/toy/a")
    stale = {"if-none-match": '"x"', "if-modified-since": first.headers["last-modified"]}
    assert (await http.get("/toy/a", headers=stale)).text == PAGE


async def test_two_pages_of_the_same_content_have_times_of_their_own(
    http: httpx2.AsyncClient, clock: VirtualClock
) -> None:
    first = await http.get("/toy/a")
    await clock.advance(timedelta(hours=1))
    second = await http.get("/toy/b")
    assert first.headers["etag"] == second.headers["etag"]
    assert first.headers["last-modified"] != second.headers["last-modified"]


async def test_an_answer_to_a_post_and_a_refusal_carry_no_marks(http: httpx2.AsyncClient) -> None:
    assert "etag" not in (await http.post("/toy/a")).headers
    await http.post("/_control", json={"do": "blocked"})
    assert "etag" not in (await http.get("/toy/a")).headers


async def test_a_world_can_be_asked_in_process_as_over_a_socket(world: World) -> None:
    transport = httpx2.ASGITransport(app=world)
    async with httpx2.AsyncClient(transport=transport, base_url="http://world") as http:
        assert (await http.get("/toy/a")).text == PAGE
        assert len(await seen(http)) == 1


@given(path=st.text(max_size=30), query=st.text(max_size=30), agent=st.text(max_size=30))
@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_no_request_brings_the_world_down(
    world: World, path: str, query: str, agent: str
) -> None:
    headers = [(b"host", b"world"), (b"user-agent", agent.encode("utf-8", "replace"))]
    for start in ("/", "/toy/", "/_truth/", "/_control/", "/_seen"):
        scope = {
            "type": "http",
            "method": "GET",
            "path": start + path,
            "query_string": query.encode("utf-8", "replace"),
            "headers": headers,
            "scheme": "http",
        }
        answer = await world.answer(Request(scope, receive_nothing))
        assert answer.status_code in {200, 400, 404}
    assert world.log.list({"limit": "10000"})["seen"]


async def receive_nothing() -> dict[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


async def test_the_whole_world_has_its_five_parts_and_no_path_has_two_owners(
    clock: VirtualClock,
) -> None:
    world = make_world(clock, seed=3)
    parts: list[Part] = list(world.parts.values())
    assert [part.name for part in parts] == ["market", "rentals", "books", "live", "hooks", "mail"]
    paths = (
        *("/search", "/item/m1", "/shops/product/2J", "/v2/entities:search", "/items/get"),
        *("/v1/marketplaces/shops/products/2J", "/_cells", "/_market.js", "/_image/x"),
        *("/rent/search/03/13/13991/", "/rent/detail/x/", "/books/v1/volumes"),
        *("/resolve", "/live/x/master.m3u8", "/hooks/x"),
    )
    for path in paths:
        assert sum(part.owns(path) for part in parts) == 1, path
    for path in ("/", "/_seen", "/_control", "/_truth/market", "/robots.txt", "/_seen/count"):
        assert not any(part.owns(path) for part in parts), path
    async with serve(world) as http:
        for name in world.parts:
            assert (await http.get(f"/_truth/{name}")).status_code == 200
        home = (await http.get("/")).text
        for place in ("/search?", "/rent/search/", "/live/", "/hooks/"):
            assert f'<a href="{place}' in home
        assert (await http.get("/search")).status_code == 200


def test_numbers_of_requests_go_up_by_one(clock: VirtualClock) -> None:
    log = Log(clock)
    for number, part in zip(count(1), ("a", "b", "a", "c"), strict=False):
        assert log.add(part, request("/")).n == number
