"""Whoever watches a stream dies during a black-out; it is told once, with the right times."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from itertools import cycle, islice
from math import inf
from pathlib import Path

import pytest

from mimawari.sim.sites.youtube.programme import FPS, Programme, Shot
from mimawari.watches.streams.models import Monitor
from tests.conftest import Databases
from tests.faults.streams_world import (
    SECOND,
    Moment,
    Studio,
    first_effects,
    open_studio,
)
from tests.faults.world import FULL

KILLS = 20 if FULL else 4
SCALE = 20.0
VIDEO = "blackout001"
SEGMENT_SECONDS = 2.0
THRESHOLD = 30
MOMENT_SECONDS = 3.0
WANTED = ["stream.started", "alert.blackout", "alert.blackout_recovered"]


def programme_of(starts_at: datetime, *shots: Shot) -> Programme:
    """Make a stream of which nothing is gone from the list while nobody watches."""
    return Programme(
        video_id=VIDEO,
        title="黒",
        starts_at=starts_at,
        shots=shots,
        segment_seconds=SEGMENT_SECONDS,
        window=140,
    )


def is_list(path: str, _answered: bool) -> bool:
    """Name the moment in which the list is asked for."""
    return path.endswith(".m3u8")


def is_segment(path: str, is_answered: bool) -> bool:
    """Name the moment in which a segment was answered with, and not heard of yet."""
    return path.endswith(".ts") and is_answered


def is_alert(path: str, is_answered: bool) -> bool:
    """Name the moment in which a webhook was taken, and its sender does not know."""
    return path.startswith("/hooks/") and is_answered


def moments() -> Iterator[Moment | None]:
    """Name moments to die at: while something is asked for, or at any time."""
    return islice(cycle((is_segment, is_alert, None, is_list)), KILLS)


async def die(studio: Studio, moment: Moment | None, monitor: Monitor) -> None:
    """Let whoever watches make one check, kill it at a moment or soon, and start it again."""
    watcher = studio.watcher
    await studio.until_checked(monitor)
    if moment is None:
        watcher.kill()
    else:
        come = studio.struck.await_moment(moment, watcher.kill)
        with suppress(TimeoutError):
            async with asyncio.timeout(MOMENT_SECONDS):
                await come.wait()
        studio.struck.forget()
        watcher.kill()
    watcher.start()


def moment_after(studio: Studio, starts_at: datetime, seconds: float) -> float:
    """Name a moment of the programme so long after the segment that is produced now."""
    passed = (studio.clock.now() - starts_at).total_seconds()
    return passed // SEGMENT_SECONDS * SEGMENT_SECONDS + seconds


async def judge(studio: Studio, monitor: Monitor, black_at: datetime, seconds: float) -> None:
    """Insist on one alert and one recovery, at the right times, all of it heard once."""
    arrivals = studio.arrivals(VIDEO)
    assert all(one["is_verified"] for one in arrivals)
    heard = [one["body"] for one in first_effects(arrivals)]
    assert [one["event_type"] for one in heard] == WANTED
    _, alert, over = (one["data"] for one in heard)
    for told in (alert, over):
        began_at = datetime.fromisoformat(told["started_at"])
        assert abs(began_at - black_at) <= SEGMENT_SECONDS * SECOND
    assert THRESHOLD <= alert["duration_sec"] <= THRESHOLD + SEGMENT_SECONDS + 1 / FPS
    assert over["total_duration_sec"] == pytest.approx(seconds, abs=1.5 / FPS)
    events = await studio.events(monitor)
    assert [one.event_type for one in events] == WANTED
    assert {one.id for one in events} == {one["event_id"] for one in arrivals}
    assert [one.status for one in events] == ["sent"] * len(WANTED)
    view = await studio.view(monitor)
    assert (view.blackouts, view.silences) == (1, 0)
    # Each segment was counted once, however often it was looked into.
    assert view.segments == await studio.last_sequence(monitor) + 1 - studio.first_sequence()


@pytest.mark.parametrize("backend", ["sqlite", "postgresql", *(["redis"] if FULL else [])])
async def test_a_black_out_is_told_once_however_often_the_watcher_dies_in_it(
    backend: str, databases: Databases, tmp_path: Path
) -> None:
    async with open_studio(databases.fresh(backend), tmp_path, SCALE) as studio:
        starts_at = studio.clock.now() - 20 * SECOND
        studio.put(programme_of(starts_at))
        monitor = await studio.monitor(VIDEO, blackout_threshold_sec=THRESHOLD)
        studio.watcher.start()
        await studio.until(lambda: bool(studio.arrivals(VIDEO)))
        start = moment_after(studio, starts_at, 10.44)
        studio.put(programme_of(starts_at, Shot(what="black", start=start, end=inf)))
        black_at = starts_at + start * SECOND
        await studio.until(lambda: studio.clock.now() > black_at)
        for moment in moments():
            await die(studio, moment, monitor)
        # It lasts for as long as all this took, and ends in the middle of a segment too.
        end = moment_after(studio, starts_at, THRESHOLD + 3.52)
        studio.put(programme_of(starts_at, Shot(what="black", start=start, end=end)))
        await studio.until(lambda: len(first_effects(studio.arrivals(VIDEO))) == len(WANTED))
        await studio.until_sent(monitor)
        studio.watcher.kill()
        await judge(studio, monitor, black_at, end - start)
        await studio.watcher.insist_on_no_orphans()
