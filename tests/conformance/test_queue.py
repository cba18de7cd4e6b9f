"""The queue's promises on putting, claiming, ending and keeping jobs."""

import asyncio
from datetime import datetime, timedelta
from itertools import chain

import pytest

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.job import SUSPECT_AFTER, End, Job, JobView, Lease, NewJob, State, Want
from mimawari.store.sql import SqlStore

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def want(most: int = 10, kind: str = "a", *, suspects: bool = True) -> Want:
    return Want(kind=kind, most=most, lease_for=MINUTE, suspects=suspects)


async def claim(store: SqlStore, most: int = 10, kind: str = "a") -> tuple[Job, ...]:
    return (await store.queue.turn((), [want(most, kind)], "w")).jobs


async def claim_one(store: SqlStore) -> Job:
    (job,) = await claim(store, 1)
    return job


async def look(store: SqlStore, job_id: str) -> JobView:
    view = await store.queue.find(job_id)
    assert view is not None
    return view


def end(job: Job, state: State = State.DONE, reason: str | None = None) -> End:
    return End(id=job.id, token=job.token, state=state, reason=reason)


def crash(job: Job) -> End:
    return End(id=job.id, token=job.token, state=State.PENDING, crashed=True)


async def make_suspect(store: SqlStore) -> Job:
    """Let the one due job crash until it is a suspect."""
    job = await claim_one(store)
    for _ in range(SUSPECT_AFTER - 1):
        (job,) = (await store.queue.turn([crash(job)], [want(1)], "w")).jobs
    await store.queue.turn([crash(job)], (), "w")
    return job


async def lose(store: SqlStore, rival: SqlStore, clock: VirtualClock) -> tuple[Job, Job]:
    """Claim a job, let its lease run out and let another claim it; return both claims."""
    old = await claim_one(store)
    await clock.advance(2 * MINUTE)
    (rescued,) = await rival.queue.expired(clock.now(), 10)
    (new,) = (await rival.queue.turn([crash(rescued)], [want(1)], "rival")).jobs
    return old, new


async def test_an_accepted_job_is_there_for_every_process(
    store: SqlStore, rival: SqlStore, clock: VirtualClock
) -> None:
    job = NewJob(kind="a", args={"n": 1}, target="t", priority=7, reason="asked for")
    assert await store.queue.put([job]) == [job.id]
    view = await look(rival, job.id)
    assert (view.kind, view.args, view.target, view.priority) == ("a", {"n": 1}, "t", 7)
    assert (view.state, view.reason, view.attempts) == (State.PENDING, "asked for", 0)
    assert (view.enqueued_at, view.next_at, view.ended_at) == (clock.now(), clock.now(), None)


async def test_a_large_batch_is_accepted_whole_and_in_order(store: SqlStore) -> None:
    new = [NewJob(kind="a", args={"n": n}) for n in range(500)]
    assert await store.queue.put(new) == [job.id for job in new]
    assert [job.args["n"] for job in await claim(store, 500)] == list(range(500))


async def test_a_put_that_cannot_be_stored_accepts_none(store: SqlStore) -> None:
    with pytest.raises(ValueError, match="JSON"):
        await store.queue.put([NewJob(kind="a"), NewJob(kind="a", args={"x": float("nan")})])
    assert (await store.queue.counts())[State.PENDING] == 0


async def test_a_job_put_again_is_not_new(store: SqlStore) -> None:
    job = NewJob(kind="a")
    await store.queue.put([job])
    assert await store.queue.put([job]) == []
    assert (await store.queue.counts())[State.PENDING] == 1


async def test_a_job_put_again_after_its_end_does_not_run_twice(store: SqlStore) -> None:
    new = NewJob(kind="a")
    await store.queue.put([new])
    await store.queue.turn([end(await claim_one(store))], (), "w")
    assert await store.queue.put([new]) == []
    assert await claim(store) == ()


@pytest.mark.parametrize("claimed", [False, True])
async def test_a_key_that_lives_is_left_out(store: SqlStore, claimed: bool) -> None:
    first = NewJob(kind="a", dedupe_key="k")
    await store.queue.put([first])
    assert len(await claim(store, int(claimed))) == int(claimed)
    other = NewJob(kind="b", dedupe_key="other")
    assert await store.queue.put([NewJob(kind="b", dedupe_key="k"), other]) == [other.id]


@pytest.mark.parametrize("state", [State.DONE, State.FAILED, State.PERMANENT_FAIL])
async def test_a_key_is_free_once_its_job_has_ended(store: SqlStore, state: State) -> None:
    await store.queue.put([NewJob(kind="a", dedupe_key="k")])
    await store.queue.turn([end(await claim_one(store), state)], (), "w")
    again = NewJob(kind="a", dedupe_key="k")
    assert await store.queue.put([again]) == [again.id]


async def test_of_two_jobs_with_one_key_in_one_put_the_first_lives(store: SqlStore) -> None:
    first, second = (NewJob(kind="a", dedupe_key="k") for _ in range(2))
    free = [NewJob(kind="a") for _ in range(2)]
    assert await store.queue.put([first, second, *free]) == [first.id, *(job.id for job in free)]


async def test_of_two_puts_of_one_key_at_once_exactly_one_is_new(
    store: SqlStore, rival: SqlStore
) -> None:
    puts = [s.queue.put([NewJob(kind="a", dedupe_key="k")]) for s in (store, rival) * 5]
    new = list(chain.from_iterable(await asyncio.gather(*puts)))
    assert [job.id for job in await claim(store)] == new
    assert len(new) == 1


async def test_keys_are_told_apart_exactly(store: SqlStore) -> None:
    keys = ["k", "K", "k ", "k%", "k_", "\uff4b", "k\u0301", ""]
    new = [NewJob(kind="a", dedupe_key=key) for key in keys]
    assert await store.queue.put(new) == [job.id for job in new]


@pytest.mark.parametrize("most", [1, 4])
async def test_claims_go_by_priority_then_due_time(
    store: SqlStore, clock: VirtualClock, most: int
) -> None:
    now = clock.now()
    for name, priority, minutes in (("d", 100, 2), ("c", 100, 1), ("b", 9, 3), ("a", -1, 4)):
        run_at = now + minutes * MINUTE
        new = NewJob(kind="a", args={"n": name}, priority=priority, run_at=run_at)
        await store.queue.put([new])
    await clock.advance(HOUR)
    claimed = [job.args["n"] for _ in range(0, 4, most) for job in await claim(store, most)]
    assert claimed == ["a", "b", "c", "d"]


async def test_one_batch_comes_in_order_of_priority(store: SqlStore) -> None:
    await store.queue.put([NewJob(kind="a", priority=p, args={"p": p}) for p in (5, 100, 1, 30)])
    assert [job.args["p"] for job in await claim(store)] == [1, 5, 30, 100]


async def test_a_job_for_later_is_claimed_at_its_time_and_not_before(
    store: SqlStore, clock: VirtualClock
) -> None:
    (job_id,) = await store.queue.put([NewJob(kind="a", run_at=clock.now() + HOUR)])
    await clock.advance(HOUR - timedelta(microseconds=1))
    assert await claim(store) == ()
    await clock.advance(timedelta(microseconds=1))
    assert [job.id for job in await claim(store)] == [job_id]


async def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        NewJob(kind="a", run_at=datetime(2026, 1, 1))  # noqa: DTZ001


async def test_a_claim_gives_no_more_than_wanted_of_each_kind(store: SqlStore) -> None:
    await store.queue.put([NewJob(kind=kind) for kind in "aaabbbc"])
    turn = await store.queue.turn((), [want(2, "a"), want(0, "b"), want(9, "c")], "w")
    assert [job.kind for job in turn.jobs] == ["a", "a", "c"]


async def test_a_claim_tells_who_holds_the_job_and_until_when(
    store: SqlStore, clock: VirtualClock
) -> None:
    new = NewJob(kind="a", args={"n": 1}, dedupe_key="k", target="t", reason="asked for")
    await store.queue.put([new])
    (job,) = (await store.queue.turn((), [want()], "worker 1")).jobs
    assert (job.id, job.args, job.dedupe_key, job.target) == (new.id, {"n": 1}, "k", "t")
    assert (job.attempt, job.crashes, job.broken, job.enqueued_at) == (1, 0, None, clock.now())
    view = await look(store, job.id)
    assert (view.state, view.worker, view.reason) == (State.PROCESSING, "worker 1", None)
    assert view.next_at == clock.now() + MINUTE


async def test_two_claimers_at_once_never_get_one_job_twice(
    store: SqlStore, rival: SqlStore
) -> None:
    ids = await store.queue.put([NewJob(kind="a") for _ in range(60)])
    parts = await asyncio.gather(*(claim(s, 7) for s in (store, rival) * 4))
    rest = await claim(store, 60)
    claimed = [job.id for job in chain(*parts, rest)]
    assert sorted(claimed) == sorted(ids)


async def test_one_turn_ends_jobs_and_claims_the_next(store: SqlStore, clock: VirtualClock) -> None:
    await store.queue.put([NewJob(kind="a", args={"n": n}) for n in range(2)])
    first = await claim_one(store)
    turn = await store.queue.turn([end(first, reason="well done")], [want()], "w")
    assert (turn.accepted, turn.refused) == (frozenset([first.id]), frozenset())
    assert [job.args["n"] for job in turn.jobs] == [1]
    view = await look(store, first.id)
    assert (view.state, view.reason, view.ended_at) == (State.DONE, "well done", clock.now())
    assert (view.next_at, view.worker, view.attempts) == (None, "w", 1)


async def test_a_stale_end_is_refused_whole(
    store: SqlStore, rival: SqlStore, clock: VirtualClock
) -> None:
    await store.queue.put([NewJob(kind="a")])
    old, new = await lose(store, rival, clock)
    before = await look(store, old.id)
    late = End(id=old.id, token=old.token, state=State.FAILED, reason="late", page=b"late")
    for stale in (late, end(old, State.PENDING)):
        turn = await store.queue.turn([stale], [want()], "w")
        assert (turn.refused, turn.jobs) == (frozenset([old.id]), ())
        assert not turn.accepted
    assert await look(store, old.id) == before
    assert (await rival.queue.turn([end(new)], (), "rival")).accepted == {old.id}


async def test_a_stale_end_does_not_take_the_good_ones_with_it(
    store: SqlStore, rival: SqlStore, clock: VirtualClock
) -> None:
    await store.queue.put([NewJob(kind="a")])
    old, _ = await lose(store, rival, clock)
    await store.queue.put([NewJob(kind="a") for _ in range(2)])
    good, back = await claim(store)
    ends = [end(old), end(good), end(back, State.PENDING)]
    turn = await store.queue.turn([*ends, End(id="none", token=1, state=State.DONE)], (), "w")
    assert turn.accepted == {good.id, back.id}
    assert turn.refused == {old.id, "none"}


async def test_an_end_that_was_never_claimed_is_refused(store: SqlStore) -> None:
    (job_id,) = await store.queue.put([NewJob(kind="a")])
    turn = await store.queue.turn([End(id=job_id, token=0, state=State.DONE)], (), "w")
    assert turn.refused == {job_id}
    assert (await look(store, job_id)).state == State.PENDING


async def test_an_end_repeated_after_a_lost_reply_counts_once(store: SqlStore) -> None:
    await store.queue.put([NewJob(kind="a")])
    job = await claim_one(store)
    await store.queue.turn([end(job, reason="first")], (), "w")
    again = await store.queue.turn([end(job, State.FAILED, "second")], (), "w")
    assert (again.accepted, again.refused) == (frozenset([job.id]), frozenset())
    view = await look(store, job.id)
    assert (view.state, view.reason) == (State.DONE, "first")
    assert sum((await store.queue.counts()).values()) == 1


async def test_a_stale_end_is_refused_although_the_job_has_ended(
    store: SqlStore, rival: SqlStore, clock: VirtualClock
) -> None:
    await store.queue.put([NewJob(kind="a")])
    old, new = await lose(store, rival, clock)
    await rival.queue.turn([end(new)], (), "rival")
    assert (await store.queue.turn([end(old)], (), "w")).refused == {old.id}


async def test_one_end_said_twice_in_a_turn_counts_once(store: SqlStore) -> None:
    await store.queue.put([NewJob(kind="a")])
    job = await claim_one(store)
    assert (await store.queue.turn([end(job), end(job)], (), "w")).accepted == {job.id}
    assert (await store.queue.counts())[State.DONE] == 1


async def test_a_kept_claim_does_not_run_out(store: SqlStore, clock: VirtualClock) -> None:
    await store.queue.put([NewJob(kind="a") for _ in range(2)])
    kept, left = await claim(store)
    until = clock.now() + HOUR
    assert await store.queue.extend([Lease(id=kept.id, token=kept.token, until=until)]) == set()
    await clock.advance(2 * MINUTE)
    assert [job.id for job in await store.queue.expired(clock.now(), 10)] == [left.id]
    assert (await look(store, kept.id)).next_at == until


async def test_extending_tells_lost_claims_from_those_still_ours(
    store: SqlStore, rival: SqlStore, clock: VirtualClock
) -> None:
    await store.queue.put([NewJob(kind="a")])
    old, _ = await lose(store, rival, clock)
    await store.queue.put([NewJob(kind="a") for _ in range(3)])
    ours, back, late = await claim(store)
    await store.queue.turn([end(back, State.PENDING)], (), "w")
    await clock.advance(2 * MINUTE)
    claims = ((old, 1), (ours, 1), (back, 2), (late, 3))
    leases = [
        Lease(id=job.id, token=job.token, until=clock.now() + hours * HOUR) for job, hours in claims
    ]
    assert await store.queue.extend(leases) == {old.id, back.id}
    assert (await look(store, late.id)).next_at == clock.now() + 3 * HOUR
    assert (await look(store, old.id)).next_at == clock.now() - MINUTE


async def test_expired_lists_lost_claims_and_changes_nothing(
    store: SqlStore, clock: VirtualClock
) -> None:
    await store.queue.put([NewJob(kind=kind) for kind in "aab"])
    claimed = [*await claim(store), *await claim(store, kind="b")]
    await store.queue.put([NewJob(kind="a")])
    assert await store.queue.expired(clock.now(), 10) == []
    await clock.advance(MINUTE)
    assert len(await store.queue.expired(clock.now(), 2)) == 2
    for _ in range(2):
        found = await store.queue.expired(clock.now(), 10)
        assert sorted(found, key=lambda job: job.id) == claimed


async def test_a_job_put_back_waits_and_tells_why(store: SqlStore, clock: VirtualClock) -> None:
    await store.queue.put([NewJob(kind="a")])
    job, until = await claim_one(store), clock.now() + HOUR
    back = End(
        id=job.id,
        token=job.token,
        state=State.PENDING,
        run_at=until,
        reason="not now",
        blocked_by="limit x",
    )
    assert (await store.queue.turn([back], [want()], "w")).jobs == ()
    view = await look(store, job.id)
    assert (view.state, view.next_at, view.worker) == (State.PENDING, until, None)
    assert (view.reason, view.blocked_by) == ("not now", "limit x")
    await clock.advance(HOUR)
    again = await claim_one(store)
    assert (again.attempt, again.token) == (2, job.token + 1)
    view = await look(store, job.id)
    assert (view.reason, view.blocked_by) == (None, None)


async def test_a_job_that_only_waited_has_used_no_attempt(store: SqlStore) -> None:
    await store.queue.put([NewJob(kind="a")])
    job = await claim_one(store)
    for _ in range(3):
        back = End(id=job.id, token=job.token, state=State.PENDING, attempt_used=False)
        turn = await store.queue.turn([back], [want()], "w")
        assert [(j.attempt, j.token) for j in turn.jobs] == [(1, job.token + 1)]
        (job,) = turn.jobs


async def test_crashes_are_counted_and_ordinary_retries_are_not(store: SqlStore) -> None:
    await store.queue.put([NewJob(kind="a")])
    job = await claim_one(store)
    (job,) = (await store.queue.turn([end(job, State.PENDING)], [want()], "w")).jobs
    assert (job.crashes, job.attempt) == (0, 2)
    (job,) = (await store.queue.turn([crash(job)], [want()], "w")).jobs
    assert (job.crashes, job.attempt) == (1, 3)


async def test_a_suspect_is_given_only_to_who_wants_one(store: SqlStore) -> None:
    await store.queue.put([NewJob(kind="a")])
    suspect = await make_suspect(store)
    (calm,) = await store.queue.put([NewJob(kind="a", priority=1000)])
    turn = await store.queue.turn((), [want(suspects=False)], "w")
    assert [job.id for job in turn.jobs] == [calm]
    turn = await store.queue.turn((), [want(suspects=True)], "w")
    assert [(job.id, job.crashes) for job in turn.jobs] == [(suspect.id, SUSPECT_AFTER)]


async def test_a_turn_gives_one_suspect_and_only_where_there_is_room(store: SqlStore) -> None:
    suspects = set()
    for _ in range(2):
        await store.queue.put([NewJob(kind="a", priority=1)])
        suspects.add((await make_suspect(store)).id)
    calm = await store.queue.put([NewJob(kind="a") for _ in range(3)])
    assert [job.id for job in await claim(store, 2)] == calm[:2]
    *unsuspected, suspect = await claim(store)
    assert [job.id for job in unsuspected] == calm[2:]
    assert suspect.id in suspects


async def test_nothing_asked_changes_nothing(store: SqlStore) -> None:
    await store.queue.put([NewJob(kind="a")])
    assert await store.queue.put([]) == []
    turn = await store.queue.turn((), (), "w")
    assert (turn.accepted, turn.refused, turn.jobs) == (frozenset(), frozenset(), ())
    assert await store.queue.extend([]) == frozenset()
    assert (await store.queue.counts())[State.PENDING] == 1
