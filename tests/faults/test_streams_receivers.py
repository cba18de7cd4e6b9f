"""Receivers of webhooks that fail: four attempts at their times, no step further, and the end."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mimawari.sim.sites.youtube.programme import Programme
from mimawari.watches.streams.models import Monitor, Status
from tests.app.ground import until
from tests.conftest import Databases
from tests.faults.streams_world import SECOND, Studio, open_studio
from tests.faults.world import FULL
from tests.net.sockets import open_server

WAITS = (1.0, 2.0, 4.0)
LATE_SECONDS = 1.5
"""How much later than at its time an attempt may be made on a machine that is busy."""
OTHER = "/hooks/other"
ORDERS: Mapping[str, Mapping[str, Any]] = {
    "down0000001": {"do": "reset"},
    "broken00001": {"do": "status", "code": 500},
    "gone0000001": {"do": "status", "code": 410},
    "moves000001": {"do": "redirect", "url": OTHER, "code": 307},
    "leads000001": {"do": "redirect", "url": OTHER, "code": 302},
}
SAYS = {
    "down0000001": "could not be called",
    "broken00001": "answered 500",
    "gone0000001": "answered 410",
    "moves000001": "answered 307, which is not followed",
    "leads000001": "answered 302, which is not followed",
}
INNER = "inner000001"
WELL = "well0000001"
SLOW = "slow0000001"


@asynccontextmanager
async def on_air(databases: Databases, folder: Path, *videos: str) -> AsyncIterator[Studio]:
    """Broadcast healthy streams in true time."""
    async with open_studio(await databases.ready(), folder, 1.0) as studio:
        for video in videos:
            starts_at = studio.clock.now() - 20 * SECOND
            studio.put(Programme(video_id=video, title=video, starts_at=starts_at))
        yield studio


def attempts(studio: Studio, name: str) -> list[datetime]:
    """List when a receiver was called."""
    return [datetime.fromisoformat(one["at"]) for one in studio.asked(f"/hooks/{name}")]


async def until_over(studio: Studio, monitors: Mapping[str, Monitor]) -> None:
    """Wait until all these monitors have ended."""

    async def are_over() -> bool:
        views = [await studio.view(monitor) for monitor in monitors.values()]
        return all(view.monitor.status is Status.ERROR for view in views)

    await until(are_over, seconds=90)


def check_times(at: list[datetime], took: float = 0.0) -> None:
    """Insist on four attempts, each so long after the one before it had failed."""
    assert len(at) == 1 + len(WAITS)
    for before, after, wait in zip(at, at[1:], WAITS, strict=False):
        assert 0 <= (after - before).total_seconds() - wait - took <= LATE_SECONDS


async def check_end(studio: Studio, monitor: Monitor, says: str) -> None:
    """Insist that a monitor has ended as its receiver deserves, and that nobody was told."""
    view = await studio.view(monitor)
    assert view.reason is not None
    assert view.reason.startswith("the callback failed for good: ")
    assert says in view.reason
    (event,) = await studio.events(monitor)
    assert (event.event_type, event.status, event.attempts) == ("stream.started", "failed", 4)
    assert event.last_error is not None
    assert says in event.last_error
    assert await studio.store.schedule.find(f"streams:{monitor.id}") is None


async def test_a_receiver_that_fails_is_called_four_times_and_ends_its_monitor(
    databases: Databases, tmp_path: Path
) -> None:
    async with (
        open_server(lambda _: b"HTTP/1.1 204 No Content\r\n\r\n") as trap,
        on_air(databases, tmp_path, *ORDERS, INNER, WELL) as studio,
    ):
        for name, order in ORDERS.items():
            studio.struck.world.orders.add({"part": "hooks", "path": f"/hooks/{name}", **order})
        # Its name was that of a public host when it was asked for, and leads inside now.
        inner_url = f"http://localhost:{trap.port}/hook"
        monitors = {name: await studio.monitor(name) for name in ORDERS}
        inner = await studio.monitor(INNER, inner_url)
        well = await studio.monitor(WELL)
        studio.watcher.start()
        await until_over(studio, {**monitors, INNER: inner})
        for name, monitor in monitors.items():
            check_times(attempts(studio, name))
            await check_end(studio, monitor, SAYS[name])
        await check_end(studio, inner, "localhost")
        assert trap.heads == []
        assert studio.asked(OTHER) == []
        await studio.until_sent(well)
        assert (await studio.view(well)).monitor.status is Status.MONITORING
        assert [one["body"]["event_type"] for one in studio.arrivals(WELL)] == ["stream.started"]


@pytest.mark.skipif(not FULL, reason="it takes a minute")
async def test_a_receiver_that_is_slow_is_waited_for_ten_seconds_each_time(
    databases: Databases, tmp_path: Path
) -> None:
    async with on_air(databases, tmp_path, SLOW) as studio:
        order = {"part": "hooks", "path": f"/hooks/{SLOW}", "do": "slow", "delay_s": 60.0}
        studio.struck.world.orders.add(order)
        monitor = await studio.monitor(SLOW)
        studio.watcher.start()
        await until_over(studio, {SLOW: monitor})
        check_times(attempts(studio, SLOW), took=10.0)
        await check_end(studio, monitor, "took longer than 10 s")


async def test_a_receiver_that_comes_back_in_time_hears_all_in_order(
    databases: Databases, tmp_path: Path
) -> None:
    async with on_air(databases, tmp_path, WELL) as studio:
        order = {"part": "hooks", "path": f"/hooks/{WELL}", "do": "status", "code": 503, "times": 2}
        studio.struck.world.orders.add(order)
        starts_at = studio.clock.now() - 20 * SECOND
        ends = Programme(video_id=WELL, title="短", starts_at=starts_at, seconds=24.0)
        studio.put(ends)
        monitor = await studio.monitor(WELL, check_interval_sec=1)
        studio.watcher.start()

        async def is_over() -> bool:
            return (await studio.view(monitor)).monitor.status is Status.COMPLETED

        await until(is_over)
        await studio.until_sent(monitor)
        heard = studio.arrivals(WELL)
        kinds = [one["body"]["event_type"] for one in heard]
        assert kinds == ["stream.started", "stream.ended"]
        first, _ = await studio.events(monitor)
        assert (first.attempts, len(studio.asked(f"/hooks/{WELL}"))) == (3, 4)
        assert timedelta(0) < (first.sent_at or starts_at) - first.created_at < 8 * SECOND
