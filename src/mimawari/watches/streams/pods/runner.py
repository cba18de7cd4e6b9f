"""Runs monitors in pods of Kubernetes: one each, or several together."""

import asyncio
from datetime import datetime, timedelta

import structlog
from sqlalchemy import select

from mimawari.errors import BadInput, Transient
from mimawari.kernel.job import LIVE
from mimawari.kernel.ports import Clock, Store
from mimawari.net.cluster import Cluster, PodView, open_cluster
from mimawari.settings import Settings
from mimawari.watches.streams.pods import assignments
from mimawari.watches.streams.pods.assignments import TEND, key_of
from mimawari.watches.streams.pods.spec import (
    KEY,
    LABEL_MONITOR,
    LABELS,
    first_of,
    make_pod,
    name_pod,
    token_of,
)
from mimawari.watches.streams.runner import BATCH, MISSING, Observed
from mimawari.watches.streams.tables import monitors

FAILED = "mark_as_error_failed_pod"
PENDING = "mark_as_error_pending_pod"
NOT_FOUND = "Pod not found in Kubernetes cluster"

log = structlog.get_logger(component="pods")


class PodRunner:
    """Looks after the pods of monitors; whatever it finds, doing it again changes nothing."""

    def __init__(self, store: Store, clock: Clock, settings: Settings) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings

    async def tend(self, pod_name: str) -> None:
        """Make a pod that should be there and is not, and delete one that should not be."""
        async with open_cluster(self._settings) as cluster:
            # Whoever changes what is wanted while this is at work is heeded in the next turn.
            is_wanted = await self._is_wanted(pod_name)
            while True:
                await (self._make if is_wanted else self._delete)(cluster, pod_name)
                was_wanted, is_wanted = is_wanted, await self._is_wanted(pod_name)
                if is_wanted == was_wanted:
                    return

    async def _is_wanted(self, pod_name: str) -> bool:
        async with self._store.read() as reader:
            return bool(await assignments.list_in(reader, pod_name))

    async def _make(self, cluster: Cluster, pod_name: str) -> None:
        async with self._store.read() as reader:
            given = await assignments.list_in(reader, pod_name)
        named = [one for one in given if name_pod(one.id) == pod_name]
        # Where the first one of a shared pod is over, the pod has been there for long.
        if named and await cluster.create(make_pod(named[0], self._settings)):
            log.info(
                "pod made", monitor_id=named[0].id, what=pod_name, result="created",
                image=self._settings.kubernetes_image,
            )  # fmt: skip
        else:
            await self._replace(cluster, pod_name)

    async def _replace(self, cluster: Cluster, pod_name: str) -> None:
        """Delete a pod whose token is not valid; raise Transient until it is gone."""
        view = await cluster.find(pod_name)
        if view is None or view.is_over or not is_ours(view) or self.has_token(view):
            return
        if not view.is_leaving and await cluster.delete(pod_name):
            log.info("pod deleted", what=pod_name, result="deleted", reason="its token is not ours")
        raise Transient(f"{pod_name} has a token of another key, and is replaced when it is gone")

    def has_token(self, view: PodView) -> bool:
        """Return whether a pod was given the token that the internal key makes for it."""
        return view.env.get(KEY) == token_of(view.name, self._settings)

    async def _delete(self, cluster: Cluster, pod_name: str) -> None:
        view = await cluster.find(pod_name)
        if view is None or view.is_leaving:
            return
        if not is_ours(view):
            log.warning("not ours", what=pod_name, result="left alone", reason="its labels")
            return
        if await cluster.delete(pod_name):
            log.info(
                "pod deleted", monitor_id=view.labels.get(LABEL_MONITOR), what=pod_name,
                result="deleted", reason="nothing to monitor",
            )  # fmt: skip

    async def wait_gone(self, monitor_id: str, until: datetime) -> bool:
        """Wait until the pod of a monitor is gone, unless others are in it too."""
        async with self._store.read() as reader:
            pod_name = await assignments.find_pod(reader, monitor_id)
            if await assignments.list_in(reader, pod_name):
                return True
        left = (until - self._clock.now()).total_seconds()
        try:
            async with asyncio.timeout(left), open_cluster(self._settings) as cluster:
                await self._see_gone(cluster, pod_name)
        except (TimeoutError, Transient, BadInput) as error:
            log.warning(
                "pod may be there still", monitor_id=monitor_id, what=pod_name,
                reason=str(error) or "timeout",
            )  # fmt: skip
            return False
        return True

    async def _see_gone(self, cluster: Cluster, pod_name: str) -> None:
        _, version = await cluster.list(LABELS)
        if await cluster.find(pod_name) is None:
            return
        async for what, _ in cluster.watch(version, LABELS, pod_name):
            if what == "DELETED":
                return

    async def list(self) -> frozenset[str]:
        """List the monitors whose pods run or are about to, and those that others are named by."""
        # In this order: a pod that is made meanwhile was a job before.
        about = await self._list_jobs()
        async with self._store.read() as reader:
            given = await assignments.list_pods(reader)
        async with open_cluster(self._settings) as cluster:
            views, _ = await cluster.list(LABELS)
        found: set[str] = set()
        for view in views:
            monitor_ids = given.get(view.name, [])
            if not monitor_ids:
                found.add(view.labels.get(LABEL_MONITOR) or first_of(view.name))
            elif not view.is_over:
                found.update(monitor_ids)
        for pod_name in about:
            found.update(given.get(pod_name, []))
        return frozenset(found)

    async def _list_jobs(self) -> frozenset[str]:
        names: set[str] = set()
        for state in LIVE:
            jobs = await self._store.queue.list(BATCH, kind=TEND, state=state)
            names.update(str(job.args.get("pod")) for job in jobs if job.dedupe_key)
        return frozenset(names)

    async def remove(self, monitor_id: str) -> None:
        """Delete the pod that is named by a monitor, unless others are in it."""
        await self.tend(name_pod(monitor_id))

    async def observe(self, monitor_id: str) -> Observed | None:
        """Tell what is there of a monitor that does not run; None if it does or soon will."""
        async with self._store.read() as reader:
            pod_name = await assignments.find_pod(reader, monitor_id)
        is_coming = await self._store.queue.find_live(key_of(pod_name)) is not None
        async with open_cluster(self._settings) as cluster:
            view = await cluster.find(pod_name)
        if is_coming or (view is not None and not await self._has_failed(view, monitor_id)):
            return None
        return _missing(pod_name) if view is None else _failed(view)

    async def _has_failed(self, view: PodView, monitor_id: str) -> bool:
        """Return whether a pod has ended, or was pending for too long."""
        if view.is_over or not view.is_pending:
            return view.is_over
        query = select(monitors.c.created_at).where(monitors.c.id == monitor_id)
        async with self._store.read() as reader:
            created_at = (await reader.execute(query)).scalar_one()
        waited_for: timedelta = self._clock.now() - created_at
        return waited_for >= self._settings.kubernetes_start_for


def is_ours(view: PodView) -> bool:
    """Say whether a pod is one that runs monitors."""
    return all(view.labels.get(name) == value for name, value in LABELS.items())


def _missing(pod_name: str) -> Observed:
    return Observed(
        state={"pod_exists": False},
        action=MISSING,
        words="its pod was gone",
        details=f"{NOT_FOUND}: {pod_name}",
    )


def _failed(view: PodView) -> Observed:
    reason = view.waits_for if view.is_pending else view.reason
    reason = reason or view.phase
    state = {"pod_exists": True, "pod_phase": view.phase, "pod_reason": reason}
    if view.is_pending:
        words = f"its pod did not start: {reason}"
        return Observed(
            state=state, action=PENDING, words=words, details=f"Pod {view.name}: {words}"
        )
    return Observed(
        state={**state, "pod_reason": view.reason},
        action=FAILED,
        words=f"its pod has ended: {reason}",
        details=f"Pod {view.name} has ended ({reason}): {view.message or 'no message'}",
    )
