"""What redis-cli shows of the hot watch: the keys, types and messages of its specification."""

import json
from datetime import timedelta
from typing import Any

import pytest

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.job import End, NewJob, State, Want
from mimawari.kernel.rounds import Rounds
from mimawari.kernel.scheduler import Scheduler
from mimawari.kernel.watch import Watches
from mimawari.settings import DEFAULTS
from mimawari.store.redis import RedisStore
from mimawari.watches.hot import franchises, messages, watch
from mimawari.watches.hot.models import Coverage, Crawl, Ip, NewIp, Seen, Status
from mimawari.watches.hot.tasks import APPLY_FIRST

pytestmark = pytest.mark.parametrize("engine", ["redis"])

TASKS, RESULTS = "animetop:queue:tasks", "animetop:queue:results"


async def add_ip(store: RedisStore, clock: VirtualClock) -> Ip:
    async with store.edit() as tx:
        new = NewIp(name="鬼滅の刃", keyword="鬼滅の刃")
        (ip,) = await franchises.add_ips(tx, [new], DEFAULTS, clock.now())
    return ip


async def listed(store: RedisStore, key: str) -> list[dict[str, Any]]:
    """Read a list of messages."""
    return [json.loads(message) for message in await store.link.client.lrange(key, 0, -1)]


async def members(store: RedisStore, key: str) -> set[str]:
    found: Any = await store.link.client.smembers(key)
    return {member.decode() for member in found}


async def test_an_ip_goes_from_the_schedule_through_the_task_queue(
    store: RedisStore, clock: VirtualClock
) -> None:
    ip = await add_ip(store, clock)
    client, number = store.link.client, str(ip.id)
    seconds = await client.zscore("animetop:schedule:pending", number)
    entry = await store.schedule.find(franchises.member_of(ip.id))
    assert entry is not None
    assert seconds == pytest.approx(entry.next_at.timestamp(), abs=1e-6)
    await clock.advance(entry.next_at - clock.now())
    await Scheduler(store, clock, Watches([watch])).tick()
    [message] = await listed(store, TASKS)
    job = await store.queue.find_live(franchises.member_of(ip.id))
    assert job is not None
    created = str(int(clock.now().timestamp()))
    request = {"ipId": number, "keyword": "鬼滅の刃", "pagesOnSale": 5, "pagesSold": 5}
    assert message == {"taskId": job.id, "createdAt": created, **request}
    assert "鬼滅の刃".encode() in (await client.lrange(TASKS, 0, -1))[0]
    assert await members(store, f"{TASKS}:pending") == {f"ip:{number}"}
    want = Want(kind="hot.crawl", most=1, lease_for=timedelta(minutes=2))
    [claimed] = (await store.queue.turn((), [want], "w")).jobs
    assert (await listed(store, TASKS), await listed(store, f"{TASKS}:processing")) == (
        [],
        [message],
    )
    assert await client.hgetall(f"{TASKS}:started") == {job.id.encode(): created.encode()}
    end = End(id=claimed.id, token=claimed.token, state=State.FAILED)
    await store.queue.turn([end], (), "w")
    [dead] = await listed(store, f"{TASKS}:deadletter")
    # It was tried once, and so not tried again.
    assert dead == message
    assert await listed(store, f"{TASKS}:processing") == []
    assert await members(store, f"{TASKS}:pending") == set()


async def test_a_result_becomes_item_hashes_and_a_processed_task(
    store: RedisStore, clock: VirtualClock
) -> None:
    ip = await add_ip(store, clock)
    client = store.link.client
    seen = [
        Seen(source_id=f"m{at}", title="figure", price_yen=5000, status=status, image_url="",
             item_url="https://jp.mercari.com/item/m1")
        for at, status in enumerate((Status.AVAILABLE, Status.SOLD))
    ]  # fmt: skip
    crawl = Crawl(
        ip_id=ip.id,
        task_id="task 1",
        crawled_at=clock.now(),
        items=tuple(seen),
        coverage=Coverage(pages_read=2, pages_asked=2),
    )
    args = messages.write_crawl(crawl)
    await store.queue.put([NewJob(kind="hot.apply", args=args, priority=APPLY_FIRST)])
    [message] = await listed(store, RESULTS)
    assert message["items"][1]["status"] == "ITEM_STATUS_SOLD"
    assert (message["taskId"], message["ipId"]) == ("task 1", str(ip.id))
    await Rounds(store, clock, Watches([watch]), {}).work()
    assert await listed(store, RESULTS) == []
    assert await members(store, "animetop:processed") == {"task 1"}
    assert 0 < await client.ttl("animetop:processed") <= 24 * 3600
    now = str(int(clock.now().timestamp())).encode()
    for at, (status, hours) in enumerate(((b"available", 24), (b"sold", 48))):
        key = f"animetop:item:{ip.id}:m{at}"
        shown = {b"status": status, b"price": b"5000", b"first_seen": now, b"last_seen": now}
        assert await client.hgetall(key) == shown
        assert (hours - 1) * 3600 < await client.ttl(key) <= hours * 3600


@pytest.mark.parametrize("message", ["nonsense", '{"jobId":"nobody knows"}'])
async def test_a_message_that_is_not_ours_stops_no_job(store: RedisStore, message: str) -> None:
    [job_id] = await store.queue.put([NewJob(kind="hot.crawl")])
    await store.link.client.rpush(TASKS, message)
    want = Want(kind="hot.crawl", most=5, lease_for=timedelta(minutes=2))
    assert [job.id for job in (await store.queue.turn((), [want], "w")).jobs] == [job_id]


async def test_the_answers_kept_for_the_api_have_the_names_of_the_specification(
    store: RedisStore,
) -> None:
    await store.cache.set("hot:leaderboard:hot:24", b"{}", timedelta(minutes=10))
    await store.cache.set("hot:ip:11:liquidity", b"{}", timedelta(minutes=10))
    await store.cache.set("hot:ip:11:liquidity:making", b"me", timedelta(minutes=10))
    await store.cache.set("robots", b"+", timedelta(minutes=10))
    client = store.link.client
    named = ("animetop:leaderboard:hot:24", "animetop:ip:11:liquidity", "animetop:cache:robots")
    assert [await client.type(key) for key in named] == [b"string"] * 3
    for pattern, key in zip(("leaderboard", "ip"), named[:2], strict=True):
        assert await client.keys(f"animetop:{pattern}:*") == [key.encode()]
    assert await store.cache.drop("hot:ip:11:") == 2
    assert await client.exists(*named) == 2
    assert await client.keys("*:making") == []


async def test_a_task_is_among_the_processed_for_a_day_from_when_it_was_added(
    store: RedisStore, clock: VirtualClock
) -> None:
    ip = await add_ip(store, clock)
    day = timedelta(hours=24)

    async def apply(task_id: str) -> None:
        crawl = Crawl(ip_id=ip.id, task_id=task_id, crawled_at=clock.now(), items=())
        args = messages.write_crawl(crawl)
        [job_id] = await store.queue.put([NewJob(kind="hot.apply", args=args)])
        want = Want(kind="hot.apply", most=1, lease_for=timedelta(minutes=2))
        [job] = (await store.queue.turn((), [want], "w")).jobs
        assert job.id == job_id
        await store.queue.turn([End(id=job.id, token=job.token, state=State.DONE)], (), "w")

    await apply("first")
    await clock.advance(day / 2)
    await apply("second")
    assert await members(store, "animetop:processed") == {"first", "second"}
    await clock.advance(day / 2 - timedelta(seconds=1))
    await store.relay.look()
    assert await members(store, "animetop:processed") == {"first", "second"}
    await clock.advance(timedelta(seconds=1))
    await store.relay.look()
    assert await members(store, "animetop:processed") == {"second"}
    assert 0 < await store.link.client.ttl("animetop:processed") <= day.total_seconds()
