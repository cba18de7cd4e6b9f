"""The wall clock is turned under a running program; sites see no burst, and nothing stalls."""

from collections import Counter
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from tests.faults.clock_world import CHECK_SECONDS, Stepped, open_stepped, responds
from tests.faults.world import FULL

HOUR = timedelta(hours=1)
SOON = 60.0
"""Seconds in which some checks must have come, also on a busy machine; a stall takes an hour."""
DETAIL, LIST = "/rent/detail/", "/rent/search/"
MOST_A_MINUTE = 20 + 10 + 10
"""Requests to the market: the limits of hot, of prices' lists and of prices' items together."""
PATIENCE_BETWEEN = timedelta(minutes=12)
"""Five an hour are spread evenly."""


def times_of(stepped: Stepped, part: str, path: str = "/") -> list[datetime]:
    """List when paths of a part were asked for, in true time."""
    return [
        datetime.fromisoformat(one["at"])
        for one in stepped.asked(part)
        if one["path"].startswith(path)
    ]


def most_within(times: list[datetime], span: timedelta) -> int:
    """Count the most requests in any span, as the site does."""
    return max((sum(at <= other < at + span for other in times) for at in times), default=0)


def judge(stepped: Stepped) -> None:
    """Insist on every limit, as the world's own log counts in true time."""
    checks = stepped.checks()
    took = (checks[-1] - checks[0]).total_seconds()
    assert len(checks) <= took / CHECK_SECONDS + 2, checks
    if not FULL:
        return
    details = times_of(stepped, "rentals", DETAIL)
    assert all(after - before >= PATIENCE_BETWEEN for before, after in pairwise(details)), details
    assert details
    assert most_within(times_of(stepped, "rentals", LIST), HOUR / 60) <= 6
    assert 0 < most_within(times_of(stepped, "market"), HOUR / 60) <= MOST_A_MINUTE
    # Hourly and daily targets came once: no step makes them due again.
    books = [(one["path"], one["query"]) for one in stepped.asked("books")]
    assert books
    assert Counter(books).most_common(1)[0][1] == 1


async def test_a_wall_clock_that_is_turned_makes_no_burst_and_no_stall(tmp_path: Path) -> None:
    """All watches, forwards and back; a stream and one direction alone in the short run."""
    async with open_stepped(tmp_path) as stepped, stepped.serve() as address:
        await stepped.more_checks(1, SOON)
        for span in (HOUR, -HOUR, 0 * HOUR) if FULL else (-HOUR,):
            stepped.turn(span)
            await stepped.more_checks(4 if FULL else 2, SOON)
            await responds(address)
        judge(stepped)


@pytest.mark.skipif(not FULL, reason="takes two minutes: make faults")
@pytest.mark.parametrize("span", [HOUR, -HOUR], ids=["forwards", "back"])
async def test_a_process_that_starts_after_a_step_neither_stalls_nor_bursts(
    tmp_path: Path, span: timedelta
) -> None:
    async with open_stepped(tmp_path) as stepped:
        async with stepped.serve():
            await stepped.more_checks(2, SOON)
        stepped.turn(span)
        async with stepped.serve() as address:
            await stepped.more_checks(4, SOON)
            await responds(address)
        judge(stepped)


@pytest.mark.skipif(not FULL, reason="takes two minutes: make faults")
@pytest.mark.parametrize("span", [HOUR, -HOUR], ids=["forwards", "back"])
async def test_processes_that_started_before_and_after_a_step_share_the_work(
    tmp_path: Path, span: timedelta
) -> None:
    async with open_stepped(tmp_path) as stepped, stepped.serve() as first:
        await stepped.more_checks(2, SOON)
        stepped.turn(span)
        async with stepped.serve() as second:
            await stepped.more_checks(6, SOON)
            for address in (first, second):
                await responds(address)
            assert stepped.count("lease expired") == 0
        judge(stepped)
