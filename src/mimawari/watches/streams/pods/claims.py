"""Pods hold monitors by a version: the last one to claim is heard, and each report once."""

from dataclasses import dataclass

from sqlalchemy import select, update

from mimawari.kernel.ports import Tx
from mimawari.watches.streams import sync
from mimawari.watches.streams.errors import Ended, Fenced
from mimawari.watches.streams.models import Monitor, State, Stats
from mimawari.watches.streams.pods import assignments
from mimawari.watches.streams.tables import states, stats


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a pod goes on from, and the version by which it is heard."""

    monitor: Monitor
    state: State
    stats: Stats
    version: int


async def claim(tx: Tx, monitor_id: str, pod_name: str) -> Claim:
    """Give a monitor to a pod; whoever had it before is not heard any more."""
    given_to = await assignments.find_given(tx, monitor_id)
    if given_to != pod_name:
        raise Fenced(f"the monitor is given to {given_to or 'no pod'}, not to {pod_name}")
    mine = states.c.monitor_id == monitor_id
    await tx.execute(update(states).where(mine).values(version=states.c.version + 1))
    found = await sync.find_active(tx, monitor_id)
    if found is None:
        raise Ended("the monitor is over, and nothing is to be done for it")
    version: int = (await tx.execute(select(states.c.version).where(mine))).scalar_one()
    counted = (await tx.execute(select(stats).where(stats.c.monitor_id == monitor_id))).one()
    return Claim(
        monitor=found[0],
        state=found[1],
        stats=Stats(
            segments=counted.total_segments,
            blackouts=counted.blackout_events,
            silences=counted.silence_events,
        ),
        version=version,
    )


async def is_repeated(tx: Tx, monitor_id: str, report_id: str) -> bool:
    """Say whether a report is the one that was taken last."""
    query = select(states.c.report_id).where(states.c.monitor_id == monitor_id)
    return bool((await tx.execute(query)).scalar() == report_id)


async def pass_fence(tx: Tx, monitor_id: str, version: int, report_id: str) -> None:
    """Let a report through if its sender holds the monitor, and only once."""
    mine = (states.c.monitor_id == monitor_id) & (states.c.version == version)
    values = {"version": states.c.version + 1, "report_id": report_id}
    if not (await tx.execute(update(states).where(mine).values(values))).rowcount:
        raise Fenced("another pod has claimed the monitor since; nothing of this is taken")
