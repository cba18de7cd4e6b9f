"""The pods of a Kubernetes namespace: made, deleted, listed and watched."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, cast

import httpx2
from lightkube import AsyncClient, KubeConfig
from lightkube.core.exceptions import ConfigError
from lightkube.models.core_v1 import EnvVar, PodStatus
from lightkube.resources.core_v1 import Pod

from mimawari.errors import BadInput, Transient
from mimawari.settings import Settings
from mimawari.text import one_line

WATCH_SECONDS = 60
"""The server ends a watch after so long, and it is asked for again from where it was."""
QUIET_SECONDS = 150
"""A watch that said nothing for so long may be dead: whoever watches lists anew."""
LATER = {
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
}
"""Refusals that may pass: tokens are renewed, quotas have room again, and a server that has just
started knows nobody's rights yet."""


class Stale(Transient):
    """What is watched goes on from a version that the server has forgotten: list anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodView:
    """A pod as the cluster tells of it."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The variables that its containers are given in plain words."""
    phase: str = "Unknown"
    reason: str | None = None
    message: str | None = None
    is_leaving: bool = False
    waits_for: str | None = None
    """Why it does not run yet, in the cluster's words."""

    @property
    def is_pending(self) -> bool:
        """Whether it has not begun to run."""
        return self.phase == "Pending" and not self.is_leaving

    @property
    def is_over(self) -> bool:
        """Whether nothing of it runs or will run again."""
        return self.phase in {"Failed", "Succeeded"}


class Cluster:
    """The pods of one namespace; what may work later is Transient, all else BadInput."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def create(self, manifest: Mapping[str, Any]) -> bool:
        """Make a pod; say whether there was none of its name."""
        with _told():
            try:
                await self._client.create(cast("Pod", Pod.from_dict(dict(manifest))))
            except httpx2.HTTPStatusError as error:
                if _status(error) != HTTPStatus.CONFLICT:
                    raise
                return False
        return True

    async def delete(self, name: str) -> bool:
        """Delete a pod, which ends it in its own time; say whether there was one."""
        with _told():
            try:
                await self._client.delete(Pod, name)
            except httpx2.HTTPStatusError as error:
                if _status(error) != HTTPStatus.NOT_FOUND:
                    raise
                return False
        return True

    async def find(self, name: str) -> PodView | None:
        """Find a pod."""
        with _told():
            try:
                return view_of(await self._client.get(Pod, name))
            except httpx2.HTTPStatusError as error:
                if _status(error) != HTTPStatus.NOT_FOUND:
                    raise
        return None

    async def list(self, labels: Mapping[str, str]) -> tuple[list[PodView], str]:
        """List the pods with some labels, and the version of what was listed."""
        with _told():
            listed = self._client.list(Pod, labels=dict(labels))
            views = [view_of(pod) async for pod in listed]
            return views, listed.resourceVersion

    async def watch(
        self, version: str, labels: Mapping[str, str], name: str | None = None
    ) -> AsyncGenerator[tuple[str, PodView]]:
        """Yield what becomes of pods after a version, for ever; raises Stale if that is too old."""
        watched = self._client.watch(
            Pod,
            labels=dict(labels),
            fields={"metadata.name": name} if name else None,
            resource_version=version,
            server_timeout=WATCH_SECONDS,
        )
        # It is a generator, whose type does not say so.
        changes = cast("AsyncGenerator[tuple[str, Pod]]", watched)
        async with aclosing(changes):
            while True:
                with _told():
                    what, pod = await self._next(changes)
                yield what, view_of(pod)

    async def _next(self, changes: AsyncIterator[tuple[str, Pod]]) -> tuple[str, Pod]:
        try:
            async with asyncio.timeout(QUIET_SECONDS):
                return await anext(changes)
        except TimeoutError as error:
            raise Stale(f"nothing was heard for {QUIET_SECONDS} s") from error


@asynccontextmanager
async def open_cluster(settings: Settings) -> AsyncIterator[Cluster]:
    """Reach for the cluster: by the account of this pod, else as KUBECONFIG says."""
    try:
        config = KubeConfig.from_env().get()
        client = AsyncClient(config, namespace=settings.kubernetes_namespace or None)
    except (ConfigError, KeyError, OSError) as error:
        raise BadInput(
            f"no way to the cluster is known ({one_line(str(error), most=200)}); run it in a pod"
            " with a service account, or set KUBECONFIG",
            code="no_cluster",
        ) from error
    async with client:
        yield Cluster(client)


@contextmanager
def _told() -> Iterator[None]:
    """Tell the client's errors in ours."""
    try:
        yield
    except httpx2.HTTPStatusError as error:
        status, words = _status(error), one_line(str(error), most=300)
        if status == HTTPStatus.GONE:
            raise Stale(f"the cluster has forgotten that version: {words}") from error
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in LATER:
            raise Transient(f"the cluster answers {status}: {words}") from error
        raise BadInput(f"the cluster refuses: {words}", code="cluster_refuses") from error
    except (httpx2.HTTPError, TimeoutError, OSError) as error:
        words = one_line(str(error) or type(error).__name__, most=300)
        raise Transient(f"the cluster cannot be reached: {words}") from error


def _status(error: httpx2.HTTPStatusError) -> int:
    """Tell the status, which an error in the midst of a watch has in its words alone."""
    told = getattr(error, "status", None)
    if told is not None and told.code is not None:
        return int(told.code)
    return error.response.status_code


def _list_env(pod: Pod) -> Sequence[EnvVar]:
    containers = pod.spec.containers if pod.spec else []
    return [one for container in containers for one in container.env or []]


def view_of(pod: Pod) -> PodView:
    """Read what the cluster tells of a pod."""
    meta, status = pod.metadata, pod.status
    assert meta is not None  # noqa: S101 - nothing in a cluster is without a name
    return PodView(
        name=meta.name or "",
        labels=dict(meta.labels or {}),
        env={one.name: one.value for one in _list_env(pod) if one.value is not None},
        phase=(status.phase if status else None) or "Unknown",
        reason=status.reason if status else None,
        message=status.message if status else None,
        is_leaving=meta.deletionTimestamp is not None,
        waits_for=_waits_for(status) if status else None,
    )


def _waits_for(status: PodStatus) -> str | None:
    """Return what keeps a container from starting, else what keeps the pod from its node."""
    containers = [*(status.initContainerStatuses or []), *(status.containerStatuses or [])]
    waiting = [one.state.waiting for one in containers if one.state and one.state.waiting]
    unmet = [one for one in status.conditions or [] if one.status == "False"]
    told = [(one.reason, one.message) for one in waiting]
    told += [(one.reason, one.message) for one in unmet]
    for reason, message in told:
        if reason:
            return one_line(f"{reason}: {message}" if message else reason, most=300)
    return None
