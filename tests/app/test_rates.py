"""Each client has its own allowance, and it is one allowance over all API processes."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import select

from mimawari.kernel.clock import VirtualClock
from mimawari.store.sql import SqlStore
from mimawari.store.sql.rates import SqlRates
from mimawari.store.sql.tables import rates
from tests.app.ground import OTHER_KEY, Api, check_error, open_api
from tests.conftest import Databases

RATE = 60
GUESSES = 5
"""How many wrong keys a minute are looked at, where so many requests may be made."""
MINUTE = timedelta(minutes=1)


@pytest.fixture
async def pair(
    engine: str, databases: Databases, tmp_path: Path, clock: VirtualClock
) -> AsyncIterator[list[Api]]:
    """Two APIs on one database, each with a store of its own."""
    url = databases.fresh(engine)
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(open_api(url, tmp_path, rate=RATE, clock=clock))
            for _ in range(2)
        ]


async def burst(pair: list[Api], count: int, key: str | None = None) -> Counter[int]:
    """Ask both APIs at once, as often as said each, and count the answers."""
    headers = {} if key is None else {b"X-API-Key": key.encode()}
    answers = await asyncio.gather(
        *(api.http.get("/api/status", headers=headers) for api in pair for _ in range(count))
    )
    return Counter(answer.status_code for answer in answers)


async def test_two_processes_grant_no_more_than_one_allowance(
    pair: list[Api], clock: VirtualClock
) -> None:
    assert await burst(pair, RATE // 2) == {200: RATE}
    assert await burst(pair, 5) == {429: 10}
    assert await burst(pair, RATE // 2, OTHER_KEY) == {200: RATE}
    response = await pair[0].http.get("/api/status")
    check_error(response, 429, "rate_limited")
    await clock.advance(timedelta(seconds=int(response.headers["retry-after"])))
    assert (await pair[0].http.get("/api/status")).status_code == 200
    await clock.advance(MINUTE * 2)
    assert (await burst(pair, RATE))[200] == RATE


async def test_requests_that_come_at_once_use_up_no_more_than_themselves(
    pair: list[Api],
) -> None:
    assert await burst(pair[:1], RATE) == {200: RATE}
    assert await burst(pair, 1) == {429: 2}


async def test_wrong_keys_are_counted_by_address_and_cost_those_who_are_known_nothing(
    pair: list[Api], clock: VirtualClock
) -> None:
    assert await burst(pair, 1) == {200: 2}
    # Each of the two processes has seen the right key once, which was not known either.
    assert await burst(pair, RATE, "wrong") == {401: GUESSES - 2, 429: 2 * RATE - GUESSES + 2}
    assert await burst(pair, 1) == {200: 2}
    await clock.advance(MINUTE)
    assert await burst(pair, RATE, "wrong") == {401: GUESSES, 429: 2 * RATE - GUESSES}


async def test_a_right_key_among_too_many_wrong_ones_is_not_looked_at(pair: list[Api]) -> None:
    assert (await burst(pair, RATE, "wrong"))[401] == GUESSES
    # What is refused must not tell a right guess from a wrong one.
    assert await burst(pair, 1, OTHER_KEY) == await burst(pair, 1, "wrong") == {429: 2}


async def test_a_missing_key_is_no_guess(pair: list[Api]) -> None:
    assert await burst(pair, RATE // 2, "") == {401: RATE}
    assert await burst(pair, 1) == {200: 2}


async def test_nobody_changes_the_address_they_are_counted_by(pair: list[Api]) -> None:
    headers = {"X-API-Key": "wrong"}
    forwarded = [{**headers, "X-Forwarded-For": f"10.0.0.{n}"} for n in range(GUESSES)]
    for given in forwarded:
        response = await pair[0].http.get("/api/status", headers=given)
        check_error(response, 401, "unauthorized")
    response = await pair[0].http.get(
        "/api/status", headers={**headers, "X-Forwarded-For": "x" * 4000}
    )
    check_error(response, 429, "rate_limited")


async def test_health_is_never_counted(pair: list[Api]) -> None:
    assert await burst(pair, RATE) == {200: RATE, 429: RATE}
    async with httpx2.AsyncClient(base_url=pair[0].address) as http:
        assert {(await http.get("/healthz")).status_code for _ in range(RATE)} == {200}


async def test_first_requests_that_meet_are_all_granted(
    store: SqlStore, clock: VirtualClock
) -> None:
    rival = SqlStore(store.database.url.render_as_string(hide_password=False), clock)
    both = [SqlRates(store.database), SqlRates(rival.database)]
    cost = MINUTE / 4
    for client in map(str, range(20)):
        takes = await asyncio.gather(*(rates.take(client, cost, MINUTE) for rates in both * 3))
        assert sorted(takes, key=str) == [clock.now() + cost] * 2 + [None] * 4
    await rival.close()


async def test_an_allowance_drains_evenly(store: SqlStore, clock: VirtualClock) -> None:
    allowances = SqlRates(store.database)
    cost = MINUTE / 4
    assert [await allowances.take("a", cost, MINUTE) for _ in range(4)] == [None] * 4
    free_at = await allowances.take("a", cost, MINUTE)
    assert free_at == clock.now() + cost
    await clock.advance(cost)
    assert await allowances.take("a", cost, MINUTE) is None
    assert await allowances.take("a", cost, MINUTE) == clock.now() + cost
    assert await allowances.take("b", cost, MINUTE) is None


async def test_a_client_who_has_not_come_for_a_while_is_forgotten_when_a_new_one_comes(
    store: SqlStore, clock: VirtualClock
) -> None:
    allowances = SqlRates(store.database)
    for client in ("a", "b"):
        await allowances.take(client, MINUTE, MINUTE)
    await clock.advance(MINUTE * 3)
    await allowances.take("c", MINUTE, MINUTE)
    async with store.read() as reader:
        left = (await reader.execute(select(rates.c.client))).scalars().all()
    assert left == ["c"]
