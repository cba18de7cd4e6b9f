"""The round of the streams watch: one check of one stream."""

from collections.abc import Mapping
from datetime import tzinfo
from typing import Any

import structlog
from structlog.contextvars import bound_contextvars

from mimawari.errors import BadInput
from mimawari.kernel.context import Context
from mimawari.kernel.job import Job
from mimawari.kernel.watch import task
from mimawari.watches.streams import sync
from mimawari.watches.streams.checking import check
from mimawari.watches.streams.events import write_facts
from mimawari.watches.streams.models import EventType, Monitor, Notice, Step
from mimawari.watches.streams.outside import CHECK, Web
from mimawari.watches.streams.runner import member_of
from mimawari.watches.streams.runners import in_pods

ROLE = "monitor"
_WORDS = {
    EventType.STARTED: "Stream started",
    EventType.ENDED: "Stream ended",
    EventType.DELAYED: "Stream delayed",
    EventType.BLACKOUT: "Blackout detected",
    EventType.BLACKOUT_RECOVERED: "Blackout recovered",
    EventType.SILENCE: "Silence detected",
    EventType.SILENCE_RECOVERED: "Silence recovered",
    EventType.SEGMENT_ERROR: "Segment error",
    EventType.ERROR: "Monitor error",
}

log = structlog.get_logger(component="segment_analyzer")


# A check that a dead process has left behind is made again soon; each one is short.
@task(
    CHECK,
    lease="15s",
    timeout="3m",
    attempts=5,
    backoff="5s 10s 30s 1m",
    concurrency=64,
    role=ROLE,
    kept="10m",
)
async def check_stream(job: Job, ctx: Context) -> None:
    """Look once at a stream, and keep what was found with what is told of it."""
    monitor_id = job.args.get("monitor_id")
    if not isinstance(monitor_id, str):
        raise BadInput("these arguments are no check: monitor_id is missing")
    # Whatever is logged on the way, by whichever part, is about this monitor.
    with bound_contextvars(monitor_id=monitor_id):
        await _check(monitor_id, job, ctx)


async def _check(monitor_id: str, job: Job, ctx: Context) -> None:
    async with ctx.store.read() as reader:
        found = await sync.find_active(reader, monitor_id)
    if found is None or in_pods(ctx.settings):
        # It was ended while its check was on its way, or is a pod's to check.
        async with ctx.commit(job) as tx:
            tx.remove(member_of(monitor_id))
        return
    monitor, state = found
    await ctx.limit(CHECK, caller=monitor_id)
    step = await check(monitor, state, Web(ctx, monitor_id))
    async with ctx.commit(job) as tx:
        kept = await sync.keep_step(tx, monitor, step, ctx.clock.now(), ctx.settings.zone)
        if not kept or step.is_end:
            tx.remove(member_of(monitor_id))
        elif job.target is not None:
            tx.next_run(step.next_at, step.reason)
    if kept:
        tell_log(monitor, step, ctx.settings.zone)


def tell_log(monitor: Monitor, step: Step, zone: tzinfo) -> None:
    """Log what a check that was kept has found."""
    for notice in step.notices:
        words = _WORDS.get(notice.type, str(notice.type))
        log.info(words, monitor_id=monitor.id, what=str(notice.type), **_facts(notice, zone))
    if step.is_end:
        log.info("monitor ended", monitor_id=monitor.id, result=step.status, reason=step.reason)


def _facts(notice: Notice, zone: tzinfo) -> Mapping[str, Any]:
    """Return the data of a notice as its log line has it: flat, and without the picture."""
    facts = write_facts(notice.data, zone)
    facts.pop("snapshot", None)
    segment = facts.pop("segment_info", None)
    return facts | ({"segment_sequence": segment["sequence"]} if segment else {})
