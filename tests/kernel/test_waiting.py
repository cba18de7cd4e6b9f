"""Waiting for the end of a job that somebody asked for."""

import asyncio
from datetime import timedelta

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.job import End, JobView, NewJob, State, Want
from mimawari.kernel.waiting import wait_for_end
from mimawari.store.sql import SqlStore

MINUTE = timedelta(minutes=1)


async def never(_job: JobView) -> bool:
    """Wait for anything."""
    return False


async def end(store: SqlStore, state: State) -> None:
    """End the one job there is, as another process would: nobody rings here."""
    want = Want(kind="t", most=1, lease_for=MINUTE)
    [job] = (await store.queue.turn((), [want], "w")).jobs
    await store.queue.turn([End(id=job.id, token=job.token, state=state)], (), "w")


async def test_the_end_is_found_though_it_came_in_another_process(
    store: SqlStore, clock: VirtualClock
) -> None:
    [job_id] = await store.queue.put([NewJob(kind="t")])
    waiting = asyncio.create_task(wait_for_end(store, clock, job_id, clock.now() + MINUTE, never))
    while not clock.sleeping:
        await asyncio.sleep(0)
    await end(store, State.FAILED)
    await clock.advance(timedelta(seconds=1))
    view = await waiting
    assert view is not None
    assert view.state is State.FAILED


async def test_nobody_waits_longer_than_they_said(store: SqlStore, clock: VirtualClock) -> None:
    [job_id] = await store.queue.put([NewJob(kind="t")])
    waiting = asyncio.create_task(wait_for_end(store, clock, job_id, clock.now() + MINUTE, never))
    for _ in range(60):
        while not clock.sleeping:
            await asyncio.sleep(0)
        await clock.advance(timedelta(seconds=1))
    view = await waiting
    assert view is not None
    assert view.state is State.PENDING


async def test_a_job_that_nobody_knows_is_not_waited_for(
    store: SqlStore, clock: VirtualClock
) -> None:
    assert await wait_for_end(store, clock, "nobody", clock.now() + MINUTE, never) is None


async def test_nobody_waits_for_a_job_in_vain(store: SqlStore, clock: VirtualClock) -> None:
    async def is_pending(job: JobView) -> bool:
        return job.state is State.PENDING

    [job_id] = await store.queue.put([NewJob(kind="t")])
    view = await wait_for_end(store, clock, job_id, clock.now() + MINUTE, is_pending)
    assert view is not None
    assert view.state is State.PENDING
