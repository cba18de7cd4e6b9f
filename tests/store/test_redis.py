"""What Redis thinks it knows is set right by SQL, and costs nobody anything meanwhile."""

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import select
from structlog.testing import capture_logs

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.job import End, NewJob, State, Want
from mimawari.kernel.values import Entry
from mimawari.store.redis import RedisStore, names
from mimawari.store.sql import SqlStore
from mimawari.store.sql.tables import relay
from tests.stores import open_again

pytestmark = pytest.mark.parametrize("engine", ["redis"])

MINUTE = timedelta(minutes=1)
WANT = Want(kind="a", most=5, lease_for=MINUTE)


async def behind(store: RedisStore, clock: VirtualClock) -> SqlStore:
    """Open the database alone, as a process that dies before it tells Redis leaves it."""
    return SqlStore(store.database.url.render_as_string(hide_password=False), clock)


async def test_a_claim_of_a_job_that_has_ended_is_forgotten_when_its_lease_is_over(
    store: RedisStore, clock: VirtualClock
) -> None:
    await store.queue.put([NewJob(kind="a")])
    [job] = (await store.queue.turn((), [WANT], "w")).jobs
    silent = await behind(store, clock)
    await silent.queue.turn([End(id=job.id, token=job.token, state=State.DONE)], (), "w")
    await silent.close()
    assert await store.queue.next_at(["a"]) == clock.now() + MINUTE
    await clock.advance(MINUTE)
    assert await store.queue.expired(clock.now(), 10) == []
    assert await store.queue.next_at(["a"]) is None
    assert await store.link.client.llen("animetop:queue:a:processing") == 0


async def test_a_job_that_redis_offers_though_it_was_claimed_is_not_given_twice(
    store: RedisStore, clock: VirtualClock
) -> None:
    await store.queue.put([NewJob(kind="a") for _ in range(2)])
    silent = await behind(store, clock)
    [job] = (await silent.queue.turn((), [Want(kind="a", most=1, lease_for=MINUTE)], "w")).jobs
    await silent.close()
    [other] = (await store.queue.turn((), [WANT], "w")).jobs
    assert other.id != job.id
    # It was corrected on the way.
    assert await store.queue.depths(["a"], 10) == {"a": 0}
    assert (await store.queue.turn((), [WANT], "w")).jobs == ()


async def test_what_was_claimed_is_at_work_also_when_redis_cannot_be_set_right_now(
    store: RedisStore, clock: VirtualClock
) -> None:
    await store.queue.put([NewJob(kind="a") for _ in range(2)])
    silent = await behind(store, clock)
    [taken] = (await silent.queue.turn((), [Want(kind="a", most=1, lease_for=MINUTE)], "w")).jobs
    await silent.close()
    await store.link.client.config_set("maxmemory", 1)
    try:
        [other] = (await store.queue.turn((), [WANT], "w")).jobs
    finally:
        await store.link.client.config_set("maxmemory", 0)
    assert other.id != taken.id
    await store.relay.look()
    assert await store.queue.depths(["a"], 10) == {"a": 0}
    assert await store.queue.next_at(["a"]) == clock.now() + MINUTE


async def test_a_message_of_somebody_else_is_put_aside(store: RedisStore) -> None:
    queue = "animetop:queue:a"
    await store.queue.put([NewJob(kind="a")])
    await store.link.client.rpush(queue, "hello")
    assert await store.queue.next_at(["a"]) is not None
    assert len((await store.queue.turn((), [WANT], "w")).jobs) == 1
    await store.relay.look()
    [dead] = await store.queue.list(10, state=State.FAILED)
    assert (dead.kind, await store.queue.page(dead.id)) == ("a", b"hello")
    assert dead.id.encode() in (await store.link.client.lrange(f"{queue}:deadletter", 0, -1))[0]


async def test_a_job_that_nobody_knows_is_taken_out(store: RedisStore, clock: VirtualClock) -> None:
    [job_id] = await store.queue.put([NewJob(kind="a")])
    silent = await behind(store, clock)
    [job] = (await silent.queue.turn((), [WANT], "w")).jobs
    await silent.queue.turn([End(id=job.id, token=job.token, state=State.DONE)], (), "w")
    assert await silent.queue.purge(State.DONE, clock.now() + MINUTE) == 1
    await silent.close()
    assert (await store.queue.turn((), [WANT], "w")).jobs == ()
    assert not await store.link.client.hexists("animetop:queue:a:jobs", job_id)


async def test_a_time_that_redis_has_wrong_is_set_right_by_the_next_look(
    store: RedisStore, clock: VirtualClock
) -> None:
    entry = Entry(member="m", kind="a", next_at=clock.now(), every=MINUTE)
    await store.schedule.put([entry])
    silent = await behind(store, clock)
    later = Entry(member="m", kind="a", next_at=clock.now() + MINUTE, every=MINUTE)
    await silent.schedule.put([later])
    await silent.close()
    assert await store.schedule.due(clock.now(), 10) == []
    assert await store.schedule.next_at() == later.next_at


async def test_a_dead_letter_brought_back_is_none_any_more(store: RedisStore) -> None:
    await store.queue.put([NewJob(kind="a")])
    [job] = (await store.queue.turn((), [WANT], "w")).jobs
    await store.queue.turn([End(id=job.id, token=job.token, state=State.FAILED)], (), "w")
    letters = "animetop:queue:a:deadletter"
    assert await store.link.client.llen(letters) == 1
    assert await store.queue.requeue(job.id)
    assert await store.link.client.llen(letters) == 0


async def test_what_was_told_is_struck_out(store: RedisStore, clock: VirtualClock) -> None:
    await store.queue.put([NewJob(kind="a")])
    await store.schedule.put([Entry(member="m", kind="a", next_at=clock.now(), every=MINUTE)])
    async with asyncio.timeout(10), store.read() as reader:
        while (await reader.execute(select(relay))).all():
            await asyncio.sleep(0.01)


async def test_redis_is_looked_after_also_when_an_error_came_that_nobody_expected(
    store: RedisStore, clock: VirtualClock
) -> None:
    silent = await behind(store, clock)
    await silent.queue.put([NewJob(kind="a")])
    await silent.close()
    client = store.link.client
    await client.delete(names.EPOCH)
    await client.rpush(names.EPOCH, "a list where a word should be")
    with capture_logs() as lines:
        store.relay.stir()
        async with asyncio.timeout(10):
            while "relay failed" not in {line["event"] for line in lines}:
                await asyncio.sleep(0.01)
    await client.delete(names.EPOCH)
    async with asyncio.timeout(10):
        while await store.queue.next_at(["a"]) is None:
            await asyncio.sleep(0.01)


async def test_a_schedule_that_redis_has_lost_beside_others_is_told_again(
    store: RedisStore, clock: VirtualClock
) -> None:
    later = clock.now() + MINUTE
    entries = [
        Entry(member=f"hot:{number}", kind="hot.crawl", next_at=later, every=MINUTE)
        for number in range(3)
    ]
    await store.schedule.put([*entries, Entry(member="m", kind="a", next_at=later, every=MINUTE)])
    client = store.link.client
    for lose in (client.delete(names.IPS), client.zrem(names.IPS, "1")):
        await lose
        beside = open_again(store, clock)
        assert isinstance(beside, RedisStore)
        await beside.relay.look()
        await beside.close()
        assert await client.zcard(names.IPS) == 3
    await clock.advance(MINUTE)
    assert len(await store.schedule.due(clock.now(), 10)) == 4
