"""What orders to the simulated world promise: which request goes wrong, and for how long."""

import json
from contextlib import suppress
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimawari.errors import BadInput
from mimawari.kernel.clock import VirtualClock
from mimawari.sim.orders import MODES, Orders
from tests.sim.ground import order


async def statuses(http: httpx2.AsyncClient, *paths: str) -> list[int]:
    return [(await http.get(path)).status_code for path in paths]


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
