"""What the streams watch keeps, on every engine: whole or not at all, and once."""

import asyncio
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy.exc import IntegrityError

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.watch import Watches
from mimawari.settings import DEFAULTS, Settings
from mimawari.store.sql import SqlStore
from mimawari.watches.streams import actions, queries, sync, watch
from mimawari.watches.streams.actions import Client
from mimawari.watches.streams.errors import Duplicate, TooMany
from mimawari.watches.streams.models import (
    ACTIVE,
    Config,
    EventType,
    Monitor,
    Notice,
    Reading,
    State,
    Stats,
    Status,
    Step,
    StreamStatus,
    Window,
)
from mimawari.watches.streams.schemas.requests import MonitorIn
from tests.streams.scene import CALLBACK, EVENING, HOST, VIDEO, at

STREAM = f"https://www.youtube.com/watch?v={VIDEO}"
ZONE = DEFAULTS.zone
CLIENT = Client(name="test", is_counted=False)
PAYLOAD = {"words": "空 \U0001f319 \\ ' \"", "n": 1, "nested": {"none": None, "list": [1.5, True]}}


@dataclass(frozen=True)
class Ground:
    """All that adding a monitor needs."""

    settings: Settings
    clock: VirtualClock
    store: SqlStore
    watches: Watches


def ground(store: SqlStore, clock: VirtualClock, **given: Any) -> Ground:
    """Lay the ground on a store."""
    values = {"webhook_key": SecretStr("k"), "allow_hosts": (HOST,), **given}
    settings = DEFAULTS.model_copy(update=values)
    return Ground(settings, clock, store, Watches([watch], settings))


def wanted(video: str = VIDEO) -> MonitorIn:
    """Make up what somebody asks for."""
    return MonitorIn(stream_url=f"https://youtu.be/{video}", callback_url=CALLBACK)


def make_monitor(**given: Any) -> Monitor:
    """Make up a monitor."""
    values: dict[str, Any] = {
        "id": sync.new_monitor_id(),
        "stream_url": STREAM,
        "callback_url": CALLBACK,
        "config": Config(maintenance=(Window(start=EVENING, end=at(60)),)),
        "metadata": PAYLOAD,
        "status": Status.INITIALIZING,
        "created_at": EVENING,
        **given,
    }
    return Monitor(**values)


async def keep(store: SqlStore, **given: Any) -> Monitor:
    """Keep a monitor."""
    monitor = make_monitor(**given)
    async with store.edit() as tx:
        await sync.add(tx, monitor, "test")
    return monitor


def step(status: Status = Status.MONITORING, **given: Any) -> Step:
    """Make up what a check has found."""
    values: dict[str, Any] = {
        "stream_status": StreamStatus.LIVE,
        "state": State(reading=Reading(sequence=7), started_at=EVENING),
        "next_at": at(10),
        "reason": "interval",
        "stats": Stats(segments=5, blackouts=1, silences=2),
        **given,
    }
    return Step(status=status, **values)


async def keep_step(store: SqlStore, monitor: Monitor, found: Step) -> bool:
    """Keep what a check has found."""
    async with store.edit() as tx:
        return await sync.keep_step(tx, monitor, found, at(9), ZONE)


async def view(store: SqlStore, monitor: Monitor) -> queries.View:
    """Show a monitor."""
    async with store.read() as reader:
        found = await queries.find_view(reader, monitor.id)
    assert found is not None
    return found


async def events(store: SqlStore, monitor: Monitor) -> list[queries.Sending]:
    """List what is to be told, oldest first."""
    async with store.read() as reader:
        return list((await queries.list_events(reader, monitor.id, 50, 0))[0])[::-1]


def notice(seconds: float, **data: Any) -> Notice:
    """Make up something to tell."""
    return Notice(type=EventType.BLACKOUT, at=at(seconds), data=data)


async def test_a_monitor_is_read_as_it_was_kept(store: SqlStore) -> None:
    monitor = await keep(store)
    assert (await view(store, monitor)).monitor == monitor
    async with store.read() as reader:
        assert await sync.find_active(reader, monitor.id) == (monitor, State())


async def test_what_a_check_found_is_kept_and_counted_on(store: SqlStore) -> None:
    monitor = await keep(store)
    assert await keep_step(store, monitor, step(notices=(notice(1, n=1), notice(2, n=2))))
    assert await keep_step(store, monitor, step())
    seen = await view(store, monitor)
    assert seen.monitor.status is Status.MONITORING
    assert (seen.segments, seen.blackouts, seen.silences) == (10, 2, 4)
    assert (seen.stream_status, seen.video, seen.audio) == ("live", "ok", "ok")
    assert (seen.last_check_at, seen.ended_at, seen.reason) == (at(9), None, "interval")
    assert [one.payload["data"] for one in await events(store, monitor)] == [{"n": 1}, {"n": 2}]
    async with store.read() as reader:
        found = await sync.find_active(reader, monitor.id)
    assert found is not None
    assert found[1] == step().state


@pytest.mark.parametrize("status", sorted({*Status} - {*ACTIVE}))
async def test_what_a_check_found_of_a_monitor_that_is_over_changes_nothing(
    store: SqlStore, status: Status
) -> None:
    monitor = await keep(store)
    async with store.edit() as tx:
        assert await sync.end(tx, monitor, status, "it was time", at(5))
    before = await view(store, monitor)
    assert not await keep_step(store, monitor, step(notices=(notice(1),)))
    assert await view(store, monitor) == before
    assert (before.monitor.status, before.ended_at, before.reason) == (status, at(5), "it was time")
    assert await events(store, monitor) == []


async def test_a_monitor_ends_once(store: SqlStore) -> None:
    monitor = await keep(store)
    async with store.edit() as tx:
        assert await sync.end(tx, monitor, Status.STOPPED, "first", at(5))
        assert not await sync.end(tx, monitor, Status.ERROR, "second", at(6))
    assert (await view(store, monitor)).reason == "first"


async def test_the_end_of_a_monitor_that_stands_otherwise_by_now_is_refused(
    store: SqlStore,
) -> None:
    monitor = await keep(store)
    async with store.edit() as tx:
        await sync.set_status(tx, monitor.id, Status.WAITING, at(1))
        assert not await sync.end_as(tx, monitor, notice(2), "missing", ZONE)
        waiting = replace(monitor, status=Status.WAITING)
        assert await sync.end_as(tx, waiting, notice(2), "missing", ZONE)
        assert not await sync.end_as(tx, waiting, notice(2), "missing", ZONE)
    assert len(await events(store, monitor)) == 1


async def test_what_is_told_is_kept_as_it_will_be_sent_and_lies_in_the_outbox(
    store: SqlStore, clock: VirtualClock
) -> None:
    monitor = await keep(store)
    async with store.edit() as tx:
        await sync.tell(tx, monitor, [notice(1.25, started_at=at(0.5), n=1.5)], ZONE)
    [kept] = await events(store, monitor)
    assert kept.payload == {
        "event_type": "alert.blackout",
        "monitor_id": monitor.id,
        "stream_url": STREAM,
        "timestamp": "2026-06-01T20:00:01+09:00",
        "data": {"started_at": "2026-06-01T20:00:00.500+09:00", "n": 1.5},
        "metadata": PAYLOAD,
    }
    assert (kept.status, kept.attempts, kept.created_at) == ("pending", 0, at(1.25))
    taken = await store.outbox.take(clock.now(), 10, timedelta(minutes=1))
    by_place = {event.destination: event for event in taken}
    assert by_place.keys() == {f"stream-webhook:{monitor.id}", "tell:"}
    event = by_place[f"stream-webhook:{monitor.id}"]
    assert event.body == {"event_id": kept.id, "monitor_id": monitor.id}
    assert by_place["tell:"].kind == "streams.blackout"
    # A receiver that hangs holds up no notification.
    assert by_place["tell:"].key != event.key


async def test_what_is_told_in_a_transaction_that_fails_is_not_told(store: SqlStore) -> None:
    monitor = await keep(store)

    async def cut_off() -> None:
        async with store.edit() as tx:
            await sync.keep_step(tx, monitor, step(notices=(notice(1),)), at(9), ZONE)
            raise RuntimeError("cut off")

    with pytest.raises(RuntimeError):
        await cut_off()
    assert await events(store, monitor) == []
    assert (await view(store, monitor)).segments == 0
    assert await store.outbox.next_at() is None


async def test_9_1_the_database_itself_refuses_a_second_active_monitor(store: SqlStore) -> None:
    await keep(store)
    with pytest.raises(IntegrityError):
        await keep(store)


@pytest.mark.parametrize("status", sorted({*Status} - {*ACTIVE}))
async def test_9_1_monitors_that_are_over_stand_in_nobody_s_way(
    store: SqlStore, status: Status
) -> None:
    await keep(store, status=status)
    await keep(store, status=status)
    await keep(store)
    async with store.read() as reader:
        assert await sync.count_active(reader) == 1


async def test_9_1_addresses_that_differ_in_case_are_two_streams(store: SqlStore) -> None:
    await keep(store)
    await keep(store, stream_url=STREAM.swapcase())


async def test_of_many_who_ask_for_one_stream_at_once_one_gets_it(
    store: SqlStore, clock: VirtualClock
) -> None:
    system = ground(store, clock)
    asking = [actions.add(system, wanted(), CLIENT) for _ in range(10)]
    made = await asyncio.gather(*asking, return_exceptions=True)
    assert sorted(type(one).__name__ for one in made) == ["Duplicate"] * 9 + ["Monitor"]


async def test_of_many_who_ask_at_once_as_many_get_in_as_there_is_room_for(
    store: SqlStore, clock: VirtualClock
) -> None:
    system = ground(store, clock, streams_most=3)
    asking = [actions.add(system, wanted(f"video-{n:05}"), CLIENT) for n in range(8)]
    made = await asyncio.gather(*asking, return_exceptions=True)
    assert sum(isinstance(one, Monitor) for one in made) == 3
    refused = [one for one in made if isinstance(one, TooMany)]
    assert {one.code for one in refused} == {"MAX_MONITORS_EXCEEDED"}
    assert len(refused) == 5


async def test_who_is_counted_adds_ten_a_minute(store: SqlStore, clock: VirtualClock) -> None:
    system = ground(store, clock)
    client = replace(CLIENT, is_counted=True)
    for number in range(10):
        await actions.add(system, wanted(f"video-{number:05}"), client)
    with pytest.raises(TooMany) as refused:
        await actions.add(system, wanted(), client)
    assert refused.value.code == "RATE_LIMIT_EXCEEDED"
    await actions.add(system, wanted(), replace(client, name="another"))
    with pytest.raises(Duplicate):
        await actions.add(system, wanted(), replace(client, name="another"))
    await clock.advance(timedelta(minutes=1))
    await actions.add(system, wanted("video-later"), client)
