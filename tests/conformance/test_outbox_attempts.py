"""What the outbox keeps of attempts, on every engine."""

import json
from datetime import timedelta
from typing import Any

from sqlalchemy import select

from mimawari.ids import new_id
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.exchange import Exchange
from mimawari.kernel.values import Delivery, NewEvent
from mimawari.store.sql import SqlStore
from mimawari.store.sql.outbox import MOST_ATTEMPTS
from mimawari.store.sql.tables import attempts, outbox

MINUTE = timedelta(minutes=1)
SAID = Exchange(
    address="https://receiver.example/hook",
    headers={"X-Event-Id": "1"},
    body='{"言葉": "\U0001f319"}',
    status=500,
    answer="いいえ",
    took_for=timedelta(milliseconds=12),
)


async def put(store: SqlStore) -> str:
    """Put one event."""
    event = NewEvent(key="k", kind="changed", body={}, destination="log:", id=new_id())
    await store.outbox.put([event])
    return event.id


async def attempt(store: SqlStore, clock: VirtualClock, **how: Any) -> None:
    """Take what is due, and say how it went."""
    [event] = await store.outbox.take(clock.now(), 1, MINUTE)
    await store.outbox.settle([Delivery(id=event.id, token=event.token, **how)])


async def rows(store: SqlStore) -> list[Any]:
    """List all attempts, oldest first."""
    async with store.read() as reader:
        return list((await reader.execute(select(attempts).order_by(attempts.c.id))).all())


async def test_each_attempt_is_kept_with_what_was_said_and_answered(
    store: SqlStore, clock: VirtualClock
) -> None:
    event_id = await put(store)
    await attempt(store, clock, retry_at=clock.now(), reason="not now", exchange=SAID)
    await attempt(store, clock, delivered=True, exchange=SAID)
    first, second = await rows(store)
    assert (first.event_id, first.number, first.result) == (event_id, 1, "again")
    assert (first.status, first.answer, first.took_us) == (500, "いいえ", 12_000)
    assert json.loads(first.request) == {
        "address": SAID.address,
        "headers": SAID.headers,
        "body": SAID.body,
    }
    assert (first.reason, first.at) == ("not now", clock.now())
    assert (second.number, second.result, second.reason) == (2, "delivered", None)


async def test_where_nothing_was_said_and_nothing_went_wrong_nothing_is_kept(
    store: SqlStore, clock: VirtualClock
) -> None:
    await put(store)
    await attempt(store, clock, delivered=True)
    assert await rows(store) == []


async def test_of_many_attempts_the_last_ones_are_kept(
    store: SqlStore, clock: VirtualClock
) -> None:
    await put(store)
    for _ in range(MOST_ATTEMPTS + 2):
        await attempt(store, clock, retry_at=clock.now(), reason="not now")
    assert [row.number for row in await rows(store)] == list(range(3, MOST_ATTEMPTS + 3))


async def test_a_persons_own_attempt_is_kept_and_decides_only_where_it_arrived(
    store: SqlStore, clock: VirtualClock
) -> None:
    event_id = await put(store)
    again = Delivery(id=event_id, token=0, reason="no", exchange=SAID)
    assert not await store.outbox.record(again)
    await attempt(store, clock, reason="given up")
    assert await store.outbox.record(again)
    assert await _standing(store) == ("failed", 2, "given up")
    assert await store.outbox.record(Delivery(id=event_id, token=0, delivered=True, exchange=SAID))
    assert await _standing(store) == ("delivered", 3, None)
    assert [row.number for row in await rows(store)] == [1, 2, 3]
    assert not await store.outbox.record(Delivery(id="unheard of", token=0))


async def _standing(store: SqlStore) -> tuple[str, int, str | None]:
    async with store.read() as reader:
        row = (await reader.execute(select(outbox))).one()
    return row.state, row.attempts, row.reason


async def test_attempts_are_forgotten_with_their_event(
    store: SqlStore, clock: VirtualClock
) -> None:
    await put(store)
    await attempt(store, clock, reason="given up")
    await store.outbox.purge(clock.now())
    assert len(await rows(store)) == 1
    await clock.advance(MINUTE)
    assert await store.outbox.purge(clock.now()) == 1
    assert await rows(store) == []
