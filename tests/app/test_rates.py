"""Each client has its own allowance, and it is one allowance over all API processes."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import select

from mimawari.app.http.allowance import Allowance
from mimawari.kernel.clock import VirtualClock
from mimawari.store.sql import SqlStore
from mimawari.store.sql.rates import SqlRates
from mimawari.store.sql.tables import rates
from tests.app.ground import OTHER_KEY, Api, check_error, open_api, until, until_ready
from tests.conftest import Databases
from tests.servers import postgres_server

RATE = 60
GUESSES = 5
"""How many wrong keys a minute are looked at, where so many requests may be made."""
MINUTE = timedelta(minutes=1)
MERGED_WITHIN_SECONDS = 5.0
NO_JOB = "00000000-0000-7000-8000-000000000000"


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


async def burst(
    pair: list[Api], count: int, key: str | None = None, method: str = "POST"
) -> Counter[int]:
    """Send requests to both APIs at once, as many as said to each; count the responses.

    A write is one to a job that there is not (404), so that it changes nothing.
    """
    headers = {} if key is None else {b"X-API-Key": key.encode()}
    path = "/api/status" if method == "GET" else f"/api/jobs/{NO_JOB}/retry"
    answers = await asyncio.gather(
        *(api.http.request(method, path, headers=headers) for api in pair for _ in range(count))
    )
    return Counter(answer.status_code for answer in answers)


async def test_two_processes_grant_no_more_writes_than_one_allowance(
    pair: list[Api], clock: VirtualClock
) -> None:
    assert await burst(pair, RATE // 2) == {404: RATE}
    assert await burst(pair, 5) == {429: 10}
    assert await burst(pair, RATE // 2, OTHER_KEY) == {404: RATE}
    response = await pair[0].http.post(f"/api/jobs/{NO_JOB}/retry")
    check_error(response, 429, "rate_limited")
    await clock.advance(timedelta(seconds=int(response.headers["retry-after"])))
    assert (await pair[0].http.post(f"/api/jobs/{NO_JOB}/retry")).status_code == 404
    await clock.advance(MINUTE * 2)
    assert (await burst(pair, RATE))[404] == RATE


async def test_a_process_grants_no_more_reads_than_its_allowance(pair: list[Api]) -> None:
    assert await burst(pair[:1], RATE, method="GET") == {200: RATE}
    assert await burst(pair[:1], 5, method="GET") == {429: 5}


class SlowRates(SqlRates):
    """Allowances in a store that takes its time."""

    def __init__(self, store: SqlStore) -> None:
        super().__init__(store.database)
        self.is_asked, self.may_answer = asyncio.Event(), asyncio.Event()
        self.has_answered = asyncio.Event()

    async def add(self, costs: Mapping[str, timedelta], window: timedelta) -> dict[str, datetime]:
        self.is_asked.set()
        await self.may_answer.wait()
        found = await super().add(costs, window)
        self.has_answered.set()
        return found


async def test_reads_count_while_they_are_being_merged(
    store: SqlStore, clock: VirtualClock
) -> None:
    slow = SlowRates(store)
    allowance = Allowance(slow, clock, RATE)
    granted = [allowance.use_for_read("a") for _ in range(RATE)]
    assert granted == [None] * RATE
    await slow.is_asked.wait()
    assert allowance.use_for_read("a") is not None
    slow.may_answer.set()
    await slow.has_answered.wait()
    assert await allowance.use_for_write("a") is not None
    assert allowance.use_for_read("a") is not None


async def test_reads_of_one_process_count_for_the_other_within_a_merge(pair: list[Api]) -> None:
    assert await burst(pair[:1], RATE, method="GET") == {200: RATE}

    async def is_spent_elsewhere() -> bool:
        return await burst(pair[1:], 1) == {429: 1}

    await until(is_spent_elsewhere, MERGED_WITHIN_SECONDS)


async def test_reads_count_for_writes_of_the_same_process_at_once(pair: list[Api]) -> None:
    assert await burst(pair[:1], RATE // 2, method="GET") == {200: RATE // 2}
    assert await burst(pair[:1], RATE) == {404: RATE // 2, 429: RATE // 2}


async def test_a_read_is_counted_while_the_database_stands_still(tmp_path: Path) -> None:
    with postgres_server(durable=False) as server:
        async with open_api(server.url, tmp_path, rate=RATE) as api:
            await until_ready(api.http)
            await asyncio.to_thread(server.freeze)
            try:
                async with asyncio.timeout(1), httpx2.AsyncClient(base_url=api.address) as http:
                    check_error(await http.get("/api/status"), 401, "unauthorized")
            finally:
                await asyncio.to_thread(server.thaw)


async def test_wrong_keys_are_counted_by_address_and_cost_those_who_are_known_nothing(
    pair: list[Api], clock: VirtualClock
) -> None:
    assert await burst(pair, 1) == {404: 2}
    # Each of the two processes has seen the right key once, which was not known either.
    assert await burst(pair, RATE, "wrong") == {401: GUESSES - 2, 429: 2 * RATE - GUESSES + 2}
    assert await burst(pair, 1) == {404: 2}
    await clock.advance(MINUTE)
    assert await burst(pair, RATE, "wrong") == {401: GUESSES, 429: 2 * RATE - GUESSES}


async def test_a_right_key_among_too_many_wrong_ones_is_not_looked_at(pair: list[Api]) -> None:
    assert (await burst(pair, RATE, "wrong"))[401] == GUESSES
    # What is refused must not tell a right guess from a wrong one.
    assert await burst(pair, 1, OTHER_KEY) == await burst(pair, 1, "wrong") == {429: 2}


async def test_a_missing_key_is_no_guess(pair: list[Api]) -> None:
    assert await burst(pair, RATE // 2, "") == {401: RATE}
    assert await burst(pair, 1) == {404: 2}


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
    assert await burst(pair, RATE) == {404: RATE, 429: RATE}
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


async def test_counts_are_merged_over_what_others_have_used(
    store: SqlStore, clock: VirtualClock
) -> None:
    rival = SqlStore(store.database.url.render_as_string(hide_password=False), clock)
    both = [SqlRates(store.database), SqlRates(rival.database)]
    used = {str(number): MINUTE / 60 for number in range(20)}
    merged = await asyncio.gather(*(rates.add(used, MINUTE) for rates in both * 3))
    latest = {name: max(found[name] for found in merged) for name in used}
    assert set(latest.values()) == {clock.now() + 6 * MINUTE / 60}
    await rival.close()
