"""What nobody understands in a queue becomes a dead letter with a reason, and stands in no way."""

import pytest
from sqlalchemy import select

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.job import NewJob, State
from mimawari.store.redis import RedisStore
from mimawari.store.sql.tables import inbox
from tests.hot.foreign import RESULTS, TASKS, Foreign
from tests.hot.test_foreign import APPLY, CRAWL, claim
from tests.stores import open_again

pytestmark = pytest.mark.parametrize("engine", ["redis"])


@pytest.mark.parametrize("queue", [TASKS, RESULTS])
@pytest.mark.parametrize(
    "junk",
    [
        b"hello",
        b"\xff\xfe\x00",
        b"5",
        b"[]",
        b'{"jobId":"nobody knows"}',
        b'{"taskId":"nobody knows"}',
        b'{"ipId":"eleven","keyword":"x","taskId":"t","crawledAt":"5"}',
        b'{"ipId":"11","keyword":"x","taskId":"a\\"b","crawledAt":"5"}',
        b'{"a":' * 2000,
        b"",
    ],
    ids=lambda junk: repr(junk[:20]),
)
async def test_junk_goes_to_the_dead_letters_with_a_reason(
    store: RedisStore, other: Foreign, queue: str, junk: bytes
) -> None:
    kind = "hot.crawl" if queue == TASKS else "hot.apply"
    [job_id] = await store.queue.put([NewJob(kind=kind, priority=100 if queue == TASKS else 50)])
    other.client.rpush(queue, junk)
    other.client.lpush(queue, junk)
    want = CRAWL if queue == TASKS else APPLY
    assert await store.queue.next_at([kind]) is not None
    assert [job.id for job in await claim(store, want)] == [job_id]
    await store.relay.look()
    await store.relay.look()
    dead = await store.queue.list(10, state=State.FAILED)
    assert len(dead) == 2
    assert all(view.kind == kind and "no Crawl" in str(view.reason) for view in dead)
    assert await store.queue.page(dead[0].id) == junk
    assert (await store.queue.counts(kind))[State.FAILED] == 2
    assert other.client.llen(queue) == 0
    assert len(other.client.lrange(f"{queue}:deadletter", 0, -1)) == 2
    other.read_all()


async def test_junk_that_another_program_has_claimed_is_buried_too(
    store: RedisStore, other: Foreign
) -> None:
    other.client.lpush(f"{TASKS}:processing", "hello")
    await store.relay.look()
    assert other.client.llen(f"{TASKS}:processing") == 0
    assert len(await store.queue.list(10, state=State.FAILED)) == 1


async def test_junk_found_by_two_processes_at_once_is_one_dead_letter(
    store: RedisStore, clock: VirtualClock, other: Foreign
) -> None:
    beside = open_again(store, clock)
    assert isinstance(beside, RedisStore)
    other.client.lpush(TASKS, "hello")
    _, findings = await store.relay.find_changes()
    _, same = await beside.relay.find_changes()
    assert findings == same
    await beside.foreign.take_in(same)
    await store.foreign.take_in(findings)
    await beside.close()
    async with store.read() as reader:
        assert len((await reader.execute(select(inbox))).all()) == 1
