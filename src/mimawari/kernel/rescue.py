"""Brings back the jobs of processes that died: the one way out of an expired lease."""

from dataclasses import dataclass

import structlog

from mimawari.kernel import outcome
from mimawari.kernel.failing import failed
from mimawari.kernel.job import State
from mimawari.kernel.ports import Clock, Reporter, Store
from mimawari.kernel.reporting import LOG, burial
from mimawari.kernel.watch import Watches

BATCH = 500

log = structlog.get_logger(component="janitor")


@dataclass(frozen=True, slots=True)
class Rescued:
    """How many jobs went back to the queue, and how many to the dead letters."""

    requeued: int = 0
    buried: int = 0


async def rescue(store: Store, clock: Clock, watches: Watches, reporter: Reporter = LOG) -> Rescued:
    """End every expired lease, once, whoever else tries at the same moment."""
    requeued = buried = 0
    now = clock.now()
    while jobs := await store.queue.expired(now, BATCH):
        ends = [outcome.end_of_crash(job, watches.tasks.get(job.kind), now) for job in jobs]
        turn = await store.queue.turn(ends, (), "janitor")
        both = zip(jobs, ends, strict=True)
        counted = [failed(job, end) for job, end in both if end.id in turn.accepted]
        await store.streaks.count(counted)
        for job, end in zip(jobs, ends, strict=True):
            if end.id not in turn.accepted:
                continue
            back = end.state == State.PENDING
            requeued, buried = requeued + back, buried + (not back)
            result = "retry" if back else end.state
            line = {
                "what": "job",
                "id": end.id,
                "target": job.target,
                "result": result,
                "reason": end.reason,
            }
            if back:
                log.warning("lease expired", **line)
            else:
                reporter.report(burial(job, "lease expired", line))
        if len(jobs) < BATCH:
            break
    return Rescued(requeued, buried)
