"""Other programs take part in the queues with plain messages: they put, claim and finish."""

import asyncio
import json
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select, update

from mimawari.kernel.clock import RealClock, VirtualClock
from mimawari.kernel.context import Context
from mimawari.kernel.job import Job, JobView, NewJob, State, Want
from mimawari.kernel.rescue import rescue
from mimawari.kernel.rounds import Rounds
from mimawari.kernel.watch import Watch, Watches, task
from mimawari.kernel.worker import Worker
from mimawari.settings import DEFAULTS
from mimawari.store.redis import RedisStore
from mimawari.store.redis.foreign import LEASE_FOR, WORKER
from mimawari.store.sql.tables import jobs
from mimawari.watches.hot import franchises, watch
from mimawari.watches.hot.models import Ip
from mimawari.watches.hot.tables import crawls, items
from tests.hot.crawling import add_ip
from tests.hot.foreign import RESULTS, TASKS, Foreign
from tests.stores import open_again

pytestmark = pytest.mark.parametrize("engine", ["redis"])

SPEC_TASK = """{
  "ipId": "11",
  "keyword": "鬼滅の刃",
  "taskId": "550e8400-e29b-41d4-a716-446655440000",
  "createdAt": "1705890000",
  "pagesOnSale": 5,
  "pagesSold": 5
}"""
CRAWL = Want(kind="hot.crawl", most=5, lease_for=timedelta(minutes=2))
APPLY = Want(kind="hot.apply", most=5, lease_for=timedelta(minutes=2))
WATCHES = Watches([watch])


async def put_crawl(store: RedisStore, clock: VirtualClock) -> tuple[Ip, str]:
    """Put the crawl of a new IP, alone in its queue; return both."""
    ip = await add_ip(store)
    await store.schedule.remove(franchises.member_of(ip.id))
    [job_id] = await store.queue.put([franchises.crawl_now(ip, DEFAULTS)])
    async with store.database.write() as session:
        # Among those of the usual priority, as the scheduler puts them.
        await session.execute(update(jobs).values(priority=100))
    await store.relay.correct([job_id])
    del clock
    return ip, job_id


async def claim(store: RedisStore, want: Want = CRAWL) -> list[Job]:
    return list((await store.queue.turn((), [want], "w")).jobs)


async def listed(store: RedisStore, kind: str) -> list[JobView]:
    return await store.queue.list(10, kind=kind)


async def apply_all(store: RedisStore, clock: VirtualClock) -> None:
    await Rounds(store, clock, WATCHES, {}).work()


async def counted(store: RedisStore, ip: Ip) -> tuple[int, int]:
    """Count an IP's crawls and items."""
    async with store.read() as reader:
        crawled = (await reader.execute(select(crawls).where(crawls.c.ip_id == ip.id))).all()
        known = (await reader.execute(select(items).where(items.c.ip_id == ip.id))).all()
    return len(crawled), len(known)


async def test_a_task_as_the_specification_shows_it_is_a_job_once(
    store: RedisStore, clock: VirtualClock, other: Foreign
) -> None:
    other.client.lpush(TASKS, SPEC_TASK)
    beside = open_again(store, clock)
    assert isinstance(beside, RedisStore)
    await beside.relay.look()
    await store.relay.look()
    await beside.close()
    [view] = await listed(store, "hot.crawl")
    assert view.args == json.loads(SPEC_TASK)
    assert (view.dedupe_key, view.target) == ("hot:11", "hot:11")
    assert [task.task_id for task in other.read_all()] == [view.args["taskId"]]
    [job] = await claim(store)
    assert job.id == view.id
    assert not other.client.exists(f"{TASKS}:strangers")


@pytest.mark.parametrize("again", ["while it lives", "after its end"])
async def test_the_same_task_put_again_is_no_second_job(
    store: RedisStore, clock: VirtualClock, other: Foreign, again: str
) -> None:
    other.client.lpush(TASKS, SPEC_TASK)
    await store.relay.look()
    if again == "after its end":
        await apply_all(store, clock)
    other.client.lpush(TASKS, SPEC_TASK)
    await store.relay.look()
    assert len(await listed(store, "hot.crawl")) == 1
    assert other.client.llen(TASKS) == (again == "while it lives")


async def test_a_task_in_the_midst_of_ours_is_found_by_the_claim_too(
    store: RedisStore, clock: VirtualClock, other: Foreign
) -> None:
    _, job_id = await put_crawl(store, clock)
    other.client.rpush(TASKS, SPEC_TASK)
    assert await store.queue.next_at(["hot.crawl"]) is not None
    assert [job.id for job in await claim(store)] == [job_id]
    await store.relay.look()
    [job] = await claim(store)
    assert job.args == json.loads(SPEC_TASK)


async def test_two_tasks_of_one_ip_are_both_accepted(
    store: RedisStore, clock: VirtualClock, other: Foreign
) -> None:
    ip, job_id = await put_crawl(store, clock)
    other.push_task(ip_id=ip.id, keyword=ip.keyword, task_id="theirs")
    await store.relay.look()
    assert {view.args.get("taskId", view.id) for view in await listed(store, "hot.crawl")} == {
        job_id,
        "theirs",
    }


async def test_a_task_that_another_program_claims_and_finishes_is_applied_by_us(
    store: RedisStore, clock: VirtualClock, other: Foreign
) -> None:
    ip, job_id = await put_crawl(store, clock)
    task, text = other.pop_task()
    assert (task.task_id, task.ip_id, task.keyword) == (job_id, ip.id, ip.keyword)
    await store.relay.look()
    view = await store.queue.find(job_id)
    assert view is not None
    assert (view.state, view.worker) == (State.PROCESSING, WORKER)
    assert view.next_at == clock.now() + LEASE_FOR
    assert await claim(store) == []
    # Its own list is as it left it, and it finds there what it put.
    assert other.ack_task(text) == 1
    other.push_result(task, items=3, crawled_at=int(clock.now().timestamp()))
    await store.relay.look()
    view = await store.queue.find(job_id)
    assert view is not None
    assert view.state is State.DONE
    assert other.client.llen(f"{TASKS}:processing") == 0
    other.read_all()
    await apply_all(store, clock)
    assert await counted(store, ip) == (1, 3)
    assert other.client.smembers("animetop:processed") == {job_id.encode()}


async def test_a_result_that_comes_before_anybody_looked_ends_its_job_as_well(
    store: RedisStore, clock: VirtualClock, other: Foreign
) -> None:
    ip, job_id = await put_crawl(store, clock)
    task, text = other.pop_task()
    other.ack_task(text)
    for _ in range(2):
        other.push_result(task, crawled_at=int(clock.now().timestamp()))
    await store.relay.look()
    await apply_all(store, clock)
    assert await counted(store, ip) == (1, 1)
    view = await store.queue.find(job_id)
    assert view is not None
    assert view.state is State.DONE
    assert await store.queue.next_at(["hot.crawl", "hot.apply"]) is None
    other.push_result(task, items=9, crawled_at=int(clock.now().timestamp()) + 1)
    await store.relay.look()
    await apply_all(store, clock)
    assert await counted(store, ip) == (1, 1)
    assert other.client.llen(RESULTS) == 0


@pytest.mark.parametrize("acked", [False, True], ids=["still claimed", "let go without a result"])
async def test_a_task_that_another_program_does_not_finish_is_handed_out_again(
    store: RedisStore, clock: VirtualClock, other: Foreign, *, acked: bool
) -> None:
    _, job_id = await put_crawl(store, clock)
    _, text = other.pop_task()
    if acked:
        other.ack_task(text)
    await store.relay.look()
    assert await store.queue.next_at(["hot.crawl"]) == clock.now() + LEASE_FOR
    await clock.advance(LEASE_FOR)
    assert (await rescue(store, clock, WATCHES)).requeued == 1
    assert other.client.llen(f"{TASKS}:processing") == 0
    [task] = other.read_all()
    assert (task.task_id, task.retry_count) == (job_id, 1)
    assert [job.id for job in await claim(store)] == [job_id]


async def test_a_task_put_and_claimed_by_other_programs_is_a_job_of_theirs(
    store: RedisStore, clock: VirtualClock, other: Foreign
) -> None:
    ip = await add_ip(store)
    other.push_task(ip_id=ip.id, keyword=ip.keyword, task_id="theirs", pages_sold=5)
    task, text = other.pop_task()
    await store.relay.look()
    [view] = await listed(store, "hot.crawl")
    assert (view.state, view.worker) == (State.PROCESSING, WORKER)
    assert other.client.lrange(f"{TASKS}:processing", 0, -1) == [text]
    await store.relay.look()
    other.push_result(task, crawled_at=int(clock.now().timestamp()))
    await store.relay.look()
    assert other.client.llen(f"{TASKS}:processing") == 0
    await apply_all(store, clock)
    assert await counted(store, ip) == (1, 1)
    assert {view.state for view in await listed(store, "hot.crawl")} == {State.DONE}


async def test_a_result_of_a_lease_that_was_lost_leaves_ours_without_effect(
    store: RedisStore, clock: VirtualClock, other: Foreign
) -> None:
    ip, job_id = await put_crawl(store, clock)
    task, _ = other.pop_task()
    await store.relay.look()
    await clock.advance(LEASE_FOR)
    await rescue(store, clock, WATCHES)
    [job] = await claim(store)
    other.push_result(task, crawled_at=int(clock.now().timestamp()))
    await store.relay.look()
    assert await store.queue.turn((), [APPLY], "w")
    view = await store.queue.find(job_id)
    assert view is not None
    assert view.state is State.DONE
    assert view.id == job.id
    del ip


async def test_every_message_is_read_strictly_wherever_it_stands(
    store: RedisStore, clock: VirtualClock, other: Foreign
) -> None:
    odd: list[dict[str, Any]] = [
        {"ipId": "11", "keyword": "k", "pagesOnSale": 5, "mood": "sunny"},
        {"ipId": "eleven", "keyword": 5, "pagesOnSale": 1e9},
        {"ipId": "11", "crawledAt": "5", "pagesAsked": 7, "pageErrors": ["x"], "coverage": {}},
        {"ipId": -1, "items": [{"sourceId": 5}, 7, {"status": "LOST", "price": 2**40}]},
        {},
    ]
    new = [
        NewJob(kind=kind, args=args, priority=priority, run_at=run_at)
        for args in odd
        for kind in ("hot.crawl", "hot.apply")
        for priority in (10, 50, 100)
        for run_at in (None, clock.now() + timedelta(hours=1))
    ]
    await store.queue.put(new)
    async with store.database.write() as session:
        await session.execute(update(jobs).values(args="not even JSON").where(
            jobs.c.id.in_([new[0].id, new[-2].id])
        ))  # fmt: skip
    await store.relay.correct([new[0].id, new[-2].id])
    assert len(other.read_all()) == len(new) // 2
    for want in (CRAWL, APPLY):
        assert len(await claim(store, want)) == 5
    assert len(other.read_all()) == len(new) // 2
    await clock.advance(timedelta(hours=2))
    await apply_all(store, clock)
    assert other.client.llen(f"{TASKS}:deadletter") > 0
    other.read_all()


async def test_queues_of_an_older_form_are_told_again_as_the_definitions_are(
    store: RedisStore, clock: VirtualClock, other: Foreign
) -> None:
    ip, job_id = await put_crawl(store, clock)
    # As the program before this one left them, after a restart with this one's.
    old = f'{{"jobId":"{job_id}","taskId":"{job_id}","ipId":"{ip.id}"}}'
    other.client.flushdb()
    other.client.set("animetop:epoch", "its own")
    other.client.hset("animetop:queues", TASKS, "100")
    other.client.hset(f"{TASKS}:jobs", job_id, f"1 r 100 0 {old}")
    other.client.lpush(TASKS, old)
    other.client.zadd(f"{TASKS}:levels", {"100": 100})
    other.client.sadd("animetop:processed", "before")
    await store.relay.look()
    assert [task.task_id for task in other.read_all()] == [job_id]
    assert not other.client.exists("animetop:epoch")
    assert other.client.zscore("animetop:processed:at", "before") is not None
    assert [job.id for job in await claim(store)] == [job_id]


async def test_a_queue_that_lost_a_message_of_another_kind_is_told_it_again(
    store: RedisStore, clock: VirtualClock
) -> None:
    [job_id] = await store.queue.put([NewJob(kind="a")])
    await store.link.client.delete("animetop:queue:a")
    assert await claim(store, Want(kind="a", most=1, lease_for=LEASE_FOR)) == []
    beside = open_again(store, clock)
    assert isinstance(beside, RedisStore)
    await beside.relay.look()
    assert beside.relay.late.total() == beside.relay.late["lost"] == 1
    await beside.close()
    [job] = await claim(store, Want(kind="a", most=1, lease_for=LEASE_FOR))
    assert job.id == job_id


async def test_a_task_of_another_program_is_begun_within_five_seconds(
    store: RedisStore, other: Foreign
) -> None:
    begun: asyncio.Queue[Job] = asyncio.Queue()

    @task("hot.crawl", lease="2m")
    async def crawl(job: Job, ctx: Context) -> None:
        del ctx
        begun.put_nowait(job)

    real = open_again(store, RealClock())
    worker = Worker(real, RealClock(), Watches([Watch(name="hot", tasks=(crawl,))]), name="w")
    working = asyncio.create_task(worker.run())
    try:
        # Not at the moment at which everything is looked at for the first time.
        await asyncio.sleep(0.5)
        other.client.lpush(TASKS, SPEC_TASK)
        job = await asyncio.wait_for(begun.get(), 5)
    finally:
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working
        await real.close()
    assert job.args == json.loads(SPEC_TASK)
