"""What the calls of a log were told, made again; and where they have to lead."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import pytest
from starlette.requests import Request

from mimawari.kernel.clock import VirtualClock
from mimawari.sim.sites.google_books.observed import Calls, Found, Look, Reading, look_again
from mimawari.sim.sites.google_books.site import ORIGIN_AT, Books
from mimawari.sim.world import World

SEED = 5
AT = datetime(2026, 6, 1, 14, 59, 58, tzinfo=UTC)
"""Two seconds before midnight in Tokyo."""


async def call(world: World, **asked: object) -> tuple[int, Any]:
    """Call the API within its world, which writes its log."""
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/books/v1/volumes",
        "query_string": urlencode(asked).encode(),
        "headers": [(b"host", b"books.test"), (b"x-goog-api-key", b"a-key")],
    }
    answer = await world.answer(Request(scope))
    return answer.status_code, json.loads(bytes(answer.body) or b"{}")


def key_of(volume: Mapping[str, Any]) -> str:
    """Tell the book of a volume by the end that every ISBN of it shares, or by its id."""
    numbers = volume["volumeInfo"].get("industryIdentifiers", [])
    isbns = [one["identifier"] for one in numbers if one["type"].startswith("ISBN")]
    return str(max(isbns, key=len)[-10:-1] if isbns else volume["id"])


async def test_every_call_is_told_again_what_it_was_told() -> None:
    clock = VirtualClock(ORIGIN_AT + timedelta(days=1))
    world = World(clock, (Books(clock, SEED),), SEED)
    world.orders.add({"do": "status", "code": 200, "body": "{}", "part": "books", "times": 1})
    replies = []
    for number in range(120):
        q = ("猫 OR 鉄道", "subject:science", "推理 inauthor:汐見", "nowhere")[number % 4]
        replies.append(await call(world, q=q, startIndex=number * 3, maxResults=20))
        clock.step(timedelta(minutes=7))
    looks = look_again(SEED, world.log.list({})["seen"])
    assert [look.status for look in looks] == [status for status, _ in replies]
    assert {look.status for look in looks} == {200, 503}
    assert [look.is_answered for look in looks] == ["kind" in body for _, body in replies]
    assert [look.total for look in looks] == [body.get("totalItems") for _, body in replies]
    assert [
        [one.key[3:12] if one.has_isbn else one.key for one in look.found] for look in looks
    ] == [[key_of(volume) for volume in body.get("items", [])] for _, body in replies]
    assert (looks[4].q, looks[4].start, looks[4].most) == ("猫 OR 鉄道", 12, 20)
    assert any(one.has_isbn for look in looks for one in look.found)
    assert any(not one.has_isbn for look in looks for one in look.found)


def look(start: int, volumes: int, total: int | None, *, numbered: bool = True) -> Look:
    found = tuple(Found(key=str(n), has_isbn=numbered) for n in range(start, start + volumes))
    return Look(
        at=AT, q="q", start=start, most=40, status=200, is_answered=True, found=found, total=total
    )


@pytest.mark.parametrize(
    ("seen", "calls_left", "reason", "start_index"),
    [
        (look(0, 40, 150), 1, None, 40),
        (look(0, 40, 40), 1, "exhausted", 40),
        (look(0, 40, 39), 1, "exhausted", 40),
        (look(0, 40, None), 1, None, 40),
        (look(80, 0, 150), 1, "exhausted", 80),
        (look(80, 0, None), 1, None, 80),
        (look(0, 0, 0), 1, "exhausted", 0),
        (look(0, 0, 0), 0, "quota", 0),
        (look(0, 40, 40), 0, "quota", 40),
        (look(0, 50, 50), 1, "max_per_run", 50),
        (look(0, 50, 50), 0, "quota", 50),
        (look(0, 50, 90, numbered=False), 1, None, 50),
    ],
)
def test_a_run_has_to_end_for_the_first_reason_in_the_order_of_its_description(
    seen: Look, calls_left: int, reason: str | None, start_index: int
) -> None:
    reading = Reading(50)
    reading.see(seen, calls_left)
    assert (reading.reason, reading.start_index) == (reason, start_index)
    assert reading.is_exhausted == (reason == "exhausted")
    reading.begin_run()
    assert (reading.reason, reading.start_index) == (None, start_index)
    assert reading.is_exhausted == (reason == "exhausted")
    reading.reset()
    assert (reading.start_index, reading.is_exhausted) == (0, False)


def test_a_call_that_failed_changes_nothing_and_is_remembered() -> None:
    reading = Reading(50)
    reading.see(look(0, 30, 90), 5)
    assert (reading.wanted, reading.has_failed) == (20, False)
    failed = Look(at=AT, q="q", start=30, most=20, status=503, is_answered=False)
    reading.see(failed, 0)
    assert (reading.wanted, reading.start_index, reading.reason) == (20, 30, None)
    assert reading.has_failed
    reading.begin_run()
    assert (reading.wanted, reading.has_failed) == (40, False)


def test_calls_are_counted_by_the_days_of_a_zone() -> None:
    times = [AT + timedelta(seconds=n) for n in range(5)]
    seen = [Look(at=at, q="q", start=0, most=1, status=503, is_answered=False) for at in times]
    calls = Calls([look.at for look in seen], 3, ZoneInfo("Asia/Tokyo"))
    assert [*calls.of_days.values()] == [2, 3]
    assert [calls.count_left(at) for at in times] == [2, 1, 2, 1, 0]
    assert calls.count_left(AT + timedelta(days=1, seconds=1)) == 0
    assert calls.count_left(AT + timedelta(days=1, seconds=2)) == 3
