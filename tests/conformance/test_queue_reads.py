"""The queue's promises on looking at jobs, bringing them back and forgetting them."""

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.job import SUSPECT_AFTER, End, Job, JobView, NewJob, State, Want
from mimawari.store.sql import SqlStore
from mimawari.store.sql.jobs import PURGE_BATCH
from mimawari.store.sql.tables import jobs

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
HOSTILE = "a'b\"c`d\\e%f_g;h--i{j}\ttab 日本 🦊 \U0001f469\u200d\U0001f467 \u202e :rows %(x)s $1 ?"
UNSTORABLE = "nul \x00 bell \x07 lone \ud800 surrogates \udfff"


async def claim(store: SqlStore, most: int = 10, kind: str = "a") -> tuple[Job, ...]:
    want = Want(kind=kind, most=most, lease_for=MINUTE)
    return (await store.queue.turn((), [want], "w")).jobs


async def finish(store: SqlStore, state: State, page: bytes | None = None) -> Job:
    """End the next job in a state."""
    (job,) = await claim(store, 1)
    end = End(id=job.id, token=job.token, state=state, reason=f"it {state}", page=page)
    await store.queue.turn([end], (), "w")
    return job


async def look(store: SqlStore, job_id: str) -> JobView:
    view = await store.queue.find(job_id)
    assert view is not None
    return view


async def test_a_dead_letter_comes_back_with_all_its_attempts(
    store: SqlStore, clock: VirtualClock
) -> None:
    new = NewJob(kind="a", args={"n": 1}, dedupe_key="k", target="t", priority=3)
    await store.queue.put([new])
    for _ in range(SUSPECT_AFTER):
        (job,) = await claim(store)
        crash = End(id=job.id, token=job.token, state=State.PENDING, crashed=True)
        await store.queue.turn([crash], (), "w")
    dead = await finish(store, State.FAILED)
    await clock.advance(HOUR)
    assert await store.queue.requeue(dead.id)
    view = await look(store, dead.id)
    assert (view.state, view.attempts, view.priority) == (State.PENDING, 0, 3)
    (job,) = await claim(store)
    assert (job.id, job.args, job.dedupe_key, job.target) == (new.id, {"n": 1}, "k", "t")
    assert (job.attempt, job.crashes) == (1, 0)


async def test_a_dead_letter_comes_back_once(store: SqlStore) -> None:
    await store.queue.put([NewJob(kind="a")])
    dead = await finish(store, State.FAILED)
    assert await store.queue.requeue(dead.id)
    assert not await store.queue.requeue(dead.id)
    assert (await store.queue.counts())[State.FAILED] == 0


async def test_of_two_who_bring_back_one_dead_letter_at_once_one_does(
    store: SqlStore, rival: SqlStore
) -> None:
    await store.queue.put([NewJob(kind="a")])
    dead = await finish(store, State.FAILED)
    both = await asyncio.gather(*(s.queue.requeue(dead.id) for s in (store, rival) * 3))
    assert sum(both) == 1
    assert [job.id for job in await claim(store)] == [dead.id]


async def test_the_end_of_before_is_stale_once_a_dead_letter_came_back(store: SqlStore) -> None:
    await store.queue.put([NewJob(kind="a")])
    dead = await finish(store, State.FAILED)
    await store.queue.requeue(dead.id)
    (again,) = await claim(store)
    late = End(id=dead.id, token=dead.token, state=State.DONE)
    assert (await store.queue.turn([late], (), "w")).refused == {dead.id}
    assert again.token > dead.token


@pytest.mark.parametrize("state", [State.DONE, State.PERMANENT_FAIL])
async def test_only_a_dead_letter_is_brought_back(store: SqlStore, state: State) -> None:
    await store.queue.put([NewJob(kind="a")])
    job = await finish(store, state)
    (live,) = await store.queue.put([NewJob(kind="a")])
    assert [await store.queue.requeue(name) for name in (job.id, live, "none")] == [False] * 3
    assert (await look(store, job.id)).state == state


async def test_a_dead_letter_stays_while_its_key_lives_again(store: SqlStore) -> None:
    await store.queue.put([NewJob(kind="a", dedupe_key="k")])
    dead = await finish(store, State.FAILED)
    await store.queue.put([NewJob(kind="a", dedupe_key="k")])
    assert not await store.queue.requeue(dead.id)
    assert (await look(store, dead.id)).state == State.FAILED
    await finish(store, State.DONE)
    assert await store.queue.requeue(dead.id)


async def test_a_dead_letter_stays_while_its_key_is_being_put(
    store: SqlStore, rival: SqlStore
) -> None:
    await store.queue.put([NewJob(kind="a", dedupe_key="k")])
    dead = await finish(store, State.FAILED)
    new = NewJob(kind="a", dedupe_key="k")
    async with rival.database.write() as opened:
        await opened.run(lambda session: rival.queue.put_in(session, [new]))
        back = asyncio.ensure_future(store.queue.requeue(dead.id))
        for _ in range(50):
            await opened.execute(select(1))
    assert not await back
    assert (await look(store, dead.id)).state == State.FAILED
    assert [job.id for job in await claim(store)] == [new.id]


async def test_the_next_time_is_of_the_first_job_due_or_lease_to_run_out(
    store: SqlStore, clock: VirtualClock
) -> None:
    now = clock.now()
    assert await store.queue.next_at(["a", "b"]) is None
    new = [NewJob(kind=kind, run_at=now + hours * HOUR) for kind, hours in (("a", 3), ("b", 2))]
    await store.queue.put([*new, NewJob(kind="c", run_at=now + HOUR)])
    assert await store.queue.next_at(["a"]) == now + 3 * HOUR
    assert await store.queue.next_at(["a", "b"]) == now + 2 * HOUR
    await store.queue.put([NewJob(kind="a")])
    assert await store.queue.next_at(["a", "b"]) == now
    await claim(store)
    assert await store.queue.next_at(["a", "b"]) == now + MINUTE
    assert await store.queue.next_at([]) is None


async def test_depths_count_due_unclaimed_jobs_up_to_a_number(
    store: SqlStore, clock: VirtualClock
) -> None:
    await store.queue.put([NewJob(kind=kind) for kind in "aaaaabbx"])
    await store.queue.put([NewJob(kind="b", run_at=clock.now() + HOUR)])
    await claim(store, 1)
    assert await store.queue.depths(["a", "b", "c"], 10) == {"a": 4, "b": 2, "c": 0}
    assert await store.queue.depths({"a", "b"}, 3) == {"a": 3, "b": 2}
    await clock.advance(HOUR)
    assert await store.queue.depths(["b"], 10) == {"b": 3}
    assert await store.queue.depths([], 10) == {}


async def test_kinds_are_those_with_live_jobs(store: SqlStore) -> None:
    assert await store.queue.kinds() == frozenset()
    await store.queue.put([NewJob(kind=kind) for kind in "aabC"])
    await claim(store, 1, "b")
    assert await store.queue.kinds() == {"a", "b", "C"}
    await finish(store, State.DONE)
    await finish(store, State.FAILED)
    assert await store.queue.kinds() == {"b", "C"}


async def test_counts_tell_the_number_in_each_state(store: SqlStore) -> None:
    assert await store.queue.counts() == dict.fromkeys(State, 0)
    await store.queue.put([NewJob(kind="a") for _ in range(9)])
    for state in (State.DONE, State.DONE, State.FAILED, State.PERMANENT_FAIL):
        await finish(store, state)
    await claim(store, 3)
    expected = {State.PENDING: 2, State.PROCESSING: 3, State.DONE: 2, State.FAILED: 1}
    assert await store.queue.counts() == {**expected, State.PERMANENT_FAIL: 1}


async def test_a_key_finds_its_live_job_and_no_ended_one(store: SqlStore) -> None:
    first, other = NewJob(kind="a", dedupe_key="k"), NewJob(kind="b", dedupe_key="K")
    await store.queue.put([first, other])
    view = await store.queue.find_live("k")
    assert view == await look(store, first.id)
    await finish(store, State.DONE)
    assert await store.queue.find_live("k") is None
    assert (await look(store, first.id)).dedupe_key == "k"
    assert await store.queue.find("none") is None


async def test_pages_of_the_list_hold_every_job_newest_first(store: SqlStore) -> None:
    ids = await store.queue.put([NewJob(kind="a") for _ in range(7)])
    for state in (State.DONE, State.FAILED, State.PERMANENT_FAIL):
        await finish(store, state)
    await claim(store, 1)
    seen: list[str] = []
    while page := await store.queue.list(3, before=seen[-1] if seen else None):
        assert len(page) <= 3
        seen += [view.id for view in page]
    assert seen == sorted(ids, reverse=True)


async def test_the_list_is_filtered_by_state_and_kind(store: SqlStore) -> None:
    ids = await store.queue.put([NewJob(kind=kind) for kind in "aaabbb"])
    done = await finish(store, State.DONE)
    (held,) = await claim(store, 1)
    (held_b,) = await claim(store, 1, "b")

    async def listed(state: State | None = None, kind: str | None = None) -> list[str]:
        return [view.id for view in await store.queue.list(10, state=state, kind=kind)]

    assert await listed(kind="a") == sorted(ids[:3], reverse=True)
    assert await listed(State.DONE) == [done.id]
    assert await listed(State.PROCESSING) == [held_b.id, held.id]
    assert await listed(State.PENDING, "b") == sorted(ids[4:], reverse=True)
    assert await listed(State.DONE, "b") == []


async def test_the_page_of_a_dead_letter_is_kept_byte_for_byte(store: SqlStore) -> None:
    page = bytes(range(256)) * 1000
    await store.queue.put([NewJob(kind="a") for _ in range(2)])
    dead = await finish(store, State.FAILED, page)
    plain = await finish(store, State.FAILED)
    assert await store.queue.page(dead.id) == page
    assert (await look(store, dead.id)).page_bytes == len(page)
    assert await store.queue.page(plain.id) is None
    assert await store.queue.page("none") is None


async def test_purge_forgets_what_ended_so_before_a_time(
    store: SqlStore, clock: VirtualClock
) -> None:
    await store.queue.put([NewJob(kind="a") for _ in range(5)])
    old = [await finish(store, State.DONE) for _ in range(2)]
    failed = await finish(store, State.FAILED)
    await clock.advance(HOUR)
    edge = await finish(store, State.DONE)
    assert await store.queue.purge(State.DONE, clock.now()) == 2
    assert [await store.queue.find(job.id) for job in old] == [None, None]
    assert {view.id for view in await store.queue.list(9)} >= {failed.id, edge.id}
    assert await store.queue.purge(State.DONE, clock.now()) == 0


@pytest.mark.parametrize("state", [State.PENDING, State.PROCESSING])
async def test_purge_never_forgets_a_live_job(
    store: SqlStore, clock: VirtualClock, state: State
) -> None:
    await store.queue.put([NewJob(kind="a") for _ in range(2)])
    await claim(store, 1)
    assert await store.queue.purge(state, clock.now() + HOUR) == 0
    assert len(await store.queue.list(9)) == 2


async def test_purge_finds_an_old_end_behind_many_newer_ones(
    store: SqlStore, clock: VirtualClock
) -> None:
    await store.queue.put([NewJob(kind="a") for _ in range(PURGE_BATCH + 1)])
    *slow, quick = [
        End(id=job.id, token=job.token, state=State.DONE)
        for job in await claim(store, PURGE_BATCH + 1)
    ]
    await store.queue.turn([quick], (), "w")
    await clock.advance(HOUR)
    await store.queue.turn(slow, (), "w")
    assert await store.queue.purge(State.DONE, clock.now()) == 1
    assert await store.queue.find(quick.id) is None


async def test_hostile_text_comes_back_as_it_was(store: SqlStore) -> None:
    new = NewJob(
        kind="a", args={HOSTILE: HOSTILE}, dedupe_key=HOSTILE, target=HOSTILE, reason=HOSTILE
    )
    assert await store.queue.put([new]) == [new.id]
    view = await store.queue.find_live(HOSTILE)
    assert view is not None
    assert (view.target, view.reason) == (HOSTILE, HOSTILE)
    (job,) = await claim(store)
    assert (job.args, job.dedupe_key, job.target) == ({HOSTILE: HOSTILE}, HOSTILE, HOSTILE)
    back = {"state": State.PENDING, "reason": HOSTILE, "blocked_by": HOSTILE}
    await store.queue.turn([End(id=job.id, token=job.token, **back)], (), "w")  # type: ignore[arg-type]
    view = await look(store, job.id)
    assert (view.reason, view.blocked_by) == (HOSTILE, HOSTILE)


async def test_text_no_database_can_hold_harms_no_job(store: SqlStore) -> None:
    new = NewJob(kind="a", args={"x": UNSTORABLE}, dedupe_key=UNSTORABLE, reason=UNSTORABLE)
    assert await store.queue.put([new]) == [new.id]
    assert await store.queue.put([NewJob(kind="a", dedupe_key=UNSTORABLE)]) == []
    (job,) = await claim(store)
    assert job.args == {"x": UNSTORABLE}
    end = End(id=job.id, token=job.token, state=State.FAILED, reason=UNSTORABLE)
    assert (await store.queue.turn([end], (), "w")).accepted == {job.id}


async def test_what_no_database_can_hold_may_be_asked_for(store: SqlStore) -> None:
    await store.queue.put([NewJob(kind="a", dedupe_key=UNSTORABLE)])
    assert await store.queue.find_live(UNSTORABLE) is not None
    assert await store.queue.find(UNSTORABLE) is None
    assert await store.queue.page(UNSTORABLE) is None
    assert not await store.queue.requeue(UNSTORABLE)
    assert await store.queue.list(9, kind=UNSTORABLE) == []


async def test_large_arguments_come_back_whole(store: SqlStore) -> None:
    args = {"text": "🦊\\\"'\x00é" * 15_000, "list": list(range(5000))}
    await store.queue.put([NewJob(kind="a", args=args)])
    (job,) = await claim(store)
    assert job.args == args


async def test_wildcards_match_nothing_but_themselves(store: SqlStore) -> None:
    await store.queue.put([NewJob(kind="a", dedupe_key="abc")])
    assert await store.queue.find_live("a%") is None
    assert await store.queue.find_live("a_c") is None
    assert await store.queue.list(9, kind="%") == []
    assert await claim(store, kind="_") == ()


@pytest.mark.parametrize("stored", ["", "{", "[]", '"x"', "null", "[" * 100_000])
async def test_undecodable_arguments_are_told_and_stop_no_other_job(
    store: SqlStore, stored: str
) -> None:
    bad, good = await store.queue.put([NewJob(kind="a", args={"n": n}) for n in range(2)])
    async with store.database.write() as session:
        await session.execute(update(jobs).where(jobs.c.id == bad).values(args=stored))
    first, second = await claim(store)
    assert (first.id, first.args) == (bad, {})
    assert "undecodable arguments" in (first.broken or "")
    assert (second.id, second.broken, second.args) == (good, None, {"n": 1})
    assert "undecodable arguments" in ((await look(store, bad)).reason or "")


async def test_counts_and_forgets_one_kind_and_leaves_the_others(
    store: SqlStore, clock: VirtualClock
) -> None:
    await store.queue.put([NewJob(kind=kind) for kind in "aaabb"])
    for job in (*await claim(store, 2), *await claim(store, 1, "b")):
        end = End(id=job.id, token=job.token, state=State.DONE)
        await store.queue.turn([end], (), "w")
    expected = {**dict.fromkeys(State, 0), State.PENDING: 1}
    assert await store.queue.counts("a") == {**expected, State.DONE: 2}
    assert await store.queue.counts("b") == {**expected, State.DONE: 1}
    assert await store.queue.counts("c") == dict.fromkeys(State, 0)
    assert await store.queue.purge(State.DONE, clock.now() + HOUR, "a") == 2
    assert await store.queue.counts("b") == {**expected, State.DONE: 1}


async def test_a_hastened_job_goes_before_others_but_not_before_its_time(
    store: SqlStore, clock: VirtualClock
) -> None:
    late = clock.now() + HOUR
    await store.queue.put(
        [NewJob(kind="a"), NewJob(kind="a", dedupe_key="k"), NewJob(kind="a", dedupe_key="l")]
    )
    await store.queue.put([NewJob(kind="a", dedupe_key="m", run_at=late)])
    hastened = [await store.queue.hasten(key, 10) for key in "lm"]
    assert [view.priority for view in hastened if view] == [10, 10]
    assert await store.queue.hasten("nobody", 10) is None
    assert [job.dedupe_key for job in await claim(store)] == ["l", None, "k"]
    again = await store.queue.hasten("m", 50)
    assert again is not None
    assert (again.priority, again.next_at) == (10, late)
