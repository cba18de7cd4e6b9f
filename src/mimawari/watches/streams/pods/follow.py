"""Follows the pods of monitors: whatever becomes of one is put right as a start does it."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing, suppress
from datetime import timedelta

import structlog

from mimawari.errors import BadInput, StoreDown, Transient
from mimawari.kernel.job import NewJob
from mimawari.kernel.ports import Clock, Store
from mimawari.net.cluster import Cluster, PodView, Stale, open_cluster
from mimawari.settings import Settings
from mimawari.watches.streams import sync
from mimawari.watches.streams.pods import assignments
from mimawari.watches.streams.pods.assignments import TEND, key_of
from mimawari.watches.streams.pods.runner import PodRunner
from mimawari.watches.streams.pods.spec import LABELS
from mimawari.watches.streams.reconciliation import Reconciler, end_missing

PENDING_EVERY = timedelta(seconds=5)
FIRST_WAIT, LONGEST_WAIT = timedelta(seconds=1), timedelta(seconds=5)

log = structlog.get_logger(component="pods")


class PodWatch:
    """Lists and compares, then follows changes; where it loses the thread it lists anew."""

    def __init__(self, store: Store, clock: Clock, settings: Settings) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._runner = PodRunner(store, clock, settings)
        self._wait_for = FIRST_WAIT
        self._noted: dict[str, str] = {}

    async def run(self) -> None:
        """Compare as a start does, and follow all that comes after, until cancelled."""
        waiting = asyncio.create_task(self._look_at_pending_for_ever())
        try:
            await self._run()
        finally:
            waiting.cancel()

    async def _look_at_pending_for_ever(self) -> None:
        while True:
            await self._clock.sleep(PENDING_EVERY)
            # Where the cluster or the store is away, the next turn finds the same.
            with suppress(Transient, StoreDown, BadInput):
                await self.look_at_pending()

    async def look_at_pending(self) -> None:
        """Keep why pods do not start, and end the monitors of those that never will."""
        async with open_cluster(self._settings) as cluster:
            views, _ = await cluster.list(LABELS)
        for view in views:
            if view.is_pending and view.waits_for is not None:
                await self._note(view.name, f"its pod is pending: {view.waits_for}")
            if view.is_pending:
                await self._look(view)

    async def _note(self, pod_name: str, reason: str) -> None:
        if self._noted.get(pod_name) == reason:
            return
        async with self._store.edit() as tx:
            for monitor in await assignments.list_in(tx, pod_name):
                await sync.note(tx, monitor.id, reason)
                log.warning("pod pending", monitor_id=monitor.id, what=pod_name, reason=reason)
        self._noted[pod_name] = reason

    async def _run(self) -> None:
        report = await self._reconciler("Startup Reconciliation Report").run()
        is_compared = not report.skipped and not report.timed_out
        while True:
            try:
                async with open_cluster(self._settings) as cluster:
                    await self._follow(cluster, is_compared=is_compared)
            except Stale as error:
                log.info("pods are listed anew", result="again", reason=str(error))
            except (Transient, StoreDown, BadInput) as error:
                wait_for, self._wait_for = self._wait_for, min(self._wait_for * 2, LONGEST_WAIT)
                log.warning(
                    "pods cannot be followed", result="again", reason=str(error),
                    next=f"{wait_for.total_seconds():g}s",
                )  # fmt: skip
                await self._clock.sleep(wait_for)
            is_compared = False

    def _reconciler(self, title: str) -> Reconciler:
        return Reconciler(self._store, self._clock, self._settings, self._runner, title=title)

    async def _follow(self, cluster: Cluster, *, is_compared: bool) -> None:
        # What happens from here on is followed, so the comparison after it overlooks nothing.
        views, version = await cluster.list(LABELS)
        if not is_compared or await self._has_changed(views):
            await self._reconciler("Reconciliation Report").run()
        await self._renew(views)
        self._wait_for = FIRST_WAIT
        async with aclosing(cluster.watch(version, LABELS)) as changes:
            async for what, view in changes:
                if what == "DELETED" or view.is_over or what == "ADDED":
                    await self._look(view)

    async def _renew(self, views: Sequence[PodView]) -> None:
        """Replace pods that were made with another key, or before pods had tokens."""
        stale = [one.name for one in views if not one.is_over and not self._runner.has_token(one)]
        # As long as a job holds the key of a pod, its monitors are not ended for want of it.
        jobs = [NewJob(kind=TEND, args={"pod": name}, dedupe_key=key_of(name)) for name in stale]
        if jobs:
            await self._store.queue.put(jobs)

    async def _has_changed(self, views: Sequence[PodView]) -> bool:
        """Say whether something has come or gone since a start has compared, a moment ago."""
        async with self._store.read() as reader:
            given = await assignments.list_pods(reader)
        return given.keys() != {view.name for view in views if not view.is_over}

    async def _look(self, view: PodView) -> None:
        """Look after one pod that has come, ended or gone."""
        async with self._store.read() as reader:
            monitors = await assignments.list_in(reader, view.name)
        for monitor in monitors:
            if await end_missing(self._store, self._clock, self._settings, self._runner, monitor):
                log.warning(
                    "monitor ended", monitor_id=monitor.id, what=view.name, result="error",
                    reason=f"its pod is {view.waits_for or view.reason or view.phase}",
                )  # fmt: skip
        if not monitors and not view.is_leaving:
            await self._runner.tend(view.name)
