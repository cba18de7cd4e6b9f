"""The bells' promises: in one process, and from one process to another on every engine."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import pytest

from mimawari.ids import new_id
from mimawari.kernel.clock import RealClock, VirtualClock
from mimawari.kernel.job import Job, NewJob, Want
from mimawari.kernel.signal import JOBS, OUTBOX, SCHEDULE, Bell, LocalSignal
from mimawari.kernel.values import Entry, NewEvent
from mimawari.store.sql import SqlStore
from tests.stores import open_again

HOUR = timedelta(hours=1)
# Longer than it takes any engine to hear of a put.
QUIET = timedelta(seconds=2.2)


@pytest.fixture
async def twin(store: SqlStore, clock: VirtualClock) -> AsyncIterator[SqlStore]:
    """The same database as another process opens it."""
    twin = open_again(store, clock)
    yield twin
    await twin.close()


async def waiting(bell: Bell, clock: VirtualClock) -> asyncio.Task[bool]:
    """Wait for a bell for an hour, and return when the sleeper sleeps."""
    task = asyncio.create_task(bell.wait(clock, clock.now() + HOUR))
    async with asyncio.timeout(10):
        while not clock.sleeping:
            await clock.advance(timedelta(0))
    return task


async def put_job(store: SqlStore) -> None:
    await store.queue.put([NewJob(kind="look")])


async def put_entry(store: SqlStore) -> None:
    at = store.database.clock.now()
    await store.schedule.put([Entry(member=new_id(), kind="look", next_at=at, every=HOUR)])


async def put_event(store: SqlStore) -> None:
    event = NewEvent(key="item", kind="changed", body={}, destination="log:", id=new_id())
    await store.outbox.put([event])


Put = Callable[[SqlStore], Awaitable[None]]
PUTS = pytest.mark.parametrize(
    ("topic", "put"), [(JOBS, put_job), (SCHEDULE, put_entry), (OUTBOX, put_event)]
)


async def heard(bell: Bell, store: SqlStore, put: Put) -> None:
    """Put in one process until a bell rings in another, which may not yet listen at first."""
    real = RealClock()
    sleeper = asyncio.create_task(bell.wait(real, real.now() + HOUR))
    async with asyncio.timeout(10):
        while not sleeper.done():
            await put(store)
            await asyncio.wait({sleeper}, timeout=2)
    assert await sleeper


async def test_a_ring_before_the_wait_is_kept_for_it_once(clock: VirtualClock) -> None:
    bell = Bell()
    bell.ring()
    bell.ring()
    async with asyncio.timeout(10):
        assert await bell.wait(clock, clock.now() + HOUR)
    later = await waiting(bell, clock)
    await clock.advance(HOUR)
    assert not await later


async def test_a_ring_wakes_the_sleeper_early_and_leaves_no_sleep_behind(
    clock: VirtualClock,
) -> None:
    bell, start = Bell(), clock.now()
    sleeper = await waiting(bell, clock)
    bell.ring()
    async with asyncio.timeout(10):
        assert await sleeper
    await clock.advance(timedelta(0))
    assert (clock.now(), clock.sleeping) == (start, 0)


async def test_without_a_ring_the_sleeper_wakes_at_its_time(clock: VirtualClock) -> None:
    sleeper = await waiting(Bell(), clock)
    await clock.advance(HOUR - timedelta(microseconds=1))
    assert not sleeper.done()
    await clock.advance(timedelta(microseconds=1))
    async with asyncio.timeout(10):
        assert await sleeper is False


async def test_a_wait_that_is_given_up_leaves_no_sleep_behind(clock: VirtualClock) -> None:
    sleeper = await waiting(Bell(), clock)
    sleeper.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sleeper
    await clock.advance(timedelta(0))
    assert clock.sleeping == 0


async def test_a_wait_until_a_time_that_is_past_ends_at_once(clock: VirtualClock) -> None:
    async with asyncio.timeout(2):
        assert not await Bell().wait(clock, clock.now() - HOUR)


async def test_a_bell_rings_for_each_of_its_topics_and_no_other(clock: VirtualClock) -> None:
    signal = LocalSignal()
    both, one = signal.bell(JOBS, OUTBOX), signal.bell(JOBS)
    silent = await waiting(one, clock)
    signal.tell(OUTBOX)
    async with asyncio.timeout(10):
        assert await both.wait(clock, clock.now() + HOUR)
    await clock.advance(HOUR)
    assert not await silent


@PUTS
async def test_each_put_rings_the_bells_of_its_own_process_at_once(
    store: SqlStore, topic: str, put: Put
) -> None:
    bell, real = store.signal.bell(topic), RealClock()
    for _ in range(10):
        await bell.wait(real, real.now())
        await put(store)
        assert await bell.wait(real, real.now())


async def take_back(store: SqlStore, job: Job) -> None:
    """Put a job in a commit that fails at its very end, for an event that cannot be kept."""
    async with store.commit(job) as tx:
        tx.put(NewJob(kind="look"))
        tx.emit("item", "changed", {"n": float("nan")}, destination="log:")


async def test_a_put_that_was_taken_back_rings_nobody(store: SqlStore, twin: SqlStore) -> None:
    bell, real = store.signal.bell(JOBS), RealClock()
    await heard(bell, twin, put_job)
    want = Want(kind="look", most=1, lease_for=HOUR)
    [job] = (await store.queue.turn((), [want], "worker")).jobs
    while await bell.wait(real, real.now() + QUIET):
        pass
    for each in (store, twin):
        with pytest.raises(ValueError, match="JSON"):
            await take_back(each, job)
    assert not await bell.wait(real, real.now() + QUIET)


@PUTS
async def test_puts_in_another_process_ring_the_bell_time_and_again(
    store: SqlStore, twin: SqlStore, topic: str, put: Put
) -> None:
    bell = store.signal.bell(topic)
    for _ in range(3):
        await heard(bell, twin, put)


async def test_a_put_in_another_process_while_the_bell_is_being_hung_rings_it(
    store: SqlStore, twin: SqlStore
) -> None:
    await put_job(store)
    bell, real = twin.signal.bell(JOBS), RealClock()
    await put_job(store)
    async with asyncio.timeout(10):
        assert await bell.wait(real, real.now() + HOUR)
