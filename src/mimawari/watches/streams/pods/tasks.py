"""Makes and deletes pods, as monitors come and go."""

from datetime import timedelta

import structlog

from mimawari.errors import BadInput, Transient, Wait
from mimawari.kernel.context import Context
from mimawari.kernel.job import Job
from mimawari.kernel.watch import task
from mimawari.watches.streams import sync
from mimawari.watches.streams.models import EventType, Notice
from mimawari.watches.streams.pods import assignments
from mimawari.watches.streams.pods.assignments import TEND
from mimawari.watches.streams.runners import in_pods, open_pods
from mimawari.watches.streams.tasks import ROLE

AGAIN_AFTER = timedelta(seconds=2)
TRIES = 4
"""So often a cluster may refuse a pod before its monitors are given up."""

log = structlog.get_logger(component="pods")


@task(
    TEND,
    lease="30s",
    timeout="2m",
    attempts=TRIES + 1,
    backoff="2s 10s 30s",
    concurrency=8,
    role=ROLE,
    kept="1h",
)
async def tend_pod(job: Job, ctx: Context) -> None:
    """Make a pod or delete it, whichever is due; a cluster that is away is waited for."""
    pod_name = job.args.get("pod")
    if not isinstance(pod_name, str):
        raise BadInput("these arguments name no pod: pod is missing")
    if not in_pods(ctx.settings):
        return
    runner = open_pods(ctx.store, ctx.clock, ctx.settings)
    try:
        await runner.tend(pod_name)
    except Transient as error:
        raise Wait(ctx.clock.now() + AGAIN_AFTER, str(error), "cluster") from error
    except BadInput as error:
        if job.attempt < TRIES:
            raise Transient(str(error)) from error
        await _give_up(job, ctx, pod_name, str(error))


async def _give_up(job: Job, ctx: Context, pod_name: str, words: str) -> None:
    """End the monitors of a pod that the cluster does not take, and tell of it."""
    async with ctx.commit(job) as tx:
        for monitor in await assignments.list_in(tx, pod_name):
            data = {
                "reason": "pod_refused",
                "previous_status": str(monitor.status),
                "error_details": words,
            }
            notice = Notice(type=EventType.ERROR, at=ctx.clock.now(), data=data)
            await sync.end_as(tx, monitor, notice, words, ctx.settings.zone)
            log.error("monitor ended", monitor_id=monitor.id, result="error", reason=words)
