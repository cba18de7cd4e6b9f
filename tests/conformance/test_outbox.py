"""The outbox's promises, on every engine."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import func, select

from mimawari.ids import new_id
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.values import Delivery, Event, NewEvent
from mimawari.store.sql import SqlStore
from mimawari.store.sql.tables import lanes, outbox
from tests.stores import open_again

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
MICROSECOND = timedelta(microseconds=1)


@pytest.fixture
async def twin(store: SqlStore, clock: VirtualClock) -> AsyncIterator[SqlStore]:
    """The same database as another process opens it."""
    twin = open_again(store, clock)
    yield twin
    await twin.close()


def event(key: str, **body: Any) -> NewEvent:
    return NewEvent(key=key, kind="changed", body=body, destination="log:", id=new_id())


async def put(store: SqlStore, *keys: str) -> list[NewEvent]:
    """Put one event a key, numbered from 0."""
    events = [event(key, n=at) for at, key in enumerate(keys)]
    await store.outbox.put(events)
    return events


async def take(store: SqlStore, clock: VirtualClock, most: int = 100) -> list[Event]:
    return await store.outbox.take(clock.now(), most, MINUTE)


async def deliver(store: SqlStore, *events: Event) -> frozenset[str]:
    return await store.outbox.settle(
        [Delivery(id=each.id, token=each.token, delivered=True) for each in events]
    )


async def again(store: SqlStore, each: Event, at: datetime) -> frozenset[str]:
    return await store.outbox.settle([Delivery(id=each.id, token=each.token, retry_at=at)])


async def fail(store: SqlStore, each: Event, reason: str) -> frozenset[str]:
    return await store.outbox.settle([Delivery(id=each.id, token=each.token, reason=reason)])


async def empty(store: SqlStore, clock: VirtualClock) -> list[Event]:
    """Deliver everything, one head after another, and tell in which order."""
    told = []
    while heads := await take(store, clock):
        told += heads
        assert await deliver(store, *heads) == {head.id for head in heads}
    return told


async def test_an_empty_outbox_has_nothing_to_tell(store: SqlStore, clock: VirtualClock) -> None:
    assert await take(store, clock) == []
    assert await store.outbox.next_at() is None
    assert await store.outbox.counts() == {"pending": 0, "delivered": 0, "failed": 0}


async def test_an_event_is_taken_as_it_was_put(store: SqlStore, clock: VirtualClock) -> None:
    [new] = await put(store, "item")
    await clock.advance(HOUR)
    [taken] = await take(store, clock)
    assert (taken.id, taken.key, taken.kind) == (new.id, "item", "changed")
    assert (taken.body, taken.destination, taken.attempt) == ({"n": 0}, "log:", 1)
    assert taken.created_at == clock.now() - HOUR


async def test_events_of_one_key_come_in_the_order_they_were_put(
    store: SqlStore, clock: VirtualClock
) -> None:
    news = [*await put(store, *["item"] * 5), *await put(store, *["item"] * 5)]
    assert [told.id for told in await empty(store, clock)] == [new.id for new in news]


async def test_only_the_head_of_a_lane_is_on_its_way(store: SqlStore, clock: VirtualClock) -> None:
    first, second = await put(store, "item", "item")
    [head] = await take(store, clock)
    assert head.id == first.id
    assert await take(store, clock) == []
    await deliver(store, head)
    assert [each.id for each in await take(store, clock)] == [second.id]


async def test_a_blocked_lane_does_not_hold_up_the_others(
    store: SqlStore, clock: VirtualClock
) -> None:
    await put(store, "slow", "quick", "slow", "quick")
    heads = {head.key: head for head in await take(store, clock)}
    await again(store, heads["slow"], clock.now() + HOUR)
    await deliver(store, heads["quick"])
    assert [(each.key, each.body["n"]) for each in await take(store, clock)] == [("quick", 3)]


async def test_a_retry_waits_for_its_time(store: SqlStore, clock: VirtualClock) -> None:
    await put(store, "item")
    [head] = await take(store, clock)
    assert await again(store, head, clock.now() + HOUR) == {head.id}
    await clock.advance(HOUR - MICROSECOND)
    assert await take(store, clock) == []
    await clock.advance(MICROSECOND)
    assert [each.id for each in await take(store, clock)] == [head.id]


async def test_an_event_put_behind_a_retry_does_not_hasten_it(
    store: SqlStore, clock: VirtualClock
) -> None:
    await put(store, "item")
    [head] = await take(store, clock)
    await again(store, head, clock.now() + HOUR)
    await put(store, "item")
    assert await take(store, clock) == []
    await clock.advance(HOUR)
    assert [each.id for each in await take(store, clock)] == [head.id]


async def test_an_event_keeps_its_id_and_body_over_all_attempts(
    store: SqlStore, clock: VirtualClock
) -> None:
    [new] = await put(store, "item")
    for attempt in range(1, 6):
        [head] = await take(store, clock)
        assert (head.id, head.body, head.attempt) == (new.id, new.body, attempt)
        await again(store, head, clock.now())


async def test_the_next_event_begins_with_its_first_attempt(
    store: SqlStore, clock: VirtualClock
) -> None:
    await put(store, "item", "item")
    [head] = await take(store, clock)
    await again(store, head, clock.now())
    await deliver(store, *await take(store, clock))
    assert [(each.body["n"], each.attempt) for each in await take(store, clock)] == [(1, 1)]


async def test_an_event_whose_taker_died_is_taken_again_after_its_lease(
    store: SqlStore, clock: VirtualClock
) -> None:
    await put(store, "item")
    [lost] = await take(store, clock)
    await clock.advance(MINUTE - MICROSECOND)
    assert await take(store, clock) == []
    await clock.advance(MICROSECOND)
    [head] = await take(store, clock)
    assert (head.id, head.attempt) == (lost.id, 2)
    assert head.token > lost.token


@pytest.mark.parametrize("delivered", [True, False])
async def test_who_lost_the_lease_cannot_settle_any_more(
    store: SqlStore, clock: VirtualClock, delivered: bool
) -> None:
    await put(store, "item", "item")
    [lost] = await take(store, clock)
    await clock.advance(MINUTE)
    [head] = await take(store, clock)
    late = Delivery(id=lost.id, token=lost.token, delivered=delivered)
    assert await store.outbox.settle([late]) == frozenset()
    assert (await store.outbox.counts())["pending"] == 2
    assert await deliver(store, head) == {head.id}


async def test_an_attempt_is_settled_once(store: SqlStore, clock: VirtualClock) -> None:
    await put(store, "item", "item")
    [head] = await take(store, clock)
    assert await again(store, head, clock.now()) == {head.id}
    assert await deliver(store, head) == frozenset()
    [head] = await take(store, clock)
    assert await deliver(store, head) == {head.id}
    assert await deliver(store, head) == frozenset()
    assert await store.outbox.counts() == {"pending": 1, "delivered": 1, "failed": 0}


async def test_stale_and_unknown_settlings_do_not_spoil_the_good_ones(
    store: SqlStore, clock: VirtualClock
) -> None:
    await put(store, "a", "b")
    one, two = await take(store, clock)
    ends = [("nobody", 1), (one.id, one.token + 1), (two.id, two.token)]
    settled = await store.outbox.settle(
        [Delivery(id=name, token=token, delivered=True) for name, token in ends]
    )
    assert settled == {two.id}


async def test_an_event_that_failed_for_good_lets_the_next_go(
    store: SqlStore, clock: VirtualClock
) -> None:
    await put(store, "item", "item")
    [head] = await take(store, clock)
    assert await fail(store, head, "410\nGone\x00") == {head.id}
    assert [each.body for each in await take(store, clock)] == [{"n": 1}]
    assert await store.outbox.counts() == {"pending": 1, "delivered": 0, "failed": 1}


async def test_no_more_is_taken_than_was_asked_for_and_the_longest_due_first(
    store: SqlStore, clock: VirtualClock
) -> None:
    await put(store, "a", "b", "c")
    hours = {"a": 3, "b": 1, "c": 2}
    for head in await take(store, clock):
        await again(store, head, clock.now() + hours[head.key] * HOUR)
    await clock.advance(3 * HOUR)
    assert {each.key for each in await take(store, clock, most=2)} == {"b", "c"}
    assert [each.key for each in await take(store, clock, most=2)] == ["a"]


async def test_the_next_time_follows_puts_leases_retries_and_deliveries(
    store: SqlStore, clock: VirtualClock
) -> None:
    await put(store, "item")
    assert await store.outbox.next_at() == clock.now()
    [head] = await take(store, clock)
    assert await store.outbox.next_at() == clock.now() + MINUTE
    await again(store, head, clock.now() + HOUR)
    assert await store.outbox.next_at() == clock.now() + HOUR
    await clock.advance(HOUR)
    await deliver(store, *await take(store, clock))
    assert await store.outbox.next_at() is None


async def test_a_purge_forgets_what_ended_before_and_nothing_else(
    store: SqlStore, clock: VirtualClock
) -> None:
    await put(store, "done", "failed", "done")
    heads = {head.key: head for head in await take(store, clock)}
    await deliver(store, heads["done"])
    await fail(store, heads["failed"], "410")
    assert await store.outbox.purge(clock.now()) == 0
    assert await store.outbox.purge(clock.now() + MICROSECOND) == 2
    assert await store.outbox.counts() == {"pending": 1, "delivered": 0, "failed": 0}
    assert [each.body for each in await take(store, clock)] == [{"n": 2}]


async def test_a_key_goes_on_in_order_after_a_purge(store: SqlStore, clock: VirtualClock) -> None:
    await put(store, "item")
    await empty(store, clock)
    assert await store.outbox.purge(clock.now() + HOUR) == 1
    async with store.read() as connection:
        left = (await connection.execute(select(func.count()).select_from(lanes))).scalar_one()
    assert left == 0
    await put(store, "item", "item")
    assert [told.body["n"] for told in await empty(store, clock)] == [0, 1]


async def test_takers_at_once_over_two_processes_never_take_the_same_event(
    store: SqlStore, twin: SqlStore, clock: VirtualClock
) -> None:
    news = await put(store, *[f"item {at}" for at in range(40)])
    taken: list[str] = []
    for _ in range(10):
        rounds = await asyncio.gather(*[take(each, clock, most=5) for each in (store, twin) * 3])
        taken += [each.id for found in rounds for each in found]
    assert sorted(taken) == sorted(new.id for new in news)


async def test_puts_at_once_over_two_processes_form_one_dense_lane(
    store: SqlStore, twin: SqlStore, clock: VirtualClock
) -> None:
    batches = [[event("item", who=who, n=n) for n in range(3)] for who in range(10)]
    await asyncio.gather(
        *[(store, twin)[who % 2].outbox.put(batch) for who, batch in enumerate(batches)]
    )
    async with store.read() as connection:
        seqs = (await connection.execute(select(outbox.c.seq).order_by(outbox.c.seq))).scalars()
    assert list(seqs) == list(range(1, 31))
    told = await empty(store, clock)
    for who in range(10):
        assert [each.body["n"] for each in told if each.body["who"] == who] == [0, 1, 2]


async def test_puts_on_many_keys_in_any_order_do_not_stand_in_each_others_way(
    store: SqlStore, twin: SqlStore, clock: VirtualClock
) -> None:
    keys = ["a", "b", "c", "d"]
    orders = [keys, keys[::-1], keys[2:] + keys[:2], keys[1:] + keys[:1]] * 3
    await asyncio.gather(*[put((store, twin)[at % 2], *o) for at, o in enumerate(orders)])
    told = await empty(store, clock)
    assert {key: sum(each.key == key for each in told) for key in keys} == dict.fromkeys(keys, 12)


async def test_accepted_events_survive_a_restart(
    store: SqlStore, twin: SqlStore, clock: VirtualClock
) -> None:
    news = await put(store, "item", "item")
    await store.close()
    assert [told.id for told in await empty(twin, clock)] == [new.id for new in news]


@pytest.mark.parametrize(
    "text",
    [
        "a\x00b",
        "\ud800",
        "'; DROP TABLE outbox; --",
        "\\u0000 \\ %s :n",
        "日本🦊\u202e",
        "x" * 900_000,
    ],
    ids=["nul", "surrogate", "quotes", "slashes", "unicode", "long"],
)
async def test_hostile_text_in_a_body_is_told_as_it_is(
    store: SqlStore, clock: VirtualClock, text: str
) -> None:
    body = {"text": text, text[:9]: [text[:9], None, 1.5, {"deep": True}]}
    await store.outbox.put([event("item", **body)])
    assert [each.body for each in await take(store, clock)] == [body]


async def test_keys_are_exact(store: SqlStore, clock: VirtualClock) -> None:
    keys = ["item", "Item", "ite", "e\u0301", "\u00e9", "'--", "%"]
    await put(store, *keys)
    assert sorted(each.key for each in await take(store, clock)) == sorted(keys)


async def test_keys_that_differ_in_a_last_space_only_are_two(
    store: SqlStore, clock: VirtualClock
) -> None:
    await put(store, "item", "item ")
    assert sorted(each.key for each in await take(store, clock)) == ["item", "item "]
