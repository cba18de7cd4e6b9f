"""What a commit saves of a watch's own: many rows in one statement, the same on every engine."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import BigInteger, Boolean, Column, Float, Integer, MetaData, Table, event, select
from sqlalchemy.exc import IntegrityError

from mimawari.columns import EXACT, Instant, Prose, Word
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.job import End, NewJob, State, Want
from mimawari.kernel.values import Entry
from mimawari.store.sql import SqlStore

AT = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
HOSTILE = 'a "b" \\u0041 \\\\ \n\t 🎉 漢字 :name %s ' + "{'x': null}"

own = Table(
    "own_things",
    MetaData(),
    Column("shop", Integer, primary_key=True, autoincrement=False),
    Column("name", Word(60), primary_key=True),
    Column("text", Prose),
    Column("yen", BigInteger),
    Column("share", Float(53)),
    Column("seen_at", Instant),
    Column("open", Boolean),
    **EXACT,
)


numbered = Table(
    "own_numbers",
    own.metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("name", Word(60), nullable=False, unique=True),
    Column("yen", Integer),
    **EXACT,
)


@pytest.fixture
async def ground(store: SqlStore) -> AsyncIterator[SqlStore]:
    await store.database.run(lambda session: own.metadata.create_all(session.connection))
    yield store
    await store.database.run(lambda session: own.metadata.drop_all(session.connection))


def row(name: str, **given: Any) -> dict[str, Any]:
    values = {"text": "t", "yen": 300, "share": 0.1, "seen_at": AT, "open": True}
    return {"shop": 1, "name": name, **values, **given}


async def save(store: SqlStore, rows: list[dict[str, Any]], *change: str) -> None:
    async with store.edit() as tx:
        await tx.save(own, rows, change)


async def kept(store: SqlStore) -> list[dict[str, Any]]:
    async with store.read() as reader:
        found = await reader.execute(select(own).order_by(own.c.shop, own.c.name))
        return [row._asdict() for row in found]


async def test_rows_come_back_as_they_were_saved(ground: SqlStore) -> None:
    rows = [
        row("a", yen=2**53, share=1 / 3),
        row("b", text=HOSTILE, open=False),
        row("c", text=None, yen=None, share=None, seen_at=None, open=None),
        row("漢字", text="", yen=-1, share=-0.0),
    ]
    await save(ground, rows)
    assert await kept(ground) == rows


async def test_rows_that_are_numbered_are_known_by_another_key_and_keep_their_numbers(
    ground: SqlStore,
) -> None:
    async def keep(**yen: int) -> dict[str, tuple[int, int]]:
        rows = [{"name": name, "yen": value} for name, value in yen.items()]
        async with ground.edit() as tx:
            await tx.save(numbered, rows, ("yen",), ("name",))
            found = await tx.execute(select(numbered))
            return {row.name: (row.id, row.yen) for row in found}

    first = await keep(a=1, b=2)
    second = await keep(b=20, c=30)
    assert {name: yen for name, (_, yen) in second.items()} == {"a": 1, "b": 20, "c": 30}
    assert {name: second[name][0] for name in first} == {name: first[name][0] for name in first}


async def test_a_row_whose_key_is_taken_is_changed_in_the_named_columns_only(
    ground: SqlStore,
) -> None:
    await save(ground, [row("a"), row("b")])
    later = AT + timedelta(hours=1)
    await save(ground, [row("b", text="new", yen=9, seen_at=later), row("c")], "yen", "seen_at")
    assert await kept(ground) == [row("a"), row("b", yen=9, seen_at=later), row("c")]


async def test_a_taken_key_is_refused_where_nothing_may_change(ground: SqlStore) -> None:
    await save(ground, [row("a")])
    with pytest.raises(IntegrityError):
        await save(ground, [row("b"), row("a", yen=1)])
    assert await kept(ground) == [row("a")]


async def test_names_are_compared_exactly(ground: SqlStore) -> None:
    await save(ground, [row("a"), row("A"), row("a "), row("\uff41")], "yen")
    assert len(await kept(ground)) == 4


async def test_no_rows_are_nothing_to_do(ground: SqlStore) -> None:
    await save(ground, [])
    assert await kept(ground) == []


async def test_text_that_no_engine_holds_is_cleaned(ground: SqlStore) -> None:
    await save(ground, [row("a", text="x\x00y\ud800z")])
    assert (await kept(ground))[0]["text"] == "x\ufffdy\ufffdz"


async def test_a_thousand_rows_are_one_statement(ground: SqlStore) -> None:
    said: list[str] = []
    engine: Any = ground.database.link.engine

    def hear(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        said.append(statement)

    event.listen(engine, "before_cursor_execute", hear)
    await save(ground, [row(f"n{number}") for number in range(1000)], "yen")
    event.remove(engine, "before_cursor_execute", hear)
    assert sum("own_things" in statement for statement in said) == 1
    assert len(await kept(ground)) == 1000


async def test_what_is_saved_by_a_failing_edit_is_gone(ground: SqlStore) -> None:
    async def fail() -> None:
        async with ground.edit() as tx:
            await tx.save(own, [row("a")])
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    assert await kept(ground) == []


async def test_a_target_is_removed_with_the_rest_of_an_edit(
    store: SqlStore, clock: VirtualClock
) -> None:
    every = timedelta(hours=1)
    entries = [Entry(member=m, kind="k", next_at=clock.now(), every=every) for m in "abc"]
    await store.schedule.put(entries)

    async def fail() -> None:
        async with store.edit() as tx:
            tx.remove("a")
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    assert await store.schedule.count() == 3
    async with store.edit() as tx:
        tx.remove("a", "c", "never there")
    assert [entry.member for entry in await store.schedule.list(9)] == ["b"]


@pytest.mark.parametrize("state", [State.DONE, State.FAILED, State.PERMANENT_FAIL])
async def test_a_long_message_is_kept_only_if_it_may_be_needed_again(
    store: SqlStore, state: State
) -> None:
    long, short = {"text": "x" * 5000}, {"text": "x" * 3000}
    ids = await store.queue.put([NewJob(kind="a", args=long), NewJob(kind="a", args=short)])
    want = Want(kind="a", most=2, lease_for=timedelta(minutes=1))
    jobs = (await store.queue.turn((), [want], "w")).jobs
    ends = [End(id=job.id, token=job.token, state=state) for job in jobs]
    await store.queue.turn(ends, (), "w")
    views = [await store.queue.find(job_id) for job_id in ids]
    assert views[1] is not None
    assert views[1].args == short
    assert views[0] is not None
    assert (views[0].args == long) == (state != State.DONE)
    assert len(str(views[0].args)) < 100 or state != State.DONE
