"""The ground of the tests with pods: a cluster with the chart, a world and a gateway."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
from lightkube import AsyncClient
from lightkube.models.core_v1 import Namespace as NamespaceModel
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Namespace, Pod
from sqlalchemy import select

from mimawari.kernel.clock import RealClock
from mimawari.sim.sites.webhooks import KEY, Hooks
from mimawari.sim.sites.youtube.programme import Programme, Shot
from mimawari.sim.sites.youtube.site import RESOLVER, Live
from mimawari.sim.world import World
from mimawari.store.sql import SqlStore
from mimawari.watches.streams import queries
from mimawari.watches.streams.pods.spec import name_pod
from mimawari.watches.streams.queries import View
from mimawari.watches.streams.sync import PENDING
from mimawari.watches.streams.tables import events
from tests.app.terminal import Serving, Terminal
from tests.faults.world import running_site
from tests.kube.apiserver import ApiServer, api_server
from tests.kube.kubelet import Kubelet, running_kubelet
from tests.net.sockets import free_port

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "stream-monitor"
HELM = Path(sys.executable).parent / "helm"
NAMESPACE = "stream-monitor"
# Each client may add ten monitors a minute.
API_KEYS = tuple(f"the-api-key-{number}" for number in range(10))
INNER_KEY = "the-inner-key"
SECRETS = {
    "secrets.dbDsn": "postgresql://db.invalid/mimawari",
    "secrets.apiKey": API_KEYS[0],
    "secrets.webhookSigningKey": KEY,
    "secrets.internalApiKey": INNER_KEY,
}
PATIENCE_SECONDS = 120.0
BLACK_SECONDS, BLACK_EVERY = 3.0, 12.0


GIVEN = tuple(part for name, value in SECRETS.items() for part in ("--set", f"{name}={value}"))


def helm(*words: str, kubeconfig: Path | None = None) -> str:
    """Run the real helm, and insist that it goes well."""
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    if kubeconfig is not None:
        env["KUBECONFIG"] = str(kubeconfig)
    done = subprocess.run([HELM, *words], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def install(server: ApiServer, client: AsyncClient) -> str:
    """Install the chart as somebody who may; without what a server of 1.20 does not know."""
    named = NamespaceModel(metadata=ObjectMeta(name=NAMESPACE))
    await client.create(Namespace(metadata=named.metadata))
    # Nobody runs the hook's job here; the gateway brings the tables up to date by itself.
    words = (
        "install",
        "sm",
        str(CHART),
        "-n",
        NAMESPACE,
        "--no-hooks",
        "--set",
        "hpa.enabled=false",
    )
    return await asyncio.to_thread(helm, *words, *GIVEN, kubeconfig=server.admin)


@dataclass(slots=True)
class Gateway:
    """The gateway as a process, killed and started again."""

    terminal: Terminal
    given: Mapping[str, str]
    port: int
    stack: ExitStack = field(default_factory=ExitStack)
    serving: Serving | None = None

    def start(self, **more: str) -> None:
        """Start it, again or for the first time."""
        self.serving = self.stack.enter_context(self.terminal.serve(**self.given, **more))

    def kill(self) -> None:
        """Kill it as a power cut does."""
        assert self.serving is not None
        os.kill(self.serving.process.pid, signal.SIGKILL)
        self.serving.process.wait()

    def lines(self, message: str) -> list[dict[str, Any]]:
        """List the log lines with a message, of the one that runs now."""
        assert self.serving is not None
        return [line for line in self.serving.log() if line["message"] == message]


@dataclass(frozen=True, slots=True)
class Stage:
    """All of it together."""

    server: ApiServer
    admin: AsyncClient
    kubelet: Kubelet
    world: World
    live: Live
    hooks: Hooks
    address: str
    gateway: Gateway
    http: httpx2.AsyncClient
    store: SqlStore
    numbers: "count[int]" = field(default_factory=count)

    def put(self, name: str, **given: Any) -> None:
        """Broadcast a programme that goes black now and then."""
        starts_at = RealClock().now() - timedelta(seconds=20)
        shots = (Shot(what="black", start=21.0, end=21.0 + BLACK_SECONDS, every=BLACK_EVERY),)
        values = {
            "starts_at": starts_at,
            "shots": shots,
            "title": name,
            "segment_seconds": 1.0,
            **given,
        }
        self.live.put(Programme(video_id=name, **values))

    def blacken(self, name: str) -> None:
        """Let a programme go black in a moment, once."""
        programme = self.live.programmes[name]
        start = float(round((RealClock().now() - programme.starts_at).total_seconds()) + 1)
        shots = (Shot(what="black", start=start, end=start + BLACK_SECONDS),)
        self.live.put(replace(programme, shots=shots))

    async def add(self, name: str, **config: Any) -> str:
        """Have a stream monitored."""
        body = {
            "stream_url": f"https://www.youtube.com/watch?v={name}",
            "callback_url": f"{self.address}/hooks/{name}",
            "config": {"check_interval_sec": 1, "blackout_threshold_sec": 1, **config},
        }
        key = {"X-API-Key": API_KEYS[next(self.numbers) % len(API_KEYS)]}
        reply = await self.http.post("/api/v1/monitors", json=body, headers=key)
        assert reply.status_code == 201, reply.text
        return str(reply.json()["monitor_id"])

    async def show(self, monitor_id: str) -> View:
        """Look at how a monitor stands."""
        async with self.store.read() as reader:
            view = await queries.find_view(reader, monitor_id)
        assert view is not None
        return view

    def told(self, name: str) -> list[Mapping[str, Any]]:
        """List what arrived at the receiver, signed; what came again has the same id and body."""
        found: dict[str, Mapping[str, Any]] = {}
        for one in self.hooks.truth({"name": name})["deliveries"]:
            assert one["is_verified"]
            assert found.setdefault(one["event_id"], one["body"]) == one["body"]
        return list(found.values())

    def types(self, name: str) -> list[str]:
        """List the types of what arrived."""
        return [one["event_type"] for one in self.told(name)]

    async def pods(self) -> dict[str, Pod]:
        """List the pods of monitors, as the server has them."""
        listed = self.admin.list(Pod, labels={"app": "stream-monitor"})
        return {str(one.metadata.name): one async for one in listed if one.metadata}

    async def is_gone(self, monitor_id: str) -> bool:
        """Say whether no pod of a monitor is there."""
        return name_pod(monitor_id) not in await self.pods()

    async def until(self, is_so: Callable[[], Any], seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until something is so, which may take asking for it."""
        async with asyncio.timeout(seconds):
            while True:
                found = is_so()
                if await found if asyncio.iscoroutine(found) else found:
                    return
                await asyncio.sleep(0.05)

    async def until_status(self, monitor_id: str, status: str) -> None:
        """Wait until a monitor stands so."""

        async def is_so() -> bool:
            return bool((await self.show(monitor_id)).monitor.status == status)

        await self.until(is_so)

    async def until_counted(
        self, monitor_id: str, more_than: int = 0, seconds: float = PATIENCE_SECONDS
    ) -> None:
        """Wait until so many segments were looked into."""

        async def is_so() -> bool:
            return (await self.show(monitor_id)).segments > more_than

        await self.until(is_so, seconds)

    async def until_told(self, name: str, event_type: str) -> None:
        """Wait until something has arrived at a receiver."""
        await self.until(lambda: event_type in self.types(name))

    async def until_gone(self, monitor_id: str) -> None:
        """Wait until no pod of a monitor is there."""
        await self.until(lambda: self.is_gone(monitor_id))

    def body(self, name: str, event_type: str) -> Mapping[str, Any]:
        """Return the one event of a type that arrived."""
        [body] = [one for one in self.told(name) if one["event_type"] == event_type]
        return body

    async def until_sent(self) -> None:
        """Wait until it is known of every event that it was taken."""

        async def is_so() -> bool:
            query = select(events.c.id).where(events.c.webhook_status == PENDING)
            async with self.store.read() as reader:
                return (await reader.execute(query)).first() is None

        await self.until(is_so)

    async def until_ready(self) -> None:
        """Wait until the gateway answers."""

        async def is_so() -> bool:
            try:
                return (await self.http.get("/readyz")).status_code == 200
            except httpx2.HTTPError:
                return False

        await self.until(is_so)

    async def watched(self, name: str, **given: Any) -> str:
        """Have a new programme monitored, and wait until its pod has looked into it."""
        self.put(name, **given)
        monitor_id = await self.add(name)
        await self.until_counted(monitor_id)
        return monitor_id


async def stop_all(stage: Stage) -> None:
    """Stop all monitors, and wait until no pod is left."""
    active = await stage.http.get("/api/v1/monitors?limit=500")
    ids = [one["monitor_id"] for one in active.json()["monitors"]]
    await asyncio.gather(
        *(stage.http.delete(f"/api/v1/monitors/{one}", timeout=2 * PATIENCE_SECONDS) for one in ids)
    )
    await stage.until(lambda: has_no_pods(stage), 2 * PATIENCE_SECONDS)


async def has_no_pods(stage: Stage) -> bool:
    """Say whether no pod of a monitor is left."""
    return not await stage.pods()


@asynccontextmanager
async def open_stage(url: str, folder: Path, **settings: str) -> AsyncIterator[Stage]:
    """Set up a cluster with the chart in it, a world and a gateway with its own token only."""
    clock = RealClock()
    live, hooks = Live(clock, 1, has_catalogue=False), Hooks(clock)
    world = World(clock, (live, hooks), 1)
    port, inner = free_port(), free_port()
    with api_server() as server, ExitStack() as stack:
        async with (
            running_site(world) as address,
            running_kubelet(server.admin, NAMESPACE) as kubelet,
            httpx2.AsyncClient(
                base_url=f"http://127.0.0.1:{port}", headers={"X-API-Key": API_KEYS[0]}, timeout=60
            ) as http,
        ):
            await install(server, kubelet.client)
            given = {
                "KUBECONFIG": str(server.gateway),
                "MIMAWARI_DATABASE_URL": url,
                "MIMAWARI_PORT": str(port),
                "API_KEY": ",".join(API_KEYS),
                "WEBHOOK_SIGNING_KEY": KEY,
                "INTERNAL_API_KEY": INNER_KEY,
                "MIMAWARI_INTERNAL_PORT": str(inner),
                "MIMAWARI_GATEWAY_URL": f"http://127.0.0.1:{inner}",
                "MIMAWARI_STREAMS_RUNNER": "kubernetes",
                "MIMAWARI_STREAMS_RESOLVER_URL": f"{address}{RESOLVER}",
                "MIMAWARI_STREAMS_RESOLVES": "100000",
                "MIMAWARI_ALLOW_HOSTS": address.removeprefix("http://"),
                "MIMAWARI_API_RATE": "1000000",
                **settings,
            }
            terminal = Terminal(folder / "data")
            gateway = Gateway(terminal, given, port, stack)
            gateway.start()
            store = SqlStore(url, clock)
            stage = Stage(
                server, kubelet.client, kubelet, world, live, hooks, address, gateway, http, store
            )
            await stage.until_ready()
            try:
                yield stage
            finally:
                await store.close()
