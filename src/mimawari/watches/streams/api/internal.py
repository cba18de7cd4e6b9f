"""Routes by which runners take monitors and report how they stand."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from pydantic import ValidationError
from sqlalchemy import update

from mimawari.edges.rights import INSTALLATION, POD, CallerOf, open_to
from mimawari.edges.routes import SystemOf
from mimawari.edges.system import System
from mimawari.errors import BadInput, Forbidden
from mimawari.kernel.ports import Tx
from mimawari.kernel.rights import Caller
from mimawari.text import clean
from mimawari.watches.streams import actions, sync
from mimawari.watches.streams.api.errors import MonitorRoute
from mimawari.watches.streams.errors import Behind, Ended
from mimawari.watches.streams.models import ACTIVE, Monitor, Notice, Status, Step
from mimawari.watches.streams.pods import assignments, claims
from mimawari.watches.streams.runners import stop_in
from mimawari.watches.streams.schemas.requests import CheckIn, ClaimIn, PodAsked, ReportIn
from mimawari.watches.streams.schemas.responses import ClaimOut, PodMonitorsOut, ReportedOut
from mimawari.watches.streams.state import read_state
from mimawari.watches.streams.tables import states, stats


async def check_monitor(request: Request, system: SystemOf, caller: CallerOf) -> None:
    """Refuse a pod every monitor that is not assigned to it, whether it exists or not."""
    monitor_id = request.path_params.get("monitor_id")
    if caller.pod is None or monitor_id is None:
        return
    async with system.store.read() as reader:
        given_to = await assignments.find_given(reader, clean(monitor_id))
    if given_to != caller.pod:
        raise Forbidden("a pod's token is valid for the monitors of that pod only")


def _check_pod(caller: Caller, named: str) -> None:
    """Refuse a pod the name of another one."""
    if caller.pod != named:
        raise Forbidden(f"this is the token of {caller.pod}, and not of {named}")


router = APIRouter(
    prefix="/internal/v1/monitors",
    route_class=MonitorRoute,
    dependencies=[Depends(check_monitor)],
)


@router.get("")
@open_to(POD)
async def list_of_pod(
    system: SystemOf, caller: CallerOf, given: Annotated[PodAsked, Query()]
) -> PodMonitorsOut:
    """List the monitors that a pod is to run."""
    _check_pod(caller, given.pod)
    async with system.store.read() as reader:
        found = await assignments.list_in(reader, given.pod)
    return PodMonitorsOut(monitors=[monitor.id for monitor in found])


@router.post("/{monitor_id}/claim")
@open_to(POD)
async def claim_monitor(
    system: SystemOf, caller: CallerOf, monitor_id: str, given: ClaimIn
) -> ClaimOut:
    """Give a monitor to a pod, which from now on is the only one that is heard of it."""
    _check_pod(caller, given.pod)
    known = await actions.find(system, clean(monitor_id))
    async with system.store.edit() as tx:
        claim = await claims.claim(tx, known.monitor.id, given.pod)
    return ClaimOut.of(claim, system.settings.zone)


@router.put("/{monitor_id}/status", response_model_exclude_none=True)
@open_to(POD, INSTALLATION)
async def report_status(
    system: SystemOf, caller: CallerOf, monitor_id: str, given: ReportIn
) -> ReportedOut:
    """Take what a runner says of its monitor; of one that is over nothing is taken."""
    if caller.pod is None and given.check is not None:
        raise Forbidden("a check is reported with the token of the pod that made it")
    known = await actions.find(system, clean(monitor_id))
    now, found_id = system.clock.now(), known.monitor.id
    async with system.store.edit() as tx:
        check = given.check
        if check is not None and await claims.is_repeated(tx, found_id, check.id):
            # Its sender has not heard that it was taken.
            return ReportedOut(
                monitor_id=found_id, status=known.monitor.status, version=check.version + 1
            )
        monitor = await _find(tx, found_id)
        status = await _move(tx, monitor, given.status, now)
        if check is not None:
            await claims.pass_fence(tx, found_id, check.version, check.id)
            await _keep_check(tx, system, monitor, status, check)
        await _keep(tx, found_id, given, now)
        if status not in ACTIVE:
            await stop_in(tx, found_id, system.settings)
    version = None if check is None else check.version + 1
    return ReportedOut(monitor_id=found_id, status=status, version=version)


async def _find(tx: Tx, monitor_id: str) -> Monitor:
    found = await sync.find_active(tx, monitor_id)
    if found is None:
        raise Ended("the monitor is over, and nothing changes about it")
    return found[0]


async def _move(tx: Tx, monitor: Monitor, wanted: Status | None, now: datetime) -> Status:
    """Set how a monitor stands; it only ever goes on, from one status to a later one."""
    status = monitor.status
    if wanted in ACTIVE and ACTIVE.index(wanted) < ACTIVE.index(status):
        raise Behind(f"the monitor is {status} already, and does not go back to {wanted}")
    if not await sync.set_status(tx, monitor.id, wanted or status, now):
        raise Ended("the monitor has just ended, and nothing changes about it")
    return wanted or status


async def _keep_check(
    tx: Tx, system: System, monitor: Monitor, status: Status, check: CheckIn
) -> None:
    """Keep what a check of a pod found with what is told of it."""
    try:
        state = read_state(check.state)
    except ValidationError as error:
        raise BadInput(
            f"check.state is no state of a monitor: {error.error_count()} errors"
        ) from error
    notices = tuple(Notice(type=one.type, at=one.at, data=one.data) for one in check.notices)
    now = system.clock.now()
    step = Step(
        status=status, stream_status=check.stream_status, state=state, next_at=now,
        reason=check.reason, notices=notices,
    )  # fmt: skip
    await sync.keep_found(tx, monitor, step, now, system.settings.zone)


async def _keep(tx: Tx, monitor_id: str, given: ReportIn, now: datetime) -> None:
    standing = given.health.model_dump(exclude_none=True) if given.health else {}
    if given.status is not None and given.status not in ACTIVE and given.check is None:
        standing |= {"ended_at": now, "reason": "its runner says so"}
    if standing:
        await tx.execute(update(states).where(states.c.monitor_id == monitor_id).values(standing))
    counted: dict[str, Any] = {"last_check_at": now}
    if given.statistics is not None:
        counted |= {
            "total_segments": given.statistics.total_segments_analyzed,
            "blackout_events": given.statistics.blackout_events,
            "silence_events": given.statistics.silence_events,
        }
    await tx.execute(update(stats).where(stats.c.monitor_id == monitor_id).values(counted))
