"""How loud a stream was: measured now and then, kept for some hours, with the check's commit."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

from mimawari.kernel.clock import VirtualClock
from mimawari.media.findings import Findings, Loudness
from mimawari.media.timeline import Place
from mimawari.store.sql import SqlStore
from mimawari.watches.streams import intervals, queries, sync
from mimawari.watches.streams.intervals import Seen
from mimawari.watches.streams.models import Heard, Monitor, State, Status, Step, StreamStatus
from mimawari.watches.streams.sync import HEARD_FOR
from tests.streams.making import segment, track
from tests.streams.scene import EVENING, Scene, at
from tests.streams.test_keeping import ZONE, make_monitor


def seen(*moments: float) -> Seen:
    """Make up a segment that is so loud."""
    loudness = Loudness(moments=moments, short_term=None) if moments else None
    found = Findings(
        picture=None, sound=track(0, 2), frame_seconds=0.04, bad_packets=0, loudness=loudness
    )
    return Seen(segment=segment(1), found=found, missed=0.0, is_break=False)


def state_at(end: float, heard: float | None = None) -> State:
    """Make up a monitor that has come to a second of its programme."""
    return State(place=Place(end=end), anchor_at=EVENING, heard_seconds=heard)


def test_it_is_measured_first_and_then_each_ten_seconds_or_when_a_programme_begins_anew() -> None:
    assert intervals.is_to_hear(state_at(0.0))
    assert not intervals.is_to_hear(state_at(12.0, heard=2.5))
    assert intervals.is_to_hear(state_at(12.5, heard=2.5))
    assert intervals.is_to_hear(state_at(1.0, heard=400.0))


def test_what_is_kept_is_how_loud_the_segment_was_and_up_to_when() -> None:
    state, heard = intervals.hear(state_at(4.0), seen(-20.0, -20.0))
    assert heard == Heard(at=at(4), lufs=-20.0)
    assert state.heard_seconds == 4.0
    assert intervals.hear(state, seen(-20.0)) == (state, None)


def test_silence_is_as_quiet_as_can_be_and_what_has_no_sound_is_nothing() -> None:
    _, heard = intervals.hear(state_at(4.0), seen(-70.0))
    assert heard == Heard(at=at(4), lufs=-70.0)
    assert intervals.hear(state_at(4.0), seen()) == (state_at(4.0), None)


async def keep(store: SqlStore, monitor: Monitor, *heard: Heard) -> None:
    """Keep what a check has heard."""
    step = Step(
        status=Status.MONITORING,
        stream_status=StreamStatus.LIVE,
        state=State(),
        next_at=EVENING,
        reason="interval",
        heard=heard,
    )
    async with store.edit() as tx:
        await sync.keep_step(tx, monitor, step, EVENING, ZONE)


async def test_the_last_hours_are_kept_of_each_monitor_and_the_same_moment_once(
    store: SqlStore, clock: VirtualClock
) -> None:
    del clock
    first, other = make_monitor(), replace(make_monitor(), stream_url="https://youtu.be/other")
    async with store.edit() as tx:
        await sync.add(tx, first, "test")
        await sync.add(tx, other, "test")
    old = [Heard(at=at(seconds), lufs=-20.5) for seconds in (0, 10)]
    await keep(store, first, *old)
    await keep(store, other, *old)
    new = Heard(at=at(10) + HEARD_FOR, lufs=-30.25)
    await keep(store, first, replace(old[1], lufs=-21.0), new)
    async with store.read() as reader:
        assert await queries.list_heard(reader, first.id) == [replace(old[1], lufs=-21.0), new]
        assert await queries.list_heard(reader, other.id) == old


async def test_a_real_stream_is_heard_each_ten_seconds(scene: Scene) -> None:
    scene.put(starts_at=at(-60))
    monitor = await scene.add()
    await scene.pass_time(45)
    async with scene.store.read() as reader:
        heard = await queries.list_heard(reader, monitor.id)
    assert len(heard) in {4, 5}
    assert all(
        timedelta(seconds=8) <= two.at - one.at <= timedelta(seconds=16)
        for one, two in pairwise(heard)
    )
    assert all(-60 < one.lufs < 0 for one in heard)
