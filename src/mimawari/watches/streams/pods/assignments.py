"""Which pod runs which monitor, as it is kept; pods follow by jobs of the same transaction."""

from collections.abc import Sequence

from sqlalchemy import func, select, update

from mimawari.kernel.job import NewJob
from mimawari.kernel.ports import Reader, Tx
from mimawari.watches.streams import sync
from mimawari.watches.streams.models import ACTIVE, Monitor
from mimawari.watches.streams.pods.spec import name_pod
from mimawari.watches.streams.tables import monitors

TEND = "streams.pod"
"""The kind of job that makes or deletes a pod, whichever is due."""


def key_of(pod_name: str) -> str:
    """Name the job that makes a pod, for as long as it has not."""
    return f"{TEND}:{pod_name}"


async def assign(tx: Tx, monitor: Monitor, most: int) -> None:
    """Give a new monitor to a pod that has room, or to one of its own."""
    pod_name = await _find_room(tx, most) if most > 1 else None
    pod_name = pod_name or name_pod(monitor.id)
    mine = monitors.c.id == monitor.id
    await tx.execute(update(monitors).where(mine).values(pod_name=pod_name))
    tx.put(NewJob(kind=TEND, args={"pod": pod_name}, dedupe_key=key_of(pod_name)))


async def _find_room(tx: Tx, most: int) -> str | None:
    query = select(monitors.c.pod_name).where(monitors.c.status.in_(ACTIVE))
    query = query.where(monitors.c.pod_name.is_not(None)).group_by(monitors.c.pod_name)
    query = query.having(func.count() < most).order_by(monitors.c.pod_name).limit(1)
    found: str | None = (await tx.execute(query)).scalar()
    return found


async def release(tx: Tx, monitor_id: str) -> None:
    """Have the pod of a monitor looked at, which is deleted unless others are in it."""
    query = select(monitors.c.pod_name).where(monitors.c.id == monitor_id)
    pod_name = (await tx.execute(query)).scalar()
    if pod_name is not None:
        # Without a key: one that is under way may have looked before this.
        tx.put(NewJob(kind=TEND, args={"pod": pod_name}))


async def find_given(reader: Reader | Tx, monitor_id: str) -> str | None:
    """Return the pod that a monitor is given to; None if there is no such monitor, or no pod."""
    query = select(monitors.c.pod_name).where(monitors.c.id == monitor_id)
    found: str | None = (await reader.execute(query)).scalar()
    return found


async def find_pod(reader: Reader | Tx, monitor_id: str) -> str:
    """Tell which pod a monitor is given to; nobody else's monitor has a pod of its name."""
    return await find_given(reader, monitor_id) or name_pod(monitor_id)


async def is_at_work(reader: Reader, pod_name: str) -> bool:
    """Return whether a pod has a monitor that is not over."""
    mine = (monitors.c.pod_name == pod_name) & monitors.c.status.in_(ACTIVE)
    return (await reader.execute(select(monitors.c.id).where(mine).limit(1))).first() is not None


async def list_in(reader: Reader | Tx, pod_name: str) -> Sequence[Monitor]:
    """List the monitors of a pod that are not over, oldest first."""
    mine = (monitors.c.pod_name == pod_name) & monitors.c.status.in_(ACTIVE)
    rows = await reader.execute(select(monitors).where(mine).order_by(monitors.c.id))
    return [sync.make_monitor(row) for row in rows]


async def list_pods(reader: Reader | Tx) -> dict[str, list[str]]:
    """List the monitors that are not over by the pods that they are given to."""
    given = select(monitors.c.id, monitors.c.pod_name).where(monitors.c.status.in_(ACTIVE))
    found: dict[str, list[str]] = {}
    for row in await reader.execute(given.where(monitors.c.pod_name.is_not(None))):
        found.setdefault(row.pod_name, []).append(row.id)
    return found
