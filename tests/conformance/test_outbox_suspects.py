"""Events that were in hand when a process stood still are tried once more, each alone."""

from datetime import timedelta

import pytest

from mimawari.ids import new_id
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.values import Delivery, Event, NewEvent, Standing
from mimawari.store.sql import SqlStore

MINUTE = timedelta(minutes=1)
OWNER, OTHER = new_id(), new_id()


async def put(store: SqlStore, *keys: str) -> None:
    await store.outbox.put(
        [NewEvent(key=key, kind="k", body={}, destination="log:", id=new_id()) for key in keys]
    )


async def take(store: SqlStore, clock: VirtualClock, owner: str | None = OWNER) -> list[Event]:
    return await store.outbox.take(clock.now(), 100, MINUTE, owner)


async def take_suspect(store: SqlStore, clock: VirtualClock, owner: str = OWNER) -> list[Event]:
    return await store.outbox.take_suspect(clock.now(), MINUTE, owner)


async def test_without_suspects_nothing_is_taken_alone(
    store: SqlStore, clock: VirtualClock
) -> None:
    await put(store, "a")
    assert not await store.outbox.has_suspects(clock.now())
    assert await take_suspect(store, clock) == []


async def test_what_an_ended_process_had_in_hand_is_due_at_once_and_taken_one_at_a_time(
    store: SqlStore, clock: VirtualClock
) -> None:
    await put(store, "a", "b", "c")
    held = await take(store, clock)
    released = await store.outbox.release(OWNER, suspect=True)
    assert {one.id for one in released} == {one.id for one in held}
    assert {one.standing for one in released} == {Standing.SUSPECT}
    assert await store.outbox.has_suspects(clock.now())
    assert await take(store, clock) == []
    taken = [await take_suspect(store, clock) for _ in range(4)]
    assert [len(one) for one in taken] == [1, 1, 1, 0]
    assert {one.id for found in taken for one in found} == {one.id for one in held}


async def test_only_what_that_process_had_in_hand_is_given_back(
    store: SqlStore, clock: VirtualClock
) -> None:
    await put(store, "mine")
    await take(store, clock)
    await put(store, "theirs")
    await take(store, clock, OTHER)
    await put(store, "nobody's")
    await take(store, clock, None)
    released = await store.outbox.release(OWNER, suspect=True)
    assert len(released) == 1
    assert await store.outbox.release(OWNER, suspect=True) == []


async def test_what_is_not_suspected_is_due_at_once_and_taken_with_the_others(
    store: SqlStore, clock: VirtualClock
) -> None:
    await put(store, "a", "b")
    await take(store, clock)
    released = await store.outbox.release(OWNER, suspect=False)
    assert {one.standing for one in released} == {Standing.GOOD}
    assert not await store.outbox.has_suspects(clock.now())
    assert len(await take(store, clock)) == 2


async def test_an_ended_process_settles_nothing_any_more(
    store: SqlStore, clock: VirtualClock
) -> None:
    await put(store, "a")
    [held] = await take(store, clock)
    await store.outbox.release(OWNER, suspect=False)
    late = Delivery(id=held.id, token=held.token, delivered=True)
    assert await store.outbox.settle([late]) == frozenset()


async def test_a_suspect_alone_in_hand_at_the_next_end_is_set_aside(
    store: SqlStore, clock: VirtualClock
) -> None:
    await put(store, "a", "b")
    await take(store, clock)
    await store.outbox.release(OWNER, suspect=True)
    [alone] = await take_suspect(store, clock, OTHER)
    assert alone.standing is Standing.SUSPECT
    [released] = await store.outbox.release(OTHER, suspect=True)
    assert (released.id, released.standing) == (alone.id, Standing.SET_ASIDE)
    standings = {one.id: one.standing for _ in "ab" for one in await take_suspect(store, clock)}
    assert standings.pop(alone.id) is Standing.SET_ASIDE
    assert list(standings.values()) == [Standing.SUSPECT]


async def test_a_suspect_whose_process_was_killed_is_tried_again_and_not_set_aside(
    store: SqlStore, clock: VirtualClock
) -> None:
    await put(store, "a")
    await take(store, clock)
    await store.outbox.release(OWNER, suspect=True)
    for _ in range(5):
        [alone] = await take_suspect(store, clock)
        assert alone.standing is Standing.SUSPECT
        await clock.advance(MINUTE)


@pytest.mark.parametrize("ends", [{"delivered": True}, {"reason": "410"}])
async def test_the_next_event_of_a_suspects_lane_is_no_suspect(
    store: SqlStore, clock: VirtualClock, ends: dict[str, str | bool]
) -> None:
    await put(store, "a", "a")
    await take(store, clock)
    await store.outbox.release(OWNER, suspect=True)
    [alone] = await take_suspect(store, clock)
    await store.outbox.settle([Delivery(id=alone.id, token=alone.token, **ends)])  # type: ignore[arg-type]
    [following] = await take(store, clock)
    assert following.standing is Standing.GOOD


async def test_a_suspect_that_only_failed_is_one_like_others_from_then_on(
    store: SqlStore, clock: VirtualClock
) -> None:
    await put(store, "a")
    await take(store, clock)
    await store.outbox.release(OWNER, suspect=True)
    [alone] = await take_suspect(store, clock)
    await store.outbox.settle([Delivery(id=alone.id, token=alone.token, retry_at=clock.now())])
    [again] = await take(store, clock)
    assert (again.id, again.standing) == (alone.id, Standing.GOOD)


async def test_what_is_set_aside_stays_so_until_that_is_recorded(
    store: SqlStore, clock: VirtualClock
) -> None:
    await put(store, "a")
    await take(store, clock)
    await store.outbox.release(OWNER, suspect=True)
    await take_suspect(store, clock)
    await store.outbox.release(OWNER, suspect=True)
    [aside] = await take_suspect(store, clock)
    await store.outbox.settle([Delivery(id=aside.id, token=aside.token, retry_at=clock.now())])
    [again] = await take_suspect(store, clock)
    assert again.standing is Standing.SET_ASIDE
