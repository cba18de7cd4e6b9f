"""The commit's promises: all that a job learned is kept once, or not at all."""

import asyncio

import pytest

from mimawari.errors import LeaseLost
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.job import End, Job, NewJob, State
from mimawari.kernel.ports import Tx
from mimawari.store.sql import SqlStore
from tests.conformance.committing import (
    HOUR,
    MINUTE,
    claimed_one,
    do_all,
    schedule_target,
    seen,
    want,
)


class Failure(Exception): ...


async def lose(rival: SqlStore, clock: VirtualClock) -> Job:
    """Let the one claim run out and let another take it over."""
    await clock.advance(2 * MINUTE)
    (old,) = await rival.queue.expired(clock.now(), 9)
    back = End(id=old.id, token=old.token, state=State.PENDING, crashed=True)
    (new,) = (await rival.queue.turn([back], [want()], "rival")).jobs
    return new


async def do_all_and_fail(tx: Tx, clock: VirtualClock, error: type[BaseException]) -> None:
    await do_all(tx, clock)
    raise error


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
