"""The commit's promises: all that a job learned is kept once, or not at all."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from sqlalchemy import insert, select, update

from mimawari.errors import LeaseLost
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.job import End, Job, NewJob, State, Want
from mimawari.kernel.ports import Tx
from mimawari.kernel.signal import JOBS, OUTBOX
from mimawari.kernel.values import Delivery, Entry, Event
from mimawari.store.sql import SqlStore
from mimawari.store.sql.tables import meta
from tests.stores import open_again

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


class Failure(Exception): ...


@pytest.fixture
async def rival(store: SqlStore, clock: VirtualClock) -> AsyncIterator[SqlStore]:
    """A second store on the same database, as another process would have it."""
    rival = open_again(store, clock)
    yield rival
    await rival.close()


def want(most: int = 50, kind: str = "a") -> Want:
    return Want(kind=kind, most=most, lease_for=MINUTE)


async def claimed(store: SqlStore, count: int) -> tuple[Job, ...]:
    """Put some jobs and claim them."""
    await store.queue.put([NewJob(kind="a", target="t") for _ in range(count)])
    jobs = (await store.queue.turn((), [want()], "w")).jobs
    assert len(jobs) == count
    return jobs


async def claimed_one(store: SqlStore) -> Job:
    (job,) = await claimed(store, 1)
    return job


async def lose(rival: SqlStore, clock: VirtualClock) -> Job:
    """Let the one claim run out and let another take it over."""
    await clock.advance(2 * MINUTE)
    (old,) = await rival.queue.expired(clock.now(), 9)
    back = End(id=old.id, token=old.token, state=State.PENDING, crashed=True)
    (new,) = (await rival.queue.turn([back], [want()], "rival")).jobs
    return new


async def schedule_target(store: SqlStore, clock: VirtualClock) -> None:
    entry = Entry(member="t", kind="a", next_at=clock.now() + HOUR, every=HOUR)
    await store.schedule.put([entry])


async def do_all(tx: Tx, clock: VirtualClock, body: object = 1) -> None:
    """Say one thing of each sort to a commit."""
    await tx.execute(insert(meta).values(name="effect", value="kept"))
    tx.put(NewJob(kind="b"))
    tx.emit("key", "found", {"n": body}, destination="log:")
    tx.move("cursor", "page 2")
    tx.place(Entry(member="new", kind="a", next_at=clock.now(), every=HOUR))
    tx.next_run(clock.now() + 5 * HOUR, "nothing new")


async def do_all_and_fail(tx: Tx, clock: VirtualClock, error: type[BaseException]) -> None:
    await do_all(tx, clock)
    raise error


async def seen(store: SqlStore) -> tuple[object, ...]:
    """Look at all that `do_all` may have changed."""
    async with store.read() as reader:
        effects = (await reader.execute(select(meta.c.value))).scalars().all()
    target = await store.schedule.find("t")
    return (
        list(effects),
        await store.queue.depths(["b"], 9),
        await store.outbox.counts(),
        await store.cursor.find("cursor"),
        target and (target.next_at, target.reason),
        await store.queue.counts(),
        await store.schedule.count(),
    )


async def deliver_all(store: SqlStore, clock: VirtualClock) -> list[Event]:
    """Deliver every event, a head of each key at a time, and return them as they came."""
    came: list[Event] = []
    while events := await store.outbox.take(clock.now(), 50, HOUR):
        came += events
        done = [Delivery(id=event.id, token=event.token, delivered=True) for event in events]
        assert len(await store.outbox.settle(done)) == len(events)
    return came


async def test_all_that_is_said_appears_together(
    store: SqlStore, rival: SqlStore, clock: VirtualClock
) -> None:
    await schedule_target(store, clock)
    job = await claimed_one(store)
    before = await seen(rival)
    async with store.commit(job) as tx:
        await do_all(tx, clock)
        assert await seen(rival) == before
    effects, depths, events, cursor, target, counts, members = await seen(rival)
    assert (effects, depths, cursor, members) == (["kept"], {"b": 1}, "page 2", 2)
    assert events == {"pending": 1, "delivered": 0, "failed": 0}
    assert target == (clock.now() + 5 * HOUR, "nothing new")
    assert counts == {**dict.fromkeys(State, 0), State.PENDING: 1, State.DONE: 1}


@pytest.mark.parametrize("error", [Failure, asyncio.CancelledError])
async def test_all_that_is_said_vanishes_together_when_the_body_fails(
    store: SqlStore, clock: VirtualClock, error: type[BaseException]
) -> None:
    await schedule_target(store, clock)
    job = await claimed_one(store)
    before = await seen(store)
    with pytest.raises(error):
        async with store.commit(job) as tx:
            await do_all_and_fail(tx, clock, error)
    assert await seen(store) == before


async def test_a_job_whose_commit_failed_is_still_ours(
    store: SqlStore, clock: VirtualClock
) -> None:
    job = await claimed_one(store)
    with pytest.raises(Failure):
        async with store.commit(job):
            raise Failure
    async with store.commit(job) as tx:
        await do_all(tx, clock)
    assert (await store.queue.counts())[State.DONE] == 1
    assert await store.cursor.find("cursor") == "page 2"


@pytest.mark.parametrize("bad", [float("nan"), object()])
async def test_what_cannot_be_stored_undoes_the_whole_commit(
    store: SqlStore, clock: VirtualClock, bad: object
) -> None:
    await schedule_target(store, clock)
    job = await claimed_one(store)
    before = await seen(store)
    with pytest.raises((ValueError, TypeError)):
        async with store.commit(job) as tx:
            await do_all(tx, clock, bad)
    assert await seen(store) == before


async def test_a_committed_job_is_in_the_inbox_as_it_was(
    store: SqlStore, clock: VirtualClock
) -> None:
    new = NewJob(kind="a", args={"n": 1}, dedupe_key="k", target="t", priority=4)
    await store.queue.put([new])
    (job,) = (await store.queue.turn((), [want()], "worker 1")).jobs
    async with store.commit(job):
        pass
    view = await store.queue.find(job.id)
    assert view is not None
    assert (view.state, view.args, view.priority) == (State.DONE, {"n": 1}, 4)
    assert (view.dedupe_key, view.target, view.worker) == ("k", "t", "worker 1")
    assert (view.ended_at, view.next_at) == (clock.now(), None)


async def test_a_second_commit_of_one_job_is_refused_before_any_effect(
    store: SqlStore,
) -> None:
    job = await claimed_one(store)
    async with store.commit(job):
        pass
    entered: list[Tx] = []
    before = await seen(store)
    with pytest.raises(LeaseLost):
        async with store.commit(job) as tx:
            entered.append(tx)
    assert entered == []
    assert await seen(store) == before


async def test_of_two_commits_of_one_job_at_once_one_is_refused(
    store: SqlStore, rival: SqlStore
) -> None:
    job = await claimed_one(store)

    async def commit(owner: SqlStore) -> None:
        async with owner.commit(job) as tx:
            tx.put(NewJob(kind="b"))
            tx.emit("key", "found", {}, destination="log:")

    results = await asyncio.gather(*map(commit, (store, rival) * 2), return_exceptions=True)
    assert [type(result) for result in results if result] == [LeaseLost] * 3
    assert await store.queue.depths(["b"], 9) == {"b": 1}
    assert (await store.outbox.counts())["pending"] == 1


async def test_a_stale_owner_changes_nothing(
    store: SqlStore, rival: SqlStore, clock: VirtualClock
) -> None:
    await schedule_target(store, clock)
    old = await claimed_one(store)
    new = await lose(rival, clock)
    before = await seen(store)
    with pytest.raises(LeaseLost):
        async with store.commit(old) as tx:
            await do_all(tx, clock)
    assert await seen(store) == before
    async with rival.commit(new) as tx:
        tx.move("cursor", "of the new owner")
    assert await store.cursor.find("cursor") == "of the new owner"


async def test_a_stale_owner_is_refused_after_the_new_one_has_committed(
    store: SqlStore, rival: SqlStore, clock: VirtualClock
) -> None:
    old = await claimed_one(store)
    async with rival.commit(await lose(rival, clock)):
        pass
    with pytest.raises(LeaseLost):
        async with store.commit(old) as tx:
            await do_all(tx, clock)
    assert await store.cursor.find("cursor") is None


async def test_a_job_given_back_cannot_be_committed(store: SqlStore, clock: VirtualClock) -> None:
    job = await claimed_one(store)
    await store.queue.turn([End(id=job.id, token=job.token, state=State.PENDING)], (), "w")
    with pytest.raises(LeaseLost):
        async with store.commit(job) as tx:
            await do_all(tx, clock)
    assert (await store.queue.counts())[State.PENDING] == 1


async def test_a_lease_that_ran_out_untaken_may_still_be_committed(
    store: SqlStore, clock: VirtualClock
) -> None:
    job = await claimed_one(store)
    await clock.advance(HOUR)
    async with store.commit(job) as tx:
        await do_all(tx, clock)
    assert (await store.queue.counts())[State.DONE] == 1
    assert await store.queue.expired(clock.now(), 9) == []


async def test_the_end_of_a_committed_job_repeats_as_accepted(store: SqlStore) -> None:
    job = await claimed_one(store)
    async with store.commit(job):
        pass
    end = End(id=job.id, token=job.token, state=State.DONE)
    assert (await store.queue.turn([end], (), "w")).accepted == {job.id}


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


async def test_a_change_that_no_job_owns_is_kept_whole_or_not_at_all(
    store: SqlStore, clock: VirtualClock
) -> None:
    before = await seen(store)
    with pytest.raises(ValueError, match="no target"):
        async with store.edit() as tx:
            await do_all(tx, clock)
    assert await seen(store) == before
    async with store.edit() as tx:
        tx.put(NewJob(kind="b"))
    assert await store.queue.depths(["b"], 9) == {"b": 1}


async def test_a_commit_may_say_that_its_job_is_gone_for_good(
    store: SqlStore, clock: VirtualClock
) -> None:
    job = await claimed_one(store)
    async with store.commit(job, State.PERMANENT_FAIL, "the site answered 404") as tx:
        await do_all(tx, clock)
    view = await store.queue.find(job.id)
    assert view is not None
    assert (view.state, view.reason) == (State.PERMANENT_FAIL, "the site answered 404")
    assert (await seen(store))[0] == ["kept"]
    assert not await store.queue.requeue(job.id)


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
