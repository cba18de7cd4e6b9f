"""What runs in a pod tells each event once, though replies are lost and another one claims it."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import SecretStr

from mimawari.app.http.api import make_internal_app
from mimawari.errors import Forbidden, StoreDown, Wait
from mimawari.kernel.clock import RealClock
from mimawari.kernel.context import Context
from mimawari.kernel.ports import Store
from mimawari.kernel.rights import make_token
from mimawari.kernel.values import Grant, Limit
from mimawari.net.gateway import Gateway, open_gateway, open_ports
from mimawari.net.http import Fetcher
from mimawari.net.ways import open_ways
from mimawari.settings import Settings
from mimawari.sim.sites.webhooks import KEY, Hooks
from mimawari.sim.sites.youtube.programme import Programme, Shot
from mimawari.sim.sites.youtube.site import RESOLVER, Live
from mimawari.sim.world import World
from mimawari.sites.youtube import SITE
from mimawari.watches.streams import watch
from mimawari.watches.streams.pods.process import PodWorker
from mimawari.watches.streams.pods.spec import name_pod
from tests.app.ground import Api, open_api
from tests.conftest import Databases
from tests.faults.world import running_site
from tests.streams.api_ground import MONITORS
from tests.streams.log_form import logged, read

INNER_KEY = "the-inner-key"
VIDEO = "inapod00001"
WHOLE = ["stream.started", "alert.blackout", "alert.blackout_recovered", "stream.ended"]
PATIENCE_SECONDS = 60.0


@dataclass(slots=True)
class Lossy(Gateway):
    """A gateway whose every other reply is lost on its way, after all was done."""

    inner: Gateway
    asked: int = 0
    lost: list[str] = field(default_factory=list)

    async def ask(self, method: str, path: str, **given: Any) -> Mapping[str, Any]:
        """Ask, and lose the reply every other time."""
        answer = await self.inner.ask(method, path, **given)
        self.asked += 1
        if method == "PUT" and self.asked % 2:
            self.lost.append(path)
            raise StoreDown("the reply was lost")
        return answer


@dataclass(frozen=True, slots=True)
class Place:
    """A gateway with its internal API, a stream, and a way to run a pod's worker."""

    api: Api
    settings: Settings
    clock: RealClock
    live: Live

    async def finish(self, monitor_id: str) -> None:
        """Let the stream go black and end in a moment, once it was looked into."""
        while not (await self.show(monitor_id))["statistics"]["total_segments_analyzed"]:
            await asyncio.sleep(0.7)
        programme = self.live.programmes[VIDEO]
        start = float(round((self.clock.now() - programme.starts_at).total_seconds()) + 1)
        shots = (Shot(what="black", start=start, end=start + 2),)
        self.live.put(replace(programme, shots=shots, seconds=start + 3))

    async def add(self) -> str:
        """Have the stream monitored."""
        body = {
            "stream_url": f"https://www.youtube.com/watch?v={VIDEO}",
            "callback_url": "https://93.184.215.14/hook",
            "config": {"check_interval_sec": 1, "blackout_threshold_sec": 1},
        }
        reply = await self.api.http.post(MONITORS, json=body)
        return str(reply.json()["monitor_id"])

    async def show(self, monitor_id: str) -> Any:
        """Show a monitor."""
        return (await self.api.http.get(f"{MONITORS}/{monitor_id}")).json()

    async def told(self, monitor_id: str) -> list[str]:
        """List what is kept of what was told, oldest first."""
        reply = await self.api.http.get(f"{MONITORS}/{monitor_id}/events")
        return [one["event_type"] for one in reply.json()["events"]][::-1]

    def settings_of(self, monitor_id: str) -> Settings:
        """Return what a pod goes by, with its own token."""
        token = SecretStr(make_token(INNER_KEY.encode(), name_pod(monitor_id)))
        return self.settings.model_copy(update={"internal_key": token})

    @asynccontextmanager
    async def worker(self, monitor_id: str, *, is_lossy: bool = False) -> AsyncIterator[PodWorker]:
        """Open what runs in a pod."""
        clock, watches = self.clock, self.api.system.watches
        async with open_gateway(self.settings_of(monitor_id)) as gateway:
            store = cast("Store", open_ports(gateway, clock))
            async with open_ways(self.settings, store, clock) as ways:
                http = partial(Fetcher, ways)
                heard = Lossy(gateway) if is_lossy else gateway
                yield PodWorker(
                    heard,
                    clock,
                    lambda: Context(store, clock, watches, http),
                    name_pod(monitor_id),
                )


@pytest.fixture
async def place(databases: Databases, tmp_path: Path) -> AsyncIterator[Place]:
    clock = RealClock()
    live = Live(clock, 1, has_catalogue=False)
    starts_at = clock.now() - timedelta(seconds=20)
    live.put(Programme(video_id=VIDEO, title="見", starts_at=starts_at, segment_seconds=1.0))
    async with running_site(World(clock, (live, Hooks(clock)), 1)) as address:
        given: dict[str, Any] = {
            "webhook_key": KEY,
            "streams_runner": "kubernetes",
            "internal_key": SecretStr(INNER_KEY),
            "streams_resolver_url": f"{address}{RESOLVER}",
            "allow_hosts": (address.removeprefix("http://"),),
        }
        async with open_api(await databases.ready(), tmp_path, watches=(watch,), **given) as api:
            inner = make_internal_app(api.system, INNER_KEY.encode())
            async with running_site(inner) as gateway_url:
                settings = api.system.settings.model_copy(update={"gateway_url": gateway_url})
                yield Place(api, settings, clock, live)


async def test_a_stream_is_watched_to_its_end_and_then_there_is_nothing_to_do(place: Place) -> None:
    monitor_id = await place.add()
    async with asyncio.timeout(PATIENCE_SECONDS), place.worker(monitor_id) as worker:
        assert not worker.is_ready
        await asyncio.gather(worker.run(is_shared=False), place.finish(monitor_id))
        assert worker.is_ready
    assert await place.told(monitor_id) == WHOLE
    shown = await place.show(monitor_id)
    assert (shown["status"], shown["statistics"]["blackout_events"]) == ("completed", 1)


async def test_every_line_of_a_pod_that_is_about_its_monitor_says_so(place: Place) -> None:
    monitor_id = await place.add()
    with logged() as stream:
        async with asyncio.timeout(PATIENCE_SECONDS), place.worker(monitor_id) as worker:
            await asyncio.gather(worker.run(is_shared=False), place.finish(monitor_id))
    found = [line for line in read(stream.getvalue()) if line["component"] != "api"]
    assert {"monitor claimed", "Blackout detected", "monitor ended"} <= {
        line["message"] for line in found
    }
    assert {line.get("monitor_id") for line in found} == {monitor_id}


async def test_events_whose_reply_is_lost_are_told_once(place: Place) -> None:
    monitor_id = await place.add()
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        place.worker(monitor_id, is_lossy=True) as worker,
    ):
        await asyncio.gather(worker.run(is_shared=False), place.finish(monitor_id))
    assert await place.told(monitor_id) == WHOLE
    shown = await place.show(monitor_id)
    assert (shown["status"], shown["statistics"]["blackout_events"]) == ("completed", 1)


async def test_of_two_that_run_one_monitor_the_first_gives_way(place: Place) -> None:
    monitor_id = await place.add()
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        place.worker(monitor_id) as first,
        place.worker(monitor_id) as second,
    ):
        earlier = asyncio.create_task(first.run(is_shared=True))
        while not first.is_ready:
            await asyncio.sleep(0.01)
        later = asyncio.create_task(second.run(is_shared=True))
        await earlier
        assert not later.done()
        await asyncio.gather(later, place.finish(monitor_id))
    assert await place.told(monitor_id) == WHOLE


async def test_a_pod_of_which_nobody_knows_ends_at_once(place: Place) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS), place.worker("mon-unknown") as worker:
        await worker.run(is_shared=False)
        assert not worker.is_ready


async def test_a_stop_brings_what_is_under_way_to_its_end(place: Place) -> None:
    monitor_id = await place.add()
    async with asyncio.timeout(PATIENCE_SECONDS), place.worker(monitor_id) as worker:
        running = asyncio.create_task(worker.run(is_shared=False))
        while not worker.is_ready:
            await asyncio.sleep(0.01)
        worker.stop()
        await running
    told = await place.told(monitor_id)
    assert told == WHOLE[: len(told)]
    assert (await place.show(monitor_id))["status"] in {"initializing", "monitoring"}


async def test_limits_are_those_of_the_gateway(place: Place) -> None:
    monitor_id = await place.add()
    async with open_gateway(place.settings_of(monitor_id)) as gateway:
        limiter = open_ports(gateway, place.clock).limiter
        # Whatever a pod says of it, our own word counts.
        wide = Limit("streams.resolve", 1_000_000, timedelta(seconds=1))
        assert isinstance(await limiter.acquire(wide, "a-pod"), Grant)
        wait = await limiter.acquire(wide, "a-pod")
        assert isinstance(wait, Wait)
        assert wait.blocked_by == "limit streams.resolve"


async def test_breakers_and_what_is_remembered_are_those_of_the_gateway(place: Place) -> None:
    monitor_id = await place.add()
    origin = place.settings.streams_resolver_url.removesuffix(RESOLVER)
    async with open_gateway(place.settings_of(monitor_id)) as gateway:
        ports, site, key = open_ports(gateway, place.clock), SITE.name, f"robots {origin}"
        assert await ports.breaker.find(site) is None
        assert await ports.breaker.check(site) is None
        until = place.clock.now() + timedelta(hours=1)
        policy = place.api.system.watches.breaker(site)
        await ports.breaker.failed(site, policy, "blocked", until)
        kept = await place.api.store.breaker.find(site)
        assert kept == await ports.breaker.find(site)
        await ports.breaker.worked(site)
        assert await ports.cache.get(key) is None
        await ports.cache.set(key, b"\x00\xff", timedelta(minutes=1))
        assert await place.api.store.cache.get(key) == b"\x00\xff" == await ports.cache.get(key)
        limit = place.api.system.watches.limit("streams.resolve")
        await ports.limiter.hold(limit.name, until, "asked to")
        assert (await place.api.store.limiter.peek(limit)) is not None


async def test_a_pod_whose_monitor_is_stopped_has_no_rights_and_ends(place: Place) -> None:
    monitor_id = await place.add()
    async with asyncio.timeout(PATIENCE_SECONDS), place.worker(monitor_id) as worker:
        running = asyncio.create_task(worker.run(is_shared=False))
        while not worker.is_ready:
            await asyncio.sleep(0.01)
        await place.api.http.delete(f"{MONITORS}/{monitor_id}")
        await running
    async with open_gateway(place.settings_of(monitor_id)) as gateway:
        limit = place.api.system.watches.limit("streams.check")
        with pytest.raises(Forbidden, match="nothing to do"):
            await open_ports(gateway, place.clock).limiter.acquire(limit, monitor_id)
