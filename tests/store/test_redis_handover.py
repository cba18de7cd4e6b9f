"""A job is handed out at once also when the reply to its claim was lost on the way."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
from redis.asyncio.connection import parse_url

from mimawari.errors import StoreDown
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.job import NewJob, Want
from mimawari.kernel.signal import JOBS
from mimawari.store.redis import RedisStore, names
from mimawari.store.redis.queue import CONFIRM_FOR
from mimawari.store.redis.relay import SOON
from mimawari.store.sql.tables import relay
from tests.faults.proxy import Proxy, lossy
from tests.faults.world import FULL
from tests.stores import BESIDE, address_of, open_store

pytestmark = pytest.mark.parametrize("engine", ["redis"])

LEASE = timedelta(minutes=2)
WANT = Want(kind="lost", most=5, lease_for=LEASE)
QUEUE = "animetop:queue:lost"


@asynccontextmanager
async def behind_a_proxy(
    store: RedisStore, clock: VirtualClock, word: str = QUEUE
) -> AsyncIterator[tuple[RedisStore, Proxy]]:
    """Open the same place once more, with a Redis whose replies can be lost on the way."""
    database, _, redis = address_of(store).partition(BESIDE)
    target = parse_url(redis)
    async with lossy(target["host"], target["port"], word.encode()) as proxy:
        host, port = proxy.address
        url = f"redis://{host}:{port}/{target.get('db', 0)}"
        distant = open_store(f"{database}{BESIDE}{url}", clock)
        assert isinstance(distant, RedisStore)
        try:
            yield distant, proxy
        finally:
            await distant.close()


async def test_a_claim_whose_reply_was_lost_is_made_anew_by_the_next_turn(
    store: RedisStore, clock: VirtualClock
) -> None:
    [job_id] = await store.queue.put([NewJob(kind="lost")])
    async with behind_a_proxy(store, clock) as (distant, proxy):
        # The server learns the script from the first claim of all.
        await distant.queue.turn((), [replace(WANT, kind="other")], "w")
        proxy.arm(1)
        with pytest.raises(StoreDown):
            await distant.queue.turn((), [WANT], "w")
        assert proxy.lost == 1
        # Redis holds it claimed, and nobody knows.
        assert await store.link.client.llen(f"{QUEUE}:processing") == 1
        [job] = (await distant.queue.turn((), [WANT], "w")).jobs
        assert job.id == job_id
        assert distant.relay.late.total() == 0


async def test_a_claim_that_is_carried_out_after_it_was_given_up_hands_out_nothing(
    store: RedisStore, clock: VirtualClock
) -> None:
    await store.queue.put([NewJob(kind="lost")])
    now = 1_000_000 * int(clock.now().timestamp())
    assert await store.link.run("disown", now, "late", keys=names.CALLS) == []
    want = (QUEUE, 100, 5, now, 1)
    assert await store.link.run("claim", now, "late", now, "", *want, keys=names.CALLS) == b"[]"
    assert len((await store.queue.turn((), [WANT], "w")).jobs) == 1


async def test_a_claim_that_nobody_confirms_lasts_for_seconds_and_not_for_its_lease(
    store: RedisStore, clock: VirtualClock
) -> None:
    [job_id] = await store.queue.put([NewJob(kind="lost")])
    # As when a worker dies after Redis has handed it a job and before SQL confirms it.
    now = round(clock.now().timestamp() * 1e6)
    until = now + CONFIRM_FOR // timedelta(microseconds=1)
    want = (QUEUE, 100, 5, now + LEASE // timedelta(microseconds=1), 1)
    handed = await store.link.run("claim", now, "dead", until, "", *want, keys=names.CALLS)
    assert job_id.encode() in handed
    assert await store.queue.next_at(["lost"]) == clock.now() + CONFIRM_FOR
    await clock.advance(CONFIRM_FOR)
    assert await store.queue.expired(clock.now(), 10) == []
    assert [job.id for job in (await store.queue.turn((), [WANT], "w")).jobs] == [job_id]
    assert store.relay.late["lapsed"] == 1


async def test_a_confirmed_claim_is_kept_for_its_whole_lease(
    store: RedisStore, clock: VirtualClock
) -> None:
    await store.queue.put([NewJob(kind="lost")])
    assert len((await store.queue.turn((), [WANT], "w")).jobs) == 1
    assert await store.queue.next_at(["lost"]) == clock.now() + LEASE
    assert (await store.queue.turn((), [WANT], "w")).jobs == ()
    assert await store.link.client.exists(*names.CALLS) == 0


async def test_jobs_in_doubt_stay_so_until_they_could_be_set_right(
    store: RedisStore, clock: VirtualClock
) -> None:
    [job_id] = await store.queue.put([NewJob(kind="lost")])
    now = round(clock.now().timestamp() * 1e6)
    want = (QUEUE, 100, 5, now + LEASE // timedelta(microseconds=1), 1)
    await store.link.run("claim", now, "dead", now, "", *want, keys=names.CALLS)
    await store.link.client.config_set("maxmemory", 1)
    try:
        with pytest.raises(StoreDown):
            await store.relay.correct_surely([job_id])
    finally:
        await store.link.client.config_set("maxmemory", 0)
    await store.relay.look()
    assert [job.id for job in (await store.queue.turn((), [WANT], "w")).jobs] == [job_id]


async def test_a_commit_is_told_by_others_though_its_machine_has_its_clock_ahead(
    store: RedisStore, clock: VirtualClock
) -> None:
    ahead = {"sealed_at": clock.now() + timedelta(days=9000), "id": "0", "names": "[[],[]]"}
    async with store.database.write() as session:
        await session.execute(relay.insert().values(ahead))
    async with asyncio.timeout(10):
        while True:
            store.relay.stir()
            async with store.read() as reader:
                if not (await reader.execute(relay.select())).all():
                    break
            await asyncio.sleep(SOON.total_seconds() / 10)


@pytest.mark.skipif(not FULL, reason="a dead line is noticed after seconds of silence")
async def test_calls_are_heard_again_after_the_line_has_died_in_silence(
    store: RedisStore, clock: VirtualClock
) -> None:
    async with behind_a_proxy(store, clock) as (distant, proxy):
        bell = distant.signal.bell(JOBS)
        async with asyncio.timeout(20):
            assert await bell.wait(clock, clock.now() + LEASE)
        proxy.cut_silently()
        await store.queue.put([NewJob(kind="lost")])
        async with asyncio.timeout(20):
            assert await bell.wait(clock, clock.now() + LEASE)
