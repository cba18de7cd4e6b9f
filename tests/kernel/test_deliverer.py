"""The deliverer: in order per key, at least once, patient, and never stopped by one event."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from mimawari.errors import Blocked, Gone, Invalid, JobError, Transient, Wait
from mimawari.ids import new_id
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.deliverer import Deliverer, Destination, LogDestination
from mimawari.kernel.job import NewJob, Want
from mimawari.kernel.values import Event, NewEvent
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade
from mimawari.store.sql.tables import outbox
from mimawari.text import parse_durations
from tests.kernel.rounds import Remembered, asleep, running

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
LONGEST = timedelta(minutes=5)
MICROSECOND = timedelta(microseconds=1)


async def put(store: SqlStore, *keys: str, destination: str = "test:") -> list[str]:
    """Put one event a key, numbered from 0, and return their ids."""
    events = [
        NewEvent(key=key, kind="k", body={"n": n}, destination=destination, id=new_id())
        for n, key in enumerate(keys)
    ]
    for event in events:
        await store.outbox.put([event])
    return [event.id for event in events]


def delivering(store: SqlStore, clock: VirtualClock, to: Destination) -> Deliverer:
    return Deliverer(store, clock, {"test": to})


def numbers(events: Sequence[Event], key: str) -> list[Any]:
    return [event.body["n"] for event in events if event.key == key]


async def kept(store: SqlStore, event_id: str) -> tuple[str, str | None, int]:
    """Tell an event's state, reason and attempts."""
    async with store.read() as reader:
        query = select(outbox).where(outbox.c.id == event_id)
        row = (await reader.execute(query)).one()
    return row.state, row.reason, row.attempts


async def got(to: Remembered, count: int, clock: VirtualClock) -> None:
    """Wait until so many events have arrived, while no time passes."""
    async with asyncio.timeout(10):
        while len(to.events) < count:
            await clock.advance(timedelta(0))


async def test_events_of_one_key_arrive_in_order(store: SqlStore, clock: VirtualClock) -> None:
    to = Remembered()
    ids = await put(store, "a", "b", "a", "a", "b")
    assert await delivering(store, clock, to).tick() == clock.now() + LONGEST
    assert numbers(to.events, "a") == [0, 2, 3]
    assert numbers(to.events, "b") == [1, 4]
    assert sorted(event.id for event in to.events) == sorted(ids)
    assert (await store.outbox.counts())["delivered"] == 5


async def test_more_keys_than_one_batch_are_served_in_one_tick(
    store: SqlStore, clock: VirtualClock
) -> None:
    to = Remembered()
    await put(store, *(f"k{n}" for n in range(120)))
    await delivering(store, clock, to).tick()
    assert len(to.events) == 120


async def test_an_event_that_failed_is_sent_again_under_the_same_id(
    store: SqlStore, clock: VirtualClock
) -> None:
    to = Remembered()
    to.errors = [Transient("busy"), Transient("busy")]
    [event_id] = await put(store, "a")
    deliverer = delivering(store, clock, to)
    for _ in range(3):
        await clock.advance(await deliverer.tick() - clock.now())
    assert [(event.id, event.attempt) for event in to.events] == [
        (event_id, 1),
        (event_id, 2),
        (event_id, 3),
    ]
    assert await kept(store, event_id) == ("delivered", None, 3)


async def test_later_events_of_the_key_wait_while_other_keys_go_on(
    store: SqlStore, clock: VirtualClock
) -> None:
    to = Remembered()
    deliverer = delivering(store, clock, to)
    to.errors = [Transient("busy")]
    await put(store, "a", "a")
    await deliverer.tick()
    await put(store, "b")
    await deliverer.tick()
    assert [(event.key, event.body["n"]) for event in to.events] == [("a", 0), ("b", 0)]
    await clock.advance(timedelta(seconds=1))
    await deliverer.tick()
    assert numbers(to.events, "a") == [0, 0, 1]


async def test_attempts_wait_as_the_table_says_and_then_end(
    store: SqlStore, clock: VirtualClock
) -> None:
    to = Remembered()
    deliverer = delivering(store, clock, to)
    [event_id, next_id] = await put(store, "a", "a")
    to.errors = [Transient("busy") for _ in range(10)]
    for wait in parse_durations("1s 2s 4s 1m 5m 15m 1h 4h 12h"):
        assert await deliverer.tick() == clock.now() + min(wait, LONGEST)
        assert (await kept(store, event_id))[:2] == ("pending", "busy")
        assert await store.outbox.next_at() == clock.now() + wait
        await clock.advance(wait - MICROSECOND)
        before = len(to.events)
        await deliverer.tick()
        assert len(to.events) == before
        await clock.advance(MICROSECOND)
    await deliverer.tick()
    assert await kept(store, event_id) == ("failed", "busy", 10)
    assert await kept(store, next_id) == ("delivered", None, 1)


async def test_the_backoff_may_be_told(store: SqlStore, clock: VirtualClock) -> None:
    to = Remembered()
    to.errors = [Transient("busy"), Transient("still busy")]
    [event_id] = await put(store, "a")
    deliverer = Deliverer(store, clock, {"test": to}, backoff=(HOUR,))
    await deliverer.tick()
    await clock.advance(HOUR)
    await deliverer.tick()
    assert await kept(store, event_id) == ("failed", "still busy", 2)


@pytest.mark.parametrize("error", [Gone, Invalid, JobError])
async def test_an_event_that_can_never_arrive_is_given_up_and_the_next_goes_on(
    error: type[JobError], store: SqlStore, clock: VirtualClock
) -> None:
    to = Remembered()
    to.errors = [error("no such\naddress")]
    [given_up, following] = await put(store, "a", "a")
    await delivering(store, clock, to).tick()
    assert await kept(store, given_up) == ("failed", "no such address", 1)
    assert await kept(store, following) == ("delivered", None, 1)
    assert numbers(to.events, "a") == [0, 1]


@pytest.mark.parametrize("destination", ["fax:1234", "fax", "", "TEST:", ":test"])
async def test_what_nothing_delivers_to_fails_with_the_reason(
    destination: str, store: SqlStore, clock: VirtualClock
) -> None:
    to = Remembered()
    [event_id] = await put(store, "a", destination=destination)
    await put(store, "a")
    await delivering(store, clock, to).tick()
    scheme = destination.partition(":")[0]
    assert await kept(store, event_id) == ("failed", f"nothing delivers to {scheme!r}", 1)
    assert numbers(to.events, "a") == [0]


async def test_a_bug_of_a_destination_is_tried_again_and_stops_nobody(
    store: SqlStore, clock: VirtualClock
) -> None:
    class Broken(Remembered):
        async def deliver(self, event: Event) -> None:
            await super().deliver(event)
            if event.key == "bad":
                raise ZeroDivisionError("oh\nno")

    to = Broken()
    [bad, good] = await put(store, "bad", "good")
    await delivering(store, clock, to).tick()
    assert await kept(store, bad) == ("pending", "bug: ZeroDivisionError: oh no", 1)
    assert await kept(store, good) == ("delivered", None, 1)
    assert await store.outbox.next_at() == clock.now() + timedelta(seconds=1)


async def test_an_event_of_a_deliverer_that_died_is_delivered_under_the_same_id(
    store: SqlStore, clock: VirtualClock
) -> None:
    to = Remembered()
    [event_id] = await put(store, "a")
    await store.outbox.take(clock.now(), 1, MINUTE)
    deliverer = delivering(store, clock, to)
    assert await deliverer.tick() == clock.now() + MINUTE
    assert to.events == []
    await clock.advance(MINUTE)
    await deliverer.tick()
    assert [(event.id, event.attempt) for event in to.events] == [(event_id, 2)]


async def test_a_delivery_that_outlasts_its_lease_is_made_again_and_counted_once(
    store: SqlStore, clock: VirtualClock
) -> None:
    quick = Remembered()

    class Slow(Remembered):
        async def deliver(self, event: Event) -> None:
            await super().deliver(event)
            await clock.advance(MINUTE)
            await delivering(store, clock, quick).tick()

    slow = Slow()
    [event_id] = await put(store, "a")
    await delivering(store, clock, slow).tick()
    assert [event.id for event in slow.events + quick.events] == [event_id, event_id]
    assert await kept(store, event_id) == ("delivered", None, 2)


async def test_the_log_is_a_destination(store: SqlStore, clock: VirtualClock) -> None:
    [event_id] = await put(store, "a", destination="log:")
    await Deliverer(store, clock, {"log": LogDestination()}).tick()
    assert await kept(store, event_id) == ("delivered", None, 1)


async def test_run_is_woken_by_a_commit(store: SqlStore, clock: VirtualClock) -> None:
    to, start = Remembered(), clock.now()
    await store.queue.put([NewJob(kind="t")])
    want = Want(kind="t", most=1, lease_for=HOUR)
    [job] = (await store.queue.turn((), [want], "w")).jobs
    async with running(delivering(store, clock, to)):
        await asleep(clock)
        async with store.commit(job) as tx:
            tx.emit("a", "k", {"n": 7}, destination="test:")
            assert to.events == []
        await got(to, 1, clock)
    assert (clock.now(), to.events[0].body) == (start, {"n": 7})


async def test_run_comes_again_when_an_attempt_is_due(store: SqlStore, clock: VirtualClock) -> None:
    to = Remembered()
    to.errors = [Transient("busy")]
    await put(store, "a")
    async with running(delivering(store, clock, to)):
        await asleep(clock)
        assert len(to.events) == 1
        await clock.advance(timedelta(seconds=1))
        await got(to, 2, clock)


async def test_a_store_that_is_down_is_asked_again_a_second_later(
    tmp_path: Path, clock: VirtualClock
) -> None:
    """Play a disk that is mounted too late."""
    folder, to = tmp_path / "disk", Remembered()
    store = SqlStore(f"sqlite:///{folder}/mimawari.db", clock)
    async with running(delivering(store, clock, to)) as run:
        await asleep(clock)
        assert not run.done()
        folder.mkdir()
        await upgrade(store.database)
        await put(store, "a")
        await clock.advance(timedelta(seconds=1))
        await got(to, 1, clock)
    await store.close()


@pytest.mark.parametrize("kind", ["blocked", "wait"])
async def test_an_error_that_only_a_task_may_raise_gives_an_event_up(
    kind: str, store: SqlStore, clock: VirtualClock
) -> None:
    to = Remembered()
    wait = Wait(clock.now() + HOUR, "later", "limit x")
    to.errors = [Blocked("site", "403") if kind == "blocked" else wait]
    [event_id] = await put(store, "a")
    await delivering(store, clock, to).tick()
    assert (await kept(store, event_id))[0] == "failed"


async def test_a_slow_receiver_holds_up_nobody_else(store: SqlStore, clock: VirtualClock) -> None:
    answered = asyncio.Event()

    class Slow(Remembered):
        async def deliver(self, event: Event) -> None:
            await super().deliver(event)
            if event.key == "slow":
                await answered.wait()

    to = Slow()
    async with running(delivering(store, clock, to)):
        await put(store, "slow")
        await got(to, 1, clock)
        await put(store, "a", "a", "a")
        await got(to, 4, clock)
        assert numbers(to.events, "a") == [0, 1, 2]
        answered.set()


async def test_a_destination_may_say_when_it_is_asked_again(
    store: SqlStore, clock: VirtualClock
) -> None:
    to = Remembered()
    to.errors = [Transient("busy", until=clock.now() + 3 * HOUR)]
    await put(store, "a")
    assert await delivering(store, clock, to).tick() == clock.now() + LONGEST
    assert await store.outbox.next_at() == clock.now() + 3 * HOUR


async def test_what_is_on_its_way_at_a_stop_comes_to_its_end_and_is_recorded(
    store: SqlStore, clock: VirtualClock
) -> None:
    began, answered = asyncio.Event(), asyncio.Event()

    class Slow(Remembered):
        async def deliver(self, event: Event) -> None:
            await super().deliver(event)
            began.set()
            await answered.wait()

    [event_id] = await put(store, "a")
    async with running(delivering(store, clock, Slow())) as run:
        await began.wait()
        run.cancel()
        answered.set()
    assert await kept(store, event_id) == ("delivered", None, 1)


async def test_what_ends_after_others_were_recorded_is_recorded_too(
    store: SqlStore, clock: VirtualClock
) -> None:
    answered = asyncio.Event()

    class Slow(Remembered):
        async def deliver(self, event: Event) -> None:
            await super().deliver(event)
            if event.key == "slow":
                await answered.wait()

    to = Slow()
    async with running(delivering(store, clock, to)):
        [event_id] = await put(store, "slow")
        await got(to, 1, clock)
        # The second of them is sent only once the first one's end is recorded.
        await put(store, "a", "a")
        await got(to, 3, clock)
        answered.set()
        async with asyncio.timeout(10):
            while await kept(store, event_id) != ("delivered", None, 1):
                await clock.advance(timedelta(0))
