"""What goes wrong in the simulated world when it is ordered: exactly what the order says."""

import asyncio
import gzip
import json
import zlib
from collections.abc import Mapping
from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2
import pytest

from mimawari.kernel.clock import VirtualClock
from mimawari.sim import faults
from mimawari.sim.orders import MODES
from mimawari.sim.world import World
from tests.sim.ground import PAGE, REPLY, Toy, order, serve

MIB = 1024 * 1024
ZEROS = bytes(MIB)


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
