"""The internal key is changed while pods run: each is made anew, and its monitor goes on."""

from pathlib import Path
from typing import Any

import pytest

from mimawari.watches.streams.pods.spec import name_pod
from tests.captured import on_kubernetes
from tests.conftest import Databases
from tests.faults.world import FULL
from tests.kube.ground import Stage, open_stage

pytestmark = [
    on_kubernetes,
    pytest.mark.skipif(not FULL, reason="a pod whose token is refused takes its time to end"),
]


async def test_pods_with_a_token_of_another_key_are_replaced_and_their_monitors_go_on(
    databases: Databases, tmp_path: Path
) -> None:
    async with open_stage(databases.fresh("postgresql"), tmp_path) as stage:
        await change_the_key(stage)


async def change_the_key(stage: Stage) -> None:
    """Start the gateway with another key, and insist that nothing of a monitor is lost."""
    monitor_id = await stage.watched("renewing001", shots=(), window=120)
    name = name_pod(monitor_id)
    await stage.until_sent()
    before: Any = (await stage.pods())[name]
    stage.gateway.kill()
    stage.gateway.start(MIMAWARI_INTERNAL_KEY="another-inner-key-of-this")
    await stage.until_ready()

    async def is_another() -> bool:
        pod: Any = (await stage.pods()).get(name)
        return pod is not None and pod.metadata.uid != before.metadata.uid

    await stage.until(is_another)
    await stage.until_counted(monitor_id, (await stage.show(monitor_id)).segments)
    assert (await stage.show(monitor_id)).monitor.status == "monitoring"
    assert stage.types("renewing001") == ["stream.started"]
