"""What orders to the simulated world promise: which request goes wrong, and exactly how."""

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimawari.errors import BadInput
from mimawari.kernel.clock import VirtualClock
from mimawari.sim import faults
from mimawari.sim.orders import MODES, Orders
from mimawari.sim.world import World
from tests.sim.ground import PAGE, REPLY, Toy, serve

MIB = 1024 * 1024
ZEROS = bytes(MIB)


@pytest.fixture
async def http(clock: VirtualClock) -> AsyncIterator[httpx2.AsyncClient]:
    async with serve(World(clock, (Toy(), Toy("other")), 1)) as http:
        yield http


async def order(http: httpx2.AsyncClient, do: str, **more: Any) -> dict[str, Any]:
    reply = await http.post("/_control", json={"part": "toy", "do": do, **more})
    assert reply.status_code == 201, reply.text
    placed: dict[str, Any] = reply.json()
    return placed


async def statuses(http: httpx2.AsyncClient, *paths: str) -> list[int]:
    return [(await http.get(path)).status_code for path in paths]


async def raw(http: httpx2.AsyncClient, path: str, most: int) -> bytes:
    """Read up to so many bytes of a reply as they are, and leave."""
    found = b""
    async with http.stream("GET", path) as reply:
        async for chunk in reply.aiter_raw():
            found += chunk
            if len(found) >= most:
                break
    return found


def test_every_mode_that_can_be_ordered_has_an_answer() -> None:
    assert set(faults.ANSWERS) == set(MODES)


@pytest.mark.parametrize(
    "given",
    [
        None,
        [],
        "blocked",
        {},
        {"do": "explode"},
        {"do": None},
        {"do": ["blocked"]},
        {"do": "blocked", "part": "elsewhere"},
        {"do": "blocked", "part": None},
        {"do": "blocked", "part": {}},
        {"do": "blocked", "path": "toy"},
        {"do": "blocked", "path": 5},
        {"do": "blocked", "hurry": True},
        {"do": "blocked", "code": 403},
        {"do": "blocked", "times": 0},
        {"do": "blocked", "times": -1},
        {"do": "blocked", "times": 1.5},
        {"do": "blocked", "times": True},
        {"do": "blocked", "times": 10**400},
        {"do": "blocked", "for_s": 0},
        {"do": "blocked", "for_s": "5"},
        {"do": "blocked", "for_s": float("nan")},
        {"do": "blocked", "for_s": float("inf")},
        {"do": "blocked", "share": 1.1},
        {"do": "blocked", "share": -0.1},
        {"do": "challenge", "code": 404},
        {"do": "challenge", "code": 403.0},
        {"do": "status", "code": 99},
        {"do": "status", "code": 600},
        {"do": "status", "code": 500, "type": "a\nb: c"},
        {"do": "status", "code": 500, "type": "日本"},
        {"do": "status", "code": 500, "body": 5},
        {"do": "rate_limited", "date": 1},
        {"do": "slow", "delay_s": -1},
        {"do": "slow", "delay_s": 10**9},
        {"do": "bomb", "kind": "zip"},
        {"do": "bomb", "size_mib": 0},
        {"do": "bomb", "size_mib": 10**9},
        {"do": "redirect"},
        {"do": "encoding", "kind": "utf-7"},
        {"do": "nested", "depth": 10**9},
    ],
)
async def test_a_bad_order_is_refused_with_a_sentence(http: httpx2.AsyncClient, given: Any) -> None:
    reply = await http.post("/_control", content=json.dumps(given))
    assert reply.status_code == 400
    assert set(reply.json()) == {"error"}
    assert set(reply.json()["error"]) == {"code", "message"}
    assert reply.json()["error"]["message"]
    assert (await http.get("/_control")).json() == {"orders": []}


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff", b"[" * 100_000, b'{"do": "blocked"} x', b"9" * 5000]
)
async def test_an_order_that_is_no_json_is_refused(http: httpx2.AsyncClient, body: bytes) -> None:
    reply = await http.post("/_control", content=body)
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "bad_input")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(("do", "part", "path", "times", "share", "code", "url"))
                | st.text(),
                inner | st.sampled_from((*MODES, "toy", "*", "/")),
                max_size=6,
            )
        ),
        max_leaves=12,
    )
)
@settings(max_examples=150, deadline=None)
def test_no_order_raises_anything_but_a_sentence(given: Any) -> None:
    orders = Orders(VirtualClock(), 1, ("toy",))
    placed = None
    with suppress(BadInput):
        placed = orders.add(given)
    assert orders.list() == ([placed] if placed else [])


async def test_orders_are_listed_and_removed_one_by_one_or_all(http: httpx2.AsyncClient) -> None:
    first = await order(http, "gone", path="/toy/a", times=3)
    second = await order(http, "blocked")
    assert first["used"] == 0
    assert (await http.get("/_control")).json() == {"orders": [first, second]}
    assert await statuses(http, "/toy/a", "/toy/b") == [404, 418]
    listed = (await http.get("/_control")).json()["orders"]
    assert [entry["used"] for entry in listed] == [1, 1]
    assert (await http.delete(f"/_control/{first['id']}")).json() == {"removed": 1}
    assert await statuses(http, "/toy/a") == [418]
    assert (await http.delete("/_control")).json() == {"removed": 1}
    assert await statuses(http, "/toy/a") == [200]


@pytest.mark.parametrize(
    ("order_id", "status"),
    [("7", 404), ("x", 400), ("\uff11", 400), ("-1", 400), ("9" * 5000, 400), ("1_0", 400)],
)
async def test_an_order_that_is_not_there_cannot_be_removed(
    http: httpx2.AsyncClient, order_id: str, status: int
) -> None:
    reply = await http.delete(f"/_control/{order_id}")
    assert reply.status_code == status
    assert reply.json()["error"]["message"]


async def test_an_order_ends_after_so_many_times(http: httpx2.AsyncClient) -> None:
    await order(http, "blocked", times=2)
    assert await statuses(http, *["/toy/a"] * 4) == [418, 418, 200, 200]
    assert (await http.get("/_control")).json() == {"orders": []}


async def test_an_order_ends_after_its_time_on_our_clock(
    http: httpx2.AsyncClient, clock: VirtualClock
) -> None:
    await order(http, "blocked", for_s=600)
    await clock.advance(timedelta(seconds=599))
    assert await statuses(http, "/toy/a") == [418]
    await clock.advance(timedelta(seconds=1))
    assert await statuses(http, "/toy/a") == [200]


async def test_turning_the_wall_clock_does_not_end_an_order(
    http: httpx2.AsyncClient, clock: VirtualClock
) -> None:
    await order(http, "blocked", for_s=600)
    clock.step(timedelta(days=1))
    assert await statuses(http, "/toy/a") == [418]


async def test_an_order_is_about_its_part_and_its_path_only(http: httpx2.AsyncClient) -> None:
    await order(http, "gone", path="/toy/a")
    assert await statuses(http, "/toy/a", "/toy/ab", "/toy/b", "/other/a") == [404, 404, 200, 200]


async def test_an_order_for_every_part_is_obeyed_by_each_in_its_own_way(
    http: httpx2.AsyncClient,
) -> None:
    await order(http, "blocked", part="*")
    assert (await http.get("/toy/a")).text == "toy says no"
    assert (await http.get("/other/a")).text == "other says no"


async def test_what_a_page_loads_is_left_alone_unless_the_order_names_it(
    http: httpx2.AsyncClient,
) -> None:
    await order(http, "blocked", part="*", path="/")
    assert await statuses(http, "/toy/a", "/_toy/image", "/robots.txt") == [418, 200, 200]
    await order(http, "gone", path="/_toy/")
    assert await statuses(http, "/_toy/image", "/robots.txt") == [404, 200]


async def test_the_first_order_that_covers_a_request_is_the_one(http: httpx2.AsyncClient) -> None:
    await order(http, "status", code=500, times=1)
    await order(http, "status", code=501)
    assert await statuses(http, "/toy/a", "/toy/a") == [500, 501]


def picks(seed: int, share: float) -> list[bool]:
    orders = Orders(VirtualClock(), seed, ("toy",))
    orders.add({"do": "blocked", "share": share})
    return [orders.find("toy", "/toy/a") is not None for _ in range(2000)]


def test_a_share_is_kept_to_and_falls_the_same_for_the_same_seed() -> None:
    assert picks(1, 0.3) == picks(1, 0.3) != picks(2, 0.3)
    assert 500 < sum(picks(1, 0.3)) < 700
    assert sum(picks(1, 0)) == 0
    assert sum(picks(1, 1)) == 2000


def test_there_is_an_end_to_the_orders_that_are_kept() -> None:
    orders = Orders(VirtualClock(), 1, ("toy",))
    for _ in range(200):
        orders.add({"do": "blocked"})
    with pytest.raises(BadInput, match="remove some"):
        orders.add({"do": "blocked"})


@pytest.mark.parametrize(("code", "trace"), [(403, "managed"), (503, "jsch")])
async def test_a_challenge_has_all_the_marks_of_one(
    http: httpx2.AsyncClient, code: int, trace: str
) -> None:
    await order(http, "challenge", code=code)
    reply = await http.get("/toy/a?x=<script>")
    assert (reply.status_code, reply.headers["server"]) == (code, "cloudflare")
    for mark in ("<title>Just a moment...</title>", 'id="challenge-form"', 'class="ray_id"'):
        assert mark in reply.text
    assert f"/cdn-cgi/images/trace/{trace}/" in reply.text
    assert '<script>"' not in reply.text


@pytest.mark.parametrize("code", [200, 204, 304, 403, 404, 410, 429, 500, 503, 520, 599])
async def test_any_status_can_be_ordered_with_any_body(http: httpx2.AsyncClient, code: int) -> None:
    await order(http, "status", code=code, body="<p>見", type="text/html; charset=utf-8")
    reply = await http.get("/toy/a")
    assert reply.status_code == code
    assert reply.text == ("" if code in {204, 304} else "<p>見")


@pytest.mark.parametrize("seconds", [0, 1, 3600])
async def test_being_asked_to_wait_comes_in_seconds_or_as_a_date(
    http: httpx2.AsyncClient, clock: VirtualClock, seconds: int
) -> None:
    await order(http, "rate_limited", retry_after=seconds, times=1)
    reply = await http.get("/toy/a")
    assert (reply.status_code, reply.headers["retry-after"]) == (429, str(seconds))
    await order(http, "rate_limited", retry_after=seconds, date=True)
    until = parsedate_to_datetime((await http.get("/toy/a")).headers["retry-after"])
    assert until == clock.now() + timedelta(seconds=seconds)


async def test_a_slow_answer_comes_and_is_the_true_one(http: httpx2.AsyncClient) -> None:
    await order(http, "slow", delay_s=0.01)
    assert (await http.get("/toy/a")).text == PAGE


async def test_a_slow_answer_still_hears_what_was_sent(clock: VirtualClock) -> None:
    toy = Toy()
    async with serve(World(clock, (toy,), 1)) as http:
        await order(http, "slow", delay_s=0.01)
        await http.post("/toy/a", content=b"x" * 100_000)
    assert toy.bodies == [b"x" * 100_000]


async def test_nobody_waits_for_a_slow_answer_that_nobody_wants_any_more(
    http: httpx2.AsyncClient,
) -> None:
    await order(http, "slow", delay_s=80_000.0)
    with pytest.raises(httpx2.ReadTimeout):
        await http.get("/toy/a", timeout=0.2)
    async with asyncio.timeout(30):
        while not (await http.get("/_seen?path=/toy/a")).json()["seen"][0]["status"]:
            pass
    assert (await http.get("/_seen?path=/toy/a")).json()["seen"][0]["status"] == 499


async def test_a_drip_gives_a_byte_at_a_time_and_has_no_end(http: httpx2.AsyncClient) -> None:
    await order(http, "drip")
    async with http.stream("GET", "/toy/a") as reply:
        drops = reply.aiter_raw()
        assert [await anext(drops) for _ in range(3)] == [b" "] * 3


async def test_an_endless_answer_goes_on_for_as_long_as_one_reads(
    http: httpx2.AsyncClient,
) -> None:
    await order(http, "endless")
    assert len(await raw(http, "/toy/a", 4 * MIB)) >= 4 * MIB
    assert (await http.get("/other/a")).status_code == 200


async def test_a_bomb_is_small_on_the_wire_and_large_when_opened(http: httpx2.AsyncClient) -> None:
    await order(http, "bomb", size_mib=40, times=1)
    packed = await raw(http, "/toy/a", 2**62)
    assert len(packed) < MIB
    assert gzip.decompress(packed) == ZEROS * 40
    await order(http, "bomb", size_mib=40, kind="stacked")
    async with http.stream("GET", "/toy/a") as reply:
        assert reply.headers["content-encoding"] == "gzip, gzip"
        packed = b"".join([chunk async for chunk in reply.aiter_raw()])
    assert len(packed) < MIB // 10
    assert gzip.decompress(gzip.decompress(packed)) == ZEROS * 40


@pytest.mark.parametrize(("kind", "encoding"), [("br", "br"), ("plain", None)])
async def test_a_bomb_may_claim_what_it_is_not(
    http: httpx2.AsyncClient, kind: str, encoding: str | None
) -> None:
    await order(http, "bomb", size_mib=3, kind=kind)
    async with http.stream("GET", "/toy/a") as reply:
        assert reply.headers.get("content-encoding") == encoding
        assert sum([len(chunk) async for chunk in reply.aiter_raw()]) == 3 * MIB


async def test_a_bomb_of_gigabytes_starts_at_once(http: httpx2.AsyncClient) -> None:
    await order(http, "bomb", size_mib=65_536)
    packed = await raw(http, "/toy/a", 4000)
    opened = zlib.decompressobj(31).decompress(packed, 2 * MIB)
    assert opened == ZEROS * 2


async def test_an_empty_answer_is_a_good_one_with_nothing_in_it(http: httpx2.AsyncClient) -> None:
    await order(http, "empty")
    reply = await http.get("/toy/a")
    assert (reply.status_code, reply.content) == (200, b"")


async def test_a_changed_layout_says_the_same_by_other_names(http: httpx2.AsyncClient) -> None:
    await order(http, "changed_layout")
    page = (await http.get("/toy/a")).text
    assert 'class="list-v2 wide-v2"' in page
    assert 'data-testid="row-v2" id="a">見回り' in page
    reply = (await http.get("/toy/api")).json()
    assert reply == {"itemsV2": [{"nameV2": "見回り", "priceV2": 5}], "nextV2": None}


async def test_garbage_is_the_same_garbage_for_the_same_seed(clock: VirtualClock) -> None:
    found = []
    for seed in (1, 1, 2):
        async with serve(World(clock, (Toy(),), seed)) as http:
            await order(http, "garbage", size=1000)
            found.append((await http.get("/toy/a")).content)
    assert len(found[0]) == 1000
    assert found[0] == found[1] != found[2]


async def test_a_wrong_length_breaks_off_after_the_whole_page(http: httpx2.AsyncClient) -> None:
    await order(http, "wrong_length", missing=10)
    async with http.stream("GET", "/toy/a") as reply:
        chunks = reply.aiter_raw()
        assert (await anext(chunks)).decode() == PAGE
        with pytest.raises(httpx2.RemoteProtocolError):
            await anext(chunks)
    assert int(reply.headers["content-length"]) == len(PAGE.encode()) + 10


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_reset_is_one_on_the_wire(http: httpx2.AsyncClient, method: str) -> None:
    await order(http, "reset")
    reader, writer = await asyncio.open_connection(http.base_url.host, http.base_url.port)
    writer.write(f"{method} /toy/a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nok".encode())
    with pytest.raises(ConnectionResetError):
        await reader.read()
    writer.close()
    seen = (await http.get("/_seen?part=toy")).json()["seen"]
    assert (seen[0]["status"], seen[0]["order"]["do"]) == (None, "reset")


async def test_a_reset_in_process_is_an_error_of_the_connection(clock: VirtualClock) -> None:
    world = World(clock, (Toy(),), 1)
    world.orders.add({"do": "reset"})
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=world)) as http:
        with pytest.raises(ConnectionResetError):
            await http.get("http://world/toy/a")


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_a_redirect_leads_where_it_is_told_or_round_and_round(
    http: httpx2.AsyncClient, code: int
) -> None:
    await order(http, "redirect", url="http://127.0.0.1:1/", code=code, times=1)
    reply = await http.get("/toy/a")
    assert (reply.status_code, reply.headers["location"]) == (code, "http://127.0.0.1:1/")
    await order(http, "redirect", loop=True, code=code)
    with pytest.raises(httpx2.TooManyRedirects):
        await http.get("/toy/a?x=1", follow_redirects=True)


@pytest.mark.parametrize("header", ["if-none-match", "if-modified-since"])
async def test_not_modified_is_said_to_those_who_ask_only(
    http: httpx2.AsyncClient, header: str
) -> None:
    await order(http, "not_modified")
    assert (await http.get("/toy/a")).text == PAGE
    reply = await http.get("/toy/a", headers={header: "whatever"})
    assert (reply.status_code, reply.content) == (304, b"")


@pytest.mark.parametrize(
    ("kind", "page", "reply"),
    [
        ("shift_jis", "見回り".encode("shift_jis"), "見回り".encode("shift_jis")),
        ("nul", "見回り\0".encode(), "見回り\0".encode()),
        ("surrogates", "見回り".encode() + b"\xed\xa0\x80", "見回り".encode() + b"\xed\xa0\x80"),
        ("escapes", "見回り".encode() + rb"\u0000\ud800", "見回り".encode() + rb"\u0000\ud800"),
    ],
)
async def test_text_that_no_reader_expects_is_inside_the_page_and_the_reply(
    http: httpx2.AsyncClient, kind: str, page: bytes, reply: bytes
) -> None:
    await order(http, "encoding", kind=kind)
    answer = await http.get("/toy/a")
    assert page + b"</li>" in answer.content
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert b'"name":"' + reply + b'"' in (await http.get("/toy/api")).content


async def test_escapes_give_json_that_reads_as_a_nul_and_half_a_letter(
    http: httpx2.AsyncClient,
) -> None:
    await order(http, "encoding", kind="escapes")
    assert json.loads((await http.get("/toy/api")).content)["items"][0]["name"] == "見回り\0\ud800"


@pytest.mark.parametrize("depth", [1, 200_000])
async def test_what_is_nested_is_nested_as_deep_as_ordered(
    http: httpx2.AsyncClient, depth: int
) -> None:
    await order(http, "nested", depth=depth, times=1)
    assert (await http.get("/toy/a")).content == b"<div>" * depth
    await order(http, "nested", depth=depth, kind="json")
    assert (await http.get("/toy/a")).content == b"[" * depth + b"]" * depth


async def test_an_article_about_blocks_is_no_block(http: httpx2.AsyncClient) -> None:
    await order(http, "article")
    reply = await http.get("/toy/a")
    assert reply.status_code == 200
    assert "server" not in reply.headers or reply.headers["server"] != "cloudflare"
    assert all(word in reply.text for word in ("403 Forbidden", "CAPTCHA", "Just a moment..."))
    assert "<form" not in reply.text


NEEDED: Mapping[str, Mapping[str, Any]] = {
    "redirect": {"loop": True},
    "slow": {"delay_s": 0.0},
    "bomb": {"size_mib": 1},
}


@pytest.mark.parametrize("do", MODES)
async def test_after_any_mode_the_world_goes_on_and_knows_which_order_it_was(
    http: httpx2.AsyncClient, do: str
) -> None:
    placed = await order(http, do, times=1, **NEEDED.get(do, {}))
    try:
        await raw(http, "/toy/a", 1)
    except httpx2.TransportError:
        assert do in {"reset", "wrong_length"}
    assert (await http.get("/toy/a")).text == PAGE
    assert (await http.get("/toy/api")).json() == REPLY
    seen = (await http.get("/_seen?part=toy")).json()["seen"]
    expected = [{"id": placed["id"], "do": do}, None, None]
    assert [entry["order"] for entry in seen] == expected
