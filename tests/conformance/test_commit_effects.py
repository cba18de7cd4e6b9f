"""The commit's promises on what a job leaves behind: follow-ups, events, cursors and targets."""

import asyncio

import pytest
from sqlalchemy import insert, update

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.job import Job, NewJob, State
from mimawari.kernel.signal import JOBS, OUTBOX
from mimawari.kernel.values import Delivery, Entry, Event
from mimawari.store.sql import SqlStore
from mimawari.store.sql.tables import meta
from tests.conformance.committing import (
    HOUR,
    claimed,
    claimed_one,
    do_all,
    schedule_target,
    seen,
    want,
)


async def deliver_all(store: SqlStore, clock: VirtualClock) -> list[Event]:
    """Deliver every event, a head of each key at a time, and return them as they came."""
    came: list[Event] = []
    while events := await store.outbox.take(clock.now(), 50, HOUR):
        came += events
        done = [Delivery(id=event.id, token=event.token, delivered=True) for event in events]
        assert len(await store.outbox.settle(done)) == len(events)
    return came


async def test_a_follow_up_whose_key_lives_is_left_out(store: SqlStore) -> None:
    (live,) = await store.queue.put([NewJob(kind="b", dedupe_key="k")])
    fresh = NewJob(kind="b", dedupe_key="other")
    async with store.commit(await claimed_one(store)) as tx:
        tx.put(NewJob(kind="b", dedupe_key="k"), fresh)
        tx.put(NewJob(kind="b", dedupe_key="other"))
    turn = await store.queue.turn((), [want(kind="b")], "w")
    assert [job.id for job in turn.jobs] == [live, fresh.id]


async def test_a_job_may_put_its_own_key_again(store: SqlStore) -> None:
    await store.queue.put([NewJob(kind="a", dedupe_key="k")])
    (job,) = (await store.queue.turn((), [want()], "w")).jobs
    again = NewJob(kind="a", dedupe_key="k", args={"page": 2})
    async with store.commit(job) as tx:
        tx.put(again)
    view = await store.queue.find_live("k")
    assert view is not None
    assert (view.id, view.args) == (again.id, {"page": 2})


async def test_events_keep_their_order_within_a_key(store: SqlStore, clock: VirtualClock) -> None:
    first, second = await claimed(store, 2)
    for job, numbers in ((first, range(5)), (second, range(5, 9))):
        async with store.commit(job) as tx:
            for n in numbers:
                tx.emit(f"key {n % 2}", "found", {"n": n}, destination=f"log:{n}")
    came = await deliver_all(store, clock)
    assert [e.body["n"] for e in came if e.key == "key 0"] == [0, 2, 4, 6, 8]
    assert [e.body["n"] for e in came if e.key == "key 1"] == [1, 3, 5, 7]
    assert all(e.destination == f"log:{e.body['n']}" and e.kind == "found" for e in came)
    assert len({e.id for e in came}) == 9


async def test_commits_at_once_on_one_key_keep_order_and_lose_none(
    store: SqlStore, rival: SqlStore, clock: VirtualClock
) -> None:
    jobs = await claimed(store, 12)

    async def commit(owner: SqlStore, who: int) -> None:
        async with owner.commit(jobs[who]) as tx:
            for n in range(3):
                tx.emit("key", "found", {"who": who, "n": n}, destination="log:")
                tx.emit(f"own {who}", "found", {"who": who, "n": n}, destination="log:")

    owners = (store, rival) * 6
    await asyncio.gather(*(commit(owner, who) for who, owner in enumerate(owners)))
    bodies = [e.body for e in await deliver_all(store, clock) if e.key == "key"]
    whos = [body["who"] for body in bodies]
    assert [body["n"] for body in bodies] == [0, 1, 2] * 12
    assert whos[0::3] == whos[1::3] == whos[2::3]
    assert sorted(whos[0::3]) == list(range(12))


async def test_commits_at_once_on_one_row_lose_no_effect(store: SqlStore, rival: SqlStore) -> None:
    jobs = await claimed(store, 8)
    async with store.database.write() as session:
        await session.execute(insert(meta).values(name="effects", value=""))

    async def commit(owner: SqlStore, job: Job) -> None:
        async with owner.commit(job) as tx:
            await tx.execute(update(meta).values(value=meta.c.value.concat("x")))

    await asyncio.gather(*(commit(o, j) for o, j in zip((store, rival) * 4, jobs, strict=True)))
    assert (await seen(store))[0] == ["x" * 8]


async def test_the_last_word_on_a_cursor_counts(store: SqlStore) -> None:
    await store.cursor.move("cursor", "0", None)
    async with store.commit(await claimed_one(store)) as tx:
        tx.move("cursor", "1")
        tx.move("other", "9")
        tx.move("cursor", "2")
    assert await store.cursor.list() == {"cursor": "2", "other": "9"}


async def test_a_job_without_a_target_has_no_next_run(store: SqlStore, clock: VirtualClock) -> None:
    await store.queue.put([NewJob(kind="a")])
    (job,) = (await store.queue.turn((), [want()], "w")).jobs
    with pytest.raises(ValueError, match="no target"):
        async with store.commit(job) as tx:
            await do_all(tx, clock)
    assert await store.cursor.find("cursor") is None
    assert (await store.queue.counts())[State.PROCESSING] == 1


async def test_a_next_run_moves_its_own_target_only(store: SqlStore, clock: VirtualClock) -> None:
    await schedule_target(store, clock)
    other = Entry(member="other", kind="a", next_at=clock.now() + 9 * HOUR, every=HOUR)
    await store.schedule.put([other])
    async with store.commit(await claimed_one(store)) as tx:
        tx.next_run(clock.now() + 3 * HOUR)
        tx.next_run(clock.now() + 2 * HOUR, "soon")
    target = await store.schedule.find("t")
    assert target is not None
    assert (target.next_at, target.reason) == (clock.now() + 2 * HOUR, "soon")
    assert await store.schedule.find("other") == other


async def test_a_commit_wakes_who_waits_for_what_it_put(
    store: SqlStore, clock: VirtualClock
) -> None:
    job = await claimed_one(store)
    bells, until = [store.signal.bell(topic) for topic in (JOBS, OUTBOX)], clock.now() + HOUR
    waits = [asyncio.ensure_future(bell.wait(clock, until)) for bell in bells]
    async with store.commit(job) as tx:
        await do_all(tx, clock)
    assert await asyncio.gather(*waits) == [True, True]


@pytest.mark.parametrize("text", ["'\"`\\ %_ 🦊", "nul \x00 lone \ud800"])
async def test_hostile_text_commits_like_any_other(
    store: SqlStore, clock: VirtualClock, text: str
) -> None:
    await schedule_target(store, clock)
    async with store.commit(await claimed_one(store)) as tx:
        tx.put(NewJob(kind="b", args={"x": text}, dedupe_key=text))
        tx.emit(text, "found", {"x": text}, destination=text)
        tx.move(text, text)
        tx.next_run(clock.now(), text)
    (event,) = await deliver_all(store, clock)
    assert event.body == {"x": text}
    (job,) = (await store.queue.turn((), [want(kind="b")], "w")).jobs
    assert job.args == {"x": text}
    assert await store.schedule.next_at() == clock.now()


async def test_a_target_that_is_new_is_placed_and_one_that_is_there_keeps_its_time(
    store: SqlStore, clock: VirtualClock
) -> None:
    await schedule_target(store, clock)
    late = clock.now() + 9 * HOUR
    async with store.commit(await claimed_one(store)) as tx:
        tx.place_new(
            *(Entry(member=name, kind="a", next_at=late, every=HOUR) for name in ("t", "new"))
        )
    entries = {entry.member: entry.next_at for entry in await store.schedule.list(9)}
    assert entries == {"t": clock.now() + HOUR, "new": late}
