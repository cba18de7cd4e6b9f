"""A pod that does not start says why, and does not count as running for ever."""

from typing import Any, cast

import pytest
from lightkube.resources.core_v1 import Pod

from mimawari.net.cluster import view_of
from mimawari.watches.streams.pods.spec import name_pod
from tests.captured import on_kubernetes
from tests.faults.world import FULL
from tests.kube.ground import API_KEYS, Stage, stop_all

WHY = "ImagePullBackOff: Back-off pulling image"
PULLING = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}
CONTAINER = {"name": "monitor", "image": "a", "imageID": "", "ready": False, "restartCount": 0}
UNPLACED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"containerStatuses": [{**CONTAINER, "state": PULLING}], "conditions": [UNPLACED]}, WHY),
        ({"conditions": [UNPLACED]}, "Unschedulable"),
        ({"conditions": [{**UNPLACED, "message": "0/3 nodes"}]}, "Unschedulable: 0/3 nodes"),
        ({}, None),
    ],
)
def test_a_pending_pod_says_why_in_the_clusters_words(
    status: dict[str, Any], words: str | None
) -> None:
    named = {"metadata": {"name": "a-pod"}}
    view = view_of(cast("Pod", Pod.from_dict({**named, "status": {"phase": "Pending", **status}})))
    assert (view.is_pending, view.is_over, view.waits_for) == (True, False, words)


@on_kubernetes
@pytest.mark.skipif(not FULL, reason="takes half a minute; make faults")
async def test_a_pod_that_cannot_start_says_why_and_ends_its_monitor_after_a_while(
    stage: Stage,
) -> None:
    await stop_all(stage)
    stage.gateway.kill()
    stage.gateway.start(
        MIMAWARI_KUBERNETES_START_FOR="15s", MIMAWARI_KUBERNETES_PULL_SECRETS="one,two"
    )
    await stage.until_ready()
    stage.kubelet.pulls = False
    stage.put("pending0001")
    monitor_id = await stage.add("pending0001")
    await stage.until(lambda: stage.gateway.lines("pod pending"))
    key = {"X-API-Key": API_KEYS[0]}
    shown = (await stage.http.get(f"/api/v1/monitors/{monitor_id}", headers=key)).json()
    assert (shown["status"], shown["reason"]) == ("initializing", f"its pod is pending: {WHY}")
    pod: Any = (await stage.pods())[name_pod(monitor_id)]
    assert [one.name for one in pod.spec.imagePullSecrets] == ["one", "two"]
    await stage.until_told("pending0001", "monitor.error")
    [told] = stage.told("pending0001")
    assert told["data"]["reconciliation_action"] == "mark_as_error_pending_pod"
    assert told["data"]["observed_state"]["pod_reason"] == WHY
    view = await stage.show(monitor_id)
    assert (view.monitor.status, view.reason) == ("error", f"its pod did not start: {WHY}")
    stage.kubelet.pulls = True
    await stage.until_gone(monitor_id)
    stage.gateway.kill()
    stage.gateway.start()
    await stage.until_ready()
