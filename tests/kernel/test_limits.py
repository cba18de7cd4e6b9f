"""When a limit gives leave: no window ever holds too many arrivals, and no wait is too long."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimawari.kernel.clock import Mark
from mimawari.kernel.limits import NOTHING, VALID_FOR, Given, Hold, reason_of, wait_for
from mimawari.kernel.values import Limit

START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
# Eighths of a second are exact both as ticks and as microseconds.
EIGHTH = timedelta(milliseconds=125)


def mark(at: timedelta, boot: str = "boot") -> Mark:
    return Mark(START + at, boot, at.total_seconds())


def given_at(granted: timedelta, settled: timedelta) -> Given:
    return Given(mark(granted), mark(settled))


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


ONE = Limit("x", 1, seconds(100))
FOUR = Limit("x", 4, seconds(100))
AT_ONCE = Limit("x", 2, seconds(100), apart=seconds(1))


@pytest.mark.parametrize(
    ("limit", "given_before", "now", "wait"),
    [
        (ONE, [], 0, 0),
        (ONE, [(0, 10)], 50, 60),
        (ONE, [(0, 10)], 110, 0),
        (ONE, [(0, 60)], 30, 130),
        (FOUR, [(0, 1)], 1, 24),
        (FOUR, [(0, 1)], 25, 0),
        (FOUR, [(0, 60)], 25, 0),
        (FOUR, [(0, 2), (25, 27), (50, 52)], 75, 0),
        (FOUR, [(0, 2), (25, 27), (50, 52), (75, 77)], 90, 12),
        (FOUR, [(0, 2), (25, 27), (50, 52), (75, 77)], 100, 2),
        (FOUR, [(0, 60), (25, 27), (50, 52), (75, 77)], 100, 60),
        (FOUR, [(0, 2), (25, 27), (50, 52), (75, 77), (102, 103)], 102, 25),
        (AT_ONCE, [(0, 1)], 1, 0),
        (AT_ONCE, [(0, 1), (1, 2)], 2, 99),
    ],
)
def test_the_wait_is_exact(
    limit: Limit, given_before: list[tuple[int, int]], now: int, wait: int
) -> None:
    newest_first = [given_at(seconds(g), seconds(s)) for g, s in reversed(given_before)]
    span, reason = wait_for(limit, newest_first, None, mark(seconds(now)))
    assert max(span, NOTHING) == seconds(wait)
    assert (reason == "limit") == (wait > 0)


@pytest.mark.parametrize(
    ("per", "name"),
    [
        (timedelta(minutes=1), "minute_limit"),
        (HOUR, "hourly_limit"),
        (timedelta(days=1), "daily_limit"),
        (timedelta(minutes=2), "limit"),
        (timedelta(milliseconds=1), "limit"),
    ],
)
def test_a_limit_is_named_by_its_window(per: timedelta, name: str) -> None:
    assert reason_of(Limit("x", 3, per)) == name


@pytest.mark.parametrize(
    ("held_for", "expected"),
    [(30, (seconds(40), "limit")), (70, (seconds(60), "Retry-After")), (5, (seconds(40), "limit"))],
)
def test_the_longest_of_limit_and_hold_is_waited_for(
    held_for: int, expected: tuple[timedelta, str]
) -> None:
    hold = Hold(mark(seconds(50)), seconds(held_for), "Retry-After")
    before = [given_at(NOTHING, NOTHING)]
    assert wait_for(ONE, before, hold, mark(seconds(60))) == expected


def test_a_hold_that_is_over_holds_nobody() -> None:
    hold = Hold(mark(NOTHING), seconds(60), "Retry-After")
    assert wait_for(ONE, [], hold, mark(seconds(60))) == (NOTHING, "")


def test_time_over_a_reboot_is_counted_by_the_wall_clock() -> None:
    before = [given_at(NOTHING, seconds(10))]
    after_boot = Mark(START + seconds(80), "next boot", 3.0)
    assert wait_for(ONE, before, None, after_boot)[0] == seconds(30)


def test_a_wall_clock_that_was_turned_changes_no_wait() -> None:
    before = [given_at(NOTHING, seconds(10))]
    turned = Mark(START + timedelta(days=365), "boot", 80.0)
    assert wait_for(ONE, before, None, turned)[0] == seconds(30)


@dataclass(slots=True)
class Request:
    """A grant, when its request was over, and when the site counted it."""

    granted: timedelta
    over: timedelta
    arrived: timedelta

    def seen_at(self, now: timedelta) -> Given:
        """Tell what the limiter knows of it: before its end, only that its leave runs out."""
        settled = self.over if self.over <= now else self.granted + VALID_FOR
        return given_at(self.granted, settled)


@dataclass(frozen=True, slots=True)
class Ask:
    """Somebody asks after a pause, perhaps waits as told, and makes a request if given leave."""

    pause: timedelta
    waits: bool
    takes: timedelta
    arrives: timedelta


eighths = st.integers(0, 400).map(lambda number: number * EIGHTH)
takes = st.sampled_from([NOTHING, EIGHTH, VALID_FOR]) | eighths
asks = st.lists(
    st.builds(Ask, st.just(NOTHING) | eighths, st.booleans(), takes, takes), max_size=40
)
limits = st.builds(
    # A power of two divides any number of seconds exactly.
    lambda power, per: Limit("x", 2**power, seconds(per)),
    st.integers(0, 3),
    st.integers(1, 120),
)


def ask_all(limit: Limit, several: list[Ask]) -> tuple[list[Request], timedelta]:
    """Play some asks; return the requests that were made, and the time at the end."""
    made: list[Request] = []
    now = NOTHING
    for ask in several:
        now += ask.pause
        wait = wait_now(limit, made, now)
        if ask.waits:
            now += max(wait, NOTHING)
            wait = wait_now(limit, made, now)
        if wait <= NOTHING:
            made.append(Request(now, now + ask.takes, now + min(ask.takes, ask.arrives)))
    return made, now


def wait_now(limit: Limit, made: list[Request], now: timedelta) -> timedelta:
    """Ask the limiter with all it knows by now."""
    newest_first = [request.seen_at(now) for request in reversed(made)]
    return wait_for(limit, newest_first, None, mark(now))[0]


@settings(deadline=None)
@given(limits, asks)
def test_no_window_holds_more_arrivals_than_the_limit_allows(
    limit: Limit, several: list[Ask]
) -> None:
    made, _ = ask_all(limit, several)
    arrivals = sorted(request.arrived for request in made)
    for first, beyond in zip(arrivals, arrivals[limit.count :], strict=False):
        assert beyond - first >= limit.per


@settings(deadline=None)
@given(limits, asks)
def test_no_two_grants_are_closer_than_the_spacing(limit: Limit, several: list[Ask]) -> None:
    made, _ = ask_all(limit, several)
    for before, after in pairwise(request.granted for request in made):
        assert after - before >= limit.spacing


@settings(deadline=None)
@given(limits, asks, eighths)
def test_whoever_waits_as_long_as_told_is_given_leave_and_not_a_moment_sooner(
    limit: Limit, several: list[Ask], later: timedelta
) -> None:
    made, end = ask_all(limit, several)
    now = end + later
    known = [request.seen_at(now) for request in reversed(made)]
    wait, _ = wait_for(limit, known, None, mark(now))
    if wait > NOTHING:
        assert wait_for(limit, known, None, mark(now + wait))[0] <= NOTHING
        assert wait_for(limit, known, None, mark(now + wait - EIGHTH / 8))[0] > NOTHING


@settings(deadline=None)
@given(limits, asks, eighths)
def test_no_wait_is_longer_than_the_window_and_the_leave_together(
    limit: Limit, several: list[Ask], later: timedelta
) -> None:
    made, end = ask_all(limit, several)
    assert wait_now(limit, made, end + later) <= limit.per + VALID_FOR
