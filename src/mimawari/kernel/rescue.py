"""Brings back the jobs of processes that died: the one way out of an expired lease."""

from dataclasses import dataclass

import structlog

from mimawari.kernel import outcome
from mimawari.kernel.job import State
from mimawari.kernel.ports import Clock, Store
from mimawari.kernel.watch import Watches

BATCH = 500

log = structlog.get_logger(component="janitor")


@dataclass(frozen=True, slots=True)
class Rescued:
    """How many jobs went back to the queue, and how many to the dead letters."""

    requeued: int = 0
    buried: int = 0


async def rescue(store: Store, clock: Clock, watches: Watches) -> Rescued:
    """End every expired lease, once, whoever else tries at the same moment."""
    requeued = buried = 0
    now = clock.now()
    while jobs := await store.queue.expired(now, BATCH):
        ends = [outcome.end_of_crash(job, watches.tasks.get(job.kind), now) for job in jobs]
        turn = await store.queue.turn(ends, (), "janitor")
        for end in ends:
            if end.id not in turn.accepted:
                continue
            back = end.state == State.PENDING
            requeued, buried = requeued + back, buried + (not back)
            result = "retry" if back else end.state
            log.warning("lease expired", what="job", id=end.id, result=result, reason=end.reason)
        if len(jobs) < BATCH:
            break
    return Rescued(requeued, buried)
