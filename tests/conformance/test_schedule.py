"""The schedule's promises."""

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import update

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.job import End, Job, NewJob, State, Want
from mimawari.kernel.signal import SCHEDULE
from mimawari.kernel.values import Entry, Move
from mimawari.store.sql import SqlStore
from mimawari.store.sql.tables import schedule

HOUR = timedelta(hours=1)
NAMES = [
    "'; DROP TABLE schedule; --",
    'b"c`d\\e',
    "%",
    "_",
    "A",
    "a",
    "a ",
    "日本",
    "🦊",
    "\u00e9",
    "e\u0301",
]
UNSTORABLE = "nul \x00 bell \x07 lone \ud800 surrogates \udfff"


def entry(clock: VirtualClock, member: str, hours: int = 0, kind: str = "a") -> Entry:
    return Entry(member=member, kind=kind, next_at=clock.now() + hours * HOUR, every=HOUR)


def move(seen: Entry, *, key: str | None = None, hours: int = 1) -> Move:
    job = NewJob(kind=seen.kind, target=seen.member, dedupe_key=key)
    return Move(
        member=seen.member, seen_at=seen.next_at, next_at=seen.next_at + hours * HOUR, job=job
    )


async def claim(store: SqlStore) -> tuple[Job, ...]:
    want = Want(kind="a", most=50, lease_for=HOUR)
    return (await store.queue.turn((), [want], "w")).jobs


async def names(store: SqlStore, clock: VirtualClock, most: int = 50) -> list[str]:
    return [due.member for due in await store.schedule.due(clock.now(), most)]


async def test_an_entry_comes_back_as_it_was_put(
    store: SqlStore, rival: SqlStore, clock: VirtualClock
) -> None:
    at = clock.now() + timedelta(microseconds=1)
    every = timedelta(days=400, microseconds=7)
    put = Entry(member="m", kind="a", next_at=at, every=every, args={"x": ["é", None]}, reason="r")
    await store.schedule.put([put])
    assert await rival.schedule.find("m") == put
    assert await rival.schedule.find("M") is None


async def test_putting_a_member_again_replaces_its_whole_entry(
    store: SqlStore, clock: VirtualClock
) -> None:
    old = Entry(
        member="m", kind="a", next_at=clock.now(), every=HOUR, args={"x": 1}, reason="first"
    )
    new = Entry(member="m", kind="b", next_at=clock.now() + HOUR, every=2 * HOUR)
    await store.schedule.put([old, entry(clock, "n")])
    await store.schedule.put([new])
    assert await store.schedule.find("m") == new
    assert await store.schedule.find("n") == entry(clock, "n")
    assert await store.schedule.count() == 2


async def test_the_last_of_two_entries_of_one_member_in_a_put_stays(
    store: SqlStore, clock: VirtualClock
) -> None:
    await store.schedule.put([entry(clock, "m", 1), entry(clock, "m", 2)])
    assert await store.schedule.find("m") == entry(clock, "m", 2)


async def test_a_put_wakes_a_waiting_scheduler(store: SqlStore, clock: VirtualClock) -> None:
    bell = store.signal.bell(SCHEDULE)
    wait = asyncio.ensure_future(bell.wait(clock, clock.now() + HOUR))
    await store.schedule.put([entry(clock, "m")])
    assert await wait
    assert clock.sleeping == 0


async def test_adding_keeps_what_is_there(store: SqlStore, clock: VirtualClock) -> None:
    await store.schedule.put([entry(clock, "m", 5)])
    assert await store.schedule.add([entry(clock, name) for name in "lmn"]) == 2
    assert await store.schedule.find("m") == entry(clock, "m", 5)
    assert await store.schedule.add([entry(clock, name, 9) for name in "lmn"]) == 0
    assert await store.schedule.find("l") == entry(clock, "l")


async def test_of_two_who_add_a_member_at_once_one_is_told_so(
    store: SqlStore, rival: SqlStore, clock: VirtualClock
) -> None:
    for n in range(10):
        mine, theirs = entry(clock, f"m{n}", 1), entry(clock, f"m{n}", 2)
        added = await asyncio.gather(store.schedule.add([mine]), rival.schedule.add([theirs]))
        assert sum(added) == 1
        assert await store.schedule.find(f"m{n}") == (mine if added[0] else theirs)


async def test_due_lists_what_has_come_earliest_first(store: SqlStore, clock: VirtualClock) -> None:
    hours = {"late": 3, "never": 9, "first": 1, "second": 2}
    await store.schedule.put([entry(clock, name, after) for name, after in hours.items()])
    assert await names(store, clock) == []
    await clock.advance(HOUR - timedelta(microseconds=1))
    assert await names(store, clock) == []
    await clock.advance(timedelta(microseconds=1))
    assert await names(store, clock) == ["first"]
    await clock.advance(2 * HOUR)
    assert await names(store, clock) == ["first", "second", "late"]
    assert await names(store, clock, 2) == ["first", "second"]


async def test_due_leaves_out_the_kinds_it_is_told_to(store: SqlStore, clock: VirtualClock) -> None:
    await store.schedule.put([entry(clock, kind, kind=kind) for kind in "abcA"])
    found = await store.schedule.due(clock.now(), 9, without={"a", "c", "none"})
    assert {due.member for due in found} == {"b", "A"}


async def test_due_changes_nothing_so_a_crash_after_it_loses_nothing(
    store: SqlStore, rival: SqlStore, clock: VirtualClock
) -> None:
    await store.schedule.put([entry(clock, "m")])
    seen = await store.schedule.due(clock.now(), 9)
    await store.close()
    assert await rival.schedule.due(clock.now(), 9) == seen
    assert await rival.schedule.advance([move(due) for due in seen]) == 1


async def test_advancing_moves_a_member_on_and_enqueues_its_job(
    store: SqlStore, clock: VirtualClock
) -> None:
    await store.schedule.put([entry(clock, "m"), entry(clock, "n")])
    at, job = clock.now() + HOUR, NewJob(kind="a", target="m", reason="its time has come")
    on = Move(member="m", seen_at=clock.now(), next_at=at, job=job, reason="every hour")
    assert await store.schedule.advance([on]) == 1
    found = await store.schedule.find("m")
    assert found is not None
    assert (found.next_at, found.reason, found.every) == (at, "every hour", HOUR)
    assert await names(store, clock) == ["n"]
    assert [(job.id, job.target) for job in await claim(store)] == [(job.id, "m")]


async def test_a_move_without_a_job_only_moves(store: SqlStore, clock: VirtualClock) -> None:
    await store.schedule.put([entry(clock, "m")])
    on = Move(member="m", seen_at=clock.now(), next_at=clock.now() + HOUR, job=None)
    assert await store.schedule.advance([on]) == 0
    assert await store.schedule.next_at() == clock.now() + HOUR
    assert sum((await store.queue.counts()).values()) == 0


async def test_a_member_taken_by_somebody_else_is_left_alone(
    store: SqlStore, clock: VirtualClock
) -> None:
    taken, free = entry(clock, "m"), entry(clock, "n")
    await store.schedule.put([taken, free])
    assert await store.schedule.advance([move(taken)]) == 1
    assert await store.schedule.advance([move(taken, hours=5), move(free, hours=2)]) == 1
    assert await store.schedule.find("m") == entry(clock, "m", 1)
    assert await store.schedule.find("n") == entry(clock, "n", 2)
    assert sorted(str(job.target) for job in await claim(store)) == ["m", "n"]


async def test_of_many_who_advance_at_once_each_member_is_won_once(
    store: SqlStore, rival: SqlStore, clock: VirtualClock
) -> None:
    members = [f"m{n}" for n in range(20)]
    await store.schedule.put([entry(clock, member) for member in members])
    moves = [move(due) for due in await store.schedule.due(clock.now(), 50)]
    other = [move(due, hours=2) for due in await rival.schedule.due(clock.now(), 50)][::-1]
    both = ((store, moves), (rival, other)) * 3
    won = await asyncio.gather(*(s.schedule.advance(m) for s, m in both))
    assert sum(won) == len(members)
    assert sorted(str(job.target) for job in await claim(store)) == sorted(members)


async def test_a_member_whose_key_lives_moves_on_without_a_new_job(
    store: SqlStore, clock: VirtualClock
) -> None:
    await store.schedule.put([entry(clock, "m"), entry(clock, "n")])
    (live,) = await store.queue.put([NewJob(kind="a", dedupe_key="m")])
    moves = [move(due, key=due.member) for due in await store.schedule.due(clock.now(), 9)]
    assert await store.schedule.advance(moves) == 1
    assert await names(store, clock) == []
    first, second = await claim(store)
    assert (first.id, second.dedupe_key) == (live, "n")


async def test_a_move_whose_job_cannot_be_stored_moves_nothing(
    store: SqlStore, clock: VirtualClock
) -> None:
    await store.schedule.put([entry(clock, "m"), entry(clock, "n")])
    bad = Move(
        member="n",
        seen_at=clock.now(),
        next_at=clock.now() + HOUR,
        job=NewJob(kind="a", args={"x": float("nan")}),
    )
    with pytest.raises(ValueError, match="JSON"):
        await store.schedule.advance([move(entry(clock, "m")), bad])
    assert sorted(await names(store, clock)) == ["m", "n"]
    assert await claim(store) == ()


async def test_the_next_time_is_the_earliest_of_all_but_some_kinds(
    store: SqlStore, clock: VirtualClock
) -> None:
    assert await store.schedule.next_at() is None
    hours = {"a": 1, "b": 2, "c": 3}
    await store.schedule.put([entry(clock, kind, after, kind) for kind, after in hours.items()])
    assert await store.schedule.next_at() == clock.now() + HOUR
    assert await store.schedule.next_at(without={"a", "b"}) == clock.now() + 3 * HOUR
    assert await store.schedule.next_at(without=["a", "b", "c"]) is None


async def test_a_removed_member_is_forgotten_once(store: SqlStore, clock: VirtualClock) -> None:
    await store.schedule.put([entry(clock, "m"), entry(clock, "n")])
    assert await store.schedule.remove("m")
    assert not await store.schedule.remove("m")
    assert await store.schedule.find("m") is None
    assert await names(store, clock) == ["n"]
    assert await store.schedule.count() == 1


async def test_a_removed_member_is_not_brought_back_by_a_late_move(
    store: SqlStore, clock: VirtualClock
) -> None:
    await store.schedule.put([entry(clock, "m")])
    (seen,) = await store.schedule.due(clock.now(), 9)
    await store.schedule.remove("m")
    assert await store.schedule.advance([move(seen)]) == 0
    assert await store.schedule.count() == 0
    assert await claim(store) == ()


async def test_a_removed_member_is_not_brought_back_by_its_jobs_next_run(
    store: SqlStore, clock: VirtualClock
) -> None:
    await store.schedule.put([entry(clock, "m")])
    await store.schedule.advance([move(entry(clock, "m"))])
    (job,) = await claim(store)
    await store.schedule.remove("m")
    async with store.commit(job) as tx:
        tx.next_run(clock.now() + HOUR)
    assert await store.schedule.find("m") is None
    assert (await store.queue.counts())[State.DONE] == 1


async def test_an_end_that_fails_leaves_the_schedule_as_it_was(
    store: SqlStore, clock: VirtualClock
) -> None:
    await store.schedule.put([entry(clock, "m")])
    await store.schedule.advance([move(entry(clock, "m"))])
    (job,) = await claim(store)
    await store.queue.turn([End(id=job.id, token=job.token, state=State.FAILED)], (), "w")
    assert await store.schedule.find("m") == entry(clock, "m", 1)


async def test_pages_of_the_list_hold_every_member_once_and_in_order(
    store: SqlStore, clock: VirtualClock
) -> None:
    members = [f"m{n:02}" for n in range(10)]
    await store.schedule.put([entry(clock, member, 20 - at) for at, member in enumerate(members)])
    seen: list[str] = []
    while page := await store.schedule.list(4, seen[-1] if seen else ""):
        assert len(page) <= 4
        seen += [found.member for found in page]
    assert seen == members


async def test_hostile_names_are_members_like_any_other(
    store: SqlStore, clock: VirtualClock
) -> None:
    assert await store.schedule.add([entry(clock, name) for name in NAMES]) == len(NAMES)
    assert await store.schedule.count() == len(NAMES)
    seen: list[str] = []
    while page := await store.schedule.list(3, seen[-1] if seen else ""):
        seen += [found.member for found in page]
    assert sorted(seen) == sorted(NAMES)
    moves = [move(due, key=due.member) for due in await store.schedule.due(clock.now(), 50)]
    assert await store.schedule.advance(moves) == len(NAMES)
    assert [await store.schedule.remove(name) for name in NAMES] == [True] * len(NAMES)


async def test_text_no_database_can_hold_harms_no_member(
    store: SqlStore, clock: VirtualClock
) -> None:
    bad = Entry(member=UNSTORABLE, kind="a", next_at=clock.now(), every=HOUR, reason=UNSTORABLE)
    await store.schedule.put([bad, entry(clock, "good")])
    assert await store.schedule.find(UNSTORABLE) is not None
    moves = [
        Move(member=due.member, seen_at=due.next_at, next_at=clock.now() + HOUR, job=None,
             reason=UNSTORABLE)
        for due in await store.schedule.due(clock.now(), 9)
    ]  # fmt: skip
    await store.schedule.advance(moves)
    assert await store.schedule.next_at() == clock.now() + HOUR
    assert await store.schedule.remove(UNSTORABLE)


@pytest.mark.parametrize("stored", ["", "{", "[]", "[" * 100_000])
async def test_undecodable_arguments_hide_no_member(
    store: SqlStore, clock: VirtualClock, stored: str
) -> None:
    await store.schedule.put([entry(clock, "bad"), entry(clock, "good", 1)])
    async with store.database.write() as session:
        broken = update(schedule).where(schedule.c.member == "bad").values(args=stored)
        await session.execute(broken)
    await clock.advance(HOUR)
    assert await names(store, clock) == ["bad", "good"]


async def test_nothing_asked_changes_nothing(store: SqlStore, clock: VirtualClock) -> None:
    await store.schedule.put([entry(clock, "m")])
    await store.schedule.put([])
    assert await store.schedule.add([]) == 0
    assert await store.schedule.advance([]) == 0
    assert await store.schedule.list(9) == [entry(clock, "m")]


async def test_moving_on_a_member_does_not_wait_for_its_job_which_may_be_waiting_for_the_member(
    engine: str, store: SqlStore, rival: SqlStore, clock: VirtualClock
) -> None:
    first = entry(clock, "m")
    await store.schedule.put([first])
    await store.schedule.advance([move(first, key="m", hours=0)])
    [job] = await claim(store)
    later = clock.now() + 5 * HOUR
    # SQLite has one writer at a time.
    is_free = engine != "sqlite"
    async with store.commit(job) as tx:
        tx.next_run(later)
        moving = asyncio.create_task(rival.schedule.advance([move(first, key="m")]))
        await asyncio.wait({moving}, timeout=10 if is_free else 0.1)
        assert moving.done() == is_free
    await moving
    view = await store.queue.find(job.id)
    assert view is not None
    assert view.state == State.DONE


async def test_the_kinds_are_those_that_have_members(store: SqlStore, clock: VirtualClock) -> None:
    assert await store.schedule.kinds() == frozenset()
    await store.schedule.put([entry(clock, "a"), entry(clock, "b", kind="other")])
    assert await store.schedule.kinds() == {"a", "other"}
    await store.schedule.remove("b")
    assert await store.schedule.kinds() == {"a"}
