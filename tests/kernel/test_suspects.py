"""Events that a process stood still over are tried alone, and at the next such end set aside."""

import asyncio
from datetime import timedelta

from mimawari.ids import new_id
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.deliverer import read_delivered, write_delivered
from mimawari.kernel.values import Delivery, Event
from mimawari.store.sql import SqlStore
from tests.kernel.rounds import Remembered, running
from tests.kernel.test_deliverer import MINUTE, delivering, got, kept, put


class Patient(Remembered):
    """Holds every event until it is let go, and knows how many it held at once."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[str] = []
        self.given_up: list[tuple[str, str]] = []
        self.most = 0
        self.gate = asyncio.Event()

    async def deliver(self, event: Event) -> None:
        """Hold an event."""
        self.held.append(event.key)
        self.most = max(self.most, len(self.held))
        await self.gate.wait()
        self.held.remove(event.key)
        await super().deliver(event)

    async def give_up(self, event: Event, reason: str) -> None:
        """Keep what is not delivered."""
        self.given_up.append((event.key, reason))


async def suspected(store: SqlStore, clock: VirtualClock, *keys: str) -> None:
    """Put events that a process had in hand when it stood still."""
    await put(store, *keys)
    await store.outbox.take(clock.now(), 100, MINUTE, "gone")
    await store.outbox.release("gone", suspect=True)


async def test_suspects_are_delivered_one_at_a_time_and_then_all_others_together(
    store: SqlStore, clock: VirtualClock
) -> None:
    to = Patient()
    await suspected(store, clock, "a", "b", "c")
    await put(store, "d", "e")
    async with running(delivering(store, clock, to)):
        async with asyncio.timeout(10):
            while not to.held:
                await clock.advance(timedelta(0))
        assert len(to.held) == 1
        to.gate.set()
        await got(to, 5, clock)
    assert sorted(event.key for event in to.events[:3]) == ["a", "b", "c"]
    assert (await store.outbox.counts())["delivered"] == 5


async def test_a_suspect_waits_until_what_is_on_its_way_has_ended(
    store: SqlStore, clock: VirtualClock
) -> None:
    to = Patient()
    await put(store, "suspect")
    await store.outbox.take(clock.now(), 1, MINUTE, "gone")
    await put(store, "first")
    async with running(delivering(store, clock, to)):
        async with asyncio.timeout(10):
            while not to.held:
                await clock.advance(timedelta(0))
        await store.outbox.release("gone", suspect=True)
        for _ in range(20):
            await clock.advance(timedelta(0))
        assert to.held == ["first"]
        to.gate.set()
        await got(to, 2, clock)
    assert to.most == 1


async def test_what_was_set_aside_fails_with_the_reason_and_its_destination_knows(
    store: SqlStore, clock: VirtualClock
) -> None:
    to = Patient()
    [event_id] = await put(store, "a")
    await store.outbox.take(clock.now(), 1, MINUTE, "gone")
    await store.outbox.release("gone", suspect=True)
    await store.outbox.take_suspect(clock.now(), MINUTE, "gone")
    await store.outbox.release("gone", suspect=True)
    await delivering(store, clock, to).tick()
    state, reason, _ = await kept(store, event_id)
    assert (state, to.events) == ("failed", [])
    assert reason is not None
    assert reason.startswith("the process stood still twice")
    assert to.given_up == [("a", reason)]


def test_a_note_of_a_delivery_is_read_as_it_was_written() -> None:
    delivery = Delivery(id=new_id(), token=7, delivered=True)
    assert read_delivered(write_delivered(delivery)) == delivery
    assert read_delivered("GET /delivered 7") is None
    assert read_delivered("delivered x y") is None
