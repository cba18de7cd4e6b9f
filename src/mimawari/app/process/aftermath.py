"""Looks after what a process had in hand when its guard ended it, at the start of the next one."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import structlog

from mimawari.app.ops import System
from mimawari.app.process.record import Ended, take_ended
from mimawari.kernel import outcome
from mimawari.kernel.deliverer import read_delivered
from mimawari.kernel.failing import failed
from mimawari.kernel.job import State
from mimawari.kernel.reporting import burial
from mimawari.kernel.running import Noted, read_running

MOST_STACK = 8000
_DELIVERY = re.compile(r'kernel/deliverer\.py", line [0-9]+ in _deliver\b')
_JOB = re.compile(r'kernel/worker\.py", line [0-9]+ in _attempt\b')
_REQUEST = re.compile(r'app/requests_in_hand\.py", line [0-9]+ in note_request\b')
HELD = "a job was in hand when the process was ended"

log = structlog.get_logger(component="serve")


async def look_back(system: System, folder: Path) -> None:
    """Log what processes had in hand that stood still, and suspect the jobs and events among it."""
    for path, ended in await asyncio.to_thread(take_ended, folder):
        if ended.stacks:
            await _examine(system, ended)
        await asyncio.to_thread(path.unlink, missing_ok=True)


async def _examine(system: System, ended: Ended) -> None:
    store, stack = system.store, ended.main_stack
    log.error(
        "a process stood still and was ended", what=ended.process, result="started again",
        stack=stack[:MOST_STACK],
    )  # fmt: skip
    delivered = [one for note in ended.notes if (one := read_delivered(note)) is not None]
    jobs = [job for note in ended.notes if (job := read_running(note)) is not None]
    for note in ended.notes:
        if read_delivered(note) is None and read_running(note) is None:
            log.error("a request was in hand when the process was ended", what=note)
    await _settle_jobs(system, jobs, suspect=is_job(stack))
    await store.outbox.settle(delivered)
    for event in await store.outbox.release(ended.id, suspect=is_delivery(stack)):
        log.error(
            "an event was in hand when the process was ended", what=event.kind, id=event.id,
            result=event.standing.name.lower(),
        )  # fmt: skip


async def _settle_jobs(system: System, noted: Sequence[Noted], *, suspect: bool) -> None:
    """Give jobs back; those that had begun run once more, alone, and are set aside after that."""
    queue, now = system.store.queue, system.clock.now()
    held = {one.id: one for one in noted}
    jobs = {
        job.id: replace(job, token=held[job.id].token) for job in await queue.find_jobs(list(held))
    }
    begun = {one.id for one in noted if one.has_begun and suspect}
    stops = [
        outcome.end_of_stop(job, now, alone=len(begun) == 1)
        for job in jobs.values()
        if job.id in begun
    ]
    back = [outcome.released(job, now) for job in jobs.values() if job.id not in begun]
    await queue.turn(back, (), "aftermath")
    accepted = await queue.settle_stop(stops)
    buried = [end for end in stops if end.id in accepted and end.state is State.FAILED]
    await system.store.streaks.count([failed(jobs[end.id], end) for end in buried])
    for end in stops:
        job = jobs[end.id]
        result = end.state if end in buried else "retry"
        line = {
            "what": job.kind, "id": job.id, "target": job.target, "result": result,
            "reason": end.reason,
        }  # fmt: skip
        if end in buried:
            system.reporter.report(burial(job, HELD, line))
        else:
            log.error(HELD, **line)


def is_job(stack: str) -> bool:
    """Tell whether a job may be what the loop stood still in, as `is_delivery` does for events."""
    return bool(_JOB.search(stack)) or not (_DELIVERY.search(stack) or _REQUEST.search(stack))


def is_delivery(stack: str) -> bool:
    """Tell whether the delivery of an event may be what the loop stood still in.

    Coroutines that wait for each other are all on the stack of the one that runs. Where it shows
    neither a delivery nor a job or a request, a callback ran, whose origin it does not show.
    """
    return bool(_DELIVERY.search(stack)) or not (_JOB.search(stack) or _REQUEST.search(stack))
