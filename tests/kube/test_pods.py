"""Monitors run in pods of a real API server, by the gateway's own token and the shipped rights."""

import asyncio
import json
import random
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
import yaml
from lightkube import ApiError, AsyncClient, KubeConfig
from lightkube.models.core_v1 import Container, PodSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Pod, Secret
from pydantic import SecretStr

from mimawari.errors import Transient
from mimawari.kernel.clock import RealClock
from mimawari.kernel.rights import make_token
from mimawari.net.cluster import Cluster, Stale
from mimawari.settings import Settings
from mimawari.sim.sites.webhooks import KEY
from mimawari.watches.streams.pods.runner import PodRunner
from mimawari.watches.streams.pods.spec import LABELS, PORT, name_pod
from mimawari.watches.streams.sync import new_monitor_id
from tests.captured import on_kubernetes
from tests.faults.world import FULL
from tests.kube.ground import API_KEYS, CHART, GIVEN, INNER_KEY, NAMESPACE, Stage, helm, stop_all

pytestmark = on_kubernetes
REPORT = "Startup Reconciliation Report"
MONITORS = 50 if FULL else 2
KILLS = 30 if FULL else 2
SECONDS = 240.0
NAMES = [f"many{number:07d}" for number in range(MONITORS)]
WHOLE = ["stream.started", "alert.blackout", "alert.blackout_recovered"]
AT_ONCE = 10
"""So many are begun together: each loads the program."""


def stray(monitor_id: str, **labels: str) -> Pod:
    """Make a pod that nobody asked for; its image runs nothing here."""
    named = ObjectMeta(
        name=name_pod(monitor_id), labels={**LABELS, "monitor-id": monitor_id, **labels}
    )
    never = Container(name="monitor", image="none", command=["mimawari", "version"])
    return Pod(metadata=named, spec=PodSpec(containers=[never], restartPolicy="OnFailure"))


async def test_the_chart_is_installed_and_the_server_takes_its_hook_too(stage: Stage) -> None:
    words = ("-n", NAMESPACE, "-o", "json")
    [release] = json.loads(helm("list", *words, kubeconfig=stage.server.admin))
    assert (release["name"], release["status"]) == ("sm", "deployed")
    deployed = [
        str(one.metadata.name) async for one in stage.admin.list(Deployment) if one.metadata
    ]
    assert deployed == ["stream-monitor-gateway", "stream-monitor-worker"]
    hook = yaml.safe_load(
        helm("template", "sm", str(CHART), "-n", NAMESPACE, *GIVEN, "-s", "templates/migrate.yaml")
    )
    made: Any = await stage.admin.create(cast("Job", Job.from_dict(hook)), dry_run=True)
    assert made.metadata.annotations["helm.sh/hook"] == "post-install,pre-upgrade"


async def test_8_1_a_monitor_is_run_by_a_pod_as_described(stage: Stage) -> None:
    monitor_id = await stage.watched("described01")
    name = f"stream-monitor-{monitor_id}"
    pod: Any = (await stage.pods())[name]
    assert pod.metadata.labels == {"app": "stream-monitor", "monitor-id": monitor_id}
    spec, [container] = pod.spec, pod.spec.containers
    assert (spec.restartPolicy, spec.terminationGracePeriodSeconds) == ("OnFailure", 30)
    [volume] = spec.volumes
    assert (volume.name, volume.emptyDir) == ("workdir", type(volume.emptyDir)())
    assert (container.name, container.image) == ("monitor", "stream-monitor:latest")
    [mount] = container.volumeMounts
    assert (mount.name, mount.mountPath) == ("workdir", "/tmp/segments")
    resources = container.resources
    assert resources.requests == {"memory": "256Mi", "cpu": "100m"}
    assert resources.limits == {"memory": "512Mi", "cpu": "500m"}
    env = {one.name: one.value for one in container.env}
    assert env["MONITOR_ID"] == monitor_id
    assert env["STREAM_URL"] == "https://www.youtube.com/watch?v=described01"
    assert env["CALLBACK_URL"] == f"{stage.address}/hooks/described01"
    assert env["CONFIG_JSON"] == '{"check_interval_sec":1,"blackout_threshold_sec":1}'
    assert "HTTP_PROXY" not in env
    shown = await stage.show(monitor_id)
    assert shown.monitor.status == "monitoring"


async def test_8_7_a_pod_answers_whoever_asks_after_its_health(stage: Stage) -> None:
    monitor_id = await stage.watched("healthy0001")
    running = stage.kubelet.pods[name_pod(monitor_id)]
    pod: Any = (await stage.pods())[running.name]
    [container] = pod.spec.containers
    for path, probe, every in (
        ("/healthz", container.livenessProbe, 30),
        ("/readyz", container.readinessProbe, 10),
    ):
        found = (
            probe.httpGet.path,
            probe.periodSeconds,
            probe.timeoutSeconds,
            probe.failureThreshold,
        )
        assert found == (path, every, 5, 3)
        async with httpx2.AsyncClient() as http:
            reply = await http.get(f"http://{running.address}:{PORT}{path}")
        assert reply.status_code == 200


async def test_a_pod_holds_a_token_of_its_own_and_no_other_credentials(stage: Stage) -> None:
    monitor_id = await stage.watched("secrets0001")
    process = stage.kubelet.pods[name_pod(monitor_id)].process
    assert process is not None
    pod: Any = (await stage.pods())[name_pod(monitor_id)]
    said = str(pod.spec.to_dict())
    # What a process was given at its start, and by whom, is seen in the pod.
    for secret in (KEY, *API_KEYS, INNER_KEY, "postgresql", "secretKeyRef"):
        assert secret not in said
    [token] = [one.value for one in pod.spec.containers[0].env if one.name == "INTERNAL_API_KEY"]
    assert token == make_token(INNER_KEY.encode(), name_pod(monitor_id))
    assert pod.spec.automountServiceAccountToken is False


async def test_events_of_pods_are_delivered_by_the_gateway_and_8_4_their_pods_deleted_at_the_end(
    stage: Stage,
) -> None:
    monitor_id = await stage.watched("telling0001", seconds=26.0)
    await stage.until_told("telling0001", "stream.ended")
    assert stage.types("telling0001") == [
        *("stream.started", "alert.blackout", "alert.blackout_recovered", "stream.ended")
    ]
    shown = await stage.show(monitor_id)
    assert (shown.monitor.status, shown.blackouts) == ("completed", 1)
    await stage.until_gone(monitor_id)


async def test_a_stop_is_answered_when_the_pod_is_gone(stage: Stage) -> None:
    monitor_id = await stage.watched("stopping001")
    running = stage.kubelet.pods[name_pod(monitor_id)]
    reply = await stage.http.delete(f"/api/v1/monitors/{monitor_id}")
    assert reply.json()["status"] == "stopped"
    assert await stage.is_gone(monitor_id)
    assert '"stopped"' in running.log()
    assert "monitor.error" not in stage.types("stopping001")


async def test_a_pod_that_crashes_starts_again_and_nothing_is_told_twice(stage: Stage) -> None:
    monitor_id = await stage.watched("crashing001")
    await stage.until_told("crashing001", "alert.blackout")
    name = name_pod(monitor_id)
    stage.kubelet.crash(name)
    await stage.until(lambda: stage.kubelet.pods[name].starts == 2)
    await stage.until_counted(monitor_id, (await stage.show(monitor_id)).segments)
    await stage.until_told("crashing001", "alert.blackout_recovered")
    told = stage.types("crashing001")[:3]
    assert told == ["stream.started", "alert.blackout", "alert.blackout_recovered"]
    assert (await stage.show(monitor_id)).monitor.status == "monitoring"


async def test_10_4_an_evicted_pod_ends_its_monitor_with_an_error(stage: Stage) -> None:
    monitor_id = await stage.watched("evicting001")
    await stage.kubelet.evict(name_pod(monitor_id))
    await stage.until_told("evicting001", "monitor.error")
    data = stage.body("evicting001", "monitor.error")["data"]
    assert data["reason"] == "reconciliation_mismatch"
    assert data["reconciliation_action"] == "mark_as_error_failed_pod"
    assert data["previous_status"] == "monitoring"
    seen = {"pod_exists": True, "pod_phase": "Failed", "pod_reason": "Evicted"}
    assert data["observed_state"] == {**seen, "db_status": "monitoring"}
    assert "low on resource" in data["error_details"]
    assert (await stage.show(monitor_id)).monitor.status == "error"
    await stage.until_gone(monitor_id)


async def test_10_4_a_pod_that_somebody_deletes_ends_its_monitor_with_an_error(
    stage: Stage,
) -> None:
    monitor_id = await stage.watched("deleting001")
    await stage.admin.delete(Pod, name_pod(monitor_id))
    await stage.until_told("deleting001", "monitor.error")
    data = stage.body("deleting001", "monitor.error")["data"]
    assert data["reconciliation_action"] == "mark_as_error_missing_pod"
    assert data["observed_state"] == {"pod_exists": False, "db_status": "monitoring"}
    assert data["error_details"].startswith("Pod not found in Kubernetes cluster")
    assert (await stage.show(monitor_id)).monitor.status == "error"


async def test_10_4_a_pod_that_nobody_knows_of_is_deleted(stage: Stage) -> None:
    orphan = new_monitor_id()
    await stage.admin.create(stray(orphan))
    await stage.until_gone(orphan)


async def test_10_4_a_pod_with_other_labels_is_left_alone(stage: Stage) -> None:
    other = new_monitor_id()
    await stage.admin.create(stray(other, app="somebody-else"))
    assert await Cluster(stage.admin).find(name_pod(other)) is not None
    orphan = new_monitor_id()
    await stage.admin.create(stray(orphan))
    await stage.until_gone(orphan)
    assert await Cluster(stage.admin).find(name_pod(other)) is not None


async def test_14_3_the_gateway_may_do_nothing_but_look_after_pods_of_its_namespace(
    stage: Stage,
) -> None:
    config = KubeConfig.from_file(stage.server.gateway)
    async with AsyncClient(config, namespace=NAMESPACE) as client:
        assert (await Cluster(client).list(LABELS))[1]
        with pytest.raises(ApiError, match="forbidden"):
            await client.get(Secret, "stream-monitor")
    async with AsyncClient(config, namespace="default") as client:
        with pytest.raises(Transient, match="forbidden"):
            await Cluster(client).list(LABELS)


async def test_10_4_a_gateway_that_was_killed_puts_right_what_differs_and_pods_go_on(
    stage: Stage,
) -> None:
    # Whatever others have on its way when the gateway dies comes a minute later.
    await stop_all(stage)
    # A pod that is deleted with something to say tries until its time is up: half a minute in which
    # the other one cannot ask for leave either, and its stream's list must be longer than that.
    kept, lost = await asyncio.gather(
        stage.watched("restart0001", shots=(), window=120),
        stage.watched("restart0002", shots=()),
    )
    await stage.until_sent()
    stage.gateway.kill()
    stage.blacken("restart0001")
    orphan = new_monitor_id()
    await stage.admin.delete(Pod, name_pod(lost))
    await stage.until_gone(lost)
    await stage.admin.create(stray(orphan))
    stage.gateway.start()
    await stage.until(lambda: stage.gateway.lines(REPORT))
    [line] = stage.gateway.lines(REPORT)
    assert line["data"]["missing"] == [lost]
    assert line["data"]["orphans"] == [orphan]
    await stage.until_ready()
    await stage.until_told("restart0002", "monitor.error")
    assert (await stage.show(lost)).monitor.status == "error"
    await stage.until_gone(orphan)
    # What was seen meanwhile is told, in its order and once.
    before = (await stage.show(kept)).segments
    await stage.until_counted(kept, before)
    await stage.until_told("restart0001", "alert.blackout_recovered")
    assert stage.types("restart0001") == [
        "stream.started",
        "alert.blackout",
        "alert.blackout_recovered",
    ]
    assert stage.kubelet.pods[name_pod(kept)].starts == 1


async def test_an_api_server_that_restarts_costs_nothing_and_what_waited_for_it_is_done(
    stage: Stage,
) -> None:
    _, version = await Cluster(stage.admin).list(LABELS)
    kept, stopped, lost = await asyncio.gather(
        stage.watched("server00001"), stage.watched("server00002"), stage.watched("server00003")
    )
    await asyncio.to_thread(stage.server.kill)
    # Pods report to the gateway, which needs no API server for it.
    await stage.until_counted(kept, (await stage.show(kept)).segments)
    stage.put("server00004")
    added = await stage.add("server00004")
    stopping = asyncio.create_task(stage.http.delete(f"/api/v1/monitors/{stopped}"))
    await stage.until_status(stopped, "stopped")
    stage.kubelet.crash(name_pod(lost))
    await asyncio.to_thread(stage.server.start)
    await stage.until_counted(added)
    await stage.until_counted(lost, (await stage.show(lost)).segments)
    assert (await stopping).json()["status"] == "stopped"
    await stage.until_gone(stopped)
    assert "monitor.error" not in stage.types("server00001") + stage.types("server00003")
    with pytest.raises(Stale, match="too old resource version"):
        async for _ in Cluster(stage.admin).watch(version, LABELS):
            pass
    # It follows again what becomes of pods.
    await stage.kubelet.evict(name_pod(lost))
    await stage.until_told("server00003", "monitor.error")


async def begin(stage: Stage) -> dict[str, str]:
    """Have all streams monitored, and wait until each was looked into."""
    seldom = 5 if FULL else 1
    found: dict[str, str] = {}
    for start in range(0, MONITORS, AT_ONCE):
        names = NAMES[start : start + AT_ONCE]
        for name in names:
            stage.put(name, shots=(), segment_seconds=4.0 if FULL else 1.0, window=20)
            found[name] = await stage.add(name, check_interval_sec=seldom)
        for name in names:
            await stage.until_counted(found[name], seconds=SECONDS)
    return found


async def kill_servers(stage: Stage) -> None:
    """Kill the gateway and the API server, each while the other is away or has just come back."""
    # What is on its way when the gateway dies is sent again a minute later.
    await stage.until_sent()
    stage.gateway.kill()
    await asyncio.to_thread(stage.server.kill)
    stage.gateway.start()
    await asyncio.to_thread(stage.server.start)
    await stage.until_ready()


async def kill_some(stage: Stage, ids: dict[str, str]) -> None:
    """Kill pods at any moment, and, where there is time, the gateway among them."""
    chance = random.Random(7)
    for number in range(KILLS):
        name = name_pod(ids[chance.choice(NAMES)])
        running = stage.kubelet.pods.get(name)
        if running is not None and running.process is not None and running.process.is_alive():
            stage.kubelet.crash(name)
        if FULL and number == KILLS // 2:
            stage.gateway.kill()
            stage.gateway.start()
        await asyncio.sleep(chance.random())
    await stage.until_ready()


async def test_every_stream_is_analysed_and_told_once_whatever_is_killed(stage: Stage) -> None:
    await stop_all(stage)
    ids = await begin(stage)
    assert set(await stage.pods()) == {name_pod(one) for one in ids.values()}
    if FULL:
        await kill_servers(stage)
    for name in NAMES:
        stage.blacken(name)
    await kill_some(stage, ids)
    with suppress(TimeoutError):
        await stage.until(
            lambda: all(len(stage.told(name)) >= len(WHOLE) for name in NAMES), SECONDS
        )
    assert {name: stage.types(name) for name in NAMES} == dict.fromkeys(NAMES, WHOLE)
    for monitor_id in ids.values():
        shown = await stage.show(monitor_id)
        assert (shown.monitor.status, shown.blackouts) == ("monitoring", 1)
    await stop_all(stage)
    assert stage.kubelet.pods == {}


async def test_a_pod_with_a_token_of_another_key_is_taken_away_and_one_of_ours_is_left_alone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = name_pod(await stage.watched("renewing000", shots=()))
    monkeypatch.setenv("KUBECONFIG", str(stage.server.gateway))
    given: dict[str, Any] = {"streams_runner": "kubernetes", "kubernetes_namespace": NAMESPACE}
    for key, is_leaving in ((INNER_KEY, False), ("another-inner-key-of-this", True)):
        settings = Settings(internal_key=SecretStr(key), **given)
        runner = PodRunner(stage.store, RealClock(), settings)
        with pytest.raises(Transient, match="replaced") if is_leaving else nullcontext():
            await runner.tend(name)
        pod: Any = (await stage.pods()).get(name)
        assert (pod is None or pod.metadata.deletionTimestamp is not None) is is_leaving


async def test_several_streams_share_a_pod_where_a_setting_says_so(stage: Stage) -> None:
    # Pods of those that were begun alone would be shared too, once they have asked.
    await stop_all(stage)
    stage.gateway.kill()
    stage.gateway.start(MIMAWARI_STREAMS_PER_POD="2")
    await stage.until_ready()
    before = set(await stage.pods())
    for name in ("sharing0001", "sharing0002", "sharing0003"):
        stage.put(name, shots=())
    # One after the other: who comes first names the pod.
    first, second, third = [await stage.add(f"sharing000{number}") for number in (1, 2, 3)]
    for monitor_id in (first, second, third):
        await stage.until_counted(monitor_id)
    assert set(await stage.pods()) - before == {name_pod(first), name_pod(third)}
    stage.blacken("sharing0002")
    reply = await stage.http.delete(f"/api/v1/monitors/{first}")
    assert reply.json()["status"] == "stopped"
    # The other one in it goes on.
    await stage.until_told("sharing0002", "alert.blackout_recovered")
    await stage.http.delete(f"/api/v1/monitors/{second}")
    await stage.until_gone(first)
    assert name_pod(third) in await stage.pods()


def test_what_the_gateway_logs_holds_no_key(stage: Stage) -> None:
    assert stage.gateway.serving is not None
    said = Path(stage.gateway.serving.err).read_text()
    assert not any(secret in said for secret in (KEY, INNER_KEY, *API_KEYS, "gatewaytoken"))
