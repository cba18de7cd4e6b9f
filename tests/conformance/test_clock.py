"""The clocks' promises: the same bodies on the real, the scaled and the virtual one."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta

import pytest

from mimawari.kernel.clock import Mark, RealClock, ScaledClock, VirtualClock
from mimawari.kernel.ports import Clock

START = datetime(2026, 1, 1, tzinfo=UTC)
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
MICROSECOND = timedelta(microseconds=1)
SCALE = 3600.0
# Readings of two of the system's clocks may differ by this much of a nap.
GRAIN = 0.02


def real() -> RealClock:
    return RealClock()


def scaled() -> ScaledClock:
    return ScaledClock(SCALE, START)


def virtual() -> VirtualClock:
    return VirtualClock(START)


CLOCKS: dict[Callable[[], Clock], timedelta] = {
    real: timedelta(milliseconds=50),
    scaled: timedelta(minutes=3),
    virtual: timedelta(days=3),
}


@pytest.fixture(params=CLOCKS, ids=[make.__name__ for make in CLOCKS])
def make(request: pytest.FixtureRequest) -> Callable[[], Clock]:
    made: Callable[[], Clock] = request.param
    return made


@pytest.fixture
def nap(make: Callable[[], Clock]) -> timedelta:
    """A short while on the clock, which lasts for 50 ms at the most."""
    return CLOCKS[make]


@pytest.fixture
async def any_clock(make: Callable[[], Clock], nap: timedelta) -> AsyncIterator[Clock]:
    """Each clock in turn; the virtual one is moved on as long as somebody sleeps."""
    clock = make()
    if not isinstance(clock, VirtualClock):
        yield clock
        return
    mover = asyncio.create_task(move_on(clock, nap / 10))
    yield clock
    mover.cancel()


async def move_on(clock: VirtualClock, span: timedelta) -> None:
    while True:
        await clock.advance(span if clock.sleeping else timedelta(0))


async def asleep(clock: VirtualClock, count: int = 1) -> None:
    """Wait until so many sleep, in no time."""
    async with asyncio.timeout(10):
        while clock.sleeping < count:
            await clock.advance(timedelta(0))


async def test_now_is_aware_and_in_utc(any_clock: Clock) -> None:
    assert any_clock.now().utcoffset() == timedelta(0)
    assert any_clock.now().tzinfo is UTC


async def test_now_goes_on_and_never_back(any_clock: Clock, nap: timedelta) -> None:
    times = []
    for _ in range(5):
        times += [any_clock.now() for _ in range(100)]
        await any_clock.sleep(nap / 5)
    assert times == sorted(times)
    assert times[-1] - times[0] >= nap * 4 / 5 * (1 - GRAIN)


async def test_marks_never_go_back_and_belong_to_one_boot(any_clock: Clock, nap: timedelta) -> None:
    marks = []
    for _ in range(5):
        marks += [any_clock.mark() for _ in range(100)]
        await any_clock.sleep(nap / 5)
    assert [mark.ticks for mark in marks] == sorted(mark.ticks for mark in marks)
    assert len({mark.boot for mark in marks}) == 1


async def test_a_sleep_lasts_as_long_as_said(any_clock: Clock, nap: timedelta) -> None:
    begun_at, begun = any_clock.now(), any_clock.mark()
    async with asyncio.timeout(10):
        await any_clock.sleep(nap)
    assert any_clock.mark().elapsed_since(begun) >= nap * (1 - GRAIN)
    assert any_clock.now() - begun_at >= nap * (1 - GRAIN)


async def test_now_and_marks_tell_of_the_same_time(any_clock: Clock, nap: timedelta) -> None:
    begun_at, begun, first = any_clock.now(), any_clock.mark(), any_clock.now()
    await any_clock.sleep(nap)
    ended_at, ended, last = any_clock.now(), any_clock.mark(), any_clock.now()
    passed = ended.elapsed_since(begun)
    assert ended_at - first <= passed + nap * GRAIN
    assert last - begun_at >= passed - nap * GRAIN


async def test_a_mark_tells_the_time_of_its_making(any_clock: Clock) -> None:
    before, mark, after = any_clock.now(), any_clock.mark(), any_clock.now()
    assert before <= mark.wall <= after


@pytest.mark.parametrize("span", [timedelta(0), -HOUR])
async def test_who_need_not_sleep_does_not(make: Callable[[], Clock], span: timedelta) -> None:
    async with asyncio.timeout(2):
        await make().sleep(span)


async def test_sleepers_wake_in_the_order_of_their_times(any_clock: Clock, nap: timedelta) -> None:
    woken: list[int] = []

    async def sleeper(parts: int) -> None:
        await any_clock.sleep(nap * parts / 3)
        woken.append(parts)

    async with asyncio.timeout(10):
        await asyncio.gather(*map(sleeper, (3, 1, 2)))
    assert woken == [1, 2, 3]


async def test_a_sleep_that_is_given_up_ends_at_once(any_clock: Clock) -> None:
    sleeper = asyncio.create_task(any_clock.sleep(timedelta(days=999_999)))
    await asyncio.wait({sleeper}, timeout=0.01)
    sleeper.cancel()
    async with asyncio.timeout(10):
        with pytest.raises(asyncio.CancelledError):
            await sleeper


def test_real_clocks_agree() -> None:
    one, other = RealClock(), RealClock()
    assert abs(one.now() - other.now()) < SECOND
    assert one.mark().boot == other.mark().boot
    assert abs(one.mark().elapsed_since(other.mark())) < SECOND


def test_scaled_clocks_with_one_anchor_agree() -> None:
    one, other = scaled(), scaled()
    assert abs(one.now() - other.now()) < SECOND * SCALE
    assert one.mark().boot == other.mark().boot


def test_a_scaled_clock_counts_from_its_anchor() -> None:
    anchor = RealClock().now() - HOUR
    passed = ScaledClock(10, anchor).now() - anchor
    assert 10 * HOUR <= passed < 10 * HOUR + 10 * SECOND


def test_marks_of_two_scales_are_not_compared_by_ticks() -> None:
    marks = [ScaledClock(scale, START).mark() for scale in (1.0, 10.0)] + [RealClock().mark()]
    assert len({mark.boot for mark in marks}) == 3


@pytest.mark.parametrize("wall", [-HOUR, timedelta(0), HOUR])
def test_within_one_boot_ticks_tell_how_long_ago_a_mark_was(wall: timedelta) -> None:
    then, now = Mark(START, "boot", 100.0), Mark(START + wall, "boot", 107.5)
    assert now.elapsed_since(then) == 7.5 * SECOND


@pytest.mark.parametrize("ticks", [0.0, 1e9])
def test_over_two_boots_the_wall_clock_tells_how_long_ago_a_mark_was(ticks: float) -> None:
    then, now = Mark(START, "one", ticks), Mark(START + HOUR, "two", 7.0)
    assert now.elapsed_since(then) == HOUR


@pytest.mark.parametrize("boot", ["one", "two"])
def test_no_mark_is_less_than_nothing_ago(boot: str) -> None:
    then, now = Mark(START, "one", 100.0), Mark(START - HOUR, boot, 50.0)
    assert now.elapsed_since(then) == timedelta(0)


async def test_a_virtual_clock_stands_still_until_it_is_moved() -> None:
    clock = virtual()
    first = clock.mark()
    await RealClock().sleep(MICROSECOND)
    assert (clock.now(), clock.mark()) == (START, first)
    await clock.advance(HOUR)
    assert (clock.now(), clock.mark().elapsed_since(first)) == (START + HOUR, HOUR)


async def test_a_virtual_sleeper_wakes_at_its_moment_and_not_before() -> None:
    clock = virtual()
    sleeper = asyncio.create_task(clock.sleep(HOUR))
    await asleep(clock)
    await clock.advance(HOUR - MICROSECOND)
    assert not sleeper.done()
    await clock.advance(MICROSECOND)
    assert sleeper.done()
    assert clock.sleeping == 0


async def test_virtual_sleepers_see_their_own_moments_within_one_long_advance() -> None:
    clock = virtual()
    seen: list[datetime] = []

    async def sleeper(hours: int) -> None:
        for _ in range(2):
            await clock.sleep(hours * HOUR)
            seen.append(clock.now())

    tasks = [asyncio.create_task(sleeper(hours)) for hours in (4, 1, 3)]
    await asleep(clock, 3)
    await clock.advance(timedelta(days=1))
    assert seen == [START + hours * HOUR for hours in (1, 2, 3, 4, 6, 8)]
    assert all(task.done() for task in tasks)


@pytest.mark.parametrize("step", [HOUR, -HOUR])
async def test_turning_a_virtual_clock_wakes_nobody_and_delays_nobody(step: timedelta) -> None:
    clock = virtual()
    begun = clock.mark()
    sleeper = asyncio.create_task(clock.sleep(HOUR / 2))
    await asleep(clock)
    clock.step(step)
    assert clock.now() == START + step
    assert clock.mark().elapsed_since(begun) == timedelta(0)
    await clock.advance(timedelta(0))
    assert not sleeper.done()
    await clock.advance(HOUR / 2)
    assert sleeper.done()
    assert clock.now() == START + step + HOUR / 2


async def test_a_virtual_sleep_that_was_given_up_is_not_counted() -> None:
    clock = virtual()
    sleeper = asyncio.create_task(clock.sleep(HOUR))
    await asleep(clock)
    sleeper.cancel()
    await clock.advance(2 * HOUR)
    assert (clock.sleeping, sleeper.cancelled()) == (0, True)


async def test_virtual_time_does_not_drift_over_many_odd_spans() -> None:
    clock = virtual()
    begun = clock.mark()
    for _ in range(5000):
        await clock.advance(timedelta(microseconds=100_001))
    assert clock.now() - START == 5000 * timedelta(microseconds=100_001)
    assert clock.mark().elapsed_since(begun) == clock.now() - START
