"""At a start what is to be monitored is compared with what runs, by the rows of §10.4."""

import asyncio
from datetime import timedelta

import pytest
import structlog

from mimawari.errors import StoreDown
from mimawari.kernel.values import Entry
from mimawari.watches.streams import actions, sync
from mimawari.watches.streams.models import Monitor, Status
from mimawari.watches.streams.outside import CHECK
from mimawari.watches.streams.reconciliation import Reconciler, Report
from mimawari.watches.streams.runner import JobRunner, member_of
from mimawari.watches.streams.startup import look_after
from tests.streams.scene import VIDEO, Scene, at

SECOND = timedelta(seconds=1)


class Shaky(JobRunner):
    """A runner that cannot be asked at first."""

    def __init__(self, scene: Scene, failures: int) -> None:
        super().__init__(scene.store, scene.clock)
        self.failures = failures

    async def list(self) -> frozenset[str]:
        """Fail, or list what runs."""
        if self.failures:
            self.failures -= 1
            raise StoreDown("no connection")
        return await super().list()


class Hanging(JobRunner):
    """A runner that never answers."""

    async def list(self) -> frozenset[str]:
        """Wait for ever."""
        await asyncio.Event().wait()
        return frozenset()


async def watched(scene: Scene) -> Monitor:
    """Monitor a stream that is live."""
    scene.put(starts_at=at(-60))
    monitor = await scene.add(check_interval_sec=30)
    await scene.pass_time(1)
    return monitor


async def lose(scene: Scene, monitor: Monitor) -> None:
    """Have nothing run a monitor any more."""
    assert await scene.store.schedule.remove(member_of(monitor.id))


async def run_beside(scene: Scene, monitor_id: str) -> None:
    """Have something run that nobody asked for."""
    async with scene.store.edit() as tx:
        args = {"monitor_id": monitor_id}
        entry = Entry(
            member=member_of(monitor_id), kind=CHECK, next_at=at(3600), every=SECOND, args=args
        )
        tx.place(entry)


async def compare(scene: Scene, runner: JobRunner | None = None) -> Report:
    """Compare as a start does, letting time pass for whoever waits."""
    runner = runner or JobRunner(scene.store, scene.clock)
    report = asyncio.create_task(Reconciler(scene.store, scene.clock, scene.settings, runner).run())
    while not report.done():
        await asyncio.sleep(0.002)
        if (wakes_at := scene.clock.wakes_at) is not None:
            await scene.clock.advance(wakes_at - scene.clock.now())
    return await report


async def test_10_4_what_runs_as_it_should_is_left_alone(scene: Scene) -> None:
    monitor = await watched(scene)
    report = await compare(scene)
    assert report == Report(active=1, running=1)
    await scene.pass_time(60)
    assert (await scene.show(monitor)).monitor.status is Status.MONITORING
    assert scene.told() == ["stream.started"]


async def test_10_4_missing_is_set_to_error_and_told_with_the_payload_of_the_description(
    scene: Scene,
) -> None:
    monitor = await watched(scene)
    await lose(scene, monitor)
    report = await compare(scene)
    assert report == Report(active=1, missing=[monitor.id])
    await scene.pass_time(1)
    view = await scene.show(monitor)
    assert (view.monitor.status, view.reason) == (Status.ERROR, "nothing ran it any more")
    assert view.ended_at == at(1)
    body = scene.body("monitor.error")
    assert body["event_type"] == "monitor.error"
    assert body["monitor_id"] == monitor.id
    assert body["timestamp"] == "2026-06-01T20:00:01+09:00"
    details = body["data"].pop("error_details")
    assert details == "nothing runs this monitor, as a start has found"
    assert body["data"] == {
        "reason": "reconciliation_mismatch",
        "reconciliation_action": "mark_as_error_missing_pod",
        "previous_status": "monitoring",
        "observed_state": {"pod_exists": False, "db_status": "monitoring"},
    }


async def test_10_4_one_whose_check_is_under_way_is_not_missing(scene: Scene) -> None:
    monitor = await scene.add()
    await scene.rounds.scheduler.tick()
    await lose(scene, monitor)
    assert (await compare(scene)).missing == []


async def test_10_4_missing_is_told_once_however_often_it_is_compared(scene: Scene) -> None:
    monitor = await watched(scene)
    await lose(scene, monitor)
    first, second = await compare(scene), await compare(scene)
    assert (first.missing, second) == ([monitor.id], Report())
    await scene.pass_time(1)
    assert scene.told() == ["stream.started", "monitor.error"]


async def test_10_4_two_who_compare_at_once_tell_once(scene: Scene) -> None:
    monitor = await watched(scene)
    await lose(scene, monitor)
    reports = await asyncio.gather(compare(scene), compare(scene))
    assert sum(len(one.missing) for one in reports) == 1
    await scene.pass_time(1)
    assert scene.told() == ["stream.started", "monitor.error"]


async def test_10_4_one_that_was_ended_meanwhile_is_not_set_to_error(scene: Scene) -> None:
    monitor = await watched(scene)

    class Slow(JobRunner):
        async def list(self) -> frozenset[str]:
            await actions.stop(scene, monitor.id)
            return frozenset()

    report = await compare(scene, Slow(scene.store, scene.clock))
    assert report.missing == []
    assert (await scene.show(monitor)).monitor.status is Status.STOPPED


async def test_10_4_zombie_is_removed(scene: Scene) -> None:
    monitor = await watched(scene)
    await actions.stop(scene, monitor.id)
    await run_beside(scene, monitor.id)
    report = await compare(scene)
    assert report == Report(running=1, zombies=[monitor.id])
    assert not await scene.is_scheduled(monitor)
    assert await compare(scene) == Report()
    assert (await scene.show(monitor)).monitor.status is Status.STOPPED


async def test_10_4_orphaned_is_removed(scene: Scene) -> None:
    orphan = sync.new_monitor_id()
    await run_beside(scene, orphan)
    assert await compare(scene) == Report(running=1, orphans=[orphan])
    assert await scene.store.schedule.find(member_of(orphan)) is None
    assert await compare(scene) == Report()


async def test_10_4_one_that_is_gone_already_is_no_error(scene: Scene) -> None:
    runner = JobRunner(scene.store, scene.clock)
    await runner.remove(sync.new_monitor_id())
    assert await compare(scene) == Report()


async def test_10_4_others_on_the_schedule_are_none_of_its_business(scene: Scene) -> None:
    async with scene.store.edit() as tx:
        for member in ("stream", "streamsx", "rentals:1", "zzz"):
            tx.place(Entry(member=member, kind="x", next_at=at(60), every=SECOND, args={}))
    assert await compare(scene) == Report()
    assert await scene.store.schedule.find("zzz") is not None


async def test_10_4_a_temporary_error_is_tried_again_after_longer_and_longer_waits(
    scene: Scene,
) -> None:
    monitor = await watched(scene)
    await lose(scene, monitor)
    before = scene.clock.now()
    report = await compare(scene, Shaky(scene, failures=4))
    assert report.missing == [monitor.id]
    assert scene.clock.now() - before == timedelta(seconds=0.5 + 1 + 2 + 4)


async def test_10_4_what_fails_for_good_is_skipped_and_said(scene: Scene) -> None:
    monitor = await watched(scene)
    with structlog.testing.capture_logs() as lines:
        report = await compare(scene, Shaky(scene, failures=100))
    assert report.skipped == ["all: no connection"]
    assert "Startup Reconciliation Report" in [one["event"] for one in lines]
    assert (await scene.show(monitor)).monitor.status is Status.MONITORING


async def test_10_4_one_that_cannot_be_put_right_does_not_keep_others_from_it(
    scene: Scene,
) -> None:
    first = await watched(scene)
    second = sync.new_monitor_id()
    await actions.stop(scene, first.id)

    class Stuck(JobRunner):
        async def list(self) -> frozenset[str]:
            return frozenset({first.id, second})

        async def remove(self, monitor_id: str) -> None:
            if monitor_id == first.id:
                raise StoreDown("no connection")

    report = await compare(scene, Stuck(scene.store, scene.clock))
    assert (report.skipped, report.orphans) == ([first.id], [second])


@pytest.mark.parametrize(
    "scene", [{"streams_reconcile_for": timedelta(milliseconds=100)}], indirect=True
)
async def test_10_4_at_the_timeout_it_stops_and_tells_of_it_and_monitors_go_on(
    scene: Scene,
) -> None:
    monitor = await watched(scene)
    with structlog.testing.capture_logs() as lines:
        report = await compare(scene, Hanging(scene.store, scene.clock))
    assert report == Report(active=1, timed_out=True)
    [line] = [one for one in lines if one["event"] == "Startup Reconciliation Report"]
    assert (line["result"], line["active"]) == ("timeout", 1)
    await scene.pass_time(40)
    data = scene.body("monitor.error")["data"]
    assert data["reason"] == "reconciliation_timeout"
    assert data["previous_status"] == "monitoring"
    assert (await scene.show(monitor)).monitor.status is Status.MONITORING
    assert len(scene.segments()) > 10


async def test_10_4_whatever_goes_wrong_a_start_is_not_kept_from_starting(scene: Scene) -> None:
    class Broken(JobRunner):
        async def list(self) -> frozenset[str]:
            raise RuntimeError("a bug")

    report = await compare(scene, Broken(scene.store, scene.clock))
    assert report.skipped == ["all: RuntimeError: a bug"]


async def test_10_4_a_start_reports_what_it_found_and_did(scene: Scene) -> None:
    monitor = await watched(scene)
    await lose(scene, monitor)
    with structlog.testing.capture_logs() as lines:
        await look_after(scene.store, scene.clock, scene.settings)
    [line] = [one for one in lines if one["event"] == "Startup Reconciliation Report"]
    assert line["missing"] == [monitor.id]
    assert line["zombies"] == line["orphans"] == line["skipped"] == []
    assert line["result"] == "done"
    # The stream is free to be monitored again.
    assert (await scene.add(VIDEO)).id != monitor.id
