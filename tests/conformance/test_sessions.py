"""The sessions' promises, on every engine: secrets are not kept, and an end is for good."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from mimawari.ids import new_id
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.sessions import Session
from mimawari.store.sql import SqlStore
from mimawari.store.sql.tables import cache, login_links, sessions

SECRET = "s3cret-of-a-browser"
HOUR = timedelta(hours=1)


def begun(clock: VirtualClock, **given: Any) -> Session:
    values: dict[str, Any] = {
        "id": new_id(), "key": "k1", "key_number": 1, "made_at": clock.now(),
        "seen_at": clock.now(), "address": "::1", "agent": "Firefox 見", **given,
    }  # fmt: skip
    return Session(**values)


async def test_a_session_is_found_by_its_secret_which_is_not_kept(
    store: SqlStore, clock: VirtualClock
) -> None:
    session = begun(clock)
    await store.sessions.begin(session, SECRET)
    await store.sessions.offer(SECRET, HOUR)
    assert await store.sessions.find(SECRET) == session
    assert await store.sessions.find(SECRET.upper()) is None
    assert await store.sessions.find("") is None
    assert await store.sessions.find("\ud800") is None
    async with store.read() as reader:
        kept = [str(row) for table in (sessions, login_links, cache)
                for row in await reader.execute(select(table))]  # fmt: skip
    assert len(kept) == 2
    assert SECRET not in "".join(kept)


async def test_what_was_seen_last_is_listed_first(store: SqlStore, clock: VirtualClock) -> None:
    first, second = begun(clock), begun(clock)
    for number, session in enumerate((first, second)):
        await store.sessions.begin(session, str(number))
    await clock.advance(HOUR)
    await store.sessions.touch(first.id, clock.now(), "10.0.0.1")
    listed = await store.sessions.list()
    assert [one.id for one in listed] == [first.id, second.id]
    assert (listed[0].seen_at, listed[0].address) == (clock.now(), "10.0.0.1")
    assert listed[1] == second


async def test_a_session_that_was_ended_is_not_found_any_more(
    store: SqlStore, clock: VirtualClock
) -> None:
    session = begun(clock)
    await store.sessions.begin(session, SECRET)
    ends = await asyncio.gather(*(store.sessions.end(session.id) for _ in range(3)))
    assert sorted(ends) == [False, False, True]
    assert await store.sessions.find(SECRET) is None
    # What comes late of a page that was on its way brings nothing back.
    await store.sessions.touch(session.id, clock.now(), "::1")
    assert await store.sessions.list() == []


@pytest.mark.parametrize("left", [["k1"], ["k1", "k2"], []], ids=str)
async def test_sessions_end_with_their_key(
    store: SqlStore, clock: VirtualClock, left: list[str]
) -> None:
    for key in ("k1", "k2"):
        await store.sessions.begin(begun(clock, key=key), key)
    assert await store.sessions.end_without(left) == 2 - len(left)
    assert sorted(one.key for one in await store.sessions.list()) == left


async def test_a_link_is_good_once_and_for_a_while(store: SqlStore, clock: VirtualClock) -> None:
    for word in ("one", "late"):
        await store.sessions.offer(word, HOUR)
    used = await asyncio.gather(*(store.sessions.redeem("one") for _ in range(5)))
    assert sum(used) == 1
    assert not await store.sessions.redeem("other")
    await clock.advance(HOUR)
    assert not await store.sessions.redeem("late")


async def test_what_is_over_is_forgotten(store: SqlStore, clock: VirtualClock) -> None:
    await store.sessions.begin(begun(clock), "old")
    await store.sessions.offer("word", HOUR)
    await clock.advance(HOUR)
    await store.sessions.begin(begun(clock), "new")
    await store.sessions.offer("other", HOUR)
    assert await store.sessions.purge(clock.now()) == 2
    assert await store.sessions.find("old") is None
    assert await store.sessions.find("new") is not None
    assert await store.sessions.redeem("other")
