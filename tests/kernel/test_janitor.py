"""The janitor: rescues the jobs of the dead, buries strangers and forgets what is over."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from mimawari.ids import new_id
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.context import Context
from mimawari.kernel.janitor import BATCH, Janitor, Report, Retention
from mimawari.kernel.job import End, Job, JobView, NewJob, State, Want
from mimawari.kernel.values import Delivery, NewEvent
from mimawari.kernel.watch import Watch, Watches, task
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade
from tests.kernel.rounds import asleep, running

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
MICROSECOND = timedelta(microseconds=1)
QUIET = Report(0, 0, 0, 0, 0, 0, 0, 0)


@task("t", lease="1m", attempts=1)
async def nothing(job: Job, ctx: Context) -> None:
    """Do nothing."""
    del job, ctx


WATCHES = Watches([Watch(name="w", tasks=(nothing,))])


async def put(store: SqlStore, kind: str = "t") -> str:
    [job_id] = await store.queue.put([NewJob(kind=kind)])
    return job_id


async def claim(store: SqlStore, kind: str = "t") -> Job:
    want = Want(kind=kind, most=1, lease_for=MINUTE)
    [job] = (await store.queue.turn((), [want], "doomed")).jobs
    return job


async def ended(store: SqlStore, state: State) -> str:
    """Put a job and end it now."""
    await put(store)
    job = await claim(store)
    await store.queue.turn([End(id=job.id, token=job.token, state=state)], (), "w")
    return job.id


async def told(store: SqlStore, clock: VirtualClock, *, delivered: bool) -> None:
    """Put an event and end it now."""
    await store.outbox.put(
        [NewEvent(key=new_id(), kind="k", body={}, destination="log:", id=new_id())]
    )
    [event] = await store.outbox.take(clock.now(), 1, MINUTE)
    await store.outbox.settle([Delivery(id=event.id, token=event.token, delivered=delivered)])


async def found(store: SqlStore, job_id: str) -> JobView:
    """Find a job that is there."""
    view = await store.queue.find(job_id)
    assert view is not None
    return view


async def test_where_nothing_is_over_nothing_is_done(store: SqlStore, clock: VirtualClock) -> None:
    waiting, held = await put(store), await put(store)
    assert (await claim(store)).id == waiting
    await clock.advance(MINUTE - MICROSECOND)
    assert await Janitor(store, clock, WATCHES).tick() == QUIET
    assert (await found(store, waiting)).state == State.PROCESSING
    assert (await found(store, held)).state == State.PENDING


async def test_the_job_of_a_dead_process_goes_back_to_the_queue(
    store: SqlStore, clock: VirtualClock
) -> None:
    job_id = await put(store)
    await claim(store)
    await clock.advance(MINUTE)
    assert await Janitor(store, clock, WATCHES).tick() == replace(QUIET, requeued=1)
    view = await found(store, job_id)
    assert (view.state, view.reason, view.next_at) == (
        State.PENDING,
        "its process died",
        clock.now(),
    )
    assert (view.worker, view.attempts) == (None, 1)


async def test_a_job_whose_process_died_three_times_is_buried(
    store: SqlStore, clock: VirtualClock
) -> None:
    job_id = await put(store)
    janitor = Janitor(store, clock, WATCHES)
    reports = []
    for _ in range(3):
        await claim(store)
        await clock.advance(MINUTE)
        reports.append(await janitor.tick())
    once = replace(QUIET, requeued=1)
    assert reports == [once, once, replace(QUIET, buried=1)]
    view = await found(store, job_id)
    assert (view.state, view.reason) == (State.FAILED, "its process died 3 times")


async def test_a_late_end_of_a_rescued_job_is_refused(store: SqlStore, clock: VirtualClock) -> None:
    await put(store)
    job = await claim(store)
    await clock.advance(MINUTE)
    await Janitor(store, clock, WATCHES).tick()
    late = End(id=job.id, token=job.token, state=State.DONE)
    assert (await store.queue.turn([late], (), "doomed")).refused == {job.id}


async def test_jobs_of_unknown_kinds_are_buried_with_the_reason(
    store: SqlStore, clock: VirtualClock
) -> None:
    strangers = [await put(store, kind) for kind in ("x", "y", "y")]
    known = await put(store)
    assert await Janitor(store, clock, WATCHES).tick() == replace(QUIET, unknown=3)
    views = [await found(store, job_id) for job_id in strangers]
    assert {view.state for view in views} == {State.FAILED}
    assert [view.reason for view in views] == [f"unknown kind {kind!r}" for kind in "xyy"]
    assert (await found(store, known)).state == State.PENDING


async def test_more_strangers_than_one_batch_are_buried_in_one_round(
    store: SqlStore, clock: VirtualClock
) -> None:
    await store.queue.put([NewJob(kind="x") for _ in range(BATCH + 1)])
    assert await Janitor(store, clock, WATCHES).tick() == replace(QUIET, unknown=BATCH + 1)
    assert await store.queue.kinds() == frozenset()


async def test_more_expired_leases_than_one_batch_are_ended_in_one_round(
    store: SqlStore, clock: VirtualClock
) -> None:
    await store.queue.put([NewJob(kind="t") for _ in range(BATCH + 1)])
    want = Want(kind="t", most=BATCH + 1, lease_for=MINUTE)
    await store.queue.turn((), [want], "doomed")
    await clock.advance(MINUTE)
    assert await Janitor(store, clock, WATCHES).tick() == replace(QUIET, requeued=BATCH + 1)


async def test_the_expired_lease_of_an_unknown_kind_is_buried_too(
    store: SqlStore, clock: VirtualClock
) -> None:
    job_id = await put(store, "x")
    await claim(store, "x")
    await clock.advance(MINUTE)
    assert await Janitor(store, clock, WATCHES).tick() == replace(QUIET, buried=1)
    assert (await found(store, job_id)).reason == "unknown kind 'x'"


@pytest.mark.parametrize(
    ("state", "kept_for"),
    [
        (State.DONE, 7 * DAY),
        (State.FAILED, 90 * DAY),
        (State.PERMANENT_FAIL, 90 * DAY),
    ],
)
async def test_an_ended_job_is_kept_for_its_time_and_no_longer(
    state: State, kept_for: timedelta, store: SqlStore, clock: VirtualClock
) -> None:
    job_id = await ended(store, state)
    janitor = Janitor(store, clock, WATCHES)
    await clock.advance(kept_for)
    assert await janitor.tick() == QUIET
    assert (await found(store, job_id)).state == state
    await clock.advance(MICROSECOND)
    assert await janitor.tick() == replace(QUIET, forgotten_jobs=1)
    assert await store.queue.find(job_id) is None


@pytest.mark.parametrize("delivered", [True, False])
async def test_an_ended_event_is_kept_for_thirty_days(
    delivered: bool, store: SqlStore, clock: VirtualClock
) -> None:
    await told(store, clock, delivered=delivered)
    janitor = Janitor(store, clock, WATCHES)
    await clock.advance(30 * DAY)
    assert await janitor.tick() == QUIET
    await clock.advance(MICROSECOND)
    assert await janitor.tick() == replace(QUIET, forgotten_events=1)
    assert sum((await store.outbox.counts()).values()) == 0


async def test_what_still_waits_is_never_forgotten(store: SqlStore, clock: VirtualClock) -> None:
    job_id = await put(store)
    event = NewEvent(key="k", kind="k", body={}, destination="log:", id=new_id())
    await store.outbox.put([event])
    await clock.advance(1000 * DAY)
    assert await Janitor(store, clock, WATCHES).tick() == QUIET
    assert (await found(store, job_id)).state == State.PENDING
    assert (await store.outbox.counts())["pending"] == 1


async def test_cached_values_are_forgotten_when_they_have_run_out(
    store: SqlStore, clock: VirtualClock
) -> None:
    for number in range(3):
        await store.cache.set(f"k{number}", b"v", (number + 1) * MINUTE)
    await clock.advance(2 * MINUTE)
    assert await Janitor(store, clock, WATCHES).tick() == replace(QUIET, forgotten_values=2)
    assert await store.cache.get("k2") == b"v"


async def test_retention_is_as_told_and_the_report_counts_everything(
    store: SqlStore, clock: VirtualClock
) -> None:
    for state in (State.DONE, State.DONE, State.FAILED, State.PERMANENT_FAIL):
        await ended(store, state)
    for delivered in (True, False):
        await told(store, clock, delivered=delivered)
    await store.cache.set("k", b"v", MINUTE)
    await store.limiter.hold("l", clock.now() + timedelta(seconds=1), "asked to wait")
    await store.sessions.offer("a link", MINUTE)
    await put(store, "x")
    await put(store)
    await claim(store)
    await clock.advance(2 * MINUTE)
    fresh = await ended(store, State.DONE)
    short = Retention(done=MINUTE, dead=MINUTE, events=MINUTE)
    assert await Janitor(store, clock, WATCHES, retention=short).tick() == Report(
        requeued=1,
        buried=0,
        unknown=1,
        forgotten_jobs=4,
        forgotten_events=2,
        forgotten_values=1,
        forgotten_pauses=1,
        forgotten_sessions=1,
    )
    assert (await found(store, fresh)).state == State.DONE


async def test_run_makes_a_round_at_the_start_and_then_every_five_minutes(
    store: SqlStore, clock: VirtualClock
) -> None:
    early = await put(store, "x")
    async with running(Janitor(store, clock, WATCHES)):
        await asleep(clock)
        assert (await found(store, early)).state == State.FAILED
        late = await put(store, "x")
        await clock.advance(5 * MINUTE - MICROSECOND)
        assert (await found(store, late)).state == State.PENDING
        await clock.advance(MICROSECOND)
        await asleep(clock)
        assert (await found(store, late)).state == State.FAILED


async def test_a_store_that_is_down_is_visited_again_in_the_next_round(
    tmp_path: Path, clock: VirtualClock
) -> None:
    """Play a disk that is mounted too late."""
    folder = tmp_path / "disk"
    store = SqlStore(f"sqlite:///{folder}/mimawari.db", clock)
    async with running(Janitor(store, clock, WATCHES, every=MINUTE)) as run:
        await asleep(clock)
        assert not run.done()
        folder.mkdir()
        await upgrade(store.database)
        stranger = await put(store, "x")
        await clock.advance(MINUTE)
        await asleep(clock)
        assert (await found(store, stranger)).state == State.FAILED
    await store.close()


async def test_a_kind_may_be_forgotten_sooner_than_others(
    store: SqlStore, clock: VirtualClock
) -> None:
    frequent = Watches([Watch(name="w", tasks=(replace(nothing, kept_for=MINUTE),))])
    janitor = Janitor(store, clock, frequent)
    done, failed = await ended(store, State.DONE), await ended(store, State.FAILED)
    await clock.advance(MINUTE)
    assert await janitor.tick() == QUIET
    await clock.advance(MICROSECOND)
    assert (await janitor.tick()).forgotten_jobs == 1
    assert await store.queue.find(done) is None
    assert await store.queue.find(failed) is not None
