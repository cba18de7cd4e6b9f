"""A stand-in for the kubelet: runs each pod as a local process, and tells what becomes of it."""

import asyncio
import base64
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from itertools import count
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import httpx2
import msgspec
from lightkube import ApiError, AsyncClient, KubeConfig
from lightkube.models.core_v1 import Binding as BindingModel
from lightkube.models.core_v1 import EnvVar, ObjectReference
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Pod, PodBinding, PodStatus, Secret
from lightkube.types import PatchType

from tests.app.terminal import WARM, become
from tests.servers.processes import kill_tree, tree

NODE = "node-1"
AGAIN_SECONDS = 0.2
ADDRESSES = 1 << 23
"""All pods listen on one port: those of another run on this machine have other addresses."""
LABELS = {"app": "stream-monitor"}
FOLLOWED = (ApiError, httpx2.HTTPError, OSError)


@dataclass(slots=True)
class Running:
    """A pod that runs here."""

    pod: Pod
    address: str
    folder: Path
    process: BaseProcess | None = None
    starts: int = 0
    work: "asyncio.Task[None] | None" = None
    is_ending: bool = False

    @property
    def name(self) -> str:
        """The pod's name."""
        assert self.pod.metadata is not None
        return str(self.pod.metadata.name)

    def env(self) -> list[EnvVar]:
        """List the variables that its container is given."""
        assert self.pod.spec is not None
        return list(self.pod.spec.containers[0].env or [])

    def log(self) -> str:
        """Read what its container has said."""
        return (self.folder / "err").read_text() if (self.folder / "err").exists() else ""


@dataclass(slots=True)
class Kubelet:
    """Runs all pods of a namespace on this machine."""

    client: AsyncClient
    pods: dict[str, Running] = field(default_factory=dict)
    ended: dict[str, Running] = field(default_factory=dict)
    pulls: bool = True
    """Whether images can be fetched."""
    _numbers: "count[int]" = field(default_factory=lambda: count(secrets.randbelow(ADDRESSES)))

    async def run(self) -> None:
        """Follow the pods of the namespace until cancelled, whatever becomes of the server."""
        while True:
            with suppress(*FOLLOWED):
                async for what, pod in self.client.watch(Pod, labels=dict(LABELS)):
                    await self._heed(what, pod)
            await asyncio.sleep(AGAIN_SECONDS)

    async def _heed(self, what: str, pod: Pod) -> None:
        assert pod.metadata is not None
        name = str(pod.metadata.name)
        running = self.pods.get(name)
        if what == "DELETED":
            if running is not None:
                await self._end(running, grace=0)
        elif running is None and pod.metadata.deletionTimestamp is None and not _is_over(pod):
            await self._take(pod, name)
        elif pod.metadata.deletionTimestamp is not None and (
            running is None or not running.is_ending
        ):
            if running is not None:
                running.is_ending = True
            asyncio.create_task(self._delete(name, running))  # noqa: RUF006 - ends with the test

    async def _take(self, pod: Pod, name: str) -> None:
        address = str(IPv4Address("127.1.0.0") + next(self._numbers))
        running = Running(pod, address, Path(tempfile.mkdtemp(prefix="mimawari-pod-")))
        self.pods[name] = running
        bound = BindingModel(
            target=ObjectReference(kind="Node", name=NODE), metadata=ObjectMeta(name=name)
        )
        # The server answers with a status, which the client takes for a binding.
        with suppress(ApiError, msgspec.ValidationError):
            await self.client.create(PodBinding(**vars_of(bound)), name)
        work = self._keep(running) if self.pulls else self._back_off(running)
        running.work = asyncio.create_task(work)

    async def _keep(self, running: Running) -> None:
        """Run a container until it ends well, as OnFailure has it."""
        variables = {one.name: await self._value(running, one) for one in running.env()}
        while True:
            process = self._start(running, variables)
            await self._tell(running, "Running")
            while process.is_alive():
                await asyncio.sleep(0.02)
            if process.exitcode == 0:
                self.pods.pop(running.name, None)
                self.ended[running.name] = running
                await self._tell(running, "Succeeded")
                return
            await asyncio.sleep(AGAIN_SECONDS)

    async def _back_off(self, running: Running) -> None:
        """Leave a pod pending because its image cannot be fetched."""
        waiting = {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}
        status = {
            "name": "monitor", "image": "stream-monitor:latest", "imageID": "", "ready": False,
            "restartCount": 0, "state": {"waiting": waiting},
        }  # fmt: skip
        await self._tell(running, "Pending", containerStatuses=[status])

    def _start(self, running: Running, variables: Mapping[str, str]) -> BaseProcess:
        running.starts += 1
        files = [running.folder / name for name in ("out", "err")]
        basic = {"PATH": os.environ["PATH"], "HOME": str(running.folder), "LC_ALL": "C.UTF-8"}
        spec = running.pod.spec
        assert spec is not None
        words = tuple((spec.containers[0].command or [])[1:])
        process = WARM.Process(target=become, args=(words, {**basic, **variables}, files))
        process.start()
        running.process = process
        return process

    async def _value(self, running: Running, variable: EnvVar) -> str:
        if variable.valueFrom is None:
            # The volume is a folder of its own here.
            value = variable.value or ""
            return str(running.folder) if value == "/tmp/segments" else value
        if variable.valueFrom.secretKeyRef is not None:
            wanted = variable.valueFrom.secretKeyRef
            secret = await self.client.get(Secret, str(wanted.name))
            return base64.b64decode((secret.data or {})[wanted.key]).decode()
        path = variable.valueFrom.fieldRef.fieldPath if variable.valueFrom.fieldRef else ""
        return {"metadata.name": running.name, "status.podIP": running.address}[path]

    async def _tell(self, running: Running, phase: str, **more: Any) -> None:
        status = {"status": {"phase": phase, "podIP": running.address, **more}}
        await self._insist(
            lambda: self.client.patch(PodStatus, running.name, status, patch_type=PatchType.MERGE)
        )

    async def _insist(self, order: Callable[[], Awaitable[Any]]) -> None:
        """Give an order until the server has heard it, however long it is away."""
        while True:
            try:
                await order()
            except ApiError:
                return
            except (httpx2.HTTPError, OSError):
                await asyncio.sleep(AGAIN_SECONDS)
            else:
                return

    async def _delete(self, name: str, running: Running | None) -> None:
        """End a pod that is deleted in its own time, then let its name go."""
        if running is not None:
            await self._end(running, grace=30)
        await self._insist(lambda: self.client.delete(Pod, name, grace_period=0))

    async def _end(self, running: Running, grace: float) -> None:
        self.pods.pop(running.name, None)
        self.ended[running.name] = running
        if running.work is not None:
            running.work.cancel()
        process = running.process
        if process is None or process.pid is None or not process.is_alive():
            return
        if grace:
            os.kill(process.pid, signal.SIGTERM)
            with suppress(TimeoutError):
                async with asyncio.timeout(grace):
                    while process.is_alive():
                        await asyncio.sleep(0.02)
        if process.is_alive():
            kill_tree(process.pid)
        process.join()

    def crash(self, name: str) -> list[int]:
        """Kill a container with all that it has started; say what was killed."""
        process = self.pods[name].process
        assert process is not None
        assert process.pid is not None
        found = tree(process.pid)
        kill_tree(process.pid)
        return found

    async def evict(self, name: str) -> None:
        """End a pod because its node has too little of something."""
        running = self.pods[name]
        await self._end(running, grace=0)
        message = "The node was low on resource: memory."
        await self._tell(running, "Failed", reason="Evicted", message=message)

    async def close(self) -> None:
        """End all that runs, and leave nothing behind."""
        everything = [*self.pods.values(), *self.ended.values()]
        for running in list(self.pods.values()):
            await self._end(running, grace=0)
        for running in everything:
            shutil.rmtree(running.folder, ignore_errors=True)


def vars_of(model: Any) -> dict[str, Any]:
    """List what is set of a model."""
    return {name: getattr(model, name) for name in ("target", "metadata", "apiVersion", "kind")}


def _is_over(pod: Pod) -> bool:
    return bool(pod.status and pod.status.phase in {"Failed", "Succeeded"})


@asynccontextmanager
async def running_kubelet(config: Path, namespace: str) -> AsyncIterator[Kubelet]:
    """Run the pods of a namespace for as long as the block lasts."""
    async with AsyncClient(KubeConfig.from_file(config), namespace=namespace) as client:
        kubelet = Kubelet(client)
        working = asyncio.create_task(kubelet.run())
        try:
            yield kubelet
        finally:
            working.cancel()
            with suppress(asyncio.CancelledError):
                await working
            await kubelet.close()
