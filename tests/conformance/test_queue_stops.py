"""Jobs that were in hand when the guard ended a process are suspects, wherever they are now."""

from datetime import timedelta

from mimawari.kernel import outcome
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.job import SUSPECT_AFTER, End, Job, NewJob, State, Want
from mimawari.store.sql import SqlStore

LEASE = timedelta(minutes=1)


def want(most: int = 10) -> Want:
    return Want(kind="k", most=most, lease_for=LEASE)


async def claim(store: SqlStore, most: int = 10) -> list[Job]:
    return list((await store.queue.turn((), [want(most)], "w")).jobs)


async def put_and_claim(store: SqlStore, count: int) -> list[Job]:
    await store.queue.put([NewJob(kind="k") for _ in range(count)])
    return await claim(store)


def again(job: Job, clock: VirtualClock) -> End:
    return outcome.end_of_stop(job, clock.now(), alone=False)


async def test_what_was_in_hand_is_due_at_once_and_claimed_one_at_a_time(
    store: SqlStore, clock: VirtualClock
) -> None:
    held = await put_and_claim(store, 3)
    ends = [again(job, clock) for job in held]
    assert await store.queue.settle_stop(ends) == {job.id for job in held}
    claimed = await claim(store)
    assert [(job.stops, job.crashes) for job in claimed] == [(1, SUSPECT_AFTER)]


async def test_a_job_that_was_alone_twice_is_a_dead_letter_with_the_reason(
    store: SqlStore, clock: VirtualClock
) -> None:
    [job] = await put_and_claim(store, 1)
    for state in (State.PENDING, State.FAILED):
        end = outcome.end_of_stop(job, clock.now(), alone=True)
        assert end.state is state
        assert await store.queue.settle_stop([end]) == {job.id}
        [job] = await claim(store) or [job]
    view = await store.queue.find(job.id)
    assert view is not None
    assert view.state is State.FAILED
    assert view.reason == outcome.STOOD_STILL
    assert await store.queue.requeue(job.id)
    [back] = await claim(store)
    assert (back.stops, back.crashes) == (0, 0)


async def test_one_whose_lease_ran_out_meanwhile_is_ended_all_the_same(
    store: SqlStore, clock: VirtualClock
) -> None:
    [job] = await put_and_claim(store, 1)
    await store.queue.settle_stop([again(job, clock)])
    [job] = await claim(store)
    crash = End(id=job.id, token=job.token, state=State.PENDING, crashed=True)
    await store.queue.turn([crash], (), "janitor")
    end = outcome.end_of_stop(job, clock.now(), alone=True)
    assert await store.queue.settle_stop([end]) == {job.id}
    assert await claim(store) == []


async def test_one_that_another_process_has_claimed_stays_there_as_a_suspect(
    store: SqlStore, clock: VirtualClock
) -> None:
    [old] = await put_and_claim(store, 1)
    crash = End(id=old.id, token=old.token, state=State.PENDING, crashed=True)
    [new] = (await store.queue.turn([crash], [want()], "rival")).jobs
    assert await store.queue.settle_stop([again(old, clock)]) == frozenset()
    [known] = await store.queue.find_jobs([old.id])
    assert (known.token, known.stops) == (new.token, 1)
    done = End(id=new.id, token=new.token, state=State.DONE)
    assert (await store.queue.turn([done], (), "rival")).accepted == {new.id}


async def test_a_job_that_has_ended_is_left_alone(store: SqlStore, clock: VirtualClock) -> None:
    [job] = await put_and_claim(store, 1)
    done = End(id=job.id, token=job.token, state=State.DONE)
    await store.queue.turn([done], (), "w")
    assert await store.queue.find_jobs([job.id]) == []
    assert await store.queue.settle_stop([again(job, clock)]) == frozenset()
