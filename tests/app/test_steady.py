"""All processes of a boot go by one time, also those that start after a step of the clock."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mimawari.app.ops import opened
from mimawari.app.process.steady_clock import find_mark, save_mark
from mimawari.kernel import clock as clocks
from mimawari.kernel.clock import Mark, RealClock, ScaledClock, boot_name, boot_ticks
from mimawari.settings import Settings
from mimawari.store.sql import SqlStore

HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)
PATIENCE = 30 * SECOND
"""How long a busy machine may take between two looks at the clock."""
LARGEST_STEP = clocks.LARGEST_STEP * SECOND


def mark_off(span: timedelta, ago: float = 0.0, boot: str | None = None) -> Mark:
    """Return a mark of a process whose clock is so far from the wall clock."""
    wall = RealClock().now() + span - ago * SECOND
    return Mark(wall, boot or boot_name(), boot_ticks() - ago)


@pytest.mark.parametrize("span", [HOUR, -HOUR, LARGEST_STEP - PATIENCE])
def test_a_clock_continues_from_a_mark_of_its_boot(span: timedelta) -> None:
    off = RealClock(mark_off(span, ago=600)).now() - RealClock().now()
    assert abs(off - span) < PATIENCE


@pytest.mark.parametrize(
    "mark",
    [
        mark_off(HOUR, boot="another"),
        # A machine without a battery begins in 1970, and is right only after it was set.
        mark_off(-LARGEST_STEP - PATIENCE),
        mark_off(timedelta(days=20_000)),
    ],
)
def test_a_mark_of_another_boot_or_of_a_clock_never_set_is_left(mark: Mark) -> None:
    assert abs(RealClock(mark).now() - RealClock().now()) < PATIENCE


def test_a_clock_that_continues_follows_the_wall_clock_slowly() -> None:
    clock = RealClock(mark_off(HOUR))
    times = [clock.now() for _ in range(1000)]
    assert times == sorted(times)
    assert times[-1] - RealClock().now() > HOUR - PATIENCE


def test_a_scaled_clock_continues_from_a_mark_too() -> None:
    anchor = datetime(2026, 1, 1, tzinfo=UTC)
    off = ScaledClock(60, anchor, mark_off(HOUR)).now() - ScaledClock(60, anchor).now()
    assert abs(off - 60 * HOUR) < 60 * PATIENCE


async def test_what_one_process_saves_the_next_one_finds(store: SqlStore) -> None:
    assert await find_mark(store) is None
    for clock in (RealClock(mark_off(HOUR)), ScaledClock(60, RealClock().now(), mark_off(HOUR))):
        await save_mark(store, clock)
        found = await find_mark(store)
        assert found is not None
        assert abs(RealClock(found).now() - RealClock().now() - HOUR) < PATIENCE


@pytest.mark.parametrize(
    "kept", [b"", b"{}", b"[1]", b"nonsense", b'{"wall": "soon", "ticks": 1}', b'{"wall": 1}']
)
async def test_a_value_that_is_no_mark_is_left(store: SqlStore, kept: bytes) -> None:
    await store.cache.set(f"clock:{boot_name()}", kept, HOUR)
    assert await find_mark(store) is None


@pytest.mark.parametrize("scale", [1.0, 60.0])
async def test_a_system_that_is_opened_after_a_step_goes_by_the_saved_time(
    tmp_path: Path, scale: float
) -> None:
    settings = Settings(data=tmp_path, time_scale=scale)
    async with opened(settings, []) as system:
        saved = mark_off(-HOUR)
        value = json.dumps({"wall": saved.wall.isoformat(), "ticks": saved.ticks})
        before = system.clock.now()
        await system.store.cache.set(f"clock:{boot_name()}", value.encode(), timedelta(days=1000))
    async with opened(settings, []) as system:
        off = system.clock.now() - before + HOUR * scale
        assert abs(off) < scale * 2 * PATIENCE
